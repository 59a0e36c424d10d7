//! The two answers to a time, and what each costs.

use crate::curve::corners;
use crate::{Cause, CurvePoint, Row};

/// How many rows lie on either side of a time, of those that have a seq.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sides {
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

/// A side of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At the time or before it.
    AtOrBefore,
    /// After it.
    After,
}

impl Side {
    /// The side of a time that another time lies on.
    pub fn of(time: i64, at: i64) -> Self {
        if time > at { Self::After } else { Self::AtOrBefore }
    }
}

/// Rows with a time that lie on one side of a time and follow one another in seq order, with none of the other side
/// between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Their side.
    pub side: Side,
    /// How many they are.
    pub rows: u64,
    /// The seq of the last.
    pub last_seq: i64,
}

/// The order of rows as a resolution goes by it. Only rows with a seq exist here; seqs start at 1, and times are
/// microseconds since 1970, UTC.
///
/// Whether every row is held in memory or only the files that can change the answer are read is the implementation's
/// matter; the answers must be the same.
pub trait Order {
    /// What can go wrong.
    type Error;

    /// Greatest seq of a row at or before a time.
    fn last_at_or_before(&self, at: i64) -> Result<Option<i64>, Self::Error>;

    /// Least seq of a row after a time.
    fn first_after(&self, at: i64) -> Result<Option<i64>, Self::Error>;

    /// Greatest seq of at most the given one of a row that has a time.
    fn last_timed(&self, seq: i64) -> Result<Option<i64>, Self::Error>;
}

/// The rows of one generation as the analysis asks for them.
pub trait Source: Order {
    /// How many rows lie on either side of a time.
    fn sides(&self, at: i64) -> Result<Sides, Self::Error>;

    /// What a watermark would cost.
    fn cost(&self, at: i64, watermark: i64) -> Result<Cost, Self::Error>;

    /// The row with the greatest seq of at most the given one.
    fn last_at_or_below(&self, seq: i64) -> Result<Option<Row>, Self::Error>;

    /// The row with the least seq greater than the given one.
    fn next_above(&self, seq: i64) -> Result<Option<Row>, Self::Error>;

    /// The runs of the rows with `after < seq <= up_to`, in seq order; neighbours are of different sides.
    fn runs(&self, at: i64, after: i64, up_to: i64) -> Result<Vec<Run>, Self::Error>;

    /// The rows of one side with `after < seq <= up_to`, in seq order.
    fn rows_on(&self, side: Side, at: i64, after: i64, up_to: i64) -> Result<Vec<Row>, Self::Error>;

    /// The order of the rows for which a predicate is true.
    fn considering(&self, keeps: impl Fn(&Row) -> bool) -> impl Order<Error = Self::Error>;

    /// Seqs of the rows with `from <= time < to`, in order.
    fn seqs_within(&self, from: i64, to: i64) -> Result<Vec<i64>, Self::Error>;
}

/// The greatest watermark, among the rows' seqs, that loses no row after a time; none when even the first row is after
/// it.
///
/// # Errors
/// Whatever the source fails with.
pub fn safe_seq<O: Order>(rows: &O, at: i64) -> Result<Option<i64>, O::Error> {
    match rows.first_after(at)? {
        Some(first) => rows.last_timed(first - 1),
        None => rows.last_at_or_before(at),
    }
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
pub fn resolve<S, O>(all: &S, considered: &O, at: i64) -> Result<Boundary, S::Error>
where
    S: Source,
    O: Order<Error = S::Error>,
{
    let tight = considered.last_at_or_before(at)?;
    let first_after = considered.first_after(at)?;
    let safe = safe_seq(considered, at)?;
    let start = safe.unwrap_or(0);
    let cost_at_safe = all.cost(at, start)?;
    let (tight_row, cost_at_tight, curve, cause) = match tight {
        Some(tight) => {
            let runs = all.runs(at, start, tight)?;
            let curve = corners(CurvePoint::new(start, &cost_at_safe), &runs);
            let rows = |side| all.rows_on(side, at, start, tight);
            (all.last_at_or_below(tight)?, all.cost(at, tight)?, curve, Cause::find(&runs, rows)?)
        }
        None => (None, Cost::default(), Vec::new(), None),
    };
    let last_row = match safe {
        Some(safe) => all.last_at_or_below(safe)?,
        None => None,
    };
    Ok(Boundary {
        at,
        tight_seq: tight,
        safe_seq: safe,
        first_seq_after: first_after,
        sides: all.sides(at)?,
        tight_row,
        last_row,
        next_row: all.next_above(start)?,
        cost_at_tight,
        cost_at_safe,
        curve,
        cause,
    })
}
