//! Why a seq is no visible row of a partition. The counter belongs to the whole cache, so holes are normal.

use anyhow::Result;
use hypseq_cache::{Home, Partition};
use hypseq_scan::{DeletedRow, scan_generation};
use serde_json::{Value, json};

use crate::opened::Opened;
use crate::select;

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
    /// Looks for a seq that is no visible row of the generation `here`, of the partition `of`.
    pub fn explain(home: &Home, partitions: &[Partition], here: &Opened, of: &Partition, seq: i64) -> Result<Self> {
        if let Some(next_seq) = home.allocator().ok().flatten().map(|a| a.next_seq).filter(|next| seq >= *next) {
            return Ok(Self::Unallocated { next_seq });
        }
        let generation = here.generation.name.clone();
        if let Some(Copy::Deleted { by }) = find(here, seq) {
            return Ok(Self::Deleted { generation, by });
        }
        for other in Opened::all(of, None)?.iter().rev().filter(|other| other.generation.name != generation) {
            let generation = other.generation.name.clone();
            match find(other, seq) {
                Some(Copy::Deleted { by }) => return Ok(Self::Deleted { generation, by }),
                Some(Copy::Visible) => return Ok(Self::OtherGeneration { generation }),
                None => {}
            }
        }
        for partition in partitions.iter().filter(|p| p.id != of.id) {
            if Opened::all(partition, None)?.iter().any(|opened| find(opened, seq).is_some()) {
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

/// What a generation has of a seq.
enum Copy {
    Visible,
    Deleted { by: String },
}

/// Looks for a seq in a generation; in every file where the manifests cannot tell.
fn find(opened: &Opened, seq: i64) -> Option<Copy> {
    let copy = |visible: bool, deleted: Option<&DeletedRow>| {
        let deleted = deleted.map(|deleted| Copy::Deleted { by: deleted.by_names() });
        deleted.or_else(|| visible.then_some(Copy::Visible))
    };
    let rows = opened.lazy()?;
    if let Ok((visible, deleted)) = rows.and_then(|rows| rows.with_seq(seq)) {
        return copy(!visible.is_empty(), deleted.first());
    }
    let (table, columns) = opened.table.as_ref().zip(opened.columns.as_ref())?;
    let scan = scan_generation(table, &opened.files, columns);
    copy(!scan.visible.with_seq(seq).is_empty(), scan.deleted.iter().find(|deleted| deleted.row.seq == seq))
}
