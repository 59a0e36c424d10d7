//! One data file's part in a scan: the rows selected, and the constant columns.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use roaring::RoaringTreemap;

use crate::Unreadable;
use crate::datafile::DataFile;

/// Which rows of a data file a scan yields, by position in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selected {
    /// Every row.
    All,
    /// Only these.
    Only(Arc<RoaringTreemap>),
    /// All but these.
    Except(Arc<RoaringTreemap>),
}

/// Where the rows are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In a data file.
    File(Arc<DataFile>),
    /// In a file that is known to be unreadable: the scan fails, unless nothing of it is needed.
    Lost(Unreadable),
}

/// One data file's part in a scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanFile {
    pub source: Source,
    pub rows: Selected,
    /// Values of the table's constant columns; none where the value is not known.
    pub constants: Vec<Option<ScalarValue>>,
}

impl ScanFile {
    pub(crate) fn new(file: Arc<DataFile>, rows: Selected, constants: Vec<Option<ScalarValue>>) -> Self {
        Self { source: Source::File(file), rows, constants }
    }

    /// A file without which the table is not whole: a scan that cannot do without it fails.
    pub(crate) fn lost(unreadable: Unreadable, constants: Vec<Option<ScalarValue>>) -> Self {
        Self { source: Source::Lost(unreadable), rows: Selected::All, constants }
    }

    /// The data file, unless it is lost.
    pub(crate) fn file(&self) -> Option<&Arc<DataFile>> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Lost(_) => None,
        }
    }

    /// How many rows it yields, as far as that is known.
    pub(crate) fn row_count(&self) -> Option<u64> {
        let rows = self.file()?.rows;
        match &self.rows {
            Selected::All => rows,
            Selected::Only(only) => Some(only.len()),
            Selected::Except(except) => rows.map(|all| all.saturating_sub(except.len())),
        }
    }

    /// Ranges of the rows that it yields, in order, out of a file of so many; none for all.
    pub(crate) fn selected(&self, total: u64) -> Option<Vec<Range<u64>>> {
        match &self.rows {
            Selected::All => None,
            Selected::Only(rows) => Some(runs(rows)),
            Selected::Except(rows) => {
                let mut start = 0;
                let mut kept: Vec<Range<u64>> = Vec::new();
                for run in runs(rows) {
                    kept.push(start..run.start);
                    start = run.end;
                }
                kept.push(start..total);
                kept.retain(|range| range.start < range.end);
                Some(kept)
            }
        }
    }
}

/// Consecutive positions, joined.
fn runs(rows: &RoaringTreemap) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for row in rows {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end = row + 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}
