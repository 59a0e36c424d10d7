//! What can be wrong with a table on disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why a table, a manifest or a delete file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no metadata file in the generation's folder.
    #[error("`{path}` has no Iceberg metadata: {found}")]
    NoMetadata {
        /// The generation's folder.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// A file cannot be opened or read.
    #[error("cannot read `{path}`: {message}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        message: String,
    },
    /// A file is there and is not what it should be.
    #[error("`{path}`: expected {expected}, found {found}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What the format wants.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A path inside the metadata leads out of the generation's folder.
    #[error("`{path}` names `{url}`, which is outside the table's location `{location}`; it is not followed")]
    Outside {
        /// The file that names it.
        path: PathBuf,
        /// The URL as written.
        url: String,
        /// The table's own location.
        location: String,
    },
}

impl Error {
    /// The file or folder that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::NoMetadata { path, .. }
            | Self::Io { path, .. }
            | Self::Invalid { path, .. }
            | Self::Outside { path, .. } => path,
        }
    }
}

pub(crate) fn io_error(path: &Path, error: &io::Error) -> Error {
    Error::Io { path: path.to_owned(), message: error.to_string() }
}
