//! `seq_at(…)` and `time_of_seq(…)`: from a time to seqs, and from a seq to times, in the live generation.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::error::DataFusionError;
use hypseq_boundary::{Boundary, Row, Source, resolve};
use hypseq_cache::Problem;
use hypseq_scan::{LazyScan, scan_generation};

use crate::Unreadable;
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
    Computed::new(several, columns, move || answers(&generations, &At(at)))
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
    Computed::new(several, columns, move || answers(&generations, &Around(seq)))
}

/// A question to the rows of a generation, however they are held.
trait Question {
    type Answer;

    fn ask<S: Source>(&self, rows: &S) -> Result<Self::Answer, S::Error>;
}

struct At(i64);

impl Question for At {
    type Answer = Boundary;

    fn ask<S: Source>(&self, rows: &S) -> Result<Boundary, S::Error> {
        resolve(rows, rows, self.0)
    }
}

struct Around(i64);

struct Neighbours {
    last: Option<Row>,
    next: Option<Row>,
}

impl Question for Around {
    type Answer = Neighbours;

    fn ask<S: Source>(&self, rows: &S) -> Result<Neighbours, S::Error> {
        Ok(Neighbours { last: rows.last_at_or_below(self.0)?, next: rows.next_above(self.0)? })
    }
}

type Answers<T> = Vec<(Arc<str>, Vec<T>)>;

fn answers<Q: Question>(generations: &[Arc<Generation>], question: &Q) -> Result<Answers<Q::Answer>> {
    generations
        .iter()
        .map(|generation| Ok((Arc::clone(&generation.home), vec![answer(generation, question)?])))
        .collect()
}

/// From bounds where they can tell, else from all rows.
fn answer<Q: Question>(generation: &Generation, question: &Q) -> Result<Q::Answer> {
    let failed = |unreadable: Unreadable| DataFusionError::External(Box::new(unreadable));
    if let Some(lost) = generation.snapshot().lost.first() {
        return Err(failed(lost.clone()));
    }
    let (Some(table), Some(columns)) = (generation.table(), generation.columns()) else {
        return Err(failed(Unreadable {
            path: generation.dir.clone(),
            message: "there is no Iceberg metadata".to_owned(),
            hint: "ask another generation, in schema raw".to_owned(),
        }));
    };
    let files = generation.files();
    if let Ok(answer) = LazyScan::new(table, &files, &columns).and_then(|rows| question.ask(&rows)) {
        return Ok(answer);
    }
    let scan = scan_generation(table, &files, &columns);
    if let Some(problem) = scan.problems.first() {
        let Problem { path, message, advice, .. } = problem.clone();
        return Err(failed(Unreadable { path, message, hint: advice }));
    }
    let Ok(answer) = question.ask(&scan.visible);
    Ok(answer)
}
