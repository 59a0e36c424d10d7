//! What can be typed: the clap types, and nothing else. Nothing is opened here.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// Offline parquet forensics and seq resolution for HypAware caches.
#[derive(Debug, Parser)]
#[command(name = "hypseq", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Example: hypseq --home ~/.hyp status")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// A HypAware home; may be repeated or be a glob [default: $HYP_HOME, else ~/.hyp]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Vec<String>,
    /// A bare copy of a cache root (the folder that holds `datasets/`); there are no watermarks then
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "home")]
    pub cache: Vec<String>,
    /// How to print the answer
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Say nothing beside the answer and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more beside the answer
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
    /// One JSON object per line
    Ndjson,
    /// Comma-separated values with a header
    Csv,
    /// A Markdown table
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What is in the cache, and how far each sink believes it has sent
    Status(Status),
    /// Run SQL over the cache, every internal column included
    Sql(Sql),
    /// Run a canned query
    Query(Query),
    /// Find the boundary of a time, with what each choice would cost
    Resolve(Resolve),
    /// Check a boundary in every generation
    Verify(Verify),
    /// Write and read rewind plans
    #[command(subcommand)]
    #[command(
        after_help = "Example: hypseq plan rewind --sink central --since 2026-07-28T21:00:00Z \\\n           --reason 'opt-out of 28 July' --out rewind.json"
    )]
    Plan(Plan),
    /// Print a script that completes commands and options in a shell
    Completions(Completions),
    /// Print the manual page
    Man(Man),
}

/// Which partition is meant.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The dataset; may be left out when only one fits
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// The partition's path below the dataset, such as `source=claude`; may be left out when only one fits
    #[arg(long, value_name = "PATH")]
    pub partition: Option<String>,
    /// Use this generation instead of the live one
    #[arg(long, value_name = "NAME")]
    pub generation: Option<String>,
    /// The column that holds a row's time, for a dataset whose column is not known
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,
}

/// Rows to leave out of a resolution; they are still counted as lost or resent.
#[derive(Debug, Clone, Default, Args)]
pub struct LeaveOut {
    /// Leave rows with a time outside this range out of the resolution; either end may be empty
    #[arg(long, value_name = "FROM..TO")]
    pub ignore_times_outside: Option<String>,
    /// Leave the rows for which this SQL predicate is true out of the resolution
    #[arg(long, value_name = "PREDICATE")]
    pub exclude: Option<String>,
}

/// The zone of times that are typed without one.
#[derive(Debug, Clone, Args)]
pub struct Zone {
    /// Read times without a zone in this one, such as `Europe/Berlin` or `UTC`
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq --home ~/.hyp status --format json")]
pub struct Status {
    /// Only this dataset
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// Only this partition
    #[arg(long, value_name = "PATH")]
    pub partition: Option<String>,
    /// Read every file, not only those that can change the answer
    #[arg(long)]
    pub full_scan: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without a statement: a shell on a terminal, else the statements of stdin.\n\nSchemas: live (the default; what the daemon reads), raw (every physical row), complete (one row per seq), spool (not yet flushed), cache (the metadata). SHOW TABLES lists all tables.\n\nExample: hypseq sql -c 'SELECT max(_hyp_ingest_seq) FROM ai_gateway_messages'"
)]
pub struct Sql {
    /// A statement, or several with `;` between; may be repeated
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// A file of statements; may be repeated, and runs after the commands
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub memory: Memory,
}

/// How much memory queries may use.
#[derive(Debug, Clone, Default, Args)]
pub struct Memory {
    /// Spill to disk beyond this much memory, such as `512MiB` or `4GB` [default: half of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<ByteSize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq query rows-around-seq --param seq=722")]
pub struct Query {
    /// Which query; see --list
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// A parameter's value; may be repeated
    #[arg(long = "param", value_name = "K=V")]
    pub params: Vec<String>,
    /// List the queries
    #[arg(long, conflicts_with_all = ["name", "params", "show"])]
    pub list: bool,
    /// Print the query's SQL instead of running it
    #[arg(long)]
    pub show: bool,
    /// Take queries from this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub queries: Option<PathBuf>,
    #[command(flatten)]
    pub zone: Zone,
    #[command(flatten)]
    pub memory: Memory,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq resolve --partition source=claude --at 2026-07-28T21:00:00Z")]
pub struct Resolve {
    #[command(flatten)]
    pub point: ResolvePoint,
    /// Read every file, not only those that can change the answer
    #[arg(long)]
    pub full_scan: bool,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub leave_out: LeaveOut,
    #[command(flatten)]
    pub zone: Zone,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ResolvePoint {
    /// A time: RFC 3339 with zone, `@` and epoch seconds or milliseconds, or `2h ago`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
    /// A seq: the boundary after the last row at or below it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub seq: Option<String>,
    /// A row's id: the boundary after that row
    #[arg(long, value_name = "PART_ID")]
    pub id: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq verify --partition source=claude --at 2026-07-28T21:00:00Z")]
pub struct Verify {
    #[command(flatten)]
    pub point: VerifyPoint,
    /// Compare seq, time and id of every row, not only the rows at the boundary and the counts
    #[arg(long)]
    pub full_scan: bool,
    /// Compare the content of every column of every row
    #[arg(long)]
    pub deep: bool,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub leave_out: LeaveOut,
    #[command(flatten)]
    pub zone: Zone,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct VerifyPoint {
    /// A time; its safe boundary is verified
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
    /// A seq; the boundary after it is verified
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub seq: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Plan to set watermarks back; a dry run unless --out is given
    Rewind(Box<PlanRewind>),
    /// Print a plan
    #[command(after_help = "Example: hypseq plan show rewind.json")]
    Show(PlanFile),
    /// Check every guard of a plan, and derive its figures again; changes nothing
    #[command(after_help = "Example: hypseq --home ~/.hyp plan check rewind.json")]
    Check(PlanFile),
    /// Set the watermarks of a plan back, once
    Apply(PlanApply),
    /// Take a plan back that was applied; a dry run unless --apply is given
    Undo(PlanUndo),
    /// List the plans that were applied, and what became of each
    #[command(after_help = "Example: hypseq --home ~/.hyp plan list --format json")]
    List,
    /// Print the JSON Schema of plans
    #[command(after_help = "Example: hypseq plan schema")]
    Schema,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "hypseq plan rewind [OPTIONS] --sink <INSTANCE> --reason <TEXT>\n                          <--since <TIME>|--to-seq <N>>",
    after_help = "Example: hypseq plan rewind --sink central --partition source=claude \\\n           --since 2026-07-28T21:00:00Z --reason 'opt-out of 28 July' \\\n           --out rewind.json"
)]
pub struct PlanRewind {
    /// The sink instance whose watermark goes back, or PLUGIN/INSTANCE
    #[arg(long, value_name = "INSTANCE")]
    pub sink: String,
    #[command(flatten)]
    pub point: PlanPoint,
    /// Why; it stands in the plan
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The dataset; may be left out when only one fits
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// The partition's path; may be repeated, or left out when only one fits
    #[arg(long, value_name = "PATH")]
    pub partition: Vec<String>,
    /// Every partition of the sink with suspected unsent rows
    #[arg(long, conflicts_with = "partition")]
    pub all_gaps: bool,
    /// The column that holds a row's time, for a dataset whose column is not known
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,
    /// Which of two answers to take
    #[arg(long, value_enum, default_value_t = Policy::Safe)]
    pub policy: Policy,
    /// Go by the rows alone, without asking the manifests first
    #[arg(long)]
    pub full_scan: bool,
    #[command(flatten)]
    pub leave_out: LeaveOut,
    #[command(flatten)]
    pub zone: Zone,
    /// Write the plan here (mode 0600); an existing file is never overwritten
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Hours until a consumer must refuse the plan
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=720))]
    pub expires_in: u16,
    #[command(flatten)]
    pub accept: Accept,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PlanPoint {
    /// Send every row after this time again
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<String>,
    /// Send every row above this seq again
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub to_seq: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// The highest watermark that loses nothing
    Safe,
    /// The least watermark that sends nothing twice; loses rows where the two differ
    Tight,
}

/// Acceptances; none implies another.
#[derive(Debug, Clone, Args)]
pub struct Accept {
    /// Accept that exactly this many rows are never sent
    #[arg(long = "accept-loss", value_name = "N")]
    pub loss: Option<u64>,
    /// Accept that policy withholds rows again
    #[arg(long = "accept-withheld")]
    pub withheld: bool,
    /// Accept a boundary that the generations do not prove
    #[arg(long = "accept-unproven")]
    pub unproven: bool,
    /// Accept that everything is sent again
    #[arg(long = "accept-full-resend")]
    pub full_resend: bool,
}

#[derive(Debug, Args)]
pub struct PlanFile {
    /// The plan
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq --home ~/.hyp plan apply rewind.json --watch")]
pub struct PlanApply {
    /// The plan
    pub file: PathBuf,
    /// Time the swap by the daemon's own writes, and judge what the following ticks make of it
    #[arg(long)]
    pub watch: bool,
    /// How long to watch at most: half of it for the daemon's write before the swap, such as 30s, 10m or 1h
    #[arg(long, value_name = "SPAN", default_value = "10m", requires = "watch", value_parser = crate::duration::parse)]
    pub timeout: std::time::Duration,
    /// How often to swap again when a tick in flight wrote over the swap
    #[arg(long, value_name = "N", default_value_t = 3, requires = "watch")]
    pub retries: u8,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq --home ~/.hyp plan undo rewind.json --apply")]
pub struct PlanUndo {
    /// The plan that was applied, or its inverse
    pub file: PathBuf,
    /// Set the watermarks back to where they were before the rewind
    #[arg(long)]
    pub apply: bool,
    /// Write the inverse plan here (mode 0600); an existing file is never overwritten
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: hypseq completions bash \\\n           > ~/.local/share/bash-completion/completions/hypseq"
)]
pub struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: hypseq man plan rewind | man -l -")]
pub struct Man {
    /// The page of this command, such as `plan rewind`; the whole program where none is named
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every command below one, and the one itself, with the names that lead to it.
    fn all(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let path = format!("{path} {}", command.get_name()).trim().to_owned();
        let below = command.get_subcommands().filter(|c| c.get_name() != "help").flat_map(|c| all(c, &path));
        [(path.clone(), command.clone())].into_iter().chain(below).collect()
    }

    /// Words as a shell takes them apart, up to a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for (index, part) in line.replace("\\\n", " ").split('\'').enumerate() {
            if index % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        let end = words.iter().position(|word| [">", "|"].contains(&word.as_str())).unwrap_or(words.len());
        words.truncate(end);
        words
    }

    #[test]
    fn every_command_ends_its_help_with_an_example_that_parses() {
        let mut program = Cli::command();
        program.build();
        let commands = all(&program, "");
        assert!(commands.len() >= 16, "{}", commands.len());
        for (path, mut command) in commands {
            let help = command.render_long_help().to_string();
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example = after.rsplit_once("Example: ").unwrap_or_else(|| panic!("`{path} --help` has no example")).1;
            assert_eq!(after.matches("Example: ").count(), 1, "{path}");
            assert!(help.trim_end().ends_with(example), "`{path} --help` goes on after its example");
            let shown = format!("Example: {example}");
            assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
            let words = words(example);
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {}", parsed.err().map(|e| e.to_string()).unwrap_or_default());
            let subject: Vec<&str> = path.split(' ').skip(1).collect();
            assert!(subject.iter().all(|name| words.iter().any(|word| word == name)), "{path}: {example}");
        }
    }
}
