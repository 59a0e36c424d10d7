//! Reading a plan: the text must be JSON of the right kind and version, of exactly the known fields, each
//! in its one spelling, with the right checksum and without contradictions. Only then is it a [`Plan`].

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::checksum::{CanonicalError, checksum};
use crate::drift::drift;
use crate::model::{PLAN_KIND, PLAN_VERSION, Plan};
use crate::scalar::Sha256;
use crate::validate::Invalid;

/// The greatest file that is read; a plan of a thousand partitions is far smaller.
const MAX_BYTES: u64 = 16 << 20;

/// Why a text is not the document that it should be.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Not JSON at all: cut, perhaps, or another kind of file.
    #[error("not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON of another kind.
    #[error("kind: expected {expected:?}, found {found}")]
    Kind {
        /// The kind asked for.
        expected: &'static str,
        /// The kind in the file.
        found: String,
    },
    /// A version that this program does not know.
    #[error(
        "v: expected {expected}, found {found}; another version of the format needs another version of this program"
    )]
    Version {
        /// The version known.
        expected: u32,
        /// The version in the file.
        found: String,
    },
    /// A field that is unknown, given twice, or not of its type.
    #[error("a field is unknown, doubled, missing or of another type")]
    Shape(#[source] serde_json::Error),
    /// A field that is left out, or that spells its value in another way than the canonical one.
    #[error("{place}: expected the spelling {expected}, found {found}")]
    Spelling {
        /// Where.
        place: String,
        /// The canonical spelling.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The document has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The checksum is not that of the content.
    #[error(
        "edited after it was sealed: its checksum is {written}, its content has {computed}; make a new plan instead of editing one"
    )]
    Edited {
        /// The checksum in the file.
        written: Sha256,
        /// The checksum of what the file holds.
        computed: Sha256,
    },
    /// Fields that contradict one another.
    #[error("fields contradict one another")]
    Invalid(#[from] Invalid),
}

/// Why a file could not be read as the document that it should be.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("{}: cannot read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a regular file.
    #[error("{}: expected a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// More than any such file has.
    #[error("{}: expected at most {MAX_BYTES} bytes, found more", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The content does not fit.
    #[error("{}: unusable", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
}

impl Plan {
    /// Reads and verifies a plan: kind, version, fields, spelling, checksum and consistency. Whether it still
    /// applies is another question.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, exceeds 16 MiB, or is not a valid plan; see [`FormatError`].
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::from_json(&read_capped(path)?).map_err(|source| ReadError::Format { path: path.to_owned(), source })
    }

    /// The same for the bytes of a plan file.
    ///
    /// # Errors
    ///
    /// When the bytes are not a valid plan.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FormatError> {
        let plan: Self = document(bytes, PLAN_KIND, PLAN_VERSION)?;
        plan.verify()?;
        Ok(plan)
    }

    /// Verifies the checksum and the consistency of a plan, wherever it came from.
    pub(crate) fn verify(&self) -> Result<(), FormatError> {
        verify_checksum(self, self.checksum)?;
        Ok(self.validate()?)
    }
}

/// The bytes of a regular file of moderate size.
pub(crate) fn read_capped(path: &Path) -> Result<Vec<u8>, ReadError> {
    let at = |source| ReadError::Io { path: path.to_owned(), source };
    // Asked before opening: to open a named pipe is to wait for its writer.
    if !std::fs::metadata(path).map_err(at)?.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(at)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

/// A document of the given kind and version whose every field is spelled as it would be written.
pub(crate) fn document<T: Serialize + DeserializeOwned>(
    bytes: &[u8],
    kind: &'static str,
    version: u32,
) -> Result<T, FormatError> {
    let raw: Value = serde_json::from_slice(bytes).map_err(FormatError::NotJson)?;
    let text = |field: &str| raw.get(field).map_or_else(|| "nothing".to_owned(), Value::to_string);
    if raw.get("kind").and_then(Value::as_str) != Some(kind) {
        return Err(FormatError::Kind { expected: kind, found: text("kind") });
    }
    if raw.get("v").and_then(Value::as_u64) != Some(version.into()) {
        return Err(FormatError::Version { expected: version, found: text("v") });
    }
    // From the text once more, not from `raw`: only so are fields that stand twice found, and places named.
    let parsed: T = serde_json::from_slice(bytes).map_err(FormatError::Shape)?;
    // serde reads an absent field as null and a UUID in five spellings.
    match drift(&raw, &parsed).map_err(FormatError::Shape)?.into_iter().next() {
        None => Ok(parsed),
        Some(difference) => {
            let text = |value: Option<Value>| value.map_or_else(|| "nothing".to_owned(), |v| v.to_string());
            Err(FormatError::Spelling {
                place: difference.place,
                expected: text(difference.is),
                found: text(difference.was),
            })
        }
    }
}

/// Compares a document's checksum with that of its content.
pub(crate) fn verify_checksum(document: &impl Serialize, written: Sha256) -> Result<(), FormatError> {
    let computed = checksum(document)?;
    if computed == written { Ok(()) } else { Err(FormatError::Edited { written, computed }) }
}
