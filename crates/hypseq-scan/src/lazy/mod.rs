//! A generation of which only those data files are read that can change an answer.
//!
//! The manifests bound the seqs and times of each data file and count its rows, nulls and deletes. What lies wholly on one
//! side of a question is counted and not opened; the file that decides is always read, so no answer rests on a bound
//! alone. Searches go best first: by bound, until the best row found beats every bound that is left.
//!
//! Nothing here is answered from a manifest that is known to be wrong. A data file of another size than it says, or with
//! rows outside of its bounds, or that cannot be read, is a [`Doubt`]: then everything must be read
//! ([`scan_generation`](crate::scan_generation)).

mod count;
mod extent;
mod order;
mod runs;
mod source;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use hypseq_boundary::{Row, RowSet};
use hypseq_iceberg::{DataFile, DeletedRows, Schema, SnapshotFiles, Table};
use rayon::prelude::*;

pub use self::count::Figures;
use self::extent::Extent;
use crate::rows::FileRows;
use crate::{Columns, DeletedRow};

/// Why a generation's manifests cannot answer: its rows must be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {}", path.display(), self.message())]
pub struct Doubt {
    /// The data file.
    pub path: PathBuf,
    expected: String,
    found: String,
}

impl Doubt {
    /// What is wrong, without the file.
    pub fn message(&self) -> String {
        format!("its manifest says {}, found {}", self.expected, self.found)
    }

    fn new(file: &DataFile, expected: impl Into<String>, found: impl Display) -> Self {
        Self { path: file.path.clone(), expected: expected.into(), found: found.to_string() }
    }
}

/// A generation whose data files are read as far as questions need them.
#[derive(Debug)]
pub struct LazyScan<'a> {
    columns: &'a Columns,
    schema: &'a Schema,
    files: Vec<LazyFile<'a>>,
    /// Bytes of all data files on disk.
    pub bytes: u64,
}

#[derive(Debug)]
struct LazyFile<'a> {
    file: &'a DataFile,
    deleted: DeletedRows,
    extent: Extent,
    loaded: OnceLock<Result<Loaded, Doubt>>,
}

/// A data file's rows, read.
#[derive(Debug)]
struct Loaded {
    /// Visible rows with a seq.
    visible: RowSet,
    /// Deleted rows with a seq.
    deleted: Vec<DeletedRow>,
    /// Visible rows without a time, with or without a seq.
    null_time_rows: u64,
    /// Visible rows without a seq.
    legacy_rows: u64,
    /// Least and greatest time of visible rows, with or without a seq.
    times: Option<(i64, i64)>,
}

impl From<FileRows> for Loaded {
    fn from(rows: FileRows) -> Self {
        let FileRows { visible, deleted, null_time_rows, legacy_rows, times, .. } = rows;
        Self { visible: RowSet::new(visible), deleted, null_time_rows, legacy_rows, times }
    }
}

impl<'a> LazyScan<'a> {
    /// Takes a snapshot's files. No data file is opened; deletion vectors are, as every count rests on them.
    ///
    /// # Errors
    /// [`Doubt`] about a file that is missing, has another size than its manifest says, or whose deletes cannot be read.
    pub fn new(table: &'a Table, files: &'a SnapshotFiles, columns: &'a Columns) -> Result<Self, Doubt> {
        let schema = table.metadata.current_schema();
        let lazy = |file: &'a DataFile| {
            verify_size(file)?;
            let deleted = file.deleted_rows().map_err(|e| Doubt::new(file, "which of its rows are deleted", e))?;
            let extent = Extent::of(file, deleted.len(), schema, columns)?;
            Ok(LazyFile { file, deleted, extent, loaded: OnceLock::new() })
        };
        Ok(Self {
            columns,
            schema,
            files: files.data.par_iter().map(lazy).collect::<Result<_, _>>()?,
            bytes: files.data.iter().map(|file| file.file_size).sum(),
        })
    }

    /// Data files of the generation.
    pub fn files_total(&self) -> u64 {
        self.files.len() as u64
    }

    /// Data files that were read so far.
    pub fn files_read(&self) -> u64 {
        self.files.iter().filter(|file| file.loaded.get().is_some()).count() as u64
    }

    /// Reads several files at once.
    fn load(&self, files: &[&LazyFile<'a>]) -> Result<(), Doubt> {
        files.par_iter().try_for_each(|file| self.rows(file).map(drop))
    }

    /// The rows of a file, read when they are first asked for.
    fn rows<'s>(&self, file: &'s LazyFile<'a>) -> Result<&'s Loaded, Doubt> {
        let loaded = file.loaded.get_or_init(|| {
            let LazyFile { file, deleted, extent, .. } = file;
            let rows = FileRows::read(file, deleted, self.columns, self.schema);
            let rows = rows.map_err(|e| Doubt::new(file, "a data file that can be read", e))?;
            extent.verify(file, &rows)?;
            Ok(Loaded::from(rows))
        });
        loaded.as_ref().map_err(Clone::clone)
    }

    /// The greatest of what files hold. `bound` is what a file can hold at most, none where it holds nothing; `find` is
    /// what it does hold, and `key` compares with bounds.
    fn greatest<T: Ord>(
        &self,
        bound: impl Fn(&Extent) -> Option<i64>,
        find: impl Fn(&Loaded) -> Option<T>,
        key: impl Fn(&T) -> i64,
    ) -> Result<Option<T>, Doubt> {
        let bounded = self.files.iter().filter_map(|file| Some((bound(&file.extent)?, file)));
        let mut by_bound: BTreeMap<i64, Vec<&LazyFile<'a>>> = BTreeMap::new();
        for (bound, file) in bounded {
            by_bound.entry(bound).or_default().push(file);
        }
        let mut best: Option<T> = None;
        for (bound, files) in by_bound.into_iter().rev() {
            if best.as_ref().is_some_and(|best| key(best) > bound) {
                break;
            }
            self.load(&files)?;
            for file in files {
                best = best.max(find(self.rows(file)?));
            }
        }
        Ok(best)
    }

    /// The least of what files hold, as [`LazyScan::greatest`].
    fn least<T: Ord>(
        &self,
        bound: impl Fn(&Extent) -> Option<i64>,
        find: impl Fn(&Loaded) -> Option<T>,
        key: impl Fn(&T) -> i64,
    ) -> Result<Option<T>, Doubt> {
        // `!` turns the order of integers around, the least and the greatest included.
        let found = self.greatest(
            |extent| bound(extent).map(|bound| !bound),
            |loaded| find(loaded).map(std::cmp::Reverse),
            |std::cmp::Reverse(value)| !key(value),
        )?;
        Ok(found.map(|std::cmp::Reverse(value)| value))
    }

    /// Sums over all files what `guess` tells from the manifest or, where it cannot, `count` from the rows.
    fn sum(&self, guess: impl Fn(&Extent) -> Option<u64>, count: impl Fn(&Loaded) -> u64) -> Result<u64, Doubt> {
        let (known, open): (Vec<_>, Vec<_>) =
            self.files.iter().map(|file| (guess(&file.extent), file)).partition(|(known, _)| known.is_some());
        let open: Vec<&LazyFile<'a>> = open.into_iter().map(|(_, file)| file).collect();
        self.load(&open)?;
        let mut sum = known.into_iter().filter_map(|(known, _)| known).sum();
        for file in open {
            sum += count(self.rows(file)?);
        }
        Ok(sum)
    }
}

/// Whether a data file that was read is the one that its manifest describes.
pub(crate) fn verify(
    file: &DataFile,
    deleted: u64,
    rows: &FileRows,
    columns: &Columns,
    schema: &Schema,
) -> Result<(), Doubt> {
    verify_size(file)?;
    Extent::of(file, deleted, schema, columns)?.verify(file, rows)
}

fn verify_size(file: &DataFile) -> Result<(), Doubt> {
    let expected = format!("{} bytes", file.file_size);
    match fs::metadata(&file.path) {
        Ok(metadata) if metadata.len() == file.file_size => Ok(()),
        Ok(metadata) => Err(Doubt::new(file, expected, metadata.len())),
        Err(error) => Err(Doubt::new(file, expected, error)),
    }
}

fn row_seq(row: &Row) -> i64 {
    row.seq
}
