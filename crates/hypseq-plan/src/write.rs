//! Writing a plan: whole or not at all, readable by its owner only, never over another file and never
//! into a HypAware home.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::checksum::CanonicalError;
use crate::fsio::sync_folder;
use crate::model::Plan;
use crate::validate::Invalid;

/// Why a plan was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Its fields contradict one another.
    #[error("not a valid plan")]
    Invalid(#[from] Invalid),
    /// It has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// Its checksum is not that of its fields.
    #[error("the plan's checksum is not that of its fields; seal it first")]
    NotSealed,
    /// The file would lie in the home that it is about.
    #[error("{}: a plan is never written into a HypAware home ({})", path.display(), home.display())]
    BelowHome {
        /// The file.
        path: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// There is such a file.
    #[error("{}: exists already, and a plan is never overwritten; name another file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: cannot write", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Plan {
    /// The plan as the text of its file: two-space indent, final newline.
    ///
    /// # Errors
    ///
    /// None for a plan made of this crate's types.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        to_text(self)
    }

    /// Writes the sealed plan to a new file of mode 0600 that does not lie below `home`, the HypAware home that
    /// it is about. The file appears whole and flushed to disk, or not at all.
    ///
    /// # Errors
    ///
    /// When the plan is invalid or not sealed, the file exists or would lie below `home`, or it cannot be written.
    pub fn write(&self, path: &Path, home: &Path) -> Result<(), WriteError> {
        self.validate()?;
        if !self.verify_checksum()? {
            return Err(WriteError::NotSealed);
        }
        let text = self.to_text().map_err(CanonicalError::from)?;
        write_new(path, home, text.as_bytes())
    }
}

/// A document as the text of its file.
pub(crate) fn to_text(document: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// Writes a new file of mode 0600 outside `home`.
pub(crate) fn write_new(path: &Path, home: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        |source| WriteError::Io { path, source }
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let below = folder.canonicalize().map_err(at(folder))?;
    if below.starts_with(home.canonicalize().map_err(at(home))?) {
        return Err(WriteError::BelowHome { path: path.to_owned(), home: home.to_owned() });
    }
    // A temporary file of this crate has mode 0600 and is removed when it is dropped.
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
    temporary.write_all(bytes).map_err(at(path))?;
    temporary.as_file().sync_all().map_err(at(path))?;
    temporary.persist_noclobber(path).map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.to_owned() },
        _ => WriteError::Io { path: path.to_owned(), source: e.error },
    })?;
    sync_folder(folder).map_err(at(folder))
}
