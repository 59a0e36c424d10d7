//! `seq_at(…)` and `time_of_seq(…)`: from a time to seqs, and from a seq to times, in the live generation.

use std::convert::Infallible;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use hypseq_boundary::{Boundary, Row, RowSet, Source, resolve};
use hypseq_scan::{Doubt, LazyScan, Scan};

use crate::computed::{Column, Computed, count, long, text, time};
use crate::load::Generation;

/// One row: both answers to a time, and what each would cost.
pub(super) fn seq_at(generations: Vec<Arc<Generation>>, several: bool, at: i64) -> Computed {
    let columns = || -> Vec<Column<Boundary>> {
        vec![
            long("tight_seq", |b: &Boundary| b.tight_seq),
            long("safe_seq", |b: &Boundary| b.safe_seq),
            long("first_seq_after", |b: &Boundary| b.first_seq_after),
            count("rows_at_or_before", |b: &Boundary| Some(b.sides.rows_at_or_before)),
            count("rows_after", |b: &Boundary| Some(b.sides.rows_after)),
            count("lost_at_tight", |b: &Boundary| Some(b.cost_at_tight.lost)),
            count("resent_at_safe", |b: &Boundary| Some(b.cost_at_safe.resent)),
            count("null_time_rows", |b: &Boundary| Some(b.sides.null_time_rows)),
        ]
    };
    Computed::new(several, columns, move || {
        answers(&generations, |rows| resolve(rows, rows, at), |rows| resolve(rows, rows, at))
    })
}

/// One row: the last row at or below a seq, and the next one above it.
pub(super) fn time_of_seq(generations: Vec<Arc<Generation>>, several: bool, seq: i64) -> Computed {
    let columns = || -> Vec<Column<Neighbours>> {
        vec![
            long("last_seq", |n: &Neighbours| Some(n.last.as_ref()?.seq)),
            time("last_time", |n: &Neighbours| n.last.as_ref()?.time),
            text("last_id", |n: &Neighbours| n.last.as_ref()?.id.as_deref()),
            long("next_seq", |n: &Neighbours| Some(n.next.as_ref()?.seq)),
            time("next_time", |n: &Neighbours| n.next.as_ref()?.time),
            text("next_id", |n: &Neighbours| n.next.as_ref()?.id.as_deref()),
        ]
    };
    Computed::new(several, columns, move || {
        answers(&generations, |rows| neighbours(rows, seq), |rows| neighbours(rows, seq))
    })
}

/// The rows on both sides of a seq.
struct Neighbours {
    last: Option<Row>,
    next: Option<Row>,
}

fn neighbours<S: Source>(rows: &S, seq: i64) -> Result<Neighbours, S::Error> {
    Ok(Neighbours { last: rows.last_at_or_below(seq)?, next: rows.next_above(seq)? })
}

type Answers<T> = Vec<(Arc<str>, Vec<T>)>;

/// One answer of each generation, by home.
fn answers<T>(
    generations: &[Arc<Generation>],
    by_bounds: impl Fn(&LazyScan<'_>) -> Result<T, Doubt>,
    by_rows: impl Fn(&RowSet) -> Result<T, Infallible>,
) -> datafusion::common::Result<Answers<T>> {
    let answer = |generation: &Arc<Generation>| {
        let by_rows = |scan: &Scan| {
            let Ok(answer) = by_rows(&scan.visible);
            answer
        };
        let answer = generation.ask(&by_bounds, by_rows);
        let answer = answer.map_err(|unreadable| DataFusionError::External(Box::new(unreadable)))?;
        Ok((Arc::clone(&generation.home), vec![answer]))
    };
    generations.iter().map(answer).collect()
}
