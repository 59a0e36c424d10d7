//! How trouble is reported: a problem stands beside an answer, an error instead of one.
//!
//! | code | meaning |
//! | --- | --- |
//! | `allocator-unreadable` | `_hyp_ingest_seq.json` is there and does not say the next seq |
//! | `cursor-missing` | generations and no `cursor.json`: which is live is unknown |
//! | `cursor-retention-unreadable` | the cursor's `retention` is not what it should be; the rest of it stands |
//! | `cursor-unreadable` | `cursor.json` is cut or nonsensical: which generation is live is unknown |
//! | `daemon-unreadable` | `run/hypaware.pid` is there and does not name a process |
//! | `generation-without-metadata` | a generation that is not live has no Iceberg metadata file |
//! | `link-not-followed` | a symbolic link to a folder, or to nothing, was skipped |
//! | `live-missing` | the cursor names a generation that is not there |
//! | `live-retired` | the cursor names a generation that has `.retired` |
//! | `live-without-metadata` | the live generation has no Iceberg metadata file |
//! | `name-not-utf8` | a file or folder whose name is not UTF-8 was skipped |
//! | `policy-unreadable` | a policy store is there and does not parse: nothing is exported |
//! | `spool-cut` | the last line of a spool file has no end (yet) |
//! | `spool-line-unreadable` | a finished line of a spool file is not a batch of rows |
//! | `spool-progress-unreadable` | a flush left a note of how far it came that makes no sense |
//! | `unreadable` | the operating system refused to list a folder or to read a file |
//! | `watermark-unreadable` | a watermark file is cut or nonsensical |

use std::path::{Path, PathBuf};

use serde::Serialize;

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; no number is affected.
    Info,
    /// Something is odd; the numbers given still hold.
    Warning,
    /// Part of the answer is missing or cannot be trusted.
    Error,
}

/// One thing that is wrong with what is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// A stable kebab-case code, such as `cursor-unreadable`.
    pub code: &'static str,
    /// The file or folder that it is about.
    pub path: PathBuf,
    /// What was expected and what was found, in one sentence without a final period.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

impl Problem {
    pub(crate) fn error(
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Error, code, path: path.to_owned(), message: message.into(), advice: advice.into() }
    }

    pub(crate) fn warning(
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, path, message, advice) }
    }

    /// What the operating system refused.
    pub(crate) fn io(path: &Path, source: &std::io::Error) -> Self {
        Self::error(
            "unreadable",
            path,
            format!("expected to read it, found: {source}"),
            "check the permissions of the path, or copy it again",
        )
    }
}

/// A value, and what went wrong on the way to it.
#[derive(Debug, Clone)]
pub struct Found<T> {
    /// All that could be read.
    pub value: T,
    /// What could not, in a stable order. Complete: a problem that a part of the value carries
    /// (`Partition::cursor`, `WatermarkFile::state`) is here as well.
    pub problems: Vec<Problem>,
}

/// There is no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is not what it was said to be.
    #[error("`{path}` is not {expected}: {found}\n  hint: {hint}")]
    NotThat {
        /// The path as given.
        path: PathBuf,
        /// What was expected there.
        expected: &'static str,
        /// What was found.
        found: String,
        /// What to try.
        hint: String,
    },
    /// The operating system refused.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The path that was read.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}
