//! Partitions: what names one, and what it consists of.

use std::path::PathBuf;

use crate::{Cursor, Generation, GenerationState, Problem};

/// Dataset and partition path: what names a partition everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The dataset, such as `ai_gateway_messages`.
    pub dataset: String,
    /// The path below the dataset, `/`-separated (`source=claude`); empty where the dataset has no segments.
    pub path: String,
}

impl PartitionId {
    /// `key=value` segments as pairs, in order; a segment without a key is left out.
    pub fn segments(&self) -> Vec<(&str, &str)> {
        self.path.split('/').filter_map(|segment| segment.split_once('=')).filter(|(key, _)| !key.is_empty()).collect()
    }

    /// The watermark's path below a sink instance's `watermarks/` folder, such as
    /// `ai_gateway_messages/source=claude.json`: dataset and partition path with each character outside
    /// `[A-Za-z0-9._=,-]` replaced by `_`, and `_partition.json` for a dataset without segments.
    pub fn watermark_path(&self) -> String {
        let path = if self.path.is_empty() { "_partition" } else { &self.path };
        let path: Vec<String> = path.split('/').map(sanitised).collect();
        format!("{}/{}.json", sanitised(&self.dataset), path.join("/"))
    }
}

/// HypAware replaces UTF-16 code units, so a character beyond the basic plane becomes two underscores.
fn sanitised(segment: &str) -> String {
    segment
        .encode_utf16()
        .map(|unit| {
            let byte = u8::try_from(unit).ok();
            byte.filter(|byte| byte.is_ascii_alphanumeric() || b"._=,-".contains(byte)).map_or('_', char::from)
        })
        .collect()
}

/// A partition: a folder below `datasets/<dataset>` with a `cursor.json`, or with generations in it.
#[derive(Debug, Clone)]
pub struct Partition {
    /// What names it.
    pub id: PartitionId,
    /// Its folder.
    pub dir: PathBuf,
    /// The cursor; an `Err` means that the live generation is unknown.
    pub cursor: Result<Cursor, Problem>,
    /// Every generation, oldest first (the partition folder itself, `table`, `table-<ms>` by number; epochs
    /// by number; other names).
    pub generations: Vec<Generation>,
}

impl Partition {
    /// The generation that the daemon reads; none when the cursor is unreadable or names a folder that is not there.
    pub fn live(&self) -> Option<&Generation> {
        self.generations.iter().find(|generation| generation.state == GenerationState::Live)
    }
}
