//! Why a seq is no visible row of a partition. The counter belongs to the whole cache, so holes are normal.

use anyhow::Result;
use hypseq_cache::{Home, Partition};
use hypseq_scan::{DeletedRow, Scan};
use serde_json::{Value, json};

use crate::opened::Opened;
use crate::select;
use crate::sentence::count;
use crate::survey::survey;

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
    /// Nothing that could be read has it: reserved and never stamped, every copy is gone, or it is in one of so many
    /// generations that could not be read whole.
    Unknown { unread: u64 },
}

impl Hole {
    /// Looks for a seq that is no visible row of the generation `here`, of the partition `of`.
    pub fn explain(home: &Home, partitions: &[Partition], here: &Opened, of: &Partition, seq: i64) -> Result<Self> {
        if let Some(next_seq) = home.allocator().ok().flatten().map(|a| a.next_seq).filter(|next| seq >= *next) {
            return Ok(Self::Unallocated { next_seq });
        }
        let mut unread = 0;
        let generation = here.generation.name.clone();
        if let Some(Found::Deleted { by }) = find(here, seq, &mut unread) {
            return Ok(Self::Deleted { generation, by });
        }
        for other in Opened::all(of, None)?.iter().rev().filter(|other| other.generation.name != generation) {
            let generation = other.generation.name.clone();
            match find(other, seq, &mut unread) {
                Some(Found::Deleted { by }) => return Ok(Self::Deleted { generation, by }),
                Some(Found::Visible) => return Ok(Self::OtherGeneration { generation }),
                None => {}
            }
        }
        for partition in partitions.iter().filter(|p| p.id != of.id) {
            if Opened::all(partition, None)?.iter().any(|opened| find(opened, seq, &mut unread).is_some()) {
                return Ok(Self::Elsewhere { partition: select::name(&partition.id) });
            }
        }
        Ok(Self::Unknown { unread })
    }

    /// The name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Elsewhere { .. } => "elsewhere",
            Self::Deleted { .. } | Self::OtherGeneration { .. } => "deleted",
            Self::Unallocated { .. } => "unallocated",
            Self::Unknown { .. } => "unknown",
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
            Self::Unknown { unread: 0 } => {
                "no generation of any partition has it: reserved and never stamped, or every copy is gone".to_owned()
            }
            Self::Unknown { unread } => format!(
                "nothing that can be read has it, and {} cannot be read whole, so where it is cannot be told",
                count(*unread, "generation")
            ),
        }
    }
}

/// What a generation has of a seq.
enum Found {
    Visible,
    Deleted { by: String },
}

/// Looks for a seq in a generation; in every file that can be read where the manifests cannot tell. One that never was
/// whole has no seqs.
fn find(opened: &Opened, seq: i64, unread: &mut u64) -> Option<Found> {
    let found = |visible: bool, deleted: Option<&DeletedRow>| {
        let deleted = deleted.map(|deleted| Found::Deleted { by: deleted.by_names() });
        deleted.or_else(|| visible.then_some(Found::Visible))
    };
    if !opened.generation.has_metadata {
        return None;
    }
    if let Some(Ok((visible, deleted))) = opened.lazy().map(|rows| rows.and_then(|rows| rows.with_seq(seq))) {
        return found(!visible.is_empty(), deleted.first());
    }
    let surveyed = survey(opened.clone());
    *unread += u64::from(!surveyed.complete());
    let Scan { visible, deleted, .. } = &surveyed.scan;
    found(!visible.with_seq(seq).is_empty(), deleted.iter().find(|deleted| deleted.row.seq == seq))
}
