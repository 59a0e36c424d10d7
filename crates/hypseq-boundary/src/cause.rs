//! Why the two answers differ: the rows that pull them apart.

use crate::Row;

/// What kind of rows pull the answers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    /// Rows at or before the time, flushed after younger ones: a backfill, or jitter within a flush.
    FlushedLate,
    /// Rows after the time, flushed before older ones: a clock that was ahead, or jitter within a flush.
    TimeAhead,
}

/// The smaller of the two groups of rows in the straddle: without it there would be one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Which group it is.
    pub kind: CauseKind,
    /// Its rows, in seq order.
    pub rows: Vec<Row>,
    /// The rows of the other group.
    pub other_rows: u64,
}

impl Cause {
    /// Splits the straddle's rows at the time; none when either group is empty.
    pub(crate) fn find(straddle: &[Row], at: i64) -> Option<Self> {
        let timed = straddle.iter().filter(|r| r.time.is_some());
        let (after, before): (Vec<&Row>, Vec<&Row>) = timed.partition(|r| r.time.is_some_and(|t| t > at));
        if after.is_empty() || before.is_empty() {
            return None;
        }
        let (kind, rows, other) = if after.len() < before.len() {
            (CauseKind::TimeAhead, after, before)
        } else {
            (CauseKind::FlushedLate, before, after)
        };
        Some(Self { kind, rows: rows.into_iter().cloned().collect(), other_rows: other.len() as u64 })
    }

    /// Least and greatest time of its rows, in microseconds.
    pub fn time_range(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().filter_map(|r| r.time);
        times().min().zip(times().max())
    }

    /// Least and greatest seq of its rows.
    pub fn seq_range(&self) -> Option<(i64, i64)> {
        self.rows.first().zip(self.rows.last()).map(|(first, last)| (first.seq, last.seq))
    }
}
