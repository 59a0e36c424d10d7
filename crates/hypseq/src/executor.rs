//! The one way from a statement to its printed rows, for `-c`, `-f`, stdin, `query` and the shell.

use std::future::Future;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::future::LocalBoxFuture;
use hypseq_engine::{Error, Rows};

use crate::batches::{self, Shown, Source, Style};
use crate::interrupt::Watch;
use crate::printer::Printer;

/// A statement that is being started. Planning takes a large future, so it is kept in one place and handed on.
pub type Starting<'a> = LocalBoxFuture<'a, Result<Rows, Error>>;

/// What came of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub shown: Shown,
    /// Whether it has rows at all: `CREATE VIEW` has none.
    pub has_columns: bool,
}

/// Prints all rows of a statement that is being started.
pub async fn print_all(starting: impl Future<Output = Result<Rows, Error>>, printer: &Printer) -> Result<()> {
    run(Box::pin(starting), &Style::once(printer), None, io::stdout().lock()).await?;
    Ok(())
}

/// Prints rows that are there already, as those of a statement.
pub async fn print_rows(schema: SchemaRef, batches: Vec<RecordBatch>, printer: &Printer) -> Result<()> {
    let out = &mut BufWriter::new(io::stdout().lock());
    batches::print(Source::of(schema, batches), &Style::once(printer), out).await?;
    Ok(())
}

/// Writes the rows of a statement that is being started. Ctrl-C ends it where there is a watch.
pub async fn run(starting: Starting<'_>, style: &Style, watch: Option<&Watch>, out: impl Write) -> Result<Outcome> {
    let waiting = style.printer.progress("running");
    let started = match watch {
        Some(watch) => watch.unless_pressed(starting).await,
        None => Some(starting.await),
    };
    let Some(rows) = started.transpose()? else {
        return Ok(Outcome { shown: Shown { rows: 0, of: 0, cancelled: true }, has_columns: true });
    };
    let has_columns = !rows.schema().fields().is_empty();
    let source = Source::new(rows, watch, waiting);
    let shown = batches::print(source, style, &mut BufWriter::new(out)).await?;
    Ok(Outcome { shown, has_columns })
}
