//! The proof of a boundary across generations, as `verify` shows it and a plan records it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hypseq_boundary::{Comparison, Counted as _, Difference, Order, Reason, Row, Tally, Verdict, safe_seq, verify};
use hypseq_cache::{Generation, GenerationState, Problem};
use hypseq_scan::{Doubt, LazyScan, content_hashes};

use crate::sentence::count;
use crate::survey::{Survey, Surveyed};
use crate::time::show;

/// A boundary at a watermark, in every generation.
pub struct Proof {
    pub watermark: i64,
    pub proven: bool,
    pub compared: Compared,
    pub generations: Vec<Witnessed>,
    /// Data files of all whole generations, and how many of them were read.
    pub files_total: u64,
    pub files_read: u64,
}

/// What of the generations was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The rows on both sides of the boundary, and how many rows lie where.
    Counts,
    /// Seq, time and id of every row.
    Rows,
    /// Every column of every row.
    Columns,
}

impl Compared {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Rows => "rows",
            Self::Columns => "columns",
        }
    }
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

impl Answers {
    fn of<O: Order>(rows: &O, at: i64) -> Result<Self, O::Error> {
        Ok(Self { tight: rows.last_at_or_before(at)?, safe: safe_seq(rows, at)?, first_after: rows.first_after(at)? })
    }
}

impl Proof {
    /// Compares every generation with the reference at a watermark, row by row, and at a time where there is one.
    pub fn of(survey: &Survey<'_>, reference: usize, watermark: i64, at: Option<i64>) -> Self {
        let verification = verify(&survey.views(), reference, watermark, retention_cutoff(survey));
        let union = survey.union();
        let compared = survey.generations.iter().zip(verification.generations).enumerate();
        let generations = compared.map(|(index, (surveyed, comparison))| {
            let rows = &surveyed.scan.visible;
            let readable = surveyed.complete();
            let in_range = rows.max_seq().map_or(0, |max| union.at_or_below(max).len());
            let answers = |at| {
                let Ok(answers) = Answers::of(rows, at);
                answers
            };
            let figures = Figures {
                visible_rows: readable.then_some(surveyed.scan.visible_rows),
                max_seq: rows.max_seq().filter(|_| readable),
                answers: at.filter(|_| readable).map(answers),
                missing_rows: in_range.saturating_sub(rows.rows().len()) as u64,
            };
            Witnessed::new(surveyed.opened.generation.state, comparison, index == reference, figures)
        });
        let whole = || survey.generations.iter().filter(|surveyed| surveyed.opened.generation.has_metadata);
        let scans = || whole().map(|surveyed| &surveyed.scan);
        Self {
            watermark,
            proven: verification.proven,
            compared: Compared::Rows,
            generations: generations.collect(),
            files_total: scans().map(|scan| scan.files_total).sum(),
            files_read: scans().map(|scan| scan.files_read).sum(),
        }
    }

    /// The same from counts, where that is possible: every generation with its rows, or why it never was whole.
    pub fn counted(
        generations: &[(&Generation, Result<&LazyScan<'_>, &str>)],
        reference: usize,
        watermark: i64,
        at: Option<i64>,
    ) -> Result<Option<Self>, Doubt> {
        let tally = Tally::new(generations.iter().map(|(generation, rows)| (generation.name.as_str(), *rows)))?;
        let Some(verification) = tally.verify(reference, watermark)? else { return Ok(None) };
        let mut witnessed = Vec::new();
        for (index, ((generation, rows), comparison)) in generations.iter().zip(verification.generations).enumerate() {
            let figures = match rows {
                Ok(rows) => Figures {
                    visible_rows: Some(rows.visible_rows()),
                    max_seq: rows.max_seq()?,
                    answers: at.map(|at| Answers::of(*rows, at)).transpose()?,
                    missing_rows: tally.missing_rows(rows)?,
                },
                Err(_) => Figures::default(),
            };
            witnessed.push(Witnessed::new(generation.state, comparison, index == reference, figures));
        }
        let rows = || generations.iter().filter_map(|(_, rows)| rows.ok());
        Ok(Some(Self {
            watermark,
            proven: verification.proven,
            compared: Compared::Counts,
            generations: witnessed,
            files_total: rows().map(LazyScan::files_total).sum(),
            files_read: rows().map(LazyScan::files_read).sum(),
        }))
    }

    /// Compares every column of every row that a generation shares with the reference.
    pub fn deepen(&mut self, survey: &Survey<'_>, reference: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut hashes = |surveyed: &Surveyed| {
            let Some(table) = &surveyed.opened.table else { return HashMap::new() };
            let (rows, found) = content_hashes(table, &surveyed.opened.files);
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
        self.compared = Compared::Columns;
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

#[derive(Default)]
struct Figures {
    visible_rows: Option<u64>,
    max_seq: Option<i64>,
    answers: Option<Answers>,
    missing_rows: u64,
}

impl Witnessed {
    fn new(state: GenerationState, comparison: Comparison, is_reference: bool, figures: Figures) -> Self {
        let Figures { visible_rows, max_seq, answers, missing_rows } = figures;
        Self {
            name: comparison.name.clone(),
            state,
            visible_rows,
            max_seq,
            answers,
            content_differs: Vec::new(),
            missing_rows,
            explanation: explain(&comparison, is_reference, true),
            summary: explain(&comparison, is_reference, false),
            comparison,
        }
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
    if comparison.reasons.is_empty() {
        return "no difference".to_owned();
    }
    let mut reasons: BTreeMap<String, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for (reason, explained) in comparison.reasons.iter().filter(|(reason, _)| **reason != Reason::Unexplained) {
        let (phrase, file) = phrase(reason);
        let (rows, files) = reasons.entry(phrase).or_default();
        *rows += explained;
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
