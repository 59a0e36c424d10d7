//! The shell: reads statements and backslash commands from a terminal, and runs one after the other.
//!
//! What fails is said and the shell goes on; of what was typed together with it, the rest is left out.

mod command;
mod complete;
mod describe;
mod input;
mod names;
mod place;
mod settings;

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use hypseq_cache::{Home, Problem};
use hypseq_engine::{Engine, ScalarValue};
use rustyline::config::{Behavior, BellStyle, Config};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{CompletionType, Editor};

use crate::batches::{Expanded, Style};
use crate::canned;
use crate::cli::Format;
use crate::commands::query::List;
use crate::executor::{self, Outcome, Starting};
use crate::exit;
use crate::grid::Grid;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use crate::sentence::{count, grouped};
use crate::syntax::pointed;

use self::command::{COMMANDS, Command};
use self::complete::Complete;
use self::input::{Piece, Typed, take_apart};
use self::names::{DEFAULT_SCHEMA, Names};
use self::settings::Settings;

const PROMPT: &str = "hyp> ";
const HISTORY_ENTRIES: usize = 10_000;

/// Runs what is typed until the end of input or `\q`.
pub async fn run(engine: &Engine, homes: &[Home], printer: &Printer) -> Result<()> {
    let names = Names::read(engine).await?;
    printer.note(&banner(homes, &names));
    let mut shell = Shell::new(engine, homes, printer, names)?;
    let mut typed = String::new();
    let mut waiting = String::new();
    let mut open = '-';
    loop {
        let prompt = if waiting.is_empty() { PROMPT.to_owned() } else { format!("  {open}> ") };
        match shell.read_line(&prompt, &waiting) {
            Ok(line) => {
                for text in [&mut typed, &mut waiting] {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                typed.clear();
                waiting.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("cannot read from the terminal"),
        }
        let Typed { pieces, rest, open: still_open } = take_apart(&waiting);
        if rest.is_empty() {
            shell.remember(typed.trim_end());
            typed.clear();
        }
        let mut done = waiting.len() - rest.len();
        for piece in pieces {
            match shell.run(piece).await {
                Ok(ControlFlow::Continue(())) => continue,
                Ok(ControlFlow::Break(Stop::Typed)) => {}
                Ok(ControlFlow::Break(Stop::Shell)) => return Ok(()),
                Err(error) if exit::is_closed_pipe(&error) => return Err(error),
                Err(error) => printer.error(&format!("{error:#}")),
            }
            shell.remember(typed.trim_end());
            typed.clear();
            done = waiting.len();
            break;
        }
        open = still_open;
        waiting.drain(..done);
    }
}

/// What does not go on.
enum Stop {
    /// The rest of what was typed together: a statement was cancelled.
    Typed,
    Shell,
}

/// A statement with the values of its parameters.
type Bound = (String, Vec<(String, ScalarValue)>);

struct Shell<'a> {
    engine: &'a Engine,
    homes: &'a [Home],
    printer: &'a Printer,
    editor: Editor<Complete, FileHistory>,
    history: Option<PathBuf>,
    settings: Settings,
    interrupt: Interrupt,
    last: Option<Bound>,
    /// Problems that statements came upon, as far as they were shown.
    problems: Vec<Problem>,
}

impl<'a> Shell<'a> {
    fn new(engine: &'a Engine, homes: &'a [Home], printer: &'a Printer, names: Names) -> Result<Self> {
        let config = Config::builder()
            // What is typed goes to the terminal, also where stdout is a file that wants rows only.
            .behavior(Behavior::PreferTerm)
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .bell_style(BellStyle::None)
            .max_history_size(HISTORY_ENTRIES)?
            .build();
        let mut editor = Editor::with_history(config.clone(), FileHistory::with_config(&config))?;
        editor.set_helper(Some(Complete::new(names, canned::all(None)?)));
        let history = place::history(homes).and_then(|path| {
            if path.exists() {
                editor.load_history(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            }
            Ok(path)
        });
        let history = history.map_err(|error| printer.detail(&format!("history ends with the shell: {error:#}"))).ok();
        let settings = Settings::new(printer.format, io::stdout().is_terminal());
        let interrupt = Interrupt::take().context("cannot handle Ctrl-C")?;
        Ok(Self { engine, homes, printer, editor, history, settings, interrupt, last: None, problems: Vec::new() })
    }

    fn read_line(&mut self, prompt: &str, before: &str) -> rustyline::Result<String> {
        if let Some(helper) = self.editor.helper_mut() {
            before.clone_into(&mut helper.before);
        }
        self.editor.readline(prompt)
    }

    /// Adds an entry to the history, in its file too, so that a shell that is killed leaves it.
    fn remember(&mut self, typed: &str) {
        if typed.is_empty() || !self.editor.history_mut().add(typed).unwrap_or(false) {
            return;
        }
        let Some(path) = &self.history else { return };
        if let Err(error) = self.editor.append_history(path) {
            self.printer.detail(&format!("history ends with the shell: cannot write `{}`: {error}", path.display()));
            self.history = None;
        }
    }

    async fn run(&mut self, piece: Piece<'_>) -> Result<ControlFlow<Stop>> {
        match piece {
            Piece::Statement(sql) => self.statement((sql.to_owned(), Vec::new()), None).await,
            Piece::Command(text) => self.command(text.parse()?).await,
            Piece::Ended(sql, text) => match text.parse()? {
                Command::Go(file) => self.statement((sql.to_owned(), Vec::new()), file.as_deref()).await,
                _ => bail!(
                    "`{text}` stands in the middle of a statement\n  hint: only \\g may; end the statement with `;`, or drop it \
                     with Ctrl-C"
                ),
            },
        }
    }

    async fn command(&mut self, command: Command) -> Result<ControlFlow<Stop>> {
        match command {
            Command::Quit => return Ok(ControlFlow::Break(Stop::Shell)),
            Command::Help => self.printer.text(&help(self.width()))?,
            Command::Describe(table) => {
                let printer = self.style().printer;
                describe::describe(&self.helper()?.names, table.as_deref(), &printer)?;
            }
            Command::Go(file) => {
                let last = self.last.clone().context("there is no statement to run\n  hint: type one before \\g")?;
                return self.statement(last, file.as_deref()).await;
            }
            Command::Include(file) => {
                let script = fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
                let engine = self.engine;
                let statements = engine.parse(&script).map_err(|error| pointed(error.into(), &script));
                for statement in statements.with_context(|| format!("`{}`", file.display()))? {
                    let ended = self.execute(Box::pin(engine.execute(&statement)), None).await?;
                    if ended.is_break() {
                        return Ok(ended);
                    }
                }
            }
            Command::Query(None) => {
                let printer = self.style().printer;
                printer.report(&List { queries: &self.helper()?.queries })?;
            }
            Command::Query(Some((name, params))) => {
                let bound = self.bind(&name, &params)?;
                return self.statement(bound, None).await;
            }
            Command::Timing(timing) => {
                self.settings.timing = timing.unwrap_or(!self.settings.timing);
                self.printer.note(if self.settings.timing { "timing is on" } else { "timing is off" });
            }
            Command::Expanded(expanded) => {
                let other = if self.settings.expanded == Expanded::On { Expanded::Auto } else { Expanded::On };
                self.settings.expanded = expanded.unwrap_or(other);
                self.printer.note(&format!("one column per line is {}", self.settings.expanded()));
            }
            Command::Set(settings) => {
                for setting in &settings {
                    self.settings.set(*setting);
                }
                if settings.is_empty() {
                    self.printer.text(&self.settings.text())?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A canned query with its values.
    fn bind(&self, name: &str, params: &[String]) -> Result<Bound> {
        if self.homes.len() > 1 {
            bail!(
                "{} are open, and a canned query would mix their rows\n  hint: `hypseq query {name}` asks each home apart; or \
                 open the shell on one home",
                count(self.homes.len() as u64, "home")
            );
        }
        let Complete { queries, .. } = self.helper()?;
        let query = queries.iter().find(|query| query.name == name);
        let query = query.with_context(|| {
            let names: Vec<&str> = queries.iter().map(|query| query.name.as_str()).collect();
            format!("there is no query `{name}`\n  hint: there are {}", names.join(", "))
        })?;
        let bound = query.bind(params, None, self.engine);
        // Parameters stand alone here.
        let bound = bound.map_err(|error| anyhow!(format!("{error:#}").replace("    --param ", "    ")))?;
        Ok((bound.sql, bound.values))
    }

    /// Runs a statement, which is then the last one.
    async fn statement(&mut self, (sql, values): Bound, file: Option<&Path>) -> Result<ControlFlow<Stop>> {
        self.last = Some((sql.clone(), values.clone()));
        let engine = self.engine;
        self.execute(Box::pin(engine.query_with_params(&sql, values)), file).await.map_err(|error| pointed(error, &sql))
    }

    async fn execute(&mut self, starting: Starting<'_>, file: Option<&Path>) -> Result<ControlFlow<Stop>> {
        let began = Instant::now();
        let outcome = match file {
            None => {
                let watch = self.interrupt.watch();
                executor::run(starting, &self.style(), Some(&watch), io::stdout().lock()).await
            }
            Some(path) => self.write(starting, path).await,
        };
        let took = began.elapsed();
        self.show_new_problems();
        let outcome = outcome?;
        self.remark(outcome, file);
        if self.settings.timing {
            self.printer.note(&format!("time: {}", duration(took)));
        }
        if !outcome.has_columns {
            let engine = self.engine;
            if let Some(helper) = self.editor.helper_mut() {
                helper.names.read_tables(engine).await?;
            }
        }
        Ok(if outcome.shown.cancelled { ControlFlow::Break(Stop::Typed) } else { ControlFlow::Continue(()) })
    }

    /// Writes all rows to a new file, which is removed again where they are not all there.
    async fn write(&mut self, starting: Starting<'_>, path: &Path) -> Result<Outcome> {
        let style = Style::once(&self.printer.to_file(place::format(path)?));
        let file: File = place::new_file(path, self.homes)?;
        let watch = self.interrupt.watch();
        let outcome = executor::run(starting, &style, Some(&watch), file).await;
        if !outcome.as_ref().is_ok_and(|outcome| !outcome.shown.cancelled) {
            fs::remove_file(path).with_context(|| format!("cannot remove `{}`, which is not whole", path.display()))?;
        }
        outcome
    }

    /// What the rows themselves do not say.
    fn remark(&self, outcome: Outcome, file: Option<&Path>) {
        let shown = outcome.shown;
        let rows = count(shown.of, "row");
        if shown.cancelled {
            let rest = match file {
                Some(path) => format!("; `{}` is not kept", path.display()),
                None if shown.rows < shown.of => format!(", {} of them shown", grouped(shown.rows)),
                None => String::new(),
            };
            self.printer.note(&format!("cancelled after {rows}{rest}"));
        } else if !outcome.has_columns {
            self.printer.note("done");
        } else if let Some(path) = file {
            self.printer.note(&format!("{rows} written to `{}`", path.display()));
        } else if shown.rows < shown.of && self.settings.format != Format::Table {
            self.printer.note(&format!("{} of {rows}; \\pset rows all shows all", grouped(shown.rows)));
        }
    }

    /// Says what statements have found to be unreadable since this was last said.
    fn show_new_problems(&mut self) {
        let new = self.engine.problems().into_iter().filter(|problem| !self.problems.contains(problem));
        let new: Vec<Problem> = new.collect();
        self.printer.problems(&new);
        self.problems.extend(new);
    }

    fn helper(&self) -> Result<&Complete> {
        self.editor.helper().context("the shell has no names")
    }

    /// Columns of the screen as it is now; none where rows do not go to one.
    fn width(&mut self) -> Option<usize> {
        let dimensions = self.editor.dimensions();
        self.printer.width.map(|width| dimensions.map_or(width, |(columns, _)| usize::from(columns)))
    }

    fn style(&mut self) -> Style {
        let mut printer = *self.printer;
        printer.width = self.width();
        printer.format = self.settings.format;
        let lines = self.editor.dimensions().map(|(_, lines)| lines);
        let limit = self.settings.limit(lines);
        Style { printer, expanded: self.settings.expanded, limit, shell: true }
    }
}

fn banner(homes: &[Home], names: &Names) -> String {
    let datasets = names.tables.iter().filter(|table| table.schema == DEFAULT_SCHEMA).count();
    let place = match homes {
        [home] => home.root().display().to_string(),
        homes => count(homes.len() as u64, "home"),
    };
    let datasets = count(datasets as u64, "dataset");
    format!("{place}: {datasets}\nStatements end with `;`. \\? lists the commands, \\q ends the shell.")
}

fn help(width: Option<usize>) -> String {
    let mut grid = Grid::new(&["command", "does"]);
    grid.row(["SELECT …;", "run a statement; it may go over several lines"]);
    for (name, takes, does) in COMMANDS {
        grid.row([format!("{name} {takes}").trim_end(), does]);
    }
    grid.row(["Tab", "complete keywords, names, functions, queries and files"]);
    grid.row(["Ctrl-C", "drop what is typed, or cancel what runs"]);
    grid.aligned(0, width)
}

fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        0..1000 => format!("{:.1} ms", duration.as_secs_f64() * 1000.0),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}
