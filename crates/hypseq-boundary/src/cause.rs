//! Why the two answers differ: the rows that pull them apart.

use crate::{Row, Run, Side};

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
    /// Finds the smaller side of the straddle, and reads its rows; none when either side is empty.
    pub(crate) fn find<E>(runs: &[Run], rows: impl FnOnce(Side) -> Result<Vec<Row>, E>) -> Result<Option<Self>, E> {
        let total = |side| runs.iter().filter(|run| run.side == side).map(|run| run.rows).sum::<u64>();
        let (after, before) = (total(Side::After), total(Side::AtOrBefore));
        if after == 0 || before == 0 {
            return Ok(None);
        }
        let (kind, side, other_rows) = if after < before {
            (CauseKind::TimeAhead, Side::After, before)
        } else {
            (CauseKind::FlushedLate, Side::AtOrBefore, after)
        };
        Ok(Some(Self { kind, rows: rows(side)?, other_rows }))
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
