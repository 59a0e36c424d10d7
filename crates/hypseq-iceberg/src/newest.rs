//! Which metadata file of a generation is the newest.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::{Error, io_error};

/// No metadata file of a real table comes near this, unpacked; a damaged `.gz` could claim anything.
const MAX_UNPACKED: u64 = 512 << 20;

/// The metadata file to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub path: PathBuf,
    /// What was odd about finding it.
    pub notes: Vec<String>,
}

/// A metadata file's name, taken apart: `v<N>` or `<N>-<uuid>`, before `.metadata.json` with an optional `.gz`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    version: u64,
    stem: String,
    name: String,
}

impl Candidate {
    fn parse(name: &str) -> Option<Self> {
        let stem = [".metadata.json", ".metadata.json.gz", ".gz.metadata.json"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .min_by_key(|stem| stem.len())?;
        let number = match stem.strip_prefix('v') {
            Some(number) => number,
            None => stem.split_once('-')?.0,
        };
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self { version: number.parse().ok()?, stem: stem.to_owned(), name: name.to_owned() })
    }

    /// A hint is the number of a `v<N>`, or what stands before `.metadata.json` of another writer's name.
    fn is_hinted(&self, hint: &str) -> bool {
        self.stem == hint || self.stem.strip_prefix('v') == Some(hint)
    }
}

/// Finds the file that `version-hint.text` names, else the one with the highest number.
///
/// # Errors
/// [`Error::NoMetadata`] when there is none, [`Error::Io`] when the folder cannot be listed.
pub(crate) fn find(dir: &Path) -> Result<Newest, Error> {
    let folder = dir.join("metadata");
    let no_metadata = |found: &str| Error::NoMetadata { path: dir.to_owned(), found: found.to_owned() };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(no_metadata("there is no `metadata` folder"));
        }
        Err(e) => return Err(io_error(&folder, &e)),
    };
    let mut candidates = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| io_error(&folder, &e))?;
        candidates.extend(entry.file_name().to_str().and_then(Candidate::parse));
    }
    let highest =
        candidates.iter().max().ok_or_else(|| no_metadata("no `*.metadata.json` in its `metadata` folder"))?;

    let mut notes = Vec::new();
    let hint = read_hint(&folder.join("version-hint.text"), &mut notes);
    let hinted = hint.as_deref().and_then(|hint| candidates.iter().filter(|c| c.is_hinted(hint)).max());
    let chosen = match (&hint, hinted) {
        (None, _) => highest,
        (Some(hint), None) => {
            notes.push(format!("`version-hint.text` says `{hint}`, which is not there; `{}` is read", highest.name));
            highest
        }
        (Some(_), Some(hinted)) => {
            if highest.version > hinted.version {
                notes.push(format!(
                    "`{}` is newer than `{}`, which `version-hint.text` names and which is read",
                    highest.name, hinted.name
                ));
            }
            hinted
        }
    };
    Ok(Newest { path: folder.join(&chosen.name), notes })
}

fn read_hint(path: &Path, notes: &mut Vec<String>) -> Option<String> {
    match fs::read(path) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(e) => {
            let found = match e.kind() {
                io::ErrorKind::NotFound => "there is no `version-hint.text`".to_owned(),
                _ => format!("`version-hint.text` cannot be read: {e}"),
            };
            notes.push(format!("{found}; the metadata file with the highest number is read"));
            None
        }
    }
}

/// A metadata file's bytes as they are on disk, and unpacked when its name says that it is packed.
///
/// # Errors
/// [`Error::Io`], or [`Error::Invalid`] when it does not unpack.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
    let bytes = fs::read(path).map_err(|e| io_error(path, &e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(".gz") && !name.ends_with(".gz.metadata.json") {
        return Ok((bytes, None));
    }
    let mut unpacked = Vec::new();
    let invalid = |found: String| Error::Invalid { path: path.to_owned(), expected: "a gzip file".to_owned(), found };
    let length = MultiGzDecoder::new(bytes.as_slice())
        .take(MAX_UNPACKED)
        .read_to_end(&mut unpacked)
        .map_err(|e| invalid(e.to_string()))?;
    if length as u64 == MAX_UNPACKED {
        return Err(invalid(format!("more than {MAX_UNPACKED} bytes unpacked")));
    }
    Ok((bytes, Some(unpacked)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn folder(files: &[&str], hint: Option<&str>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("metadata")).unwrap();
        for file in files {
            fs::write(dir.path().join("metadata").join(file), "{}").unwrap();
        }
        if let Some(hint) = hint {
            fs::write(dir.path().join("metadata/version-hint.text"), hint).unwrap();
        }
        dir
    }

    fn assert_found(files: &[&str], hint: Option<&str>, expected: &str, expected_notes: &[&str]) {
        let dir = folder(files, hint);
        let newest = find(dir.path()).unwrap();
        assert_eq!(newest.path, dir.path().join("metadata").join(expected));
        assert_eq!(newest.notes, expected_notes);
    }

    #[test]
    fn the_hint_decides() {
        let files = ["v1.metadata.json", "v2.metadata.json", "v10.metadata.json"];
        assert_found(&files, Some("10"), "v10.metadata.json", &[]);
        assert_found(&files, Some("10\n"), "v10.metadata.json", &[]);
        assert_found(
            &files,
            Some("2"),
            "v2.metadata.json",
            &[
                "`v10.metadata.json` is newer than `v2.metadata.json`, which `version-hint.text` names and which is read",
            ],
        );
    }

    #[test]
    fn without_a_hint_the_highest_number_decides() {
        let note = "there is no `version-hint.text`; the metadata file with the highest number is read";
        assert_found(&["v9.metadata.json", "v10.metadata.json"], None, "v10.metadata.json", &[note]);
        assert_found(
            &["00001-9f.metadata.json", "00002-1a.metadata.json.gz", "snap-1.avro", "v3.metadata.json.tmp"],
            None,
            "00002-1a.metadata.json.gz",
            &[note],
        );
    }

    #[test]
    fn a_hint_that_points_nowhere_is_noted() {
        assert_found(
            &["v1.metadata.json"],
            Some("7"),
            "v1.metadata.json",
            &["`version-hint.text` says `7`, which is not there; `v1.metadata.json` is read"],
        );
        assert_found(
            &["v1.metadata.json"],
            Some(""),
            "v1.metadata.json",
            &["`version-hint.text` says ``, which is not there; `v1.metadata.json` is read"],
        );
    }

    #[test]
    fn other_writers_names() {
        assert_found(&["v3.gz.metadata.json"], Some("3"), "v3.gz.metadata.json", &[]);
        assert_found(&["v3.metadata.json.gz"], Some("3"), "v3.metadata.json.gz", &[]);
        assert_found(&["00003-ab.metadata.json"], Some("00003-ab"), "00003-ab.metadata.json", &[]);
    }

    #[test]
    fn says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let error = |dir: &Path| find(dir).unwrap_err().to_string();
        assert_eq!(error(dir.path()), format!("`{path}` has no Iceberg metadata: there is no `metadata` folder"));
        fs::write(dir.path().join("metadata"), "").unwrap();
        assert_eq!(error(dir.path()), format!("`{path}` has no Iceberg metadata: there is no `metadata` folder"));
        let dir = folder(&["snap-1.avro", "vx.metadata.json", "v.metadata.json"], Some("1"));
        assert_eq!(
            error(dir.path()),
            format!(
                "`{}` has no Iceberg metadata: no `*.metadata.json` in its `metadata` folder",
                dir.path().display()
            )
        );
    }

    #[test]
    fn unpacks_a_packed_file_and_keeps_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v1.gz.metadata.json");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"{\"a\": 1}").unwrap();
        let packed = encoder.finish().unwrap();
        fs::write(&path, &packed).unwrap();
        assert_eq!(read(&path).unwrap(), (packed.clone(), Some(b"{\"a\": 1}".to_vec())));

        fs::write(&path, &packed[..packed.len() - 3]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("expected a gzip file, found"));
    }
}
