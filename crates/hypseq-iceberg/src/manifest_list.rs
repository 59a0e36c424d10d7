//! Manifest lists: the manifests of a snapshot.

use std::fs;
use std::path::{Path, PathBuf};

use crate::avro::{self, Mismatch, Record};
use crate::relocate::Relocation;
use crate::{Error, io_error};

/// What a manifest's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Data,
    Deletes,
}

/// A manifest, as its list describes it.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    /// Where it is now, unless its URL is refused.
    pub path: Result<PathBuf, Error>,
    pub length: u64,
    pub content: Content,
    /// Entries that were added with it inherit this.
    pub sequence_number: i64,
    /// Entries without a snapshot inherit this.
    pub snapshot_id: Option<i64>,
    /// Entries of every status; none when the list does not say.
    pub entries: Option<u64>,
}

/// Reads a manifest list.
///
/// # Errors
/// [`Error::Io`], or [`Error::Invalid`] when it does not decode.
pub(crate) fn read(path: &Path, relocation: &Relocation) -> Result<Vec<ManifestFile>, Error> {
    let bytes = fs::read(path).map_err(|e| io_error(path, &e))?;
    decode(&bytes, path, relocation)
}

fn decode(bytes: &[u8], path: &Path, relocation: &Relocation) -> Result<Vec<ManifestFile>, Error> {
    avro::decode(path, bytes, |record| {
        let url = record.string("manifest_path")?.ok_or_else(|| Mismatch::new("`manifest_path`", &"none"))?;
        manifest_file(record, relocation.resolve(url, path))
    })
}

fn manifest_file(record: &Record<'_>, path: Result<PathBuf, Error>) -> Result<ManifestFile, Mismatch> {
    // Format version 1 has neither `content` nor `sequence_number`.
    let content = match record.long("content")?.unwrap_or(0) {
        0 => Content::Data,
        1 => Content::Deletes,
        other => return Err(Mismatch::new("manifest content 0 or 1", &other)),
    };
    let sequence_number = record.long("sequence_number")?.unwrap_or(0);
    let counts =
        [record.long("added_files_count")?, record.long("existing_files_count")?, record.long("deleted_files_count")?];
    Ok(ManifestFile {
        path,
        length: avro::size(record.long("manifest_length")?, "manifest_length")?,
        content,
        sequence_number: verify_sequence_number(sequence_number)?,
        snapshot_id: record.long("added_snapshot_id")?,
        entries: counts.into_iter().map(|n| n.and_then(|n| u64::try_from(n).ok())).sum(),
    })
}

fn verify_sequence_number(number: i64) -> Result<i64, Mismatch> {
    if number >= 0 {
        return Ok(number);
    }
    Err(Mismatch::new("a sequence number of 0 or more", &number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::damage::{damaged, testdata};

    const LIST: &str = "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466/metadata/\
                        snap-2968172267919475-1-f85bfb7e-1431-4352-9641-18748334e5b1.avro";

    fn decode_bytes(bytes: &[u8]) -> Result<Vec<ManifestFile>, Error> {
        let location =
            "file:///home/op/.hyp/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";
        let relocation = Relocation::new(location, Path::new("/copy"), Path::new("v1.metadata.json"))?;
        decode(bytes, Path::new("snap.avro"), &relocation)
    }

    #[test]
    fn reads_a_real_list() {
        let manifests = decode_bytes(&testdata(LIST)).unwrap();
        let first = &manifests[0];
        assert_eq!(first.path, Ok("/copy/metadata/b9c3421c-9caf-40f2-afea-07b381558602-m0.avro".into()));
        assert_eq!((first.length, first.content, first.sequence_number), (32_876, Content::Data, 1));
        assert_eq!((first.snapshot_id, first.entries), (Some(3_468_441_175_780_555), Some(27)));
        assert_eq!(manifests.len(), 5);
    }

    #[test]
    fn a_cut_list_is_an_error_wherever_it_is_cut() {
        let bytes = testdata(LIST);
        let header = bytes.windows(16).position(|w| w == &bytes[bytes.len() - 16..]).unwrap() + 16;
        for length in (0..bytes.len()).filter(|length| *length != header) {
            assert!(decode_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_list_is_decoded_or_refused(bytes in damaged(testdata(LIST))) {
            let _ = decode_bytes(&bytes);
        }
    }
}
