//! Manifests: data files with their bounds, and delete files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::avro::{self, Mismatch, Record};
use crate::deletes::Deletes;
use crate::manifest_list::{Content, ManifestFile};
use crate::relocate::Relocation;
use crate::{DeleteFile, DeleteKind, DeletedRows, Error, io_error};

/// Exact bounds of a long or timestamptz column in one data file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Least non-null value; none when the manifest has none.
    pub lower: Option<i64>,
    /// Greatest non-null value; none when the manifest has none.
    pub upper: Option<i64>,
    /// Nulls; none when the manifest does not say.
    pub nulls: Option<u64>,
}

/// A data file of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// Where it is now.
    pub path: PathBuf,
    /// Its URL, as written.
    pub url: String,
    /// Rows in it, deleted ones included.
    pub record_count: u64,
    /// Its size in bytes, as the manifest says.
    pub file_size: u64,
    /// Data sequence number, inherited where the manifest has null.
    pub sequence_number: i64,
    /// The snapshot that added it.
    pub snapshot_id: Option<i64>,
    /// By field id; long and timestamptz columns only. A bound that is not eight bytes long counts as absent.
    pub bounds: BTreeMap<i32, Bounds>,
    pub(crate) deletes: Deletes,
}

impl DataFile {
    /// The delete files that apply to it.
    pub fn deletes(&self) -> Vec<&DeleteFile> {
        self.deletes.files(|_| true)
    }

    /// The delete files that remove the row at that position, which is one of [`DataFile::deleted_rows`].
    pub fn deleted_by(&self, pos: u64) -> Vec<&DeleteFile> {
        self.deletes.files(|positions| positions.contains(pos))
    }

    /// Which of its rows are deleted, from every delete file that applies.
    ///
    /// # Errors
    /// A delete file or delete manifest that may concern it cannot be read or does not verify, or two deletion vectors
    /// apply: its rows cannot be told visible from deleted.
    pub fn deleted_rows(&self) -> Result<DeletedRows, Error> {
        self.deletes.rows(self.record_count)
    }

    /// Rows deleted, without opening a deletion vector; none when [`DataFile::deleted_rows`] is known to fail.
    pub fn deleted_count(&self) -> Option<u64> {
        self.deletes.count()
    }
}

/// A file that a manifest adds to the snapshot.
#[derive(Debug)]
pub(crate) enum Entry {
    Data(DataFile),
    Delete(DeleteFile),
}

/// A live entry that cannot be used.
#[derive(Debug)]
pub(crate) struct EntryError {
    pub error: Error,
    /// The data file that it deletes rows of, where it says so.
    pub data_file_url: Option<String>,
}

/// Reads a manifest. Of its live entries, one that cannot be used is an error in its place.
///
/// # Errors
/// [`Error::Io`], or [`Error::Invalid`] when it is not the manifest that its list describes.
pub(crate) fn read(
    manifest: &ManifestFile,
    relocation: &Relocation,
    bounded: &BTreeSet<i32>,
) -> Result<Vec<Result<Entry, EntryError>>, Error> {
    let path = manifest.path.as_ref().map_err(Clone::clone)?;
    let bytes = fs::read(path).map_err(|e| io_error(path, &e))?;
    verify_length(bytes.len(), manifest.length).map_err(|m| m.in_file(path))?;
    decode(&bytes, path, manifest, relocation, bounded)
}

fn decode(
    bytes: &[u8],
    path: &Path,
    manifest: &ManifestFile,
    relocation: &Relocation,
    bounded: &BTreeSet<i32>,
) -> Result<Vec<Result<Entry, EntryError>>, Error> {
    let entries = avro::decode(path, bytes, |record| {
        if !is_live(record)? {
            return Ok(None);
        }
        let file =
            record.record("data_file")?.ok_or_else(|| Mismatch::new("`data_file` in a manifest entry", &"none"))?;
        let url = file.string("file_path")?.ok_or_else(|| Mismatch::new("`file_path` in a manifest entry", &"none"))?;
        let data_file_url = file.string("referenced_data_file")?.map(str::to_owned);
        let entry = relocation.resolve(url, path).and_then(|resolved| {
            entry(record, file, url, resolved, manifest, bounded).map_err(|mismatch| mismatch.in_file(path))
        });
        Ok(Some(entry.map_err(|error| EntryError { error, data_file_url })))
    })?;
    verify_entry_count(entries.len(), manifest.entries).map_err(|m| m.in_file(path))?;
    Ok(entries.into_iter().flatten().collect())
}

fn verify_length(found: usize, expected: u64) -> Result<(), Mismatch> {
    if found as u64 == expected {
        return Ok(());
    }
    Err(Mismatch::new(format!("{expected} bytes, as the manifest list says"), &found))
}

fn verify_entry_count(found: usize, expected: Option<u64>) -> Result<(), Mismatch> {
    match expected {
        Some(expected) if expected != found as u64 => {
            Err(Mismatch::new(format!("{expected} entries, as the manifest list says"), &found))
        }
        _ => Ok(()),
    }
}

/// Status 0 is existing, 1 added, 2 deleted.
fn is_live(record: &Record<'_>) -> Result<bool, Mismatch> {
    match record.long("status")? {
        Some(0 | 1) => Ok(true),
        Some(2) => Ok(false),
        other => Err(Mismatch::new("entry status 0, 1 or 2", &format!("{other:?}"))),
    }
}

fn entry(
    record: &Record<'_>,
    file: &Record<'_>,
    url: &str,
    path: PathBuf,
    manifest: &ManifestFile,
    bounded: &BTreeSet<i32>,
) -> Result<Entry, Mismatch> {
    let record_count = avro::size(file.long("record_count")?, "record_count")?;
    let sequence_number = sequence_number(record, url, manifest)?;
    let snapshot_id = record.long("snapshot_id")?.or(manifest.snapshot_id);
    let format = file.string("file_format")?.unwrap_or_default().to_ascii_uppercase();
    let content = file.long("content")?.unwrap_or(0);
    match (manifest.content, content, format.as_str()) {
        (Content::Data, 0, "PARQUET") => Ok(Entry::Data(DataFile {
            path,
            url: url.to_owned(),
            record_count,
            file_size: avro::size(file.long("file_size_in_bytes")?, "file_size_in_bytes")?,
            sequence_number,
            snapshot_id,
            bounds: bounds(file, bounded)?,
            deletes: Deletes::default(),
        })),
        (Content::Deletes, 1, "PUFFIN") => {
            let kind = deletion_vector(file)?;
            Ok(Entry::Delete(DeleteFile { path, kind, record_count, sequence_number, snapshot_id }))
        }
        (Content::Deletes, 1, "PARQUET") => {
            let kind = DeleteKind::Positions;
            Ok(Entry::Delete(DeleteFile { path, kind, record_count, sequence_number, snapshot_id }))
        }
        (Content::Deletes, 2, _) => Err(Mismatch::new(
            "deletion vectors or position deletes only",
            &format!("`{url}`, an equality-delete file, which cannot be applied here"),
        )),
        (Content::Data, ..) => {
            Err(Mismatch::new("Parquet data files", &format!("`{url}`, content {content}, format `{format}`")))
        }
        (Content::Deletes, ..) => Err(Mismatch::new(
            "Puffin or Parquet position deletes",
            &format!("`{url}`, content {content}, format `{format}`"),
        )),
    }
}

/// A null is inherited from the manifest by an entry that was added with it (v2 and later, "Sequence Number
/// Inheritance"); format version 1 has no such field, and 0 for all files.
fn sequence_number(record: &Record<'_>, url: &str, manifest: &ManifestFile) -> Result<i64, Mismatch> {
    if !record.has("sequence_number") {
        return Ok(0);
    }
    match (record.long("sequence_number")?, record.long("status")?) {
        (Some(number), _) if number >= 0 => Ok(number),
        (None, Some(1)) => Ok(manifest.sequence_number),
        (number, _) => Err(Mismatch::new(
            format!("a sequence number for `{url}`"),
            &number
                .map_or_else(|| "null in an entry that was not added with its manifest".to_owned(), |n| n.to_string()),
        )),
    }
}

fn deletion_vector(file: &Record<'_>) -> Result<DeleteKind, Mismatch> {
    let url = file.string("referenced_data_file")?;
    Ok(DeleteKind::DeletionVector {
        offset: avro::size(file.long("content_offset")?, "content_offset")?,
        length: avro::size(file.long("content_size_in_bytes")?, "content_size_in_bytes")?,
        data_file_url: url
            .ok_or_else(|| Mismatch::new("`referenced_data_file` for a deletion vector", &"none"))?
            .to_owned(),
    })
}

fn bounds(file: &Record<'_>, bounded: &BTreeSet<i32>) -> Result<BTreeMap<i32, Bounds>, Mismatch> {
    let mut bounds: BTreeMap<i32, Bounds> = BTreeMap::new();
    let long = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes);
    let mut set = |id: i32, set: &dyn Fn(&mut Bounds)| {
        if bounded.contains(&id) {
            set(bounds.entry(id).or_default());
        }
    };
    file.visit_longs("null_value_counts", |id, nulls| set(id, &|bounds| bounds.nulls = u64::try_from(nulls).ok()))?;
    file.visit_bytes("lower_bounds", |id, value| set(id, &|bounds| bounds.lower = long(value)))?;
    file.visit_bytes("upper_bounds", |id, value| set(id, &|bounds| bounds.upper = long(value)))?;
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::damage::{damaged, testdata};

    const DIR: &str = "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";
    const DATA: &str = "metadata/0ea8d0be-e407-4007-a68c-006606fce57a-m0.avro";
    const DELETES: &str = "metadata/aad4cec1-c002-4f17-985f-0af717ca1f1b-m0.avro";

    fn decode_bytes(bytes: &[u8], content: Content) -> Result<Vec<Result<Entry, EntryError>>, Error> {
        let location =
            "file:///home/op/.hyp/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";
        let relocation = Relocation::new(location, Path::new("/copy"), Path::new("v1.metadata.json"))?;
        let path = Path::new("m0.avro");
        let (length, entries) = (bytes.len() as u64, None);
        let manifest =
            ManifestFile { path: Ok(path.to_owned()), length, content, sequence_number: 1, snapshot_id: None, entries };
        decode(bytes, path, &manifest, &relocation, &BTreeSet::from([10, 34, 57]))
    }

    #[test]
    fn a_cut_manifest_is_an_error_wherever_it_is_cut() {
        let bytes = testdata(&format!("{DIR}/{DATA}"));
        assert_eq!(decode_bytes(&bytes, Content::Data).unwrap().len(), 3);
        let header = bytes.windows(16).position(|w| w == &bytes[bytes.len() - 16..]).unwrap() + 16;
        for length in (0..bytes.len()).filter(|length| *length != header) {
            assert!(decode_bytes(&bytes[..length], Content::Data).is_err(), "cut at {length}");
        }
        // Cut right after the header it is a manifest without entries: the length in its list tells.
        assert_eq!(decode_bytes(&bytes[..header], Content::Data).unwrap().len(), 0);
        assert!(verify_length(header, bytes.len() as u64).is_err());
    }

    proptest! {
        #[test]
        fn a_damaged_manifest_is_decoded_or_refused(bytes in damaged(testdata(&format!("{DIR}/{DATA}")))) {
            let _ = decode_bytes(&bytes, Content::Data);
        }

        #[test]
        fn a_damaged_delete_manifest_is_decoded_or_refused(bytes in damaged(testdata(&format!("{DIR}/{DELETES}")))) {
            let _ = decode_bytes(&bytes, Content::Deletes);
        }
    }
}
