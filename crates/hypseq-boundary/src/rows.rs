//! Rows, and the source that holds all of them.

use std::convert::Infallible;
use std::sync::Arc;

use crate::{Cost, Digest, Order, Run, Side, Sides, Source};

/// What the analysis needs of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// `_hyp_ingest_seq`.
    pub seq: i64,
    /// The dataset's primary timestamp, in microseconds since 1970, UTC.
    pub time: Option<i64>,
    /// `part_id`, where the dataset has one.
    pub id: Option<Arc<str>>,
}

impl Row {
    fn is_after(&self, at: i64) -> bool {
        self.time.is_some_and(|t| t > at)
    }

    fn is_at_or_before(&self, at: i64) -> bool {
        self.time.is_some_and(|t| t <= at)
    }
}

/// Rows with a seq, all in memory, in seq order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet {
    rows: Vec<Row>,
}

impl RowSet {
    /// Takes rows in any order.
    pub fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_unstable();
        Self { rows }
    }

    /// All rows, in seq order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows with a seq of at most this.
    pub fn at_or_below(&self, seq: i64) -> &[Row] {
        &self.rows[..self.rank(seq)]
    }

    /// The rows with a seq greater than this.
    pub fn above(&self, seq: i64) -> &[Row] {
        &self.rows[self.rank(seq)..]
    }

    /// The rows with `after < seq <= up_to`.
    pub fn between(&self, after: i64, up_to: i64) -> &[Row] {
        let end = self.rank(up_to);
        &self.rows[self.rank(after).min(end)..end]
    }

    /// The greatest seq.
    pub fn max_seq(&self) -> Option<i64> {
        self.rows.last().map(|r| r.seq)
    }

    /// The rows of that seq; more than one is a defect of the cache.
    pub fn with_seq(&self, seq: i64) -> &[Row] {
        let start = self.rows.partition_point(|r| r.seq < seq);
        &self.rows[start..self.rank(seq)]
    }

    /// The rows of that id, in seq order. A row replayed after a crash stands under several seqs.
    pub fn with_id<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |r| r.id.as_deref() == Some(id))
    }

    /// Seqs that occur more than once.
    pub fn repeated_seqs(&self) -> Vec<i64> {
        let mut seqs: Vec<i64> = self.rows.windows(2).filter(|w| w[0].seq == w[1].seq).map(|w| w[0].seq).collect();
        seqs.dedup();
        seqs
    }

    /// How many ids stand under more than one seq: rows that were flushed again after a crash.
    pub fn repeated_ids(&self) -> usize {
        let mut ids: Vec<&str> = self.rows.iter().filter_map(|r| r.id.as_deref()).collect();
        ids.sort_unstable();
        ids.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).count()
    }

    /// The rows that a predicate keeps.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Row) -> bool) -> Self {
        Self { rows: self.rows.iter().filter(|r| keep(r)).cloned().collect() }
    }

    /// A digest of the rows of a slice that does not depend on their order.
    pub fn digest(rows: &[Row]) -> Digest {
        rows.iter().collect()
    }

    /// How many rows have a seq of at most this.
    fn rank(&self, seq: i64) -> usize {
        self.rows.partition_point(|r| r.seq <= seq)
    }
}

impl Order for RowSet {
    type Error = Infallible;

    fn last_at_or_before(&self, at: i64) -> Result<Option<i64>, Infallible> {
        Ok(self.rows.iter().rev().find(|r| r.is_at_or_before(at)).map(|r| r.seq))
    }

    fn first_after(&self, at: i64) -> Result<Option<i64>, Infallible> {
        Ok(self.rows.iter().find(|r| r.is_after(at)).map(|r| r.seq))
    }

    fn last_timed(&self, seq: i64) -> Result<Option<i64>, Infallible> {
        Ok(self.at_or_below(seq).iter().rev().find(|r| r.time.is_some()).map(|r| r.seq))
    }
}

impl Source for RowSet {
    fn sides(&self, at: i64) -> Result<Sides, Infallible> {
        let mut sides = Sides::default();
        for row in &self.rows {
            match row.time {
                Some(time) if time > at => sides.rows_after += 1,
                Some(_) => sides.rows_at_or_before += 1,
                None => sides.null_time_rows += 1,
            }
        }
        Ok(sides)
    }

    fn cost(&self, at: i64, watermark: i64) -> Result<Cost, Infallible> {
        let (below, above) = self.rows.split_at(self.rank(watermark));
        let count = |rows: &[Row], test: &dyn Fn(&Row) -> bool| rows.iter().filter(|r| test(r)).count() as u64;
        Ok(Cost {
            lost: count(below, &|r| r.is_after(at)),
            resent: count(above, &|r| r.is_at_or_before(at)),
            null_time_lost: count(below, &|r| r.time.is_none()),
            null_time_resent: count(above, &|r| r.time.is_none()),
        })
    }

    fn last_at_or_below(&self, seq: i64) -> Result<Option<Row>, Infallible> {
        Ok(self.at_or_below(seq).last().cloned())
    }

    fn next_above(&self, seq: i64) -> Result<Option<Row>, Infallible> {
        Ok(self.above(seq).first().cloned())
    }

    fn runs(&self, at: i64, after: i64, up_to: i64) -> Result<Vec<Run>, Infallible> {
        let timed = self.between(after, up_to).iter().filter_map(|r| Some((r.seq, Side::of(r.time?, at))));
        let rows: Vec<(i64, Side)> = timed.collect();
        let run = |rows: &[(i64, Side)]| {
            let (last_seq, side) = *rows.last()?;
            Some(Run { side, rows: rows.len() as u64, last_seq })
        };
        Ok(rows.chunk_by(|a, b| a.1 == b.1).filter_map(run).collect())
    }

    fn rows_on(&self, side: Side, at: i64, after: i64, up_to: i64) -> Result<Vec<Row>, Infallible> {
        let on_side = |r: &&Row| r.time.is_some_and(|t| Side::of(t, at) == side);
        Ok(self.between(after, up_to).iter().filter(on_side).cloned().collect())
    }

    fn considering(&self, keeps: impl Fn(&Row) -> bool) -> impl Order<Error = Infallible> {
        self.filtered(keeps)
    }

    fn seqs_within(&self, from: i64, to: i64) -> Result<Vec<i64>, Infallible> {
        let within = self.rows.iter().filter(|r| r.time.is_some_and(|t| (from..to).contains(&t)));
        Ok(within.map(|r| r.seq).collect())
    }
}
