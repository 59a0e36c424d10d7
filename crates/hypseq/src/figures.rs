//! The figures of a partition: of each generation, and of the union over them.

use std::collections::BTreeMap;

use anyhow::Result;
use hypseq_boundary::Tally;
use hypseq_cache::{Generation, Partition, Problem};
use hypseq_scan::{Doubt, Figures, LazyScan};

use crate::answer::Reading;
use crate::opened::{Opened, lazy_rows};
use crate::survey::{Survey, Surveyed, survey};

/// Figures of one generation.
pub struct GenerationFigures {
    pub generation: Generation,
    pub snapshot_id: Option<i64>,
    /// Whether every row of it is known.
    pub complete: bool,
    pub figures: Figures,
    pub data_files: u64,
    /// How many of them were read.
    pub files_read: u64,
    pub bytes: u64,
}

/// Figures of a partition.
pub struct PartitionFigures {
    /// Oldest first.
    pub generations: Vec<GenerationFigures>,
    /// By watermark asked about: how many seqs of at most that any generation has, deleted rows included.
    pub at_or_below: BTreeMap<i64, u64>,
    /// Greatest seq of any row, deleted or not.
    pub max_seq: Option<i64>,
    /// Legacy rows of the newest generation that has any.
    pub legacy_rows: u64,
    /// Whether every generation that is whole could be read whole.
    pub complete: bool,
    pub problems: Vec<Problem>,
}

impl PartitionFigures {
    /// Reads the figures of a partition, from bounds as far as they can tell.
    pub fn read(
        partition: &Partition,
        time_column: Option<&str>,
        watermarks: &[i64],
        reading: Reading,
    ) -> Result<Self> {
        let opened = Opened::all(partition, time_column)?;
        if reading == Reading::Bounds
            && let Some(figures) = Self::count(&opened, watermarks)
        {
            return Ok(figures);
        }
        Ok(Self::from_rows(&Survey::scan(partition, opened), watermarks))
    }

    fn from_rows(survey: &Survey<'_>, watermarks: &[i64]) -> Self {
        let union = survey.union();
        Self {
            generations: survey.generations.iter().map(GenerationFigures::from_rows).collect(),
            at_or_below: watermarks.iter().map(|seq| (*seq, union.at_or_below(*seq).len() as u64)).collect(),
            max_seq: union.max_seq(),
            legacy_rows: survey.legacy_rows(),
            complete: survey.complete(),
            problems: survey.problems().cloned().collect(),
        }
    }

    /// The figures from bounds; none where they cannot tell.
    fn count(opened: &[Opened], watermarks: &[i64]) -> Option<Self> {
        let rows = lazy_rows(opened).ok()?;
        let counted = || -> Result<Option<Self>, Doubt> {
            let named = opened.iter().zip(&rows);
            let named = named.map(|(o, rows)| (o.generation.name.as_str(), rows.as_ref().map_err(|why| *why)));
            let tally = Tally::new(named)?;
            if !tally.adds_up(watermarks)? {
                return Ok(None);
            }
            let at_or_below = watermarks.iter().map(|seq| Ok((*seq, tally.union_up_to(*seq)?)));
            let at_or_below = at_or_below.collect::<Result<_, Doubt>>()?;
            let max_seq = tally.max_seq()?;
            let mut problems = Vec::new();
            let mut generations = Vec::new();
            for (opened, rows) in opened.iter().zip(&rows) {
                let Ok(rows) = rows else {
                    let leftover = survey(opened.clone());
                    problems.extend(leftover.problems.iter().cloned());
                    generations.push(GenerationFigures::from_rows(&leftover));
                    continue;
                };
                problems.extend(opened.problems.iter().cloned());
                generations.push(GenerationFigures::from_bounds(opened, rows)?);
            }
            let legacy = generations.iter().rev().map(|g| g.figures.legacy_rows).find(|rows| *rows > 0);
            Ok(Some(Self {
                at_or_below,
                max_seq,
                legacy_rows: legacy.unwrap_or(0),
                complete: true,
                generations,
                problems,
            }))
        };
        counted().ok().flatten()
    }
}

impl GenerationFigures {
    fn from_rows(surveyed: &Surveyed) -> Self {
        let scan = &surveyed.scan;
        Self {
            generation: surveyed.opened.generation.clone(),
            snapshot_id: surveyed.opened.snapshot_id(),
            complete: surveyed.complete(),
            figures: scan.figures(),
            data_files: scan.files_total,
            files_read: scan.files_read,
            bytes: scan.bytes,
        }
    }

    fn from_bounds(opened: &Opened, rows: &LazyScan<'_>) -> Result<Self, Doubt> {
        let figures = rows.figures()?;
        Ok(Self {
            generation: opened.generation.clone(),
            snapshot_id: opened.snapshot_id(),
            complete: true,
            figures,
            data_files: rows.files_total(),
            files_read: rows.files_read(),
            bytes: rows.bytes,
        })
    }
}
