//! Why a seq is no visible row of a partition. The counter belongs to the whole cache, so holes are normal.

use anyhow::Result;
use hypseq_cache::{Home, Partition};
use serde_json::{Value, json};

use crate::select;
use crate::survey::{Survey, Surveyed};

/// What became of a seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hole {
    /// A row of another partition has it.
    Elsewhere { partition: String },
    /// A row of this partition had it, and a delete file removed it.
    Deleted { generation: String, by: String },
    /// Another generation shows it: a later compaction dropped it, or it was flushed after this one was retired.
    OtherGeneration { generation: String },
    /// The allocator has not reached it.
    Unallocated { next_seq: i64 },
    /// Nothing on disk has it: reserved and never stamped, or every copy is gone.
    Unknown,
}

impl Hole {
    /// Looks for a seq that is no visible row of the generation.
    pub fn explain(
        home: &Home,
        partitions: &[Partition],
        surveyed: &Surveyed,
        here: &Partition,
        seq: i64,
    ) -> Result<Self> {
        if let Some(next_seq) = home.allocator().ok().flatten().map(|a| a.next_seq).filter(|next| seq >= *next) {
            return Ok(Self::Unallocated { next_seq });
        }
        if let Some(deleted) = surveyed.deleted().iter().find(|d| d.row.seq == seq) {
            return Ok(Self::Deleted { generation: surveyed.generation.name.clone(), by: deleted.by.clone() });
        }
        for other in Survey::of(here, None)?.generations.iter().rev() {
            if let Some(deleted) = other.deleted().iter().find(|d| d.row.seq == seq) {
                return Ok(Self::Deleted { generation: other.generation.name.clone(), by: deleted.by.clone() });
            }
            if !other.scan.visible.with_seq(seq).is_empty() {
                return Ok(Self::OtherGeneration { generation: other.generation.name.clone() });
            }
        }
        for partition in partitions.iter().filter(|p| p.id != here.id) {
            let survey = Survey::of(partition, None)?;
            let has =
                |s: &Surveyed| !s.scan.visible.with_seq(seq).is_empty() || s.deleted().iter().any(|d| d.row.seq == seq);
            if survey.generations.iter().any(has) {
                return Ok(Self::Elsewhere { partition: select::name(&partition.id) });
            }
        }
        Ok(Self::Unknown)
    }

    /// The name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Elsewhere { .. } => "elsewhere",
            Self::Deleted { .. } | Self::OtherGeneration { .. } => "deleted",
            Self::Unallocated { .. } => "unallocated",
            Self::Unknown => "unknown",
        }
    }

    pub fn json(&self) -> Value {
        json!({ "kind": self.kind(), "detail": self.sentence() })
    }

    pub fn sentence(&self) -> String {
        match self {
            Self::Elsewhere { partition } => format!("it is a row of {partition}; the counter is the whole cache's"),
            Self::Deleted { generation, by: file } => {
                format!("it was a row of this partition, deleted in generation {generation} by {file}")
            }
            Self::OtherGeneration { generation } => {
                format!("it is a row of generation {generation} and not of this one")
            }
            Self::Unallocated { next_seq } => format!("it was never given out: the next seq is {next_seq}"),
            Self::Unknown => {
                "no generation of any partition has it: reserved and never stamped, or every copy is gone".to_owned()
            }
        }
    }
}
