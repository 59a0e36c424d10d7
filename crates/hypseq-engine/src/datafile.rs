//! A data file as the tables of the engine see it: where it is, what the manifests say of it, and which of its
//! rows are deleted.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use hypseq_iceberg::Bounds;
use roaring::RoaringTreemap;

use crate::Unreadable;

/// A data file of a generation.
#[derive(Debug)]
pub(crate) struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its path below the cache root, `/`-separated.
    pub relative: String,
    /// Its size in bytes.
    pub size: u64,
    /// Rows in it, deleted ones included; none for a file that no manifest lists.
    pub rows: Option<u64>,
    /// Whether the generation's newest snapshot reaches it; none when that cannot be told.
    pub referenced: Option<bool>,
    /// Its deleted rows.
    pub deletes: Deletes,
    /// Bounds by column name.
    pub bounds: BTreeMap<String, Bounds>,
    /// Field ids by column name in the generation's current schema; empty without one.
    pub field_ids: Arc<HashMap<String, i32>>,
}

/// Which rows of a data file are deleted.
#[derive(Debug, Clone)]
pub(crate) enum Deletes {
    /// Exactly these, by position in the file.
    Known(Arc<RoaringTreemap>),
    /// It cannot be told: a delete file or a manifest is unreadable.
    Unknown(Unreadable),
}
