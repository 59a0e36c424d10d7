//! The rewind curve: rows lost and rows sent again as the watermark moves through the straddle.

use crate::{Cost, Row};

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

/// The corners from `start` over the given rows, which are the straddle's in seq order.
pub(crate) fn corners(start: CurvePoint, straddle: &[Row], at: i64) -> Vec<CurvePoint> {
    let mut points = vec![start];
    let mut current = start;
    let mut last_was_after = None;
    for row in straddle {
        let Some(time) = row.time else { continue };
        let after = time > at;
        if last_was_after.is_some_and(|last| last != after) {
            points.push(current);
        }
        last_was_after = Some(after);
        current.seq = row.seq;
        if after {
            current.lost += 1;
        } else {
            current.resent = current.resent.saturating_sub(1);
        }
    }
    if last_was_after.is_some() {
        points.push(current);
    }
    points
}

impl CurvePoint {
    pub(crate) fn new(seq: i64, cost: &Cost) -> Self {
        Self { seq, lost: cost.lost, resent: cost.resent }
    }
}
