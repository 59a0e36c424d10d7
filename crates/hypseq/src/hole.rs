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
    /// A row of this partition had it: it is deleted, or only another generation shows it.
    Deleted { generation: String, by: Option<String> },
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
            return Ok(Self::Deleted { generation: surveyed.generation.name.clone(), by: Some(deleted.by.clone()) });
        }
        for other in Survey::of(here, None)?.generations.iter().rev() {
            if let Some(deleted) = other.deleted().iter().find(|d| d.row.seq == seq) {
                return Ok(Self::Deleted { generation: other.generation.name.clone(), by: Some(deleted.by.clone()) });
            }
            if !other.scan.visible.with_seq(seq).is_empty() {
                return Ok(Self::Deleted { generation: other.generation.name.clone(), by: None });
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
            Self::Deleted { .. } => "deleted",
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
            Self::Deleted { generation, by: Some(file) } => {
                format!("it was a row of this partition, deleted in generation {generation} by {file}")
            }
            Self::Deleted { generation, by: None } => {
                format!("it is a row of generation {generation} only; a later one dropped it")
            }
            Self::Unallocated { next_seq } => format!("it was never given out: the next seq is {next_seq}"),
            Self::Unknown => {
                "no generation of any partition has it: reserved and never stamped, or every copy is gone".to_owned()
            }
        }
    }
}
