//! Taking a rewind back: the inverse plan sets each watermark to where it stood before, as long as the daemon
//! has not passed that position again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::{ConsumeError, Refusal};
use super::guard::{expired, moved};
use super::instance::Instance;
use super::receipt::{Attempt, Outcome, RECEIPT_KIND, RECEIPT_VERSION, Receipt, Swap};
use super::{Applied, Consumer, finished, refuse_used};
use crate::checksum::{CanonicalError, checksum};
use crate::model::{DEFAULT_LIFETIME, Plan, Sink, Tool};
use crate::path::WatermarkPath;
use crate::read::{FormatError, ReadError, document, read_capped, verify_checksum};
use crate::scalar::{Seq, Sha256, Time};
use crate::write::{WriteError, to_text, write_new};

/// The version of the inverse plan's format.
pub const UNDO_VERSION: u32 = 1;

/// The `kind` of an inverse plan.
pub const UNDO_KIND: &str = "hypaware.sink.rewind-undo";

/// The inverse of a plan that was applied, made from its receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoPlan {
    /// [`UNDO_VERSION`].
    pub v: u32,
    /// [`UNDO_KIND`].
    pub kind: String,
    /// UUID v7; a consumer applies it once.
    pub id: Uuid,
    /// The id of the plan that is taken back.
    pub undoes: Uuid,
    /// When it was made.
    pub created_at: Time,
    /// A consumer refuses it after this.
    pub expires_at: Time,
    /// What made it.
    pub created_by: Tool,
    /// Why, in the operator's words.
    pub reason: String,
    /// Whose watermarks are set.
    pub sink: Sink,
    /// One per watermark of the plan.
    pub restores: Vec<Restore>,
    /// Over the canonical form (RFC 8785) of the inverse plan without this field.
    pub checksum: Sha256,
}

/// Where one watermark goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The dataset.
    pub dataset: String,
    /// The partition's path below the dataset.
    pub partition: String,
    /// The watermark's path relative to the state root.
    pub watermark: WatermarkPath,
    /// Where the rewind set it: it is at or above this.
    pub from: Seq,
    /// Where it stood before the rewind: it is below this, and goes there.
    pub to: Seq,
    /// `exportedRowCount` at the rewind: it is at least this, and stays as it is.
    pub min_exported_row_count: u64,
}

impl UndoPlan {
    /// Reads and verifies an inverse plan.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not an inverse plan as it was sealed.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let parse = |bytes: &[u8]| -> Result<Self, FormatError> {
            let undo: Self = document(bytes, UNDO_KIND, UNDO_VERSION)?;
            verify_checksum(&undo, undo.checksum)?;
            Ok(undo)
        };
        parse(&read_capped(path)?).map_err(|source| ReadError::Format { path: path.to_owned(), source })
    }

    /// Writes it to a new file of mode 0600 that does not lie below `home`.
    ///
    /// # Errors
    ///
    /// When the file exists, would lie below `home`, or cannot be written.
    pub fn write(&self, path: &Path, home: &Path) -> Result<(), WriteError> {
        write_new(path, home, to_text(self).map_err(CanonicalError::from)?.as_bytes())
    }
}

impl Consumer<'_> {
    /// Makes the inverse of a plan that was applied, sealed. Nothing is changed.
    ///
    /// # Errors
    ///
    /// When there is no receipt, the plan was not applied as a whole, or the daemon has passed the old position.
    pub fn invert(&self, plan: &Plan, created_by: Tool, reason: String) -> Result<UndoPlan, ConsumeError> {
        let instance = self.instance(&plan.sink)?;
        let now = self.world.now();
        let mut undo = UndoPlan {
            v: UNDO_VERSION,
            kind: UNDO_KIND.to_owned(),
            id: Uuid::now_v7(),
            undoes: plan.id,
            created_at: now,
            expires_at: now.plus(DEFAULT_LIFETIME).unwrap_or(now),
            created_by,
            reason,
            sink: plan.sink.clone(),
            restores: restores(&applied(&instance, instance.receipt_of(plan)?)?),
            checksum: plan.checksum,
        };
        swaps(&instance, &undo, now)?;
        undo.checksum = checksum(&undo).map_err(|e| Refusal::from(FormatError::from(e)))?;
        Ok(undo)
    }

    /// Applies an inverse plan, once.
    ///
    /// # Errors
    ///
    /// As [`Consumer::apply`]; also when the receipt of the plan is not there or says otherwise, or the daemon has
    /// passed the old position.
    pub fn undo(&self, undo: &UndoPlan) -> Result<Applied, ConsumeError> {
        verify_checksum(undo, undo.checksum).map_err(Refusal::from)?;
        let instance = self.instance(&undo.sink)?;
        let _lock = instance.lock()?;
        let now = self.world.now();
        if let Some(finished) = finished(&instance, undo.id, now)? {
            return Ok(finished);
        }
        refuse_used(&instance, undo.id)?;
        if let Some(refusal) = expired(undo.expires_at, now) {
            return Err(refusal.into());
        }
        let path = Receipt::path(&instance.dir, undo.undoes);
        let undone = instance.receipt(undo.undoes)?.ok_or_else(|| Refusal::NoReceipt { path: path.clone() })?;
        if undo.restores != restores(&applied(&instance, undone)?) {
            return Err(Refusal::NotTheInverse { path }.into());
        }
        let receipt = Receipt {
            v: RECEIPT_VERSION,
            kind: RECEIPT_KIND.to_owned(),
            id: undo.id,
            undoes: Some(undo.undoes),
            plan_checksum: undo.checksum,
            reason: undo.reason.clone(),
            sink: undo.sink.clone(),
            attempts: vec![Attempt::intent(now, swaps(&instance, undo, now)?)],
        };
        Ok(Applied { receipt: instance.run(receipt, now)?, finished_earlier_run: false })
    }
}

/// A receipt, if its plan was applied as a whole.
fn applied(instance: &Instance<'_>, receipt: Receipt) -> Result<Receipt, ConsumeError> {
    if receipt.is_applied() {
        return Ok(receipt);
    }
    let path = Receipt::path(&instance.dir, receipt.id);
    Err(Refusal::NotApplied { path, state: receipt.last().map(|attempt| attempt.state) }.into())
}

fn restores(receipt: &Receipt) -> Vec<Restore> {
    let restore = |swap: &Swap| Restore {
        dataset: swap.dataset.clone(),
        partition: swap.partition.clone(),
        watermark: swap.watermark.clone(),
        from: swap.to,
        to: swap.before.seq,
        min_exported_row_count: swap.before.exported_row_count,
    };
    receipt.latest_swaps().into_iter().map(restore).collect()
}

/// The swaps to make, or else everything that stands against them.
fn swaps(instance: &Instance<'_>, undo: &UndoPlan, now: Time) -> Result<Vec<Swap>, ConsumeError> {
    let mut refusals = Vec::new();
    let mut swaps = Vec::new();
    for restore in &undo.restores {
        let found = instance.watermark(&restore.watermark)?;
        let current = found.parse()?;
        let watermark = || restore.watermark.clone();
        if current.seq >= restore.to {
            refusals.push(Refusal::Passed { watermark: watermark(), old: restore.to, found: current.seq });
        }
        if current.seq < restore.from {
            refusals.push(Refusal::SeqFell { watermark: watermark(), at_least: restore.from, found: current.seq });
        }
        if current.exported_row_count < restore.min_exported_row_count {
            let (at_least, found) = (restore.min_exported_row_count, current.exported_row_count);
            refusals.push(Refusal::CountFell { watermark: watermark(), at_least, found });
        }
        swaps.push(Swap {
            dataset: restore.dataset.clone(),
            partition: restore.partition.clone(),
            watermark: watermark(),
            to: restore.to,
            replayed: 0,
            resent: None,
            backup: found.text,
            written: moved(&current, restore.to, now),
            before: current,
            outcome: Outcome::Open,
            judgement: None,
        });
    }
    if refusals.is_empty() { Ok(swaps) } else { Err(ConsumeError::Refused(refusals)) }
}
