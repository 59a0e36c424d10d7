//! Does every generation of a partition show the same boundary?
//!
//! Generations hold copies of the same rows. A compaction copies values verbatim and may drop only rows that were
//! deleted or deduplicated, so every difference between two generations must be explained by deletes, by a
//! duplicate, or by rows flushed after the older one was retired. What is left is a disagreement.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use std::sync::Arc;

use crate::{Row, RowSet, Source};

/// A row that a generation's own metadata shows as deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// The row.
    pub row: Row,
    /// The delete file that names it.
    pub by: String,
}

/// What is known of one generation.
#[derive(Debug, Clone)]
pub struct GenerationView<'a> {
    /// Its folder's name.
    pub name: &'a str,
    /// Its visible rows that have a seq, or why they cannot all be read.
    pub rows: Result<&'a RowSet, String>,
    /// It has no metadata, so it never was a whole generation (a compaction that was killed): that it cannot be read
    /// says nothing about the boundary.
    pub leftover: bool,
    /// Its rows with a seq that are physically there and deleted.
    pub deleted: &'a [Deleted],
}

/// What a generation says about a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Same last row and same next row.
    Agrees,
    /// They differ only by rows that are shown as deleted, or that a compaction deduplicated.
    AgreesAfterDeletes,
    /// Its last row lies before the next row: it can confirm the last row only.
    EndsBefore,
    /// Rows flushed after it was retired explain all the difference.
    Grew,
    /// Anything else.
    Disagrees,
    /// It cannot be read whole.
    Unreadable,
}

impl Verdict {
    /// The name used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::AgreesAfterDeletes => "agrees-after-deletes",
            Self::EndsBefore => "ends-before",
            Self::Grew => "grew",
            Self::Disagrees => "disagrees",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Why a row is in one generation and not in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A delete file of the named generation names it.
    DeletedBy {
        /// The generation whose metadata shows it.
        generation: String,
        /// The delete file.
        file: String,
    },
    /// It is older than the cutoff of the partition's last retention pass.
    Retention,
    /// The newer generation keeps another row of the same id, which the older one has as well.
    Duplicate {
        /// Seq of the row that was kept.
        kept_seq: i64,
    },
    /// It was flushed after the other generation was retired.
    FlushedLater,
    /// Nothing on disk explains it.
    Unexplained,
}

/// A row that one of two generations shows and the other does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The row.
    pub row: Row,
    /// True when the reference generation lacks it, false when this one does.
    pub missing_in_reference: bool,
    /// Why.
    pub reason: Reason,
}

/// One generation against the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Its folder's name.
    pub name: String,
    /// Whether its greatest seq reaches the next row, so that it can speak of both sides.
    pub covers: bool,
    /// What it says.
    pub verdict: Verdict,
    /// Its last row at or below the boundary.
    pub last_row: Option<Row>,
    /// Its next row above the boundary.
    pub next_row: Option<Row>,
    /// How many rows by which it differs from the reference each reason explains.
    pub reasons: BTreeMap<Reason, u64>,
    /// Every row by which it differs from the reference, in seq order. Empty where rows were counted and not compared:
    /// then every reason is in `reasons`, and nothing is unexplained.
    pub differences: Vec<Difference>,
    /// Why it cannot be read whole.
    pub unreadable: Option<String>,
}

impl Comparison {
    /// The differences that nothing on disk explains.
    pub fn unexplained(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|d| d.reason == Reason::Unexplained)
    }
}

/// All generations at a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// At least one generation covers the boundary, none disagrees, and none that is whole is unreadable.
    pub proven: bool,
    /// In the order given.
    pub generations: Vec<Comparison>,
}

/// Compares every generation (oldest first) with the `reference` (an index into them) at a boundary: the rows with a
/// seq of at most `watermark` on one side, the others on the other. `retention_cutoff` is the time, in microseconds,
/// before which the partition's last retention pass deleted rows.
///
/// A whole generation that is unreadable cannot agree, so nothing is proven while there is one.
pub fn verify(
    generations: &[GenerationView<'_>],
    reference: usize,
    watermark: i64,
    retention_cutoff: Option<i64>,
) -> Verification {
    let evidence = Evidence { generations, deletes: DeleteIndex::new(generations), retention_cutoff };
    let Some((reference_view, Ok(reference_rows))) = generations.get(reference).map(|g| (g, &g.rows)) else {
        let why = |g: &GenerationView<'_>| g.rows.as_ref().err().cloned();
        let all = generations.iter().map(|g| {
            unreadable(g.name, why(g).unwrap_or_else(|| "the reference generation cannot be read".to_owned()))
        });
        return Verification { proven: false, generations: all.collect() };
    };
    let sight = |rows: &RowSet| {
        let Ok(sight) = Sight::of(rows, watermark, rows.max_seq());
        sight
    };
    let boundary = sight(reference_rows);
    let compared = generations.iter().enumerate().map(|(index, view)| {
        let rows = match &view.rows {
            Ok(rows) => *rows,
            Err(why) => return unreadable(view.name, why.clone()),
        };
        let differences = match index.cmp(&reference) {
            Ordering::Equal => Vec::new(),
            Ordering::Less => evidence.differences((view, rows), reference_rows, true),
            Ordering::Greater => evidence.differences((reference_view, reference_rows), rows, false),
        };
        let mut reasons = BTreeMap::new();
        for difference in &differences {
            *reasons.entry(difference.reason.clone()).or_default() += 1;
        }
        Comparison { differences, ..sight(rows).compare(view.name, &boundary, reasons) }
    });
    let comparisons: Vec<Comparison> = compared.collect();
    let speaks_against = |(view, comparison): (&GenerationView<'_>, &Comparison)| match comparison.verdict {
        Verdict::Disagrees => true,
        Verdict::Unreadable => !view.leftover,
        _ => false,
    };
    let proven = comparisons.iter().any(|c| c.covers) && !generations.iter().zip(&comparisons).any(speaks_against);
    Verification { proven, generations: comparisons }
}

/// What a generation shows on both sides of a watermark.
pub(crate) struct Sight {
    last: Option<Row>,
    next: Option<Row>,
    max_seq: Option<i64>,
}

impl Sight {
    pub(crate) fn of<S: Source>(rows: &S, watermark: i64, max_seq: Option<i64>) -> Result<Self, S::Error> {
        Ok(Self { last: rows.last_at_or_below(watermark)?, next: rows.next_above(watermark)?, max_seq })
    }

    /// Compares it with the reference's, given why rows of the two differ.
    pub(crate) fn compare(self, name: &str, reference: &Self, reasons: BTreeMap<Reason, u64>) -> Comparison {
        let needed = reference.next.as_ref().or(reference.last.as_ref()).map(|r| r.seq);
        let covers = needed.is_some_and(|seq| self.max_seq >= Some(seq));
        let verdict = if reasons.contains_key(&Reason::Unexplained) {
            Verdict::Disagrees
        } else if !covers && reference.next.is_some() {
            Verdict::EndsBefore
        } else if self.last == reference.last && self.next == reference.next {
            Verdict::Agrees
        } else if reasons.contains_key(&Reason::FlushedLater) && !covers {
            Verdict::Grew
        } else {
            Verdict::AgreesAfterDeletes
        };
        Comparison {
            name: name.to_owned(),
            covers,
            verdict,
            last_row: self.last,
            next_row: self.next,
            reasons,
            differences: Vec::new(),
            unreadable: None,
        }
    }
}

pub(crate) fn unreadable(name: &str, why: String) -> Comparison {
    Comparison {
        name: name.to_owned(),
        covers: false,
        verdict: Verdict::Unreadable,
        last_row: None,
        next_row: None,
        reasons: BTreeMap::new(),
        differences: Vec::new(),
        unreadable: Some(why),
    }
}

/// Rows that any generation's metadata shows as deleted, by seq.
struct DeleteIndex<'a>(HashMap<i64, (&'a str, &'a Deleted)>);

impl<'a> DeleteIndex<'a> {
    fn new(generations: &[GenerationView<'a>]) -> Self {
        let entries = generations.iter().flat_map(|g| g.deleted.iter().map(|d| (d.row.seq, (g.name, d))));
        Self(entries.collect())
    }

    fn reason(&self, row: &Row) -> Option<Reason> {
        let (generation, deleted) = self.0.get(&row.seq)?;
        (deleted.row == *row)
            .then(|| Reason::DeletedBy { generation: (*generation).to_owned(), file: deleted.by.clone() })
    }
}

/// What can explain a difference.
struct Evidence<'a> {
    generations: &'a [GenerationView<'a>],
    deletes: DeleteIndex<'a>,
    retention_cutoff: Option<i64>,
}

impl Evidence<'_> {
    /// Every row by which an older and a newer generation differ, with its reason. A row that the older one has and that
    /// nothing explains does not count as its end: one seq changed to a great number would make all growth look strange.
    fn differences(
        &self,
        (older_view, older): (&GenerationView<'_>, &RowSet),
        newer: &RowSet,
        newer_is_reference: bool,
    ) -> Vec<Difference> {
        let (only_older, only_newer) = symmetric_difference(older.rows(), newer.rows());
        let mut all = self.gone(&only_older, older, newer, newer_is_reference);
        doubt_retention(&mut all, older_view, self.generations);
        let strangers: HashSet<&Row> = all
            .iter()
            .filter(|d| d.reason == Reason::Unexplained && newer.with_seq(d.row.seq).is_empty())
            .map(|d| &d.row)
            .collect();
        let retired_at = older.rows().iter().rev().find(|r| !strangers.contains(r)).map(|r| r.seq);
        let come = only_newer.into_iter().map(|row| {
            let later = Some(row.seq) > retired_at;
            let reason = self
                .deletes
                .reason(row)
                .or_else(|| later.then_some(Reason::FlushedLater))
                .unwrap_or(Reason::Unexplained);
            Difference { row: row.clone(), missing_in_reference: !newer_is_reference, reason }
        });
        let come: Vec<Difference> = come.collect();
        all.extend(come);
        all.sort_by(|a, b| a.row.cmp(&b.row));
        all
    }

    /// Rows that the newer generation lacks.
    fn gone(&self, only_older: &[&Row], older: &RowSet, newer: &RowSet, newer_is_reference: bool) -> Vec<Difference> {
        let mut twins: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for id in only_older.iter().filter_map(|r| r.id.as_deref()) {
            twins.entry(id).or_default();
        }
        if !twins.is_empty() {
            for row in newer.rows().iter().filter(|r| older.with_seq(r.seq).contains(r)) {
                if let Some(seqs) = row.id.as_deref().and_then(|id| twins.get_mut(id)) {
                    seqs.push(row.seq);
                }
            }
        }
        let gone = only_older.iter().map(|row| {
            let retained = || row.time.zip(self.retention_cutoff).is_some_and(|(time, cutoff)| time < cutoff);
            let twin = || row.id.as_deref().and_then(|id| twins.get(id)).and_then(|seqs| seqs.first().copied());
            // A copy that is newer by name and not the live one ended when it was made; the live one went on.
            let went_on = !newer_is_reference && Some(row.seq) > newer.max_seq();
            let reason = self
                .deletes
                .reason(row)
                .or_else(|| went_on.then_some(Reason::FlushedLater))
                .or_else(|| retained().then_some(Reason::Retention))
                .or_else(|| twin().map(|kept_seq| Reason::Duplicate { kept_seq }))
                .unwrap_or(Reason::Unexplained);
            Difference { row: (*row).clone(), missing_in_reference: newer_is_reference, reason }
        });
        gone.collect()
    }
}

/// Being older than the retention cutoff is weak evidence: it would excuse any change of an old row's seq. So it does
/// not count for a row whose id stands somewhere under a seq which this generation should have and does not. (A row
/// that was replayed after this generation was retired has a greater seq than any of its own.)
fn doubt_retention(found: &mut [Difference], view: &GenerationView<'_>, generations: &[GenerationView<'_>]) {
    let excused: HashSet<&str> =
        found.iter().filter(|d| d.reason == Reason::Retention).filter_map(|d| d.row.id.as_deref()).collect();
    if excused.is_empty() {
        return;
    }
    let own: HashSet<&Row> = physical_rows(view).collect();
    let own_max = own.iter().map(|r| r.seq).max();
    let strangers: HashSet<Arc<str>> = generations
        .iter()
        .flat_map(physical_rows)
        .filter(|r| Some(r.seq) <= own_max && !own.contains(r))
        .filter_map(|r| r.id.clone())
        .filter(|id| excused.contains(&**id))
        .collect();
    for difference in found.iter_mut().filter(|d| d.reason == Reason::Retention) {
        if difference.row.id.as_ref().is_some_and(|id| strangers.contains(id)) {
            difference.reason = Reason::Unexplained;
        }
    }
}

/// Visible and deleted rows that have a seq.
fn physical_rows<'a>(view: &GenerationView<'a>) -> impl Iterator<Item = &'a Row> {
    let visible = view.rows.as_ref().map_or(&[][..], |rows| rows.rows());
    visible.iter().chain(view.deleted.iter().map(|d| &d.row))
}

/// The rows of each sorted slice that the other lacks; copies count.
fn symmetric_difference<'a>(left: &'a [Row], right: &'a [Row]) -> (Vec<&'a Row>, Vec<&'a Row>) {
    let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => match l.cmp(r) {
                Ordering::Less => only_left.extend(left.next()),
                Ordering::Greater => only_right.extend(right.next()),
                Ordering::Equal => {
                    left.next();
                    right.next();
                }
            },
            (Some(_), None) => only_left.extend(left.next()),
            (None, Some(_)) => only_right.extend(right.next()),
            (None, None) => return (only_left, only_right),
        }
    }
}
