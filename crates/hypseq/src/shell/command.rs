//! The backslash commands: what each is called, what it takes, and what it does.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Error, Result, anyhow, bail};
use clap::ValueEnum;

use crate::batches::Expanded;
use crate::cli::Format;

/// One backslash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Help,
    Describe(Option<String>),
    Go(Option<PathBuf>),
    Include(PathBuf),
    Query(Option<(String, Vec<String>)>),
    Timing(Option<bool>),
    Expanded(Option<Expanded>),
    Set(Vec<Setting>),
    Quit,
}

/// A setting of `\pset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    Rows(Rows),
    Format(Format),
}

/// How many rows of a result are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    All,
    /// As many as fit on the screen.
    Screen,
    Most(u64),
}

/// Every command: its name, what it takes, what it does.
pub const COMMANDS: [(&str, &str, &str); 9] = [
    (r"\?", "", "this list"),
    (r"\d", "[TABLE]", "all tables, or the columns of one"),
    (r"\g", "[FILE]", "run the statement (or the last one again), its rows to a new .csv, .json, .ndjson, .md or .txt"),
    (r"\i", "FILE", "run the statements of a file"),
    (r"\query", "[NAME [K=V …]]", "the canned queries, or run one"),
    (r"\timing", "[on|off]", "say how long each statement took"),
    (r"\x", "[auto|on|off]", "one column per line: where columns do not fit (auto), always, never"),
    (r"\pset", "[rows all|screen|N] [format table|json|ndjson|csv|markdown]", "how results are shown"),
    (r"\q", "", "end; so does Ctrl-D"),
];

impl FromStr for Command {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(table) = text.strip_prefix(r"\d").filter(|rest| rest.starts_with(char::is_whitespace)) {
            // Its quotes are those of SQL.
            let table = table.trim();
            return Ok(Self::Describe((!table.is_empty()).then(|| table.to_owned())));
        }
        let words = words(text)?;
        let (name, arguments) = words.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let command = match (name, arguments.as_slice()) {
            (r"\?", []) => Self::Help,
            (r"\d", []) => Self::Describe(None),
            (r"\g", []) => Self::Go(None),
            (r"\g", [file]) => Self::Go(Some(path(file))),
            (r"\i", [file]) => Self::Include(path(file)),
            (r"\query", []) => Self::Query(None),
            (r"\query", [query, params @ ..]) => {
                Self::Query(Some(((*query).to_owned(), params.iter().map(ToString::to_string).collect())))
            }
            (r"\timing", []) => Self::Timing(None),
            (r"\timing", ["on"]) => Self::Timing(Some(true)),
            (r"\timing", ["off"]) => Self::Timing(Some(false)),
            (r"\x", []) => Self::Expanded(None),
            (r"\x", ["auto"]) => Self::Expanded(Some(Expanded::Auto)),
            (r"\x", ["on"]) => Self::Expanded(Some(Expanded::On)),
            (r"\x", ["off"]) => Self::Expanded(Some(Expanded::Off)),
            (r"\pset", settings) => Self::Set(pairs(settings).ok_or_else(|| misused(text, name))?),
            (r"\q", []) => Self::Quit,
            _ => return Err(misused(text, name)),
        };
        Ok(command)
    }
}

/// What is meant where a command is not.
fn misused(text: &str, name: &str) -> Error {
    if let Some((_, takes, does)) = COMMANDS.iter().find(|(known, ..)| *known == name) {
        return anyhow!("`{text}` is not what {name} takes\n  hint: {name} {takes}  {does}");
    }
    let names: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
    anyhow!("there is no command `{name}`\n  hint: there are {}; \\? says what each does", names.join(" "))
}

fn pairs(words: &[&str]) -> Option<Vec<Setting>> {
    let pairs = words.chunks(2).map(|pair| match pair {
        ["rows", "all"] => Some(Setting::Rows(Rows::All)),
        ["rows", "screen"] => Some(Setting::Rows(Rows::Screen)),
        ["rows", number] => number.parse().ok().filter(|n| *n > 0).map(|n| Setting::Rows(Rows::Most(n))),
        ["format", format] => Format::from_str(format, false).ok().map(Setting::Format),
        _ => None,
    });
    pairs.collect()
}

/// A file as it was typed; `~` is the person's own folder.
fn path(typed: &str) -> PathBuf {
    match typed.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(typed),
    }
}

/// The words of a command. Quotes keep blanks together, and so does a `\` before one, but for that of the command's name.
fn words(text: &str) -> Result<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\\') if word.is_some() || !words.is_empty() => {
                word.get_or_insert_default().extend(chars.next());
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        bail!("`{text}` ends within a quotation\n  hint: close it with {quote}");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Command {
        text.parse().expect("a command")
    }

    fn refusal(text: &str) -> String {
        text.parse::<Command>().expect_err("refused").to_string()
    }

    #[test]
    fn each_command_parses() {
        assert_eq!(parsed(r"\?"), Command::Help);
        assert_eq!(parsed(r"\d"), Command::Describe(None));
        assert_eq!(parsed("\\d \t"), Command::Describe(None));
        assert_eq!(parsed(r#"\d  raw."a ""b" "#), Command::Describe(Some(r#"raw."a ""b""#.to_owned())));
        assert_eq!(parsed(r"\g 'my file.csv'"), Command::Go(Some(PathBuf::from("my file.csv"))));
        assert_eq!(parsed(r"\i my\ file.sql"), Command::Include(PathBuf::from("my file.sql")));
        let (name, params) = ("around".to_owned(), vec!["seq=9".to_owned(), "at=2h ago".to_owned()]);
        assert_eq!(parsed(r"\query around seq=9 at='2h ago'"), Command::Query(Some((name, params))));
        assert_eq!(parsed(r"\timing"), Command::Timing(None));
        assert_eq!(parsed(r"\timing off"), Command::Timing(Some(false)));
        assert_eq!(parsed(r"\x auto"), Command::Expanded(Some(Expanded::Auto)));
        let settings = vec![Setting::Rows(Rows::Most(5)), Setting::Format(Format::Csv)];
        assert_eq!(parsed(r"\pset rows 5 format csv"), Command::Set(settings));
        assert_eq!(parsed(r"\pset"), Command::Set(Vec::new()));
        assert_eq!(parsed(r"\q"), Command::Quit);
    }

    #[test]
    fn home_is_the_persons_own_folder() {
        let home = std::env::home_dir().expect("a home");
        assert_eq!(parsed("\\i ~/a.sql"), Command::Include(home.join("a.sql")));
    }

    #[test]
    fn what_is_unknown_lists_what_there_is() {
        let there_are = r"there are \? \d \g \i \query \timing \x \pset \q; \? says what each does";
        assert_eq!(refusal(r"\foo bar"), format!("there is no command `\\foo`\n  hint: {there_are}"));
    }

    #[test]
    fn what_is_malformed_says_what_is_meant() {
        assert_eq!(
            refusal(r"\timing maybe"),
            "`\\timing maybe` is not what \\timing takes\n  hint: \\timing [on|off]  say how long each statement took"
        );
        for text in [r"\x 1", r"\i", r"\pset rows", r"\pset rows 0", r"\pset format xml", r"\pset a b", r"\q 1"] {
            assert!(refusal(text).contains("is not what"), "{text}");
        }
        assert!(refusal(r"\g 'a").contains("close it with '"));
    }
}
