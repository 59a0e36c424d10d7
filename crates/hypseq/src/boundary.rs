//! From what was typed to a resolved boundary: what `resolve`, `verify` and `plan rewind` share.

use std::collections::HashSet;

use anyhow::{Context, Result, anyhow, bail};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::TryStreamExt;
use hypseq_boundary::{Boundary, Row, Source, resolve};
use hypseq_cache::{Home, Partition};
use hypseq_engine::{Engine, EngineOptions};

use crate::cli::{LeaveOut, Zone};
use crate::opened::{Opened, timestamp_columns};
use crate::survey::Surveyed;
use crate::time::{self, When};

/// Where a boundary is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// At a time.
    At(When),
    /// After the last row at or below a seq.
    Seq(i64),
    /// After the row of an id.
    Id(String),
}

/// Rows that the operator leaves out of the resolution.
#[derive(Debug, Clone, Default)]
pub struct Excluded {
    /// Least and greatest time that counts, in microseconds.
    pub window: Option<(Option<i64>, Option<i64>)>,
    /// A SQL predicate, and the seqs for which it is true.
    pub predicate: Option<(String, HashSet<i64>)>,
}

/// A boundary in one generation.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The watermark that the point itself stands for; none for a time, where the policy decides.
    pub position: Option<i64>,
    /// The time resolved: the one asked for, else that of the last row at or below the position.
    pub boundary: Option<Boundary>,
    /// The last row at or below the position, or at the safe answer.
    pub last_row: Option<Row>,
    /// The row after it.
    pub next_row: Option<Row>,
    /// Rows left out of the resolution.
    pub excluded_rows: u64,
}

/// A seq as typed: a decimal number of at most 2⁶³−1.
pub fn parse_seq(typed: &str) -> Result<i64> {
    let digits = !typed.is_empty() && typed.bytes().all(|b| b.is_ascii_digit());
    typed
        .parse()
        .ok()
        .filter(|_| digits)
        .with_context(|| format!("`{typed}` is not a seq\n  hint: a seq is a whole number from 0 to {}", i64::MAX))
}

impl Point {
    /// Exactly one of the three is given; clap sees to it.
    pub fn parse(at: Option<&str>, seq: Option<&str>, id: Option<&str>, zone: &Zone) -> Result<Self> {
        match (at, seq, id) {
            (Some(at), ..) => Ok(Self::At(time::parse(at, zone.tz.as_deref())?)),
            (_, Some(seq), _) => Ok(Self::Seq(parse_seq(seq)?)),
            (.., Some(id)) => Ok(Self::Id(id.to_owned())),
            (None, None, None) => bail!("no time, seq or id was given"),
        }
    }
}

impl Excluded {
    /// Reads the window, and runs the predicate over the live rows of the partition.
    pub async fn read(leave_out: &LeaveOut, zone: &Zone, home: &Home, partition: &Partition) -> Result<Self> {
        let window =
            leave_out.ignore_times_outside.as_deref().map(|w| time::parse_range(w, zone.tz.as_deref())).transpose()?;
        let predicate = match &leave_out.exclude {
            Some(predicate) => Some((predicate.clone(), seqs_where(home, partition, predicate).await?)),
            None => None,
        };
        Ok(Self { window, predicate })
    }

    /// Whether a row counts in the resolution.
    pub fn keeps(&self, row: &Row) -> bool {
        let inside = self.window.is_none_or(|(from, to)| {
            row.time.is_none_or(|t| from.is_none_or(|from| t >= from) && to.is_none_or(|to| t <= to))
        });
        inside && self.predicate.as_ref().is_none_or(|(_, seqs)| !seqs.contains(&row.seq))
    }
}

/// Seqs of the visible rows of a partition, in any generation, for which a SQL predicate is true.
async fn seqs_where(home: &Home, partition: &Partition, predicate: &str) -> Result<HashSet<i64>> {
    check_expression(predicate)?;
    let (engine, _) = Engine::open(std::slice::from_ref(home), &EngineOptions::default()).await?;
    let path = partition.id.path.replace('\'', "''");
    let dataset = partition.id.dataset.replace('"', "\"\"");
    let sql = format!(
        "SELECT DISTINCT _hyp_ingest_seq FROM (SELECT * FROM raw.\"{dataset}\" WHERE _partition = '{path}' AND _referenced AND \
         NOT _deleted AND _hyp_ingest_seq IS NOT NULL) WHERE ({predicate}\n)"
    );
    let evaluated = || format!("--exclude `{predicate}` cannot be evaluated");
    let rows = engine.query(&sql).await.with_context(evaluated)?;
    let batches: Vec<_> = rows.try_collect().await.with_context(evaluated)?;
    let mut seqs = HashSet::new();
    for batch in &batches {
        let column = batch.column(0).as_any().downcast_ref::<arrow::array::Int64Array>();
        seqs.extend(column.context("_hyp_ingest_seq is not a BIGINT")?.iter().flatten());
    }
    Ok(seqs)
}

/// The predicate must be one expression: put into a query, `a) OR (b` would mean something else.
fn check_expression(predicate: &str) -> Result<()> {
    let refused = |why: String| anyhow!("--exclude `{predicate}` is not one SQL expression: {why}");
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(predicate).map_err(|e| refused(e.to_string()))?;
    parser.parse_expr().map_err(|e| refused(e.to_string()))?;
    match parser.peek_token().token {
        Token::EOF => Ok(()),
        more => Err(refused(format!("expected its end, found `{more}`"))),
    }
}

/// Resolves a point in a generation that was scanned whole.
pub fn resolve_point(surveyed: &Surveyed, point: &Point, excluded: &Excluded) -> Result<Resolved> {
    let rows = &surveyed.scan.visible;
    let anchor = match point {
        Point::At(when) => {
            if !rows.rows().is_empty() {
                check_time_column(&surveyed.opened)?;
            }
            Anchor::Time(when.at)
        }
        Point::Seq(seq) => Anchor::Seq(*seq),
        Point::Id(id) => Anchor::Seq(seq_of_id(surveyed, id)?),
    };
    let excluded_rows = rows.rows().iter().filter(|r| !excluded.keeps(r)).count() as u64;
    let Ok(resolved) = resolve_rows(rows, anchor, excluded, excluded_rows);
    Ok(resolved)
}

/// What a point is resolved by.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Time(i64),
    /// The boundary after the last row at or below a seq, resolved at the time of the last such row that has one.
    Seq(i64),
}

/// Resolves among a generation's rows.
pub fn resolve_rows<S: Source>(
    rows: &S,
    anchor: Anchor,
    excluded: &Excluded,
    excluded_rows: u64,
) -> Result<Resolved, S::Error> {
    let resolve = |at| resolve(rows, &rows.considering(|row| excluded.keeps(row)), at);
    match anchor {
        Anchor::Time(at) => {
            let boundary = resolve(at)?;
            let (last_row, next_row) = (boundary.last_row.clone(), boundary.next_row.clone());
            Ok(Resolved { position: None, boundary: Some(boundary), last_row, next_row, excluded_rows })
        }
        Anchor::Seq(seq) => {
            let timed = match rows.last_timed(seq)? {
                Some(timed) => rows.last_at_or_below(timed)?,
                None => None,
            };
            let boundary = timed.and_then(|row| row.time).map(resolve).transpose()?;
            let (last_row, next_row) = (rows.last_at_or_below(seq)?, rows.next_above(seq)?);
            Ok(Resolved { position: Some(seq), boundary, last_row, next_row, excluded_rows })
        }
    }
}

fn seq_of_id(surveyed: &Surveyed, id: &str) -> Result<i64> {
    if surveyed.opened.columns.as_ref().is_some_and(|c| c.id.is_none()) {
        bail!("the dataset has no `part_id` column\n  hint: find the row's seq with `hypseq sql` and use --seq");
    }
    let rows: Vec<&Row> = surveyed.scan.visible.with_id(id).collect();
    match rows.as_slice() {
        [one] => Ok(one.seq),
        [] => bail!(
            "no visible row of generation `{}` has the id `{id}` and a seq\n  hint: look in every generation: hypseq sql -c \
             \"SELECT _hyp_ingest_seq, _generation, _deleted FROM raw.… WHERE part_id = '{id}'\"",
            surveyed.opened.generation.name
        ),
        several => {
            let seqs: Vec<String> = several.iter().map(|r| r.seq.to_string()).collect();
            bail!(
                "the id `{id}` stands under {} seqs: {} (a row flushed again after a crash)\n  hint: choose one with --seq",
                several.len(),
                seqs.join(", ")
            )
        }
    }
}

/// There is a time to resolve by.
fn check_time_column(opened: &Opened) -> Result<()> {
    if opened.columns.as_ref().is_none_or(|columns| columns.time.is_some()) {
        return Ok(());
    }
    let schema = opened.table.as_ref().map(|t| t.metadata.current_schema());
    Err(anyhow!(
        "which column holds a row's time is not known for this dataset\n  hint: name it with --time-column; {}",
        schema.map_or_else(|| "its schema is not readable".to_owned(), timestamp_columns)
    ))
}

/// The generation's rows must all be known before a boundary in it means anything.
pub fn require_complete(surveyed: &Surveyed) -> Result<()> {
    if surveyed.complete() {
        return Ok(());
    }
    let why = if !surveyed.opened.generation.has_metadata {
        "it has no metadata, so which of its rows count is not known".to_owned()
    } else if surveyed.opened.complete() {
        format!("{} of {} data files could be read", surveyed.scan.files_read, surveyed.scan.files_total)
    } else {
        "part of its metadata cannot be read, so which rows it has is not known".to_owned()
    };
    bail!(
        "generation `{}` cannot be read whole: {why}\n  A boundary over part of the rows could lose the others, so none is \
         given.\n  hint: copy the cache again, or resolve in an older generation with --generation and check with `hypseq \
         verify`",
        surveyed.opened.generation.name
    )
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> Result<F::Output> {
    Ok(tokio::runtime::Builder::new_current_thread().build()?.block_on(future))
}
