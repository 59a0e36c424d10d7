//! The answer to a point in one generation: from bounds where they suffice, else from every row.

use anyhow::Result;
use hypseq_boundary::Source;
use hypseq_scan::{Doubt, LazyScan};

use crate::boundary::{Anchor, Excluded, Point, Resolved, require_complete, resolve_point, resolve_rows};
use crate::opened::Opened;
use crate::outlier::Outlier;
use crate::printer::Printer;
use crate::survey::{Surveyed, survey};
use crate::time::When;

/// A point resolved, with what is said beside it.
pub struct Answer {
    pub resolved: Resolved,
    /// Visible rows, legacy ones included.
    pub visible_rows: u64,
    /// Visible rows without a seq.
    pub legacy_rows: u64,
    /// Ids that stand under several seqs; none where not every row was read.
    pub repeated_ids: Option<u64>,
    /// Rows in the interval that a time without milliseconds leaves open.
    pub ambiguous: Option<(&'static str, Vec<i64>)>,
    /// A window of times that would leave one answer.
    pub outlier: Option<Outlier>,
    pub files_total: u64,
    pub files_read: u64,
}

/// What of a question must be read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Only files that can change the answer.
    Bounds,
    /// Every file.
    Full,
}

impl Answer {
    /// Resolves a point in an opened generation.
    ///
    /// # Errors
    /// The generation cannot be read whole, or the point means nothing in it.
    pub fn find(
        opened: Opened,
        point: &Point,
        excluded: &Excluded,
        reading: Reading,
        printer: &Printer,
    ) -> Result<(Opened, Self)> {
        if let Some(answer) = bounded(&opened, point, excluded, reading) {
            match answer {
                Ok(answer) => {
                    printer.problems(&opened.problems);
                    return Ok((opened, answer));
                }
                Err(doubt) => printer.detail(&format!("every file is read: {doubt}")),
            }
        }
        let surveyed = survey(opened);
        printer.problems(&surveyed.problems);
        require_complete(&surveyed)?;
        let answer = Self::from_rows(&surveyed, point, excluded)?;
        Ok((surveyed.opened, answer))
    }

    fn from_rows(surveyed: &Surveyed, point: &Point, excluded: &Excluded) -> Result<Self> {
        let resolved = resolve_point(surveyed, point, excluded)?;
        let (rows, scan) = (&surveyed.scan.visible, &surveyed.scan);
        let Ok(beside) = Beside::of(rows, point, excluded, &resolved);
        Ok(Self {
            resolved,
            visible_rows: scan.visible_rows,
            legacy_rows: scan.legacy_rows,
            repeated_ids: Some(rows.repeated_ids() as u64),
            ambiguous: beside.ambiguous,
            outlier: beside.outlier,
            files_total: scan.files_total,
            files_read: scan.files_read,
        })
    }

    fn from_bounds(rows: &LazyScan<'_>, anchor: Anchor, point: &Point, excluded: &Excluded) -> Result<Self, Doubt> {
        let resolved = resolve_rows(rows, anchor, excluded, outside(rows, excluded)?)?;
        let beside = Beside::of(rows, point, excluded, &resolved)?;
        Ok(Self {
            resolved,
            visible_rows: rows.visible_rows(),
            legacy_rows: rows.legacy_rows()?,
            repeated_ids: None,
            ambiguous: beside.ambiguous,
            outlier: beside.outlier,
            files_total: rows.files_total(),
            files_read: rows.files_read(),
        })
    }
}

/// The answer from bounds; none where they cannot tell: an id may be anywhere, and a predicate needs the row.
fn bounded(opened: &Opened, point: &Point, excluded: &Excluded, reading: Reading) -> Option<Result<Answer, Doubt>> {
    let anchor = bounded_anchor(opened, point, excluded, reading)?;
    Some(opened.lazy()?.and_then(|rows| Answer::from_bounds(&rows, anchor, point, excluded)))
}

/// What a point is resolved by, where bounds can tell.
pub fn bounded_anchor(opened: &Opened, point: &Point, excluded: &Excluded, reading: Reading) -> Option<Anchor> {
    let anchor = match point {
        Point::At(when) => Anchor::Time(when.at),
        Point::Seq(seq) => Anchor::Seq(*seq),
        Point::Id(_) => return None,
    };
    let has_time = opened.columns.as_ref().is_some_and(|columns| columns.time.is_some());
    (reading == Reading::Bounds && has_time && excluded.predicate.is_none()).then_some(anchor)
}

/// Rows outside of the window of times that counts.
pub fn outside(rows: &LazyScan<'_>, excluded: &Excluded) -> Result<u64, Doubt> {
    let Some((from, to)) = excluded.window else { return Ok(0) };
    let before = from.and_then(|from| from.checked_sub(1)).map(|last| rows.sides(last)).transpose()?;
    let after = to.map(|to| rows.sides(to)).transpose()?;
    Ok(before.map_or(0, |sides| sides.rows_at_or_before) + after.map_or(0, |sides| sides.rows_after))
}

/// What is said beside a boundary.
struct Beside {
    ambiguous: Option<(&'static str, Vec<i64>)>,
    outlier: Option<Outlier>,
}

impl Beside {
    fn of<S: Source>(rows: &S, point: &Point, excluded: &Excluded, resolved: &Resolved) -> Result<Self, S::Error> {
        let Point::At(when) = point else { return Ok(Self { ambiguous: None, outlier: None }) };
        let ambiguous = match when {
            When { at, unit: Some(unit), .. } => {
                let seqs = rows.seqs_within(*at, at.saturating_add(unit.micros()))?;
                Some((unit.as_str(), seqs)).filter(|(_, seqs)| !seqs.is_empty())
            }
            _ => None,
        };
        let whole = excluded.window.is_none() && excluded.predicate.is_none();
        let inverted = resolved.boundary.as_ref().filter(|boundary| whole && boundary.inversion());
        let outlier = match inverted {
            Some(boundary) => Outlier::find(rows, boundary)?,
            None => None,
        };
        Ok(Self { ambiguous, outlier })
    }
}
