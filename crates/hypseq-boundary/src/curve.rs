//! The rewind curve: rows lost and rows sent again as the watermark moves through the straddle.

use crate::{Cost, Run, Side};

/// A corner of the curve: between two neighbouring corners only one of the two figures moves, one row at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurvePoint {
    /// The watermark.
    pub seq: i64,
    /// Rows after the time that it skips.
    pub lost: u64,
    /// Rows at or before the time that it sends again.
    pub resent: u64,
}

/// The corners from `start` on: its own, and the end of each of the straddle's runs.
pub(crate) fn corners(start: CurvePoint, runs: &[Run]) -> Vec<CurvePoint> {
    let mut points = vec![start];
    let mut current = start;
    for run in runs {
        current.seq = run.last_seq;
        match run.side {
            Side::After => current.lost += run.rows,
            Side::AtOrBefore => current.resent = current.resent.saturating_sub(run.rows),
        }
        points.push(current);
    }
    points
}

impl CurvePoint {
    pub(crate) fn new(seq: i64, cost: &Cost) -> Self {
        Self { seq, lost: cost.lost, resent: cost.resent }
    }
}
