//! What a generated cache holds, known from how it was made and not from reading it.

use serde::Serialize;

/// What a generated cache holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// The partitions, as they were described.
    pub partitions: Vec<PartitionTruth>,
    /// `nextSeq` of the allocator.
    pub next_seq: i64,
    /// Rows in the spool.
    pub spooled: usize,
}

/// What a partition holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionTruth {
    /// The dataset.
    pub dataset: &'static str,
    /// The path below it.
    pub path: String,
    /// The column of the time.
    pub time_column: &'static str,
    /// The column of the id.
    pub id_column: &'static str,
    /// Every generation, oldest first; an orphan is not among them.
    pub generations: Vec<GenerationTruth>,
    /// Every row that a generation holds, in the order in which they were flushed. Empty when they were handed to a
    /// function one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowTruth>,
    /// The central sink's watermark; none when it never ticked.
    pub watermark: Option<WatermarkTruth>,
}

/// What the central sink's watermark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WatermarkTruth {
    /// `continuation.seq`.
    pub seq: i64,
    /// `exportedRowCount`.
    pub exported: u64,
}

/// What a generation is to its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerationState {
    /// The cursor points at it.
    Live,
    /// A later one took its place.
    Retired,
}

/// What a generation holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationTruth {
    /// The folder's name.
    pub name: String,
    /// What it is to the partition.
    pub state: GenerationState,
    /// Data files.
    pub data_files: u64,
    /// Rows in them, deleted ones included.
    pub raw_rows: u64,
    /// Rows that are visible.
    pub visible_rows: u64,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowTruth {
    /// Its seq; none for a legacy row.
    pub seq: Option<i64>,
    /// Its time in milliseconds since 1970, UTC.
    pub time_ms: Option<i64>,
    /// Its id. A row that was flushed twice has the same twice.
    pub id: String,
    /// A bit for each generation, the oldest's the lowest: visible in it.
    pub visible: u32,
    /// A bit for each generation: in a data file of it, and deleted there.
    pub deleted: u32,
}

impl RowTruth {
    /// Whether it is visible in the generation of that place.
    pub fn is_visible(&self, generation: usize) -> bool {
        has(self.visible, generation)
    }

    /// Whether it is in a data file of the generation of that place, and deleted there.
    pub fn is_deleted(&self, generation: usize) -> bool {
        has(self.deleted, generation)
    }
}

fn has(bits: u32, generation: usize) -> bool {
    u32::try_from(generation).ok().and_then(|place| bits.checked_shr(place)).is_some_and(|bits| bits & 1 == 1)
}
