//! Rows of SQL in every format, written as they come.

mod cell;
mod json;
mod plain;
mod source;
mod table;

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use arrow::array::RecordBatch;

use crate::cli::Format;
use crate::printer::Printer;
use crate::sentence;

pub use cell::text;
pub use json::row as json_row;
pub use source::Source;

/// The most rows that are looked at for the widths of a table.
const PREVIEW_ROWS: u64 = 1000;

/// How rows are shown.
#[derive(Clone, Copy)]
pub struct Style {
    pub printer: Printer,
    pub expanded: Expanded,
    pub limit: Limit,
    /// Whether a shell's commands are there to change it.
    pub shell: bool,
}

/// Whether a table shows one column per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expanded {
    /// Where its columns do not fit side by side.
    #[default]
    Auto,
    On,
    Off,
}

/// How much of a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    All,
    Rows(u64),
    /// As many rows as fit on so many lines, but at least one.
    Lines(u64),
}

impl Style {
    /// All rows, for someone who has typed one command.
    pub fn once(printer: &Printer) -> Self {
        Self { printer: *printer, expanded: Expanded::Auto, limit: Limit::All, shell: false }
    }
}

/// What came of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Rows that were written.
    pub rows: u64,
    /// Rows that came; more than were written where a limit cut the result, and fewer than there are if it was cancelled.
    pub of: u64,
    pub cancelled: bool,
}

/// Writes a statement's rows. What a limit leaves out is counted.
pub async fn print(mut source: Source<'_>, style: &Style, out: &mut impl Write) -> Result<Shown> {
    let mut room = Room { limit: style.limit, rows: 0, lines: 0 };
    let mut cut = false;
    match style.printer.format {
        Format::Json => json::array(&mut source, &mut room, out).await?,
        Format::Ndjson => json::lines(&mut source, &mut room, out).await?,
        Format::Csv => plain::csv(&mut source, &mut room, out).await?,
        Format::Markdown => plain::markdown(&mut source, &mut room, out).await?,
        Format::Table => cut = table::write(&mut source, &mut room, style, out).await?,
    }
    out.flush()?;
    let counting = (style.limit != Limit::All).then(|| style.printer.progress("counting the other rows"));
    let of = source.count().await?;
    drop(counting);
    let shown = Shown { rows: room.rows, of, cancelled: source.is_cancelled() };
    if style.printer.format == Format::Table && !source.schema().fields().is_empty() && !shown.cancelled {
        writeln!(out, "({})", footer(shown, cut, style))?;
    }
    out.flush()?;
    Ok(shown)
}

/// How many rows a table has, and how to see what it does not show.
fn footer(shown: Shown, cut: bool, style: &Style) -> String {
    let mut text = sentence::count(shown.of, "row");
    if shown.rows < shown.of {
        text = format!("{} of {text}; \\pset rows all shows all", sentence::grouped(shown.rows));
    }
    if cut {
        let whole = if style.shell { "\\x on" } else { "--format ndjson" };
        text = format!("{text}; {whole} shows what … cuts");
    }
    text
}

/// The room that a limit leaves.
struct Room {
    limit: Limit,
    rows: u64,
    lines: u64,
}

impl Room {
    /// Takes the room for one more row of so many lines, if there is that much.
    fn take(&mut self, lines: u64) -> bool {
        let fits = match self.limit {
            Limit::All => true,
            Limit::Rows(most) => self.rows < most,
            Limit::Lines(most) => self.rows == 0 || self.lines + lines <= most,
        };
        if fits {
            self.rows += 1;
            self.lines += lines;
        }
        fits
    }

    /// Rows to look at for the widths of a table before the first is printed.
    fn preview(&self) -> u64 {
        match self.limit {
            Limit::All => PREVIEW_ROWS,
            Limit::Rows(most) | Limit::Lines(most) => most.clamp(1, PREVIEW_ROWS),
        }
    }
}

/// Writes rows of which each takes one line, as long as there is room.
async fn each_line(
    source: &mut Source<'_>,
    room: &mut Room,
    mut write: impl FnMut(&RecordBatch, usize) -> Result<()>,
) -> Result<()> {
    let rows = source.each(|batch, row| {
        if !room.take(1) {
            return Ok(ControlFlow::Break(()));
        }
        write(batch, row)?;
        Ok(ControlFlow::Continue(()))
    });
    rows.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_for_whole_rows_and_for_one_at_least() {
        let mut room = Room { limit: Limit::Lines(5), rows: 0, lines: 0 };
        assert_eq!([room.take(3), room.take(3), room.take(2), room.take(1)], [true, false, true, false]);
        let mut room = Room { limit: Limit::Lines(5), rows: 0, lines: 0 };
        assert_eq!([room.take(9), room.take(1)], [true, false]);
        let mut room = Room { limit: Limit::Rows(1), rows: 0, lines: 0 };
        assert_eq!([room.take(9), room.take(1)], [true, false]);
    }
}
