//! The proof of a boundary across generations, as `verify` shows it and a plan records it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hypseq_boundary::{Comparison, Difference, Reason, Row, RowSet, Sides, Source, Verdict, Verification, verify};
use hypseq_cache::{GenerationState, Problem};
use hypseq_scan::content_hashes;

use crate::sentence::count;
use crate::survey::{Survey, Surveyed};
use crate::time::show;

/// A boundary at a watermark, in every generation.
pub struct Proof {
    pub watermark: i64,
    pub proven: bool,
    pub generations: Vec<Witnessed>,
}

/// What one generation says, with its own figures.
pub struct Witnessed {
    pub name: String,
    pub state: GenerationState,
    pub comparison: Comparison,
    pub visible_rows: Option<u64>,
    pub max_seq: Option<i64>,
    /// At the time asked for, where there was one.
    pub answers: Option<Answers>,
    /// Seqs whose content differs from the reference's; only a deep comparison finds any.
    pub content_differs: Vec<i64>,
    /// Rows with a seq up to its greatest that some generation has and this one does not show.
    pub missing_rows: u64,
    pub explanation: String,
    /// The same without the names of delete files.
    pub summary: String,
}

/// The three seqs of a time.
pub struct Answers {
    pub tight: Option<i64>,
    pub safe: Option<i64>,
    pub first_after: Option<i64>,
}

impl Proof {
    /// Compares every generation with the reference at a watermark, and at a time where there is one.
    pub fn of(survey: &Survey<'_>, reference: usize, watermark: i64, at: Option<i64>) -> Self {
        let verification = verify(&survey.views(), reference, watermark, retention_cutoff(survey));
        let union = survey.union();
        let Verification { proven, generations } = verification;
        let generations = survey
            .generations
            .iter()
            .zip(generations)
            .enumerate()
            .map(|(index, (surveyed, comparison))| witnessed(surveyed, comparison, &union, at, index == reference))
            .collect();
        Self { watermark, proven, generations }
    }

    /// Compares every column of every row that a generation shares with the reference.
    pub fn deepen(&mut self, survey: &Survey<'_>, reference: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut hashes = |surveyed: &Surveyed| {
            let Some(table) = &surveyed.table else { return HashMap::new() };
            let (rows, found) = content_hashes(table, &surveyed.files);
            problems.extend(found);
            rows.into_iter().map(|r| (r.seq, r.hash)).collect::<HashMap<_, _>>()
        };
        let Some(expected) = survey.generations.get(reference).map(&mut hashes) else { return problems };
        for (index, (surveyed, witnessed)) in survey.generations.iter().zip(&mut self.generations).enumerate() {
            if index == reference || witnessed.comparison.verdict == Verdict::Unreadable {
                continue;
            }
            let own = hashes(surveyed);
            let differs = own.iter().filter(|(seq, hash)| expected.get(seq).is_some_and(|e| e != *hash));
            let mut differs: Vec<i64> = differs.map(|(seq, _)| *seq).collect();
            differs.sort_unstable();
            if let Some(first) = differs.first() {
                witnessed.comparison.verdict = Verdict::Disagrees;
                let sentence =
                    format!("{} differ in other columns, first seq {first}", count(differs.len() as u64, "row"));
                witnessed.summary.clone_from(&sentence);
                witnessed.explanation = sentence;
                self.proven = false;
            }
            witnessed.content_differs = differs;
        }
        if !problems.is_empty() {
            self.proven = false;
        }
        problems
    }

    /// Generations other than the reference that cover the boundary and agree.
    pub fn independent(&self) -> usize {
        let agrees = |w: &&Witnessed| w.comparison.covers && w.state != GenerationState::Live;
        self.generations.iter().filter(agrees).count()
    }

    /// Every difference that nothing explains, with the generation it was found in.
    pub fn unexplained(&self) -> impl Iterator<Item = (&Witnessed, &Difference)> {
        self.generations.iter().flat_map(|w| w.comparison.unexplained().map(move |d| (w, d)))
    }
}

/// The time before which the partition's last retention pass deleted rows, in microseconds.
fn retention_cutoff(survey: &Survey<'_>) -> Option<i64> {
    let cursor = survey.partition.cursor.as_ref().ok()?;
    cursor.retention.as_ref()?.last_cutoff_ms?.checked_mul(1000)
}

fn witnessed(
    surveyed: &Surveyed,
    comparison: Comparison,
    union: &RowSet,
    at: Option<i64>,
    is_reference: bool,
) -> Witnessed {
    let readable = surveyed.complete();
    let rows = &surveyed.scan.visible;
    let answers = at.filter(|_| readable).map(|at| {
        let Ok(Sides { tight, first_after, .. }) = rows.sides(at);
        let safe = first_after.map_or(tight, |first| {
            let Ok(safe) = rows.last_timed_below(first);
            safe
        });
        Answers { tight, safe, first_after }
    });
    let in_range = rows.max_seq().map_or(0, |max| union.at_or_below(max).len());
    Witnessed {
        name: surveyed.generation.name.clone(),
        state: surveyed.generation.state,
        visible_rows: readable.then_some(surveyed.scan.visible_rows),
        max_seq: rows.max_seq().filter(|_| readable),
        answers,
        content_differs: Vec::new(),
        missing_rows: in_range.saturating_sub(rows.rows().len()) as u64,
        explanation: explain(&comparison, is_reference, true),
        summary: explain(&comparison, is_reference, false),
        comparison,
    }
}

/// What the verdict rests on, in one sentence.
fn explain(comparison: &Comparison, is_reference: bool, name_files: bool) -> String {
    if let Some(why) = &comparison.unreadable {
        return why.clone();
    }
    if is_reference {
        return "the generation that the others are compared with".to_owned();
    }
    if comparison.differences.is_empty() {
        return "row for row the same".to_owned();
    }
    let mut reasons: BTreeMap<String, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for difference in comparison.differences.iter().filter(|d| d.reason != Reason::Unexplained) {
        let (phrase, file) = phrase(&difference.reason);
        let (rows, files) = reasons.entry(phrase).or_default();
        *rows += 1;
        files.extend(file);
    }
    let mut parts: Vec<String> = reasons
        .into_iter()
        .map(|(phrase, (rows, files))| {
            let files: Vec<&str> = files.into_iter().collect();
            let by = match (files.len() as u64, name_files) {
                (0, _) => String::new(),
                (_, true) => format!(" ({})", files.join(", ")),
                (n, false) => format!(" by {}", count(n, "delete file")),
            };
            format!("{} {phrase}{by}", count(rows, "row"))
        })
        .collect();
    let strange: Vec<&Difference> = comparison.unexplained().collect();
    if !strange.is_empty() {
        let named: Vec<String> = strange.iter().take(3).map(|d| name_row(&d.row, d.missing_in_reference)).collect();
        let more = if strange.len() > 3 { format!(" and {} more", strange.len() - 3) } else { String::new() };
        parts.insert(0, format!("nothing explains {}{more}", named.join(", ")));
    }
    parts.join("; ")
}

/// Why rows are in one generation and not in the other, and the delete file that says so.
fn phrase(reason: &Reason) -> (String, Option<&str>) {
    match reason {
        Reason::DeletedBy { generation, file } => (format!("deleted in {generation}"), Some(file)),
        Reason::Retention => ("deleted by retention".to_owned(), None),
        Reason::Duplicate { .. } => ("dropped as a duplicate by a compaction".to_owned(), None),
        Reason::FlushedLater => ("flushed after it was retired".to_owned(), None),
        Reason::Unexplained => ("not explained".to_owned(), None),
    }
}

/// A row, and where it is.
pub fn name_row(row: &Row, missing_in_reference: bool) -> String {
    let time = row.time.map_or_else(|| "no time".to_owned(), show);
    let id = row.id.as_deref().unwrap_or("no id");
    let place = if missing_in_reference { "only here" } else { "missing here" };
    format!("seq {} ({time}, {id}; {place})", row.seq)
}
