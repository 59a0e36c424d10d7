//! A data file as the tables of the engine see it: where it is, what the manifests say of it, and which of its
//! rows are deleted.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use hypseq_iceberg::Bounds;
use roaring::RoaringTreemap;

use crate::Unreadable;
use crate::footer::Footer;

/// A data file of a generation.
#[derive(Debug)]
pub(crate) struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its path below the cache root, `/`-separated.
    pub relative: String,
    /// Rows in it, deleted ones included; none for a file that no manifest lists.
    pub rows: Option<u64>,
    /// Whether the generation's newest snapshot reaches it; none when that cannot be told.
    pub referenced: Option<bool>,
    /// Its deleted rows.
    pub deletes: Deletes,
    /// Bounds by field id.
    pub bounds: BTreeMap<i32, Bounds>,
    /// Field ids by column name in the generation's current schema; empty without one.
    pub field_ids: Arc<HashMap<String, i32>>,
    /// Its footer, once it was read and as far as there was room to keep it.
    pub footer: OnceLock<Arc<Footer>>,
}

/// Which rows of a data file are deleted.
#[derive(Debug, Clone)]
pub(crate) enum Deletes {
    /// Exactly these, by position in the file.
    Known(Arc<RoaringTreemap>),
    /// It cannot be told: a delete file or a manifest is unreadable.
    Unknown(Unreadable),
}

impl DataFile {
    /// What the manifest says of a column of the table.
    pub(crate) fn bounds(&self, column: &str) -> Bounds {
        let id = self.field_ids.get(column);
        id.and_then(|id| self.bounds.get(id)).copied().unwrap_or_default()
    }

    /// Blames this file.
    pub(crate) fn blame(&self, message: impl Into<String>) -> Unreadable {
        Unreadable {
            path: self.path.clone(),
            message: message.into(),
            hint: format!("in schema raw, `WHERE _file <> '{}'` leaves this file out", self.relative),
        }
    }
}
