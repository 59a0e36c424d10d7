//! The full scan of a generation.

use std::fs;
use std::path::{Path, PathBuf};

use hypseq_boundary::{Row, RowSet};
use hypseq_cache::Problem;
use hypseq_iceberg::{DataFile, SnapshotFiles, Table};
use rayon::prelude::*;

use crate::Columns;
use crate::data_file::read;
use crate::lazy::{Doubt, Figures, verify};
use crate::problems::{Failure, report, unreadable};
use crate::rows::{FileRows, widen};

/// A row with a seq that the table's own metadata deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRow {
    /// The row.
    pub row: Row,
    /// The delete files that remove it.
    pub by: Vec<PathBuf>,
}

impl DeletedRow {
    /// The names of the delete files, joined.
    pub fn by_names(&self) -> String {
        file_names(self.by.iter().map(PathBuf::as_path))
    }
}

pub(crate) fn file_names<'a>(paths: impl IntoIterator<Item = &'a Path>) -> String {
    let names = paths.into_iter().map(|path| path.file_name().unwrap_or_default().to_string_lossy());
    names.collect::<Vec<_>>().join(", ")
}

/// What a scan found.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Visible rows with a seq.
    pub visible: RowSet,
    /// Deleted rows with a seq, in seq order.
    pub deleted: Vec<DeletedRow>,
    /// Visible rows, legacy ones included.
    pub visible_rows: u64,
    /// Physical rows of the files that could be read.
    pub raw_rows: u64,
    /// Deleted rows, legacy ones included.
    pub deleted_rows: u64,
    /// Visible rows without a seq.
    pub legacy_rows: u64,
    /// Visible rows without a time, with or without a seq.
    pub null_time_rows: u64,
    /// Least and greatest time of visible rows, legacy ones included, in microseconds since 1970, UTC.
    pub times: Option<(i64, i64)>,
    /// Least and greatest time of legacy rows, in microseconds since 1970, UTC.
    pub legacy_times: Option<(i64, i64)>,
    /// Data files of the generation.
    pub files_total: u64,
    /// Data files whose rows are counted.
    pub files_read: u64,
    /// Bytes of all data files on disk.
    pub bytes: u64,
    /// What could not be read; its rows are in none of the figures.
    pub problems: Vec<Problem>,
    /// Data files that are not what their manifests say. Their rows are in the figures, as they were read.
    pub doubts: Vec<Doubt>,
    /// How many problems the snapshot itself has ([`SnapshotFiles::problems`]): there may be more data files.
    pub snapshot_problems: usize,
}

impl Scan {
    /// Whether every row of the generation is in the figures.
    pub fn complete(&self) -> bool {
        self.files_read == self.files_total && self.problems.is_empty() && self.snapshot_problems == 0
    }

    /// Its figures, as [`LazyScan::figures`](crate::LazyScan::figures) gives them.
    pub fn figures(&self) -> Figures {
        Figures {
            visible_rows: self.visible_rows,
            raw_rows: self.raw_rows,
            deleted_rows: self.deleted_rows,
            legacy_rows: self.legacy_rows,
            null_time_rows: self.null_time_rows,
            seqs: self.seqs(),
            times: self.times,
        }
    }

    /// Least and greatest seq of the visible rows.
    pub fn seqs(&self) -> Option<(i64, i64)> {
        let rows = self.visible.rows();
        rows.first().zip(rows.last()).map(|(first, last)| (first.seq, last.seq))
    }
}

/// Reads every data file of a snapshot. A file whose row count is not the manifest's, whose columns are of another type,
/// or whose deletes cannot be read, is a problem, and its rows are left out.
pub fn scan_generation(table: &Table, files: &SnapshotFiles, columns: &Columns) -> Scan {
    let schema = table.metadata.current_schema();
    let read = |file: &DataFile| {
        let deleted = file.deleted_rows().map_err(Failure::Deletes)?;
        let rows = FileRows::read(file, &deleted, columns, schema).map_err(|why| Failure::data(file, why))?;
        let doubt = verify(file, deleted.len(), &rows, columns, schema).err();
        Ok((rows, doubt))
    };
    let results: Vec<Result<(FileRows, Option<Doubt>), Failure>> = files.data.par_iter().map(read).collect();

    let mut scan = Scan {
        files_total: files.data.len() as u64,
        bytes: files.data.iter().map(|file| size(&file.path)).sum(),
        snapshot_problems: files.problems.len(),
        ..Scan::default()
    };
    let mut visible = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok((rows, doubt)) => {
                scan.add(rows, &mut visible);
                scan.doubts.extend(doubt);
            }
            Err(failure) => failures.push(failure),
        }
    }
    scan.deleted.sort_by(|a, b| a.row.cmp(&b.row));
    scan.visible = RowSet::new(visible);
    scan.problems = report(failures);
    scan
}

impl Scan {
    fn add(&mut self, rows: FileRows, visible: &mut Vec<Row>) {
        self.files_read += 1;
        self.raw_rows += rows.rows;
        self.visible_rows += rows.rows - rows.deleted_rows;
        self.deleted_rows += rows.deleted_rows;
        self.legacy_rows += rows.legacy_rows;
        self.null_time_rows += rows.null_time_rows;
        merge(&mut self.times, rows.times);
        merge(&mut self.legacy_times, rows.legacy_times);
        visible.extend(rows.visible);
        self.deleted.extend(rows.deleted);
    }
}

fn merge(range: &mut Option<(i64, i64)>, other: Option<(i64, i64)>) {
    if let Some((min, max)) = other {
        widen(range, min);
        widen(range, max);
    }
}

/// Counts the rows of data files that no metadata reaches, such as an orphan's: they are raw rows, and none is visible.
/// Only footers are read.
pub fn scan_files(paths: &[PathBuf]) -> Scan {
    let counts: Vec<_> = paths.par_iter().map(|path| read(path, |reader| reader.rows())).collect();
    let mut scan =
        Scan { files_total: paths.len() as u64, bytes: paths.iter().map(|path| size(path)).sum(), ..Scan::default() };
    for (path, count) in paths.iter().zip(counts) {
        match count {
            Ok(rows) => {
                scan.files_read += 1;
                scan.raw_rows += rows;
            }
            Err(why) => scan.problems.push(unreadable(path, &why)),
        }
    }
    scan
}

/// A file that is not there has no bytes; that it cannot be read is reported where it is opened.
fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}
