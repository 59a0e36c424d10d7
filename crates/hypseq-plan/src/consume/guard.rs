//! The guards of a plan: what must still hold of the plan, the watermarks and the cache before anything is
//! changed. A missing precondition fails, and nothing is clamped.

use super::Consumer;
use super::error::{ConsumeError, Refusal};
use super::instance::Instance;
use super::receipt::{Outcome, Swap};
use crate::model::{Observed, Plan, Rewind};
use crate::scalar::{Seq, Time};
use crate::watermark::watermark_text;

/// What the guards of a plan say.
#[derive(Debug)]
pub struct Check {
    /// What stands against the plan as a whole.
    pub plan: Vec<Refusal>,
    /// One per rewind, in the plan's order; none when the plan or the home is not fit to look at them.
    pub rewinds: Vec<RewindCheck>,
}

/// What the guards of one rewind say.
#[derive(Debug, Default)]
pub struct RewindCheck {
    /// The watermark as it is; none when it cannot be read.
    pub current: Option<Observed>,
    /// What stands against the rewind.
    pub refusals: Vec<Refusal>,
    swap: Option<Swap>,
}

impl Check {
    /// Whether nothing stands against the plan.
    pub fn holds(&self) -> bool {
        self.plan.is_empty() && self.rewinds.iter().all(|rewind| rewind.refusals.is_empty())
    }

    /// The swaps to make, or else everything that stands against them.
    pub(super) fn into_swaps(self) -> Result<Vec<Swap>, ConsumeError> {
        if self.holds() {
            return Ok(self.rewinds.into_iter().filter_map(|rewind| rewind.swap).collect());
        }
        let rewinds = self.rewinds.into_iter().flat_map(|rewind| rewind.refusals);
        Err(ConsumeError::Refused(self.plan.into_iter().chain(rewinds).collect()))
    }
}

impl Consumer<'_> {
    /// Checks a plan's guards for some of its rewinds. Receipts are not looked at.
    pub(super) fn guards<'r>(
        &self,
        instance: &Instance<'_>,
        plan: &Plan,
        now: Time,
        rewinds: impl Iterator<Item = &'r Rewind>,
    ) -> Result<Check, ConsumeError> {
        // Boundaries first, since they take long: a watermark that the daemon writes between its check and its
        // swap cannot be swapped.
        let boundaries: Vec<_> = rewinds.map(|rewind| (rewind, self.world.boundary_holds(rewind))).collect();
        let mut check = Check { plan: expired(plan.expires_at, now).into_iter().collect(), rewinds: Vec::new() };
        for (rewind, boundary) in boundaries {
            let mut checked = guard(instance, rewind, now)?;
            if let Err(source) = boundary {
                checked.refusals.push(Refusal::Boundary { watermark: rewind.watermark.clone(), source });
            }
            check.rewinds.push(checked);
        }
        Ok(check)
    }
}

/// Whether a plan's time is over.
pub(super) fn expired(expires_at: Time, now: Time) -> Option<Refusal> {
    (now > expires_at).then_some(Refusal::Expired { expires_at, now })
}

fn guard(instance: &Instance<'_>, rewind: &Rewind, now: Time) -> Result<RewindCheck, ConsumeError> {
    let mut check = RewindCheck::default();
    match instance.watermark(&rewind.watermark) {
        Ok(found) => match found.parse() {
            Ok(current) => {
                check.refusals = stale(rewind, &current);
                check.swap = Some(Swap {
                    dataset: rewind.dataset.clone(),
                    partition: rewind.partition.clone(),
                    watermark: rewind.watermark.clone(),
                    before: current.clone(),
                    to: rewind.target.last_exported_seq,
                    replayed: rewind.counts.replayed,
                    resent: rewind.counts.resent,
                    backup: found.text,
                    written: moved(&current, rewind.target.last_exported_seq, now),
                    outcome: Outcome::Open,
                    judgement: None,
                });
                check.current = Some(current);
            }
            Err(refusal) => check.refusals.push(refusal),
        },
        Err(ConsumeError::Refused(refusals)) => check.refusals = refusals,
        Err(error) => return Err(error),
    }
    Ok(check)
}

/// The content that moves a watermark: its count stays, being the tell-tale of the next tick.
pub(super) fn moved(current: &Observed, to: Seq, now: Time) -> String {
    watermark_text(&Observed { seq: to, updated_at: now.to_string(), ..current.clone() })
}

fn stale(rewind: &Rewind, current: &Observed) -> Vec<Refusal> {
    let guard = &rewind.guard;
    let watermark = || rewind.watermark.clone();
    let mut refusals = Vec::new();
    if current.seq < guard.min_seq {
        refusals.push(Refusal::SeqFell { watermark: watermark(), at_least: guard.min_seq, found: current.seq });
    }
    if current.exported_row_count < guard.min_exported_row_count {
        let (at_least, found) = (guard.min_exported_row_count, current.exported_row_count);
        refusals.push(Refusal::CountFell { watermark: watermark(), at_least, found });
    }
    if current.seq <= guard.above_seq {
        refusals.push(Refusal::NotAbove { watermark: watermark(), target: guard.above_seq, found: current.seq });
    }
    refusals
}
