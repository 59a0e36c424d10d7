//! A partition's generations, opened and scanned.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use hypseq_boundary::{Deleted, GenerationView, Row, RowSet};
use hypseq_cache::{Generation, Partition, Problem, Severity};
use hypseq_scan::{Scan, scan_files, scan_generation};

use crate::opened::{LEFTOVER, Opened, reference, unreadable};

/// A generation with all its rows.
pub struct Surveyed {
    pub opened: Opened,
    pub scan: Scan,
    /// What could not be read; empty when the scan is whole.
    pub problems: Vec<Problem>,
    deleted: Vec<Deleted>,
}

/// All generations of a partition, oldest first.
pub struct Survey<'a> {
    pub partition: &'a Partition,
    pub generations: Vec<Surveyed>,
}

impl<'a> Survey<'a> {
    /// Opens and scans every generation.
    pub fn of(partition: &'a Partition, time_column: Option<&str>) -> Result<Self> {
        Ok(Self::scan(partition, Opened::all(partition, time_column)?))
    }

    /// Scans every generation, opened already.
    pub fn scan(partition: &'a Partition, opened: Vec<Opened>) -> Self {
        Self { partition, generations: opened.into_iter().map(survey).collect() }
    }

    /// Whether every generation that is whole could be read whole.
    pub fn complete(&self) -> bool {
        self.generations.iter().all(|s| s.complete() || !s.opened.generation.has_metadata)
    }

    /// Every row with a seq that any generation has, deleted ones included; one row per seq, from the newest
    /// generation that has it.
    pub fn union(&self) -> RowSet {
        let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
        for surveyed in &self.generations {
            let deleted = surveyed.scan.deleted.iter().map(|d| &d.row);
            rows.extend(deleted.chain(surveyed.scan.visible.rows()).map(|r| (r.seq, r.clone())));
        }
        RowSet::new(rows.into_values().collect())
    }

    /// Legacy rows (without a seq) of the newest generation that has any.
    pub fn legacy_rows(&self) -> u64 {
        self.generations.iter().rev().map(|s| s.scan.legacy_rows).find(|n| *n > 0).unwrap_or(0)
    }

    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.generations.iter().flat_map(|s| &s.problems)
    }

    /// The generation that a boundary is resolved in: the one named, else the live one.
    pub fn reference(&self, named: Option<&str>) -> Result<usize> {
        let wanted = reference(self.partition, named)?;
        self.generations
            .iter()
            .position(|s| s.opened.generation.name == wanted.name)
            .ok_or_else(|| anyhow!("generation `{}` was not surveyed", wanted.name))
    }

    /// What the analysis needs of each generation.
    pub fn views(&self) -> Vec<GenerationView<'_>> {
        self.generations.iter().map(Surveyed::view).collect()
    }
}

impl Surveyed {
    /// Whether every row of it is known.
    pub fn complete(&self) -> bool {
        self.opened.generation.has_metadata && self.problems.iter().all(|p| p.severity < Severity::Error)
    }

    fn view(&self) -> GenerationView<'_> {
        let why = || {
            if self.opened.generation.has_metadata {
                let errors = self.problems.iter().filter(|p| p.severity == Severity::Error);
                errors.map(|p| format!("`{}`: {}", p.path.display(), p.message)).collect::<Vec<_>>().join("; ")
            } else {
                LEFTOVER.to_owned()
            }
        };
        GenerationView {
            name: &self.opened.generation.name,
            rows: if self.complete() { Ok(&self.scan.visible) } else { Err(why()) },
            leftover: !self.opened.generation.has_metadata,
            deleted: &self.deleted,
        }
    }
}

/// Scans an opened generation whole.
pub fn survey(opened: Opened) -> Surveyed {
    let generation = &opened.generation;
    let mut problems = opened.problems.clone();
    let scan = match (&opened.table, &opened.columns) {
        (Some(table), Some(columns)) => scan_generation(table, &opened.files, columns),
        _ if generation.has_metadata => Scan::default(),
        _ => leftover(generation, &mut problems),
    };
    problems.extend(scan.problems.iter().cloned());
    problems.extend(scan.doubts.iter().map(|doubt| Problem {
        severity: Severity::Warning,
        code: "manifest-contradicted",
        path: doubt.path.clone(),
        message: doubt.message(),
        advice: "its rows count as they were read; if nobody should have changed it, copy the cache again".to_owned(),
    }));
    problems.extend(scan.visible.repeated_seqs().iter().take(3).map(|seq| Problem {
        severity: Severity::Warning,
        code: "seq-twice",
        path: generation.dir.clone(),
        message: format!("seq {seq} is stamped on {} rows; expected one", scan.visible.with_seq(*seq).len()),
        advice: "report it: a seq must be unique within a partition".to_owned(),
    }));
    let deleted = scan.deleted.iter().map(|d| Deleted { row: d.row.clone(), by: d.by_names() }).collect();
    Surveyed { opened, scan, problems, deleted }
}

/// A folder that never was a whole generation: its data files are counted, and none of their rows is visible.
fn leftover(generation: &Generation, problems: &mut Vec<Problem>) -> Scan {
    match hypseq_iceberg::unreferenced(&generation.dir) {
        Ok(paths) => scan_files(&paths),
        Err(error) => {
            problems.push(unreadable(generation, &error));
            Scan::default()
        }
    }
}
