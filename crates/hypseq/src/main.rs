//! `hypseq`: offline parquet forensics and seq resolution for HypAware caches.

mod answer;
mod batches;
mod boundary;
mod canned;
mod census;
mod cli;
mod commands;
mod drifting;
mod duration;
mod executor;
mod exit;
mod explain;
mod exported;
mod figures;
mod fleet;
mod follow;
mod grid;
mod hole;
mod interrupt;
mod json;
mod judging;
mod live;
mod memory;
mod opened;
mod outgoing;
mod outlier;
mod plan_text;
mod plan_verdict;
mod planning;
mod printer;
mod progress;
mod proof;
mod proving;
mod refusal;
mod replan;
mod select;
mod sentence;
mod shell;
mod sizing;
mod survey;
mod syntax;
mod time;
mod watcher;
mod watermarks;
mod world;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::cli::{Cli, Command, Plan};
use crate::exit::ExitStatus;
use crate::printer::Printer;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let printer = Printer::new(&cli.global);
    silence_guarded_panics();
    match run(&cli, &printer) {
        Ok(status) => status.into(),
        Err(error) if exit::is_closed_pipe(&error) => ExitStatus::Yes.into(),
        Err(error) => {
            printer.error(&format!("{error:#}"));
            ExitStatus::CouldNotTell.into()
        }
    }
}

/// A decoder's panic on a damaged file is reported as that file's problem; the hook need not say it as well.
fn silence_guarded_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !hypseq_iceberg::is_guarded() {
            hook(info);
        }
    }));
}

fn run(cli: &Cli, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let global = &cli.global;
    match &cli.command {
        Command::Status(args) => commands::status::run(global, args, printer),
        Command::Sql(args) => commands::sql::run(global, args, printer),
        Command::Query(args) => commands::query::run(global, args, printer),
        Command::Resolve(args) => commands::resolve::run(global, args, printer),
        Command::Verify(args) => commands::verify::run(global, args, printer),
        Command::Plan(Plan::Rewind(args)) => commands::plan_rewind::run(global, args, printer),
        Command::Plan(Plan::Show(args)) => commands::plan_show::run(args, printer),
        Command::Plan(Plan::Check(args)) => commands::plan_check::run(global, args, printer),
        Command::Plan(Plan::Apply(args)) => commands::plan_apply::run(global, args, printer),
        Command::Plan(Plan::Undo(args)) => commands::plan_undo::run(global, args, printer),
        Command::Plan(Plan::List) => commands::plan_list::run(global, printer),
        Command::Plan(Plan::Schema) => commands::plan_schema::run(printer),
        Command::Completions(args) => commands::completions::run(args, printer),
        Command::Man(args) => commands::man::run(args, printer),
    }
}
