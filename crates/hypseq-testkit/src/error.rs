//! What can go wrong on the way to a cache.

use std::path::{Path, PathBuf};

/// The cache could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot write `{path}`: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A data file or position-delete file could not be encoded.
    #[error("cannot encode a Parquet file: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A column could not be built.
    #[error("cannot build a column: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// A JSON file could not be encoded.
    #[error("cannot encode JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The description of the cache contradicts itself.
    #[error("expected {expected}, found {found}")]
    Spec {
        /// What a description must be like.
        expected: &'static str,
        /// What it says instead.
        found: String,
    },
}

/// Makes the error of a path out of the system's answer.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}
