//! Receipts: what was done with a plan, written before, while and after it is done.
//!
//! A receipt lies at `<instance dir>/rewinds/<id>.json`. It exists from just before the first change on, and
//! it is removed only when everything was taken back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::judge::{Judgement, TickVerdict};
use crate::fsio::none_if_missing;
use crate::model::{Observed, Sink};
use crate::path::WatermarkPath;
use crate::read::{ReadError, document, read_capped};
use crate::scalar::{Seq, Sha256, Time};

/// The version of the receipt format.
pub(super) const RECEIPT_VERSION: u32 = 1;

/// The `kind` of a receipt.
pub(super) const RECEIPT_KIND: &str = "hypaware.sink.rewind-receipt";

/// What was done with a plan, or with its inverse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// 1.
    pub v: u32,
    /// `hypaware.sink.rewind-receipt`.
    pub kind: String,
    /// The id of the plan, or of the inverse plan.
    pub id: Uuid,
    /// The id of the plan that was taken back; null in the receipt of a rewind.
    pub undoes: Option<Uuid>,
    /// The checksum of the plan that was consumed.
    pub plan_checksum: Sha256,
    /// The plan's reason.
    pub reason: String,
    /// Whose watermarks were set.
    pub sink: Sink,
    /// The first, and one more for each time that a tick in flight wrote over the swap.
    pub attempts: Vec<Attempt>,
}

/// One attempt to set the watermarks, all or none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// How far it got.
    pub state: AttemptState,
    /// When it began.
    pub begun_at: Time,
    /// When it ended; null while it has not.
    pub ended_at: Option<Time>,
    /// One per watermark.
    pub swaps: Vec<Swap>,
}

/// How far an attempt got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptState {
    /// Nothing is changed yet.
    Intent,
    /// The new files are ready, and any of them may have taken its place.
    Swapping,
    /// Every watermark was set.
    Applied,
    /// Some were set and could not be taken back, since the daemon had moved on from there.
    Partial,
}

/// One watermark's change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// The dataset.
    pub dataset: String,
    /// The partition's path below the dataset.
    pub partition: String,
    /// The watermark's path relative to the state root.
    pub watermark: WatermarkPath,
    /// The watermark that was swapped out.
    pub before: Observed,
    /// The seq that was swapped in.
    pub to: Seq,
    /// Rows that the plan said would be replayed.
    pub replayed: u64,
    /// Rows that the plan said would be sent twice; null when it did not say. Whoever takes `exportedRowCount`
    /// for a witness later subtracts them.
    pub resent: Option<u64>,
    /// The watermark file that was swapped out, byte for byte.
    pub backup: String,
    /// The one that was swapped in, byte for byte.
    pub written: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What the daemon made of it; null while nobody has looked.
    pub judgement: Option<Judgement>,
}

/// What became of one swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The attempt has not ended.
    Open,
    /// The watermark was set, and read back as written.
    Set,
    /// It was set, and the daemon had written over it before it could be read back or taken back.
    Overtaken,
    /// It was not set, or was taken back.
    Unchanged,
}

impl Receipt {
    /// Where the receipt of a plan lies below the folder of its sink instance.
    pub(super) fn path(instance: &Path, id: Uuid) -> PathBuf {
        instance.join("rewinds").join(format!("{id}.json"))
    }

    /// Reads a receipt.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a receipt of this format.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let format = |source| ReadError::Format { path: path.to_owned(), source };
        document(&read_capped(path)?, RECEIPT_KIND, RECEIPT_VERSION).map_err(format)
    }

    /// The attempt under way, or the last one.
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// Whether every watermark was set.
    pub fn is_applied(&self) -> bool {
        self.last().is_some_and(|attempt| attempt.state == AttemptState::Applied)
    }

    /// Whether a run has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.last().is_some_and(|attempt| matches!(attempt.state, AttemptState::Intent | AttemptState::Swapping))
    }

    /// The latest change of each watermark, in the plan's order.
    pub fn latest_swaps(&self) -> Vec<&Swap> {
        let mut latest: Vec<&Swap> = Vec::new();
        for swap in self.attempts.iter().flat_map(|attempt| &attempt.swaps) {
            match latest.iter_mut().find(|earlier| earlier.watermark == swap.watermark) {
                Some(earlier) => *earlier = swap,
                None => latest.push(swap),
            }
        }
        latest
    }

    pub(super) fn latest_swap_mut(&mut self, watermark: &WatermarkPath) -> Option<&mut Swap> {
        let swaps = self.attempts.iter_mut().rev().flat_map(|attempt| &mut attempt.swaps);
        swaps.into_iter().find(|swap| swap.watermark == *watermark)
    }

    /// The watermarks whose latest change was judged to have been clobbered.
    pub(super) fn clobbered(&self) -> Vec<WatermarkPath> {
        let clobbered = |swap: &&Swap| swap.judgement.as_ref().is_some_and(|j| j.verdict == TickVerdict::Clobbered);
        self.latest_swaps().into_iter().filter(clobbered).map(|swap| swap.watermark.clone()).collect()
    }
}

impl Attempt {
    /// An attempt that has changed nothing yet.
    pub(super) fn intent(begun_at: Time, swaps: Vec<Swap>) -> Self {
        Self { state: AttemptState::Intent, begun_at, ended_at: None, swaps }
    }
}

/// A receipt file of a home.
#[derive(Debug)]
pub struct ReceiptFile {
    /// Its path.
    pub path: PathBuf,
    /// What it says.
    pub receipt: Result<Receipt, ReadError>,
}

/// Every receipt below a state root, by sink and id; the ids are UUIDs v7, and so by time within a sink.
///
/// # Errors
///
/// When a folder cannot be read. A receipt that cannot is among the answers.
pub fn receipts(state_root: &Path) -> std::io::Result<Vec<ReceiptFile>> {
    let mut found = Vec::new();
    for plugin in folders(&state_root.join("plugins"))? {
        // `<plugin>` is one folder, or two with a scope.
        for place in std::iter::once(plugin.clone()).chain(folders(&plugin)?) {
            for instance in folders(&place.join("sink-instances"))? {
                found.extend(receipts_of(&instance)?);
            }
        }
    }
    Ok(found)
}

/// Every receipt of one sink instance, by id.
pub(super) fn receipts_of(instance: &Path) -> std::io::Result<Vec<ReceiptFile>> {
    let mut paths = entries(&instance.join("rewinds"))?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    Ok(paths.into_iter().map(|path| ReceiptFile { receipt: Receipt::read(&path), path }).collect())
}

fn folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = entries(folder)?;
    found.retain(|path| path.is_dir());
    Ok(found)
}

/// What stands in a folder, by name; nothing where there is no such folder.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let Some(listing) = none_if_missing(std::fs::read_dir(folder))? else { return Ok(Vec::new()) };
    let mut found = listing.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}
