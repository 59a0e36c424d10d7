//! Why a plan is not consumed: one message for each thing that can stand against it.

use std::io;
use std::path::PathBuf;

use super::receipt::{AttemptState, Receipt};
use crate::path::{PathError, WatermarkPath};
use crate::read::{FormatError, ReadError};
use crate::scalar::{Seq, Time};
use crate::watermark::WatermarkError;

/// A reason not to change anything.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The plan contradicts itself, or was changed after it was sealed.
    #[error("the plan is unusable")]
    Plan(#[from] FormatError),
    /// The sink's names make no path.
    #[error("the plan names an impossible sink")]
    Sink(#[from] PathError),
    /// The plan's time is over.
    #[error("the plan expired at {expires_at}, and it is {now}; make a new one")]
    Expired {
        /// Until when it could be applied.
        expires_at: Time,
        /// The present time.
        now: Time,
    },
    /// A run of the plan did not end.
    #[error("{}: an earlier run did not end; apply the plan again to finish it or take it back", path.display())]
    Interrupted {
        /// The receipt.
        path: PathBuf,
    },
    /// The plan was used before.
    #[error("{}: the plan was used before ({}); a plan is applied once, make a new one", path.display(), describe(*state))]
    Used {
        /// The receipt.
        path: PathBuf,
        /// How far the earlier run got; none when the receipt has no attempt.
        state: Option<AttemptState>,
    },
    /// Another consumer is at work.
    #[error("{}: another rewind of this sink is under way", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// There is no such sink instance.
    #[error("{}: no such sink instance in this home; is the plan for another one?", path.display())]
    NoInstance {
        /// Where it would be.
        path: PathBuf,
    },
    /// There is no such watermark.
    #[error("{}: no such watermark; is the plan for another home?", path.display())]
    NoWatermark {
        /// Where it would be.
        path: PathBuf,
    },
    /// A path leads through a symbolic link, or is one.
    #[error("{}: is a symbolic link; nothing is written through links", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something else stands where a file or folder should.
    #[error("{}: expected {expected}, found something else", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// A folder or a regular file.
        expected: &'static str,
    },
    /// A watermark is not understood.
    #[error("{}: not understood", path.display())]
    Watermark {
        /// The watermark.
        path: PathBuf,
        /// Why.
        source: WatermarkError,
    },
    /// The watermark stands below where the plan saw it.
    #[error("{watermark}: expected a seq of at least {at_least}, found {found}: somebody else rewound or reset it")]
    SeqFell {
        /// The watermark.
        watermark: WatermarkPath,
        /// The seq at planning time.
        at_least: Seq,
        /// The seq now.
        found: Seq,
    },
    /// Fewer rows are counted as exported than at planning time.
    #[error("{watermark}: expected an exportedRowCount of at least {at_least}, found {found}: somebody else reset it")]
    CountFell {
        /// The watermark.
        watermark: WatermarkPath,
        /// The count at planning time.
        at_least: u64,
        /// The count now.
        found: u64,
    },
    /// The target is not below the watermark.
    #[error("{watermark}: expected a seq above the target {target}, found {found}: there is nothing to rewind")]
    NotAbove {
        /// The watermark.
        watermark: WatermarkPath,
        /// The target.
        target: Seq,
        /// The seq now.
        found: Seq,
    },
    /// The boundary does not hold any more, or not in this home.
    #[error("{watermark}: the boundary does not hold")]
    Boundary {
        /// The watermark.
        watermark: WatermarkPath,
        /// Why.
        source: BoundaryRefusal,
    },
    /// The daemon wrote the watermark while the swap was being prepared.
    #[error("{}: changed while the swap was being prepared, so nothing was swapped; try again", path.display())]
    Changed {
        /// The watermark.
        path: PathBuf,
    },
    /// A tick in flight did not write over the swap, so there is no reason to repeat it.
    #[error("{}: no swap of this plan was clobbered", path.display())]
    NotClobbered {
        /// The receipt.
        path: PathBuf,
    },
    /// There is no receipt to go by.
    #[error("{}: no such receipt; the plan was not applied here", path.display())]
    NoReceipt {
        /// Where it would be.
        path: PathBuf,
    },
    /// The receipt is of a plan with the same id and other content.
    #[error("{}: is the receipt of a plan with other content", path.display())]
    AnotherPlan {
        /// The receipt.
        path: PathBuf,
    },
    /// The plan was not applied as a whole.
    #[error("{}: the plan was not applied ({}), so there is nothing to undo", path.display(), describe(*state))]
    NotApplied {
        /// The receipt.
        path: PathBuf,
        /// How far it got.
        state: Option<AttemptState>,
    },
    /// The daemon has passed the old position again.
    #[error(
        "{watermark}: at {found}, which is not below the old position {old}: the daemon has passed it, nothing to undo"
    )]
    Passed {
        /// The watermark.
        watermark: WatermarkPath,
        /// Where it stood before the rewind.
        old: Seq,
        /// The seq now.
        found: Seq,
    },
    /// The inverse plan is not the inverse of what the receipt says by now.
    #[error("{}: the inverse plan does not fit this receipt; make a new one", path.display())]
    NotTheInverse {
        /// The receipt.
        path: PathBuf,
    },
}

fn describe(state: Option<AttemptState>) -> &'static str {
    match state {
        None => "to no effect",
        Some(AttemptState::Intent) => "unfinished, nothing changed",
        Some(AttemptState::Swapping) => "unfinished",
        Some(AttemptState::Applied) => "applied",
        Some(AttemptState::Partial) => "applied in part",
    }
}

/// Why a boundary does not hold, from whoever knows the cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoundaryRefusal {
    /// No generation of the partition has the table uuid of the plan.
    #[error("no generation has the table {expected}, the live one is {found}; is the plan for another home?")]
    AnotherTable {
        /// The table uuid of the plan.
        expected: String,
        /// The live generation's.
        found: String,
    },
    /// The rows around the boundary are others than the plan saw.
    #[error("the rows around it have changed: {0}")]
    Moved(String),
    /// The cache could not be read well enough to tell.
    #[error("cannot tell: {0}")]
    Unknown(String),
}

/// Why a plan was not consumed.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// Something stands against it. Nothing is changed.
    #[error("refused: {}", .0.iter().map(|refusal| chain(refusal)).collect::<Vec<_>>().join("; "))]
    Refused(Vec<Refusal>),
    /// The file system refused. Unless it is the source of another error, nothing is changed: what had been
    /// was taken back.
    #[error("{}: cannot {doing}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done to it.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A receipt is not understood, so what it stands for is not known.
    #[error("a receipt cannot be relied on; move it away once you know what it stands for")]
    Receipt(#[from] ReadError),
    /// Some watermarks were set and the daemon has moved on from there; the others were not set.
    #[error("applied in part, which the receipt shows")]
    Partial {
        /// What was done.
        receipt: Box<Receipt>,
        /// Why it was not all.
        source: Box<ConsumeError>,
    },
    /// It stopped half-way. The receipt is true, and the next run finishes or takes back.
    #[error("{}: stopped half-way; run again to finish it or take it back", receipt.display())]
    Unfinished {
        /// The receipt.
        receipt: PathBuf,
        /// Why.
        source: Box<ConsumeError>,
    },
}

impl From<Refusal> for ConsumeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

/// A message with those of its sources: a list of refusals is not a chain.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
