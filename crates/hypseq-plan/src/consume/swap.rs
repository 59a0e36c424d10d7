//! Setting watermarks, all or none, so that a crash at any point leaves each of them whole, old or new, and
//! the next run knows which.
//!
//! The journal is the receipt together with two temporary files beside each watermark: `….new`, which takes
//! the watermark's place, and `….old`, which takes it back. Both are complete before the receipt says
//! `swapping`, and none is renamed before that. From then on the files that are left tell what was done:
//!
//! | `.new` | `.old` | the watermark |
//! | --- | --- | --- |
//! | there | there | was not set |
//! | gone | there | was set |
//! | gone | gone | was set and taken back |
//!
//! Between the last look at a watermark and the rename that follows, a few microseconds remain in which a
//! daemon that does not take the lock can write; only a daemon that does this in its own write path closes them.

use std::fs;
use std::path::Path;

use uuid::Uuid;

use super::Step;
use super::error::{ConsumeError, Refusal};
use super::instance::{Found, Instance, failed, temporary};
use super::receipt::{AttemptState, Outcome, Receipt, Swap};
use crate::fsio::{create, none_if_missing, sync_folder};
use crate::scalar::Time;

/// How an attempt that did not run through was brought to an end.
enum Settled {
    /// Every watermark had been set.
    Applied(Receipt),
    /// Nothing is changed, and the receipt of the attempt is gone.
    TakenBack,
    /// Some watermarks had been set, and the daemon has moved on from there.
    Partial(Receipt),
}

impl Instance<'_> {
    /// Runs the last attempt of a receipt, which is in the state of intent and not written yet.
    pub(super) fn run(&self, mut receipt: Receipt, now: Time) -> Result<Receipt, ConsumeError> {
        let path = Receipt::path(&self.dir, receipt.id);
        let unfinished = |cause| ConsumeError::Unfinished { receipt: path, source: Box::new(cause) };
        let mut all_set = false;
        let Err(cause) = self.try_run(&mut receipt, now, &mut all_set) else {
            // The receipt says applied: what cannot be removed now is removed by the next run.
            let _ = self.sweep();
            return Ok(receipt);
        };
        if all_set {
            return Err(unfinished(cause));
        }
        match self.settle(receipt, now) {
            Ok(Settled::Applied(receipt)) => Ok(receipt),
            Ok(Settled::TakenBack) => Err(cause),
            Ok(Settled::Partial(receipt)) => {
                Err(ConsumeError::Partial { receipt: Box::new(receipt), source: Box::new(cause) })
            }
            Err(_) => Err(unfinished(cause)),
        }
    }

    fn try_run(&self, receipt: &mut Receipt, now: Time, all_set: &mut bool) -> Result<(), ConsumeError> {
        let id = receipt.id;
        self.write_receipt(receipt)?;
        for (at, swap) in swaps(receipt).iter().enumerate() {
            self.prepare(id, at, swap)?;
        }
        set_state(receipt, AttemptState::Swapping, None);
        self.write_receipt(receipt)?;
        for (at, swap) in swaps(receipt).iter().enumerate() {
            let path = self.unchanged(Step::Compare { at }, swap)?.path;
            self.step(Step::Rename { at }, &path)?;
            fs::rename(temporary(&path, id, "new"), &path).map_err(failed(&path, "set"))?;
        }
        *all_set = true;
        self.finish(receipt, now)
    }

    /// Writes both temporary files of a swap and flushes them.
    fn prepare(&self, id: Uuid, at: usize, swap: &Swap) -> Result<(), ConsumeError> {
        let Found { path, metadata, .. } = self.unchanged(Step::WriteTemporaries { at }, swap)?;
        for (suffix, text) in [("new", &swap.written), ("old", &swap.backup)] {
            let temporary = temporary(&path, id, suffix);
            create(&temporary, text.as_bytes(), Some(&metadata)).map_err(failed(&temporary, "write"))?;
        }
        flush_folder_of(&path)
    }

    /// The watermark, if it is still the one that the swap was made for.
    fn unchanged(&self, step: Step, swap: &Swap) -> Result<Found, ConsumeError> {
        self.step(step, swap.watermark.as_str().as_ref())?;
        let found = self.watermark(&swap.watermark)?;
        if found.text == swap.backup { Ok(found) } else { Err(Refusal::Changed { path: found.path }.into()) }
    }

    /// Flushes the folders of watermarks that are all set, reads them back and says so in the receipt.
    fn finish(&self, receipt: &mut Receipt, now: Time) -> Result<(), ConsumeError> {
        let mut outcomes = Vec::new();
        for (at, swap) in swaps(receipt).iter().enumerate() {
            let path = swap.watermark.under(self.state_root());
            self.step(Step::FlushFolder { at }, &path)?;
            flush_folder_of(&path)?;
            self.step(Step::ReadBack { at }, &path)?;
            outcomes.push(if self.stands(swap)? { Outcome::Set } else { Outcome::Overtaken });
        }
        set_outcomes(receipt, &outcomes);
        set_state(receipt, AttemptState::Applied, Some(now));
        self.write_receipt(receipt)
    }

    /// Brings to an end what earlier runs left, whatever plan they were of. The receipts of those that turn out to
    /// have set every watermark are returned.
    pub(super) fn recover(&self, now: Time) -> Result<Vec<Receipt>, ConsumeError> {
        let mut applied = Vec::new();
        for receipt in self.receipts()?.into_iter().filter(Receipt::is_open) {
            if let Settled::Applied(receipt) = self.settle(receipt, now)? {
                applied.push(receipt);
            }
        }
        self.sweep()?;
        Ok(applied)
    }

    /// Brings an attempt that did not run through to an end: applied, if every watermark was set, else taken back.
    fn settle(&self, mut receipt: Receipt, now: Time) -> Result<Settled, ConsumeError> {
        let swaps = swaps(&receipt);
        let begun = receipt.last().is_some_and(|attempt| attempt.state != AttemptState::Intent);
        let mut outcomes = vec![Outcome::Unchanged; swaps.len()];
        if begun {
            for (outcome, swap) in outcomes.iter_mut().zip(&swaps) {
                *outcome = self.outcome(receipt.id, swap)?;
            }
        }
        if begun && !outcomes.contains(&Outcome::Unchanged) {
            self.finish(&mut receipt, now)?;
            self.sweep()?;
            return Ok(Settled::Applied(receipt));
        }
        for (at, (outcome, swap)) in outcomes.iter_mut().zip(&swaps).enumerate() {
            if *outcome == Outcome::Set {
                *outcome = self.take_back(receipt.id, at, swap)?;
            }
        }
        if outcomes.contains(&Outcome::Overtaken) {
            set_outcomes(&mut receipt, &outcomes);
            set_state(&mut receipt, AttemptState::Partial, Some(now));
            self.write_receipt(&receipt)?;
            self.sweep()?;
            return Ok(Settled::Partial(receipt));
        }
        receipt.attempts.pop();
        if receipt.attempts.is_empty() {
            self.remove_receipt(&receipt)?;
        } else {
            self.write_receipt(&receipt)?;
        }
        self.sweep()?;
        Ok(Settled::TakenBack)
    }

    /// What was done to a watermark by an attempt that had begun to set them.
    fn outcome(&self, id: Uuid, swap: &Swap) -> Result<Outcome, ConsumeError> {
        let path = swap.watermark.under(self.state_root());
        let there = |suffix| {
            let path = temporary(&path, id, suffix);
            none_if_missing(fs::symlink_metadata(&path)).map_err(failed(&path, "look")).map(|found| found.is_some())
        };
        Ok(match (there("new")?, there("old")?) {
            (false, true) if self.stands(swap)? => Outcome::Set,
            (false, true) => Outcome::Overtaken,
            _ => Outcome::Unchanged,
        })
    }

    /// Puts the old watermark back, unless the daemon has moved on from the new one.
    fn take_back(&self, id: Uuid, at: usize, swap: &Swap) -> Result<Outcome, ConsumeError> {
        let path = swap.watermark.under(self.state_root());
        self.step(Step::TakeBack { at }, &path)?;
        if !self.stands(swap)? {
            return Ok(Outcome::Overtaken);
        }
        fs::rename(temporary(&path, id, "old"), &path).map_err(failed(&path, "take back"))?;
        flush_folder_of(&path)?;
        Ok(Outcome::Unchanged)
    }

    /// Whether the watermark is the one that was swapped in.
    fn stands(&self, swap: &Swap) -> Result<bool, ConsumeError> {
        match self.watermark(&swap.watermark) {
            Ok(found) => Ok(found.text == swap.written),
            Err(ConsumeError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn flush_folder_of(path: &Path) -> Result<(), ConsumeError> {
    let folder = path.parent().unwrap_or(path);
    sync_folder(folder).map_err(failed(folder, "flush"))
}

fn swaps(receipt: &Receipt) -> Vec<Swap> {
    receipt.last().map(|attempt| attempt.swaps.clone()).unwrap_or_default()
}

fn set_state(receipt: &mut Receipt, state: AttemptState, ended_at: Option<Time>) {
    if let Some(attempt) = receipt.attempts.last_mut() {
        attempt.state = state;
        attempt.ended_at = ended_at;
    }
}

fn set_outcomes(receipt: &mut Receipt, outcomes: &[Outcome]) {
    let attempt = receipt.attempts.last_mut();
    for (swap, outcome) in attempt.into_iter().flat_map(|attempt| &mut attempt.swaps).zip(outcomes) {
        swap.outcome = *outcome;
    }
}
