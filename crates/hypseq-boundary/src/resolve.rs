//! The two answers to a time, and what each costs.

use crate::curve::corners;
use crate::{Cause, CurvePoint, Row};

/// Figures on both sides of a time, over rows that have a seq.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sides {
    /// Greatest seq of a row at or before the time.
    pub tight: Option<i64>,
    /// Least seq of a row after the time.
    pub first_after: Option<i64>,
    /// Rows at or before the time.
    pub rows_at_or_before: u64,
    /// Rows after the time.
    pub rows_after: u64,
    /// Rows without a time, which are on neither side.
    pub null_time_rows: u64,
}

/// What a watermark costs against a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rows after the time with a seq of at most the watermark: skipped, never sent.
    pub lost: u64,
    /// Rows at or before the time with a greater seq: sent again.
    pub resent: u64,
    /// Rows without a time among the skipped.
    pub null_time_lost: u64,
    /// Rows without a time among those sent again.
    pub null_time_resent: u64,
}

/// The rows of one generation as the analysis asks for them. Only rows with a seq exist here.
///
/// Whether every row is held in memory or only the files that can change the answer are read is the implementation's
/// matter; the answers must be the same.
pub trait Source {
    /// What can go wrong.
    type Error;

    /// Figures on both sides of a time (microseconds since 1970, UTC).
    fn sides(&self, at: i64) -> Result<Sides, Self::Error>;

    /// What a watermark would cost.
    fn cost(&self, at: i64, watermark: i64) -> Result<Cost, Self::Error>;

    /// Greatest seq below the given one of a row that has a time.
    fn last_timed_below(&self, seq: i64) -> Result<Option<i64>, Self::Error>;

    /// The row with the greatest seq of at most the given one.
    fn last_at_or_below(&self, seq: i64) -> Result<Option<Row>, Self::Error>;

    /// The row with the least seq greater than the given one.
    fn next_above(&self, seq: i64) -> Result<Option<Row>, Self::Error>;

    /// The rows with `after < seq <= up_to`, in seq order.
    fn rows_between(&self, after: i64, up_to: i64) -> Result<Vec<Row>, Self::Error>;
}

/// Where the boundary of a time lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The time, in microseconds since 1970, UTC.
    pub at: i64,
    /// Greatest seq at or before the time: the least watermark that sends nothing twice.
    pub tight_seq: Option<i64>,
    /// The greatest watermark, among the rows' seqs, that loses nothing; none when even the first row is after the time.
    pub safe_seq: Option<i64>,
    /// Least seq after the time.
    pub first_seq_after: Option<i64>,
    /// Counts over all rows, the ones left out of the resolution included.
    pub sides: Sides,
    /// The row of `tight_seq`.
    pub tight_row: Option<Row>,
    /// The row of `safe_seq`.
    pub last_row: Option<Row>,
    /// The row after `safe_seq`; the first row when there is no `safe_seq`.
    pub next_row: Option<Row>,
    /// At `tight_seq`; zero when there is none.
    pub cost_at_tight: Cost,
    /// At `safe_seq`, or at 0 when there is none.
    pub cost_at_safe: Cost,
    /// Corners of the rewind curve from `safe_seq` to `tight_seq`; one point when they are the same.
    pub curve: Vec<CurvePoint>,
    /// The rows that pull the two answers apart.
    pub cause: Option<Cause>,
}

impl Boundary {
    /// Whether rows were flushed out of time order across the time, so that there are two answers.
    pub fn inversion(&self) -> bool {
        matches!((self.first_seq_after, self.tight_seq), (Some(first), Some(tight)) if first < tight)
    }
}

/// Resolves a time over the rows `considered`, and counts what the answers cost over `all` of them. The two are the
/// same unless the operator leaves rows out of the resolution.
///
/// # Errors
/// Whatever the source fails with.
pub fn resolve<S: Source>(all: &S, considered: &S, at: i64) -> Result<Boundary, S::Error> {
    let Sides { tight, first_after, .. } = considered.sides(at)?;
    let safe = match first_after {
        Some(first) => considered.last_timed_below(first)?,
        None => tight,
    };
    let cost_at_safe = all.cost(at, safe.unwrap_or(0))?;
    let (tight_row, cost_at_tight) = match tight {
        Some(tight) => (all.last_at_or_below(tight)?, all.cost(at, tight)?),
        None => (None, Cost::default()),
    };
    let last_row = match safe {
        Some(safe) => all.last_at_or_below(safe)?,
        None => None,
    };
    let next_row = all.next_above(safe.unwrap_or(0))?;
    let (curve, cause) = match tight {
        Some(tight) => {
            let start = safe.unwrap_or(0);
            let straddle = all.rows_between(start, tight)?;
            (corners(CurvePoint::new(start, &cost_at_safe), &straddle, at), Cause::find(&straddle, at))
        }
        None => (Vec::new(), None),
    };
    Ok(Boundary {
        at,
        tight_seq: tight,
        safe_seq: safe,
        first_seq_after: first_after,
        sides: all.sides(at)?,
        tight_row,
        last_row,
        next_row,
        cost_at_tight,
        cost_at_safe,
        curve,
        cause,
    })
}
