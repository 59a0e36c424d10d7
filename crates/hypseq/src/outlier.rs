//! A window of times without which there would be one answer.

use hypseq_boundary::{Boundary, CauseKind, Row, Source, resolve};

/// What leaving out a few outliers would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlier {
    /// The least and the greatest time that count, in microseconds; one of them is open.
    pub window: (Option<i64>, Option<i64>),
    /// The one answer that is left.
    pub safe_seq: i64,
    /// Rows that it loses.
    pub lost: u64,
    /// Rows that it sends again.
    pub resent: u64,
}

impl Outlier {
    /// Tries the window that leaves out the rows which pull the answers apart; none where it does not help.
    pub fn find<S: Source>(rows: &S, boundary: &Boundary) -> Result<Option<Self>, S::Error> {
        let Some(window) = window(boundary) else { return Ok(None) };
        let keeps = |row: &Row| {
            row.time.is_none_or(|t| window.0.is_none_or(|from| t >= from) && window.1.is_none_or(|to| t <= to))
        };
        let without = resolve(rows, &rows.considering(keeps), boundary.at)?;
        let one_answer =
            !without.inversion() && without.first_seq_after.is_some() && without.safe_seq != boundary.safe_seq;
        let safe_seq = without.safe_seq.filter(|_| one_answer);
        let (lost, resent) = (without.cost_at_safe.lost, without.cost_at_safe.resent);
        Ok(safe_seq.map(|safe_seq| Self { window, safe_seq, lost, resent }))
    }
}

/// Times in whole milliseconds, as they are shown and typed.
fn window(boundary: &Boundary) -> Option<(Option<i64>, Option<i64>)> {
    let cause = boundary.cause.as_ref()?;
    let (least, greatest) = cause.time_range()?;
    Some(match cause.kind {
        CauseKind::FlushedLate => (Some((greatest / 1000).checked_add(1)?.checked_mul(1000)?), None),
        CauseKind::TimeAhead => (None, Some((least / 1000).checked_sub(1)?.checked_mul(1000)?)),
    })
}
