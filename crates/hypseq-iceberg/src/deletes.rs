//! The deletes of a snapshot, and which of them apply to which data file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use roaring::{MultiOps as _, RoaringTreemap};

use crate::positions::{self, Positions};
use crate::relocate::canonical;
use crate::{DataFile, Error, puffin};

/// How a delete file names rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteKind {
    /// A blob in a Puffin file, for one data file.
    DeletionVector {
        /// Where the blob starts in the file.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// URL of the data file, as written.
        data_file_url: String,
    },
    /// A Parquet file of (`file_path`, `pos`), for any number of data files.
    Positions,
}

/// A delete file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteFile {
    /// Where it is now.
    pub path: PathBuf,
    /// How it names rows.
    pub kind: DeleteKind,
    /// Rows it deletes, as the manifest says (over all data files it covers).
    pub record_count: u64,
    /// Data sequence number: it applies to data files whose own is not higher.
    pub sequence_number: i64,
    /// The snapshot that added it.
    pub snapshot_id: Option<i64>,
}

/// Positions (from 0, over the whole file) of the deleted rows of one data file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletedRows(pub RoaringTreemap);

impl DeletedRows {
    /// Whether the row at that position is deleted.
    pub fn contains(&self, pos: u64) -> bool {
        self.0.contains(pos)
    }

    /// How many are.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What deletes rows of one data file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Deletes {
    /// The deletion vector that applies. It includes everything that position-delete files say about the file, which then
    /// do not apply (Iceberg v3, "Scan Planning").
    vector: Option<Vector>,
    /// Position-delete files that name the file, with the positions that they name.
    positions: Vec<(Arc<DeleteFile>, RoaringTreemap)>,
    /// Something that may delete rows of the file and cannot be used.
    unreadable: Option<Arc<Error>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Vector {
    file: DeleteFile,
    offset: u64,
    length: u64,
}

impl Deletes {
    /// The delete files that apply, position-delete files only where they name such positions.
    pub(crate) fn files(&self, positions: impl Fn(&RoaringTreemap) -> bool) -> Vec<&DeleteFile> {
        match &self.vector {
            Some(vector) => vec![&vector.file],
            None => self.positions.iter().filter(|(_, rows)| positions(rows)).map(|(file, _)| file.as_ref()).collect(),
        }
    }

    /// See [`DataFile::deleted_rows`].
    pub(crate) fn rows(&self, data_rows: u64) -> Result<DeletedRows, Error> {
        if let Some(error) = &self.unreadable {
            return Err(error.as_ref().clone());
        }
        let rows = match &self.vector {
            Some(Vector { file, offset, length }) => {
                let rows = puffin::read_deletion_vector(&file.path, *offset, *length, file.record_count)?;
                verify_positions(&rows, data_rows, file)?;
                rows
            }
            None => self.union(),
        };
        Ok(DeletedRows(rows))
    }

    /// See [`DataFile::deleted_count`].
    pub(crate) fn count(&self) -> Option<u64> {
        if self.unreadable.is_some() {
            return None;
        }
        Some(self.vector.as_ref().map_or_else(|| self.union().len(), |vector| vector.file.record_count))
    }

    fn union(&self) -> RoaringTreemap {
        self.positions.iter().map(|(_, rows)| rows).union()
    }
}

/// A delete manifest or delete file that cannot be used, so that what it deletes is not known.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub error: Error,
    /// It may concern data files up to this data sequence number,
    pub sequence_number: i64,
    /// and only this one, where the manifest names it.
    pub data_file_url: Option<String>,
}

impl Unreadable {
    fn may_concern(&self, file: &DataFile) -> bool {
        file.sequence_number <= self.sequence_number
            && self.data_file_url.as_ref().is_none_or(|url| canonical(url) == canonical(&file.url))
    }
}

/// Gives each data file the deletes that apply to it; what is wrong with them is returned as well. `place` finds the data
/// file of a URL.
pub(crate) fn attach(
    data: &mut [DataFile],
    place: impl Fn(&str) -> Option<usize>,
    deletes: Vec<DeleteFile>,
    mut unreadable: Vec<Unreadable>,
) -> Vec<Error> {
    let mut problems = Vec::new();
    for delete in deletes {
        match &delete.kind {
            DeleteKind::DeletionVector { offset, length, data_file_url } => {
                let Some(file) = target(data, place(data_file_url), &delete) else { continue };
                if let Some(first) = &file.deletes.vector {
                    let error = Error::Invalid {
                        path: delete.path.clone(),
                        expected: format!("one deletion vector for `{data_file_url}`"),
                        found: format!("a second one beside `{}`", first.file.path.display()),
                    };
                    file.deletes.unreadable = Some(Arc::new(error.clone()));
                    problems.push(error);
                } else {
                    let (offset, length) = (*offset, *length);
                    file.deletes.vector = Some(Vector { file: delete, offset, length });
                }
            }
            DeleteKind::Positions => match positions::read(&delete.path, delete.record_count) {
                Ok(positions) => problems.extend(attach_positions(data, &place, &Arc::new(delete), positions)),
                Err(error) => {
                    let sequence_number = delete.sequence_number;
                    unreadable.push(Unreadable { error, sequence_number, data_file_url: None });
                }
            },
        }
    }
    for unreadable in unreadable {
        problems.push(unreadable.error.clone());
        let error = Arc::new(unreadable.error.clone());
        for file in data.iter_mut().filter(|f| unreadable.may_concern(f)) {
            file.deletes.unreadable.get_or_insert_with(|| Arc::clone(&error));
        }
    }
    problems
}

fn attach_positions(
    data: &mut [DataFile],
    place: &impl Fn(&str) -> Option<usize>,
    delete: &Arc<DeleteFile>,
    positions: Positions,
) -> Vec<Error> {
    // One data file may be spelled in several ways.
    let mut by_place: BTreeMap<usize, RoaringTreemap> = BTreeMap::new();
    for (url, rows) in positions {
        if let Some(place) = place(&url) {
            *by_place.entry(place).or_default() |= rows;
        }
    }
    let mut problems = Vec::new();
    for (place, rows) in by_place {
        let Some(file) = target(data, Some(place), delete) else { continue };
        if let Err(error) = verify_positions(&rows, file.record_count, delete) {
            file.deletes.unreadable = Some(Arc::new(error.clone()));
            problems.push(error);
        }
        file.deletes.positions.push((Arc::clone(delete), rows));
    }
    problems
}

/// The data file at that place, when it is old enough for the delete file to apply.
fn target<'a>(data: &'a mut [DataFile], place: Option<usize>, delete: &DeleteFile) -> Option<&'a mut DataFile> {
    data.get_mut(place?).filter(|file| file.sequence_number <= delete.sequence_number)
}

fn verify_positions(rows: &RoaringTreemap, data_rows: u64, delete: &DeleteFile) -> Result<(), Error> {
    match rows.max() {
        Some(last) if last >= data_rows => Err(Error::Invalid {
            path: delete.path.clone(),
            expected: format!("positions below {data_rows}, the data file's rows"),
            found: last.to_string(),
        }),
        _ => Ok(()),
    }
}
