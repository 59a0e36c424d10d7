//! Consuming a plan: setting watermarks back, once, and only if the world still looks as the plan says.
//!
//! The protocol: take the lock of the sink instance; bring to an end what an earlier run left; check every
//! guard of every rewind; write the receipt of the intent, with the watermarks' present bytes; set the
//! watermarks, all or none; read them back; write the receipt of what was done. A daemon that embeds this
//! does it between two ticks. Everything that it must know of the cache comes in through [`World`].

mod error;
mod guard;
mod instance;
mod judge;
mod receipt;
mod swap;
mod undo;

use std::io;
use std::path::Path;

use uuid::Uuid;

pub use error::{BoundaryRefusal, ConsumeError, Refusal};
pub use guard::{Check, RewindCheck};
pub use judge::{Judgement, TickVerdict, judge};
pub use receipt::{Attempt, AttemptState, Outcome, Receipt, ReceiptFile, Swap, receipts};
pub use undo::{Restore, UNDO_KIND, UNDO_VERSION, UndoPlan};

use crate::model::{Observed, Plan, Rewind, Sink};
use crate::path::WatermarkPath;
use crate::scalar::Time;
use instance::Instance;
use receipt::{RECEIPT_KIND, RECEIPT_VERSION};

/// What a consumer must know of the world beyond the watermarks.
pub trait World {
    /// The present time.
    fn now(&self) -> Time {
        Time::now()
    }

    /// Whether the boundary of a rewind still holds: the partition's live generation has the table of
    /// `rewind.guard`, or is a later compaction of it in which `last_row` and `next_row` still stand on both
    /// sides of the target, or their absence is explained by deletes.
    ///
    /// A consumer outside the daemon, which times its swap right after the end of a tick, runs [`Consumer::check`]
    /// before it waits, and remembers the answer for as long as the cache's metadata does not change: then
    /// [`Consumer::apply`] takes no time to find it.
    ///
    /// # Errors
    ///
    /// Why it does not hold, or cannot be told.
    fn boundary_holds(&self, rewind: &Rewind) -> Result<(), BoundaryRefusal>;
}

/// A step that is about to be taken. `at` counts the watermarks of the plan from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A receipt is written beside its place.
    WriteReceipt {
        /// The state that it will show.
        state: Option<AttemptState>,
    },
    /// A receipt takes its place.
    PublishReceipt {
        /// The state that it shows.
        state: Option<AttemptState>,
    },
    /// The new and the old content are written beside a watermark.
    WriteTemporaries {
        /// Which watermark.
        at: usize,
    },
    /// A watermark is looked at for the last time.
    Compare {
        /// Which watermark.
        at: usize,
    },
    /// The new content takes the watermark's place.
    Rename {
        /// Which watermark.
        at: usize,
    },
    /// The watermark's folder is flushed.
    FlushFolder {
        /// Which watermark.
        at: usize,
    },
    /// The watermark is read back.
    ReadBack {
        /// Which watermark.
        at: usize,
    },
    /// A watermark that was set gets its old content back.
    TakeBack {
        /// Which watermark.
        at: usize,
    },
    /// The receipt of an attempt that changed nothing is removed.
    RemoveReceipt,
    /// Temporary files are removed.
    RemoveTemporaries,
}

impl Step {
    /// The verb for it.
    pub fn doing(self) -> &'static str {
        match self {
            Self::WriteReceipt { .. } | Self::WriteTemporaries { .. } => "write",
            Self::PublishReceipt { .. } => "rename",
            Self::Compare { .. } | Self::ReadBack { .. } => "read",
            Self::Rename { .. } => "set",
            Self::FlushFolder { .. } => "flush",
            Self::TakeBack { .. } => "take back",
            Self::RemoveReceipt | Self::RemoveTemporaries => "remove",
        }
    }
}

/// What applying a plan came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The receipt, as it stands on disk.
    pub receipt: Receipt,
    /// Whether an earlier run had set the watermarks, and this one only brought it to its end.
    pub finished_earlier_run: bool,
}

/// Consumes plans below one state root.
pub struct Consumer<'a> {
    state_root: &'a Path,
    world: &'a dyn World,
    on_step: &'a dyn Fn(Step) -> io::Result<()>,
}

impl<'a> Consumer<'a> {
    /// A consumer for the state root (`<HYP_HOME>/hypaware`).
    pub fn new(state_root: &'a Path, world: &'a dyn World) -> Self {
        Self { state_root, world, on_step: &|_| Ok(()) }
    }

    /// Has every step announced just before it is taken. An error makes the step fail as if the file system
    /// had refused it; tests also end the process there.
    #[must_use]
    pub fn on_step(self, on_step: &'a dyn Fn(Step) -> io::Result<()>) -> Self {
        Self { on_step, ..self }
    }

    /// Checks every guard of a plan and changes nothing.
    ///
    /// # Errors
    ///
    /// When a file cannot be read. What stands against the plan is in the answer.
    pub fn check(&self, plan: &Plan) -> Result<Check, ConsumeError> {
        if let Err(unusable) = plan.verify() {
            return Ok(Check { plan: vec![unusable.into()], rewinds: Vec::new() });
        }
        let instance = match self.instance(&plan.sink) {
            Err(ConsumeError::Refused(refusals)) => return Ok(Check { plan: refusals, rewinds: Vec::new() }),
            instance => instance?,
        };
        let mut check = self.guards(&instance, plan, self.world.now(), plan.rewinds.iter())?;
        match refuse_used(&instance, plan.id) {
            Err(ConsumeError::Refused(used)) => check.plan.extend(used),
            result => result?,
        }
        Ok(check)
    }

    /// Applies a plan: sets all of its watermarks back, once.
    ///
    /// # Errors
    ///
    /// When anything stands against it, or the file system refuses: then nothing is changed, unless the error is
    /// [`ConsumeError::Partial`] or [`ConsumeError::Unfinished`].
    pub fn apply(&self, plan: &Plan) -> Result<Applied, ConsumeError> {
        plan.verify().map_err(Refusal::from)?;
        let instance = self.instance(&plan.sink)?;
        let _lock = instance.lock()?;
        let now = self.world.now();
        if let Some(finished) = finished(&instance, plan.id, now)? {
            return Ok(finished);
        }
        refuse_used(&instance, plan.id)?;
        let swaps = self.guards(&instance, plan, now, plan.rewinds.iter())?.into_swaps()?;
        let receipt = Receipt {
            v: RECEIPT_VERSION,
            kind: RECEIPT_KIND.to_owned(),
            id: plan.id,
            undoes: None,
            plan_checksum: plan.checksum,
            reason: plan.reason.clone(),
            sink: plan.sink.clone(),
            attempts: vec![Attempt::intent(now, swaps)],
        };
        Ok(Applied { receipt: instance.run(receipt, now)?, finished_earlier_run: false })
    }

    /// Sets those watermarks back once more that were [judged](Self::record) to have been clobbered by a tick
    /// in flight, after checking their guards again.
    ///
    /// # Errors
    ///
    /// As [`Self::apply`]; also when no swap was clobbered.
    pub fn swap_again(&self, plan: &Plan) -> Result<Applied, ConsumeError> {
        plan.verify().map_err(Refusal::from)?;
        let instance = self.instance(&plan.sink)?;
        let _lock = instance.lock()?;
        let now = self.world.now();
        if let Some(finished) = finished(&instance, plan.id, now)? {
            return Ok(finished);
        }
        let path = Receipt::path(&instance.dir, plan.id);
        let mut receipt = instance.receipt_of(plan)?;
        let clobbered = receipt.clobbered();
        if !receipt.is_applied() || clobbered.is_empty() {
            return Err(Refusal::NotClobbered { path }.into());
        }
        let rewinds = plan.rewinds.iter().filter(|rewind| clobbered.contains(&rewind.watermark));
        let swaps = self.guards(&instance, plan, now, rewinds)?.into_swaps()?;
        receipt.attempts.push(Attempt::intent(now, swaps));
        Ok(Applied { receipt: instance.run(receipt, now)?, finished_earlier_run: false })
    }

    /// A watermark as it is now.
    ///
    /// # Errors
    ///
    /// When it is missing, is not understood, is a link or cannot be read.
    pub fn observe(&self, sink: &Sink, watermark: &WatermarkPath) -> Result<Observed, ConsumeError> {
        Ok(self.instance(sink)?.watermark(watermark)?.parse()?)
    }

    /// Writes into a receipt what became of its latest swaps.
    ///
    /// # Errors
    ///
    /// When there is no such receipt, the lock is taken, or the file system refuses.
    pub fn record(
        &self,
        sink: &Sink,
        id: Uuid,
        judgements: &[(WatermarkPath, Judgement)],
    ) -> Result<Receipt, ConsumeError> {
        let instance = self.instance(sink)?;
        let _lock = instance.lock()?;
        let path = Receipt::path(&instance.dir, id);
        let mut receipt = instance.receipt(id)?.ok_or(Refusal::NoReceipt { path })?;
        for (watermark, judgement) in judgements {
            if let Some(swap) = receipt.latest_swap_mut(watermark) {
                swap.judgement = Some(judgement.clone());
            }
        }
        instance.write_receipt(&receipt)?;
        Ok(receipt)
    }

    fn instance(&self, sink: &Sink) -> Result<Instance<'a>, ConsumeError> {
        Instance::open(self.state_root, sink, self.on_step)
    }
}

/// Brings to an end what earlier runs left. If one of them was of this plan and had set every watermark, the
/// plan is thereby applied.
fn finished(instance: &Instance<'_>, id: Uuid, now: Time) -> Result<Option<Applied>, ConsumeError> {
    let finished = instance.recover(now)?.into_iter().find(|receipt| receipt.id == id);
    Ok(finished.map(|receipt| Applied { receipt, finished_earlier_run: true }))
}

/// Refuses a plan that has a receipt.
fn refuse_used(instance: &Instance<'_>, id: Uuid) -> Result<(), ConsumeError> {
    let path = Receipt::path(&instance.dir, id);
    match instance.receipt(id)? {
        None => Ok(()),
        Some(receipt) if receipt.is_open() => Err(Refusal::Interrupted { path }.into()),
        Some(receipt) => Err(Refusal::Used { path, state: receipt.last().map(|attempt| attempt.state) }.into()),
    }
}
