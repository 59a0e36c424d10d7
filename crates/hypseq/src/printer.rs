//! The one place that writes to stdout, and to stderr beside it.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use hypseq_cache::{Problem, Severity};
use serde::Serialize;

use crate::cli::{Color, Format, Global};
use crate::grid::Grid;
use crate::progress::Progress;

/// Where answers and remarks go, and in which form.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent choice of the operator's")]
pub struct Printer {
    pub format: Format,
    /// Columns of the terminal; none where the output is not one and lines may be as long as they need.
    pub width: Option<usize>,
    quiet: bool,
    verbose: bool,
    color: bool,
    error_color: bool,
}

/// An answer in all its forms.
pub trait Report {
    /// What `--format json` prints.
    fn json(&self) -> serde_json::Value;

    /// What a person reads.
    fn text(&self, printer: &Printer) -> String;

    /// One row per thing, for CSV and Markdown.
    fn grid(&self) -> Grid;
}

impl Printer {
    pub fn new(global: &Global) -> Self {
        let wanted = |terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        let terminal = io::stdout().is_terminal();
        Self {
            format: global.format,
            width: width(terminal),
            quiet: global.quiet,
            verbose: global.verbose > 0,
            color: wanted(terminal),
            error_color: wanted(io::stderr().is_terminal()),
        }
    }

    /// Prints one answer.
    pub fn report(&self, report: &impl Report) -> Result<()> {
        match self.format {
            Format::Table => self.text(&report.text(self)),
            Format::Json => self.json(&report.json()),
            Format::Ndjson => self.ndjson(&report.json()),
            Format::Csv => self.text(&report.grid().csv()?),
            Format::Markdown => self.text(&report.grid().markdown()),
        }
    }

    /// Prints the answers of one home, or of a fleet: JSON as one array, everything else one after the other.
    pub fn reports<R: Report>(&self, reports: &[R], fleet: bool) -> Result<()> {
        match (self.format, reports) {
            (_, [one]) if !fleet => self.report(one),
            (Format::Json, _) => self.json(&reports.iter().map(Report::json).collect::<Vec<_>>()),
            (Format::Csv | Format::Markdown, _) => {
                let mut grids = reports.iter().map(Report::grid);
                let Some(first) = grids.next() else { return Ok(()) };
                let all = grids.fold(first, Grid::append);
                self.text(&if self.format == Format::Csv { all.csv()? } else { all.markdown() })
            }
            _ => reports.iter().enumerate().try_for_each(|(index, report)| {
                if index > 0 && self.format == Format::Table {
                    self.text("\n")?;
                }
                self.report(report)
            }),
        }
    }

    /// Text to stdout as it is.
    #[expect(clippy::unused_self, reason = "whoever prints has been handed the printer")]
    pub fn text(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    fn json(&self, value: &impl Serialize) -> Result<()> {
        self.text(&format!("{}\n", serde_json::to_string_pretty(value)?))
    }

    fn ndjson(&self, value: &serde_json::Value) -> Result<()> {
        match value {
            serde_json::Value::Array(items) => items.iter().try_for_each(|item| self.text(&format!("{item}\n"))),
            one => self.text(&format!("{one}\n")),
        }
    }

    /// Says on a terminal what is going on, until the value is dropped.
    pub fn progress(&self, what: &'static str) -> Progress {
        Progress::start(self.quiet, what)
    }

    /// A remark to stderr, unless `-q`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.stderr(text);
        }
    }

    /// A remark to stderr with `-v` only.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.stderr(text);
        }
    }

    /// Problems to stderr: errors always, warnings unless `-q`, the rest with `-v`.
    pub fn problems<'p>(&self, problems: impl IntoIterator<Item = &'p Problem>) {
        for problem in problems {
            let text = format!("{}: {}", self.severity(problem.severity), describe(problem));
            match problem.severity {
                Severity::Error => self.stderr(&text),
                Severity::Warning => self.note(&text),
                Severity::Info => self.detail(&text),
            }
        }
    }

    /// An error to stderr.
    pub fn error(&self, text: &str) {
        self.stderr(&format!("{}: {text}", paint(self.error_color, "31;1", "error")));
    }

    fn severity(&self, severity: Severity) -> String {
        match severity {
            Severity::Error => paint(self.error_color, "31;1", "error"),
            Severity::Warning => paint(self.error_color, "33;1", "warning"),
            Severity::Info => "note".to_owned(),
        }
    }

    /// Whether `-v` asks for all there is to say.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// A paragraph at this indentation, wrapped to the terminal's width; one line where there is no terminal.
    pub fn paragraph(&self, indent: usize, text: &str) -> String {
        let margin = " ".repeat(indent);
        let options = textwrap::Options::new(self.width.unwrap_or(usize::MAX))
            .initial_indent(&margin)
            .subsequent_indent(&margin)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        format!("{}\n", textwrap::fill(text, options))
    }

    /// As this one, but for a file: without colour, and lines as long as they need to be.
    pub fn to_file(self, format: Format) -> Self {
        Self { format, width: None, color: false, ..self }
    }

    /// Text that goes to stdout and is not the matter itself.
    pub fn faint(&self, text: &str) -> String {
        paint(self.color, "2", text)
    }

    /// Emphasis in text that goes to stdout.
    pub fn strong(&self, text: &str) -> String {
        paint(self.color, "1", text)
    }

    #[expect(clippy::unused_self, reason = "as for `text`")]
    fn stderr(&self, text: &str) {
        // A closed stderr is nothing to fail for.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// The terminal's width; in a pipe what COLUMNS says, where it is set.
fn width(terminal: bool) -> Option<usize> {
    if terminal {
        return comfy_table::Table::new().width().map(usize::from);
    }
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn paint(color: bool, code: &str, text: &str) -> String {
    if color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// A problem with its place in one line, and the advice in a second.
pub fn describe(problem: &Problem) -> String {
    let mut text = format!("`{}`: {}", problem.path.display(), problem.message);
    if !problem.advice.is_empty() {
        text.push_str("\n  hint: ");
        text.push_str(&problem.advice);
    }
    text
}
