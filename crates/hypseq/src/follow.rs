//! `plan apply --watch`: the swap right after the daemon's own write, and the verdict over the ticks that follow.
//!
//! The daemon takes no lock. A tick reads the watermark when it starts and writes it when it ends, so a swap between
//! the two is lost. The least likely moment for that is just after a write: the next tick is up to a minute away. The
//! verdict then rests on the watermark alone, so it does not matter how many ticks pass before it is looked at.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use hypseq_cache::Home;
use hypseq_plan::{
    Applied, ConsumeError, Consumer, Judgement, Observed, Plan, Receipt, Refusal, Swap, TickVerdict, WatermarkPath,
};

use crate::duration::show;
use crate::judging::{Judged, judge_swap, word};
use crate::printer::Printer;
use crate::refusal::chain;
use crate::watcher::Watcher;

/// How often a swap is tried again when the daemon writes just before it; it then is in no tick.
const CHANGED_RETRIES: usize = 10;

/// Ticks write the watermarks of several partitions one after the other: silence for so long is their end.
const SETTLED: Duration = Duration::from_secs(1);

/// What is followed, and for how long.
pub struct Follow<'a> {
    pub plan: &'a Plan,
    pub home: &'a Home,
    pub consumer: &'a Consumer<'a>,
    pub watcher: &'a Watcher,
    pub printer: &'a Printer,
    pub timeout: Duration,
    pub retries: usize,
    /// Whether the swap waits for the daemon's own write.
    pub timed: bool,
}

/// What following came to.
pub enum Followed {
    /// The operator stopped it before anything was changed.
    Stopped,
    /// The watermarks were set.
    Applied {
        receipt: Box<Receipt>,
        /// By watermark.
        judged: HashMap<WatermarkPath, Judged>,
        /// It was stopped before every verdict was there.
        stopped: bool,
    },
}

impl Follow<'_> {
    /// Waits, swaps, and watches until every swap has a verdict, the time is over, or somebody stops it.
    pub fn run(&self) -> Result<Followed, ConsumeError> {
        let begun = Instant::now();
        let deadline = begun + self.timeout;
        if self.timed {
            self.wait_for_write(begun + self.timeout / 2)?;
        }
        if self.watcher.is_stopped() {
            return Ok(Followed::Stopped);
        }
        let Applied { receipt, finished_earlier_run } = patiently(|| self.consumer.apply(self.plan))?;
        self.printer.note(if finished_earlier_run {
            "an earlier run had set the watermarks; its receipt is complete now"
        } else {
            "swapped; watching what the next ticks make of it"
        });
        self.watch(receipt, deadline)
    }

    /// Waits for the end of a tick, which is the daemon's own write; at most until `deadline`, since a daemon that has
    /// nothing to send does not write.
    fn wait_for_write(&self, deadline: Instant) -> Result<(), ConsumeError> {
        let start = self.observe_all()?;
        let span = show(deadline.saturating_duration_since(Instant::now()));
        self.printer.note(&format!("waiting for the daemon's own write, at most {span}"));
        let mut seen = start.clone();
        let mut last_write = None;
        while Instant::now() < deadline && !self.watcher.is_stopped() {
            self.watcher.wait(deadline);
            let now = self.observe_all()?;
            if now != seen {
                last_write = Some(Instant::now());
                seen = now;
            }
            let all_written = seen.iter().zip(&start).all(|(now, start)| now != start);
            if all_written || last_write.is_some_and(|at| at.elapsed() >= SETTLED) {
                return Ok(());
            }
        }
        if last_write.is_none() && !self.watcher.is_stopped() {
            self.printer.note("the daemon did not write: it is idle or does not run, so the swap is not timed by it");
        }
        Ok(())
    }

    fn observe_all(&self) -> Result<Vec<Observed>, ConsumeError> {
        let rewinds = self.plan.rewinds.iter();
        rewinds.map(|rewind| self.consumer.observe(&self.plan.sink, &rewind.watermark)).collect()
    }

    fn watch(&self, mut receipt: Receipt, deadline: Instant) -> Result<Followed, ConsumeError> {
        let mut judged: HashMap<WatermarkPath, Judged> = HashMap::new();
        let mut retries = self.retries;
        loop {
            let is_last_look = Instant::now() >= deadline || self.watcher.is_stopped();
            for swap in receipt.latest_swaps() {
                if judged.get(&swap.watermark).is_none_or(|j| j.judgement.verdict == TickVerdict::Pending) {
                    self.look(swap, is_last_look, &mut judged);
                }
            }
            let is_clobbered = |j: &Judged| j.judgement.verdict == TickVerdict::Clobbered;
            if judged.values().any(is_clobbered) && retries > 0 && !is_last_look {
                retries -= 1;
                self.record(&judged)?;
                match patiently(|| self.consumer.swap_again(self.plan)) {
                    Ok(again) => {
                        receipt = again.receipt;
                        judged.retain(|_, j| !is_clobbered(j));
                        self.printer.note(&format!("swapped again; {}", retries_left(retries)));
                    }
                    // What was done stands, and its verdict too.
                    Err(error @ ConsumeError::Refused(_)) => {
                        self.printer.note(&format!("not swapped again: {}", chain(&error)));
                        retries = 0;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            let decided =
                |swap: &Swap| judged.get(&swap.watermark).is_some_and(|j| j.judgement.verdict != TickVerdict::Pending);
            if is_last_look || receipt.latest_swaps().into_iter().all(decided) {
                let stopped = self.watcher.is_stopped();
                if !judged.is_empty() {
                    receipt = self.record(&judged)?;
                }
                return Ok(Followed::Applied { receipt: Box::new(receipt), judged, stopped });
            }
            self.watcher.wait(deadline);
        }
    }

    /// Judges a swap whose watermark has moved; one that has not is pending, which is only worth saying at the end.
    fn look(&self, swap: &Swap, is_last_look: bool, judged: &mut HashMap<WatermarkPath, Judged>) {
        let unmoved = |now: &Observed| now.seq == swap.to && now.exported_row_count == swap.before.exported_row_count;
        let now = self.consumer.observe(&self.plan.sink, &swap.watermark);
        if now.is_ok_and(|now| unmoved(&now)) && !is_last_look {
            return;
        }
        // A compaction may be at work on the very files: the next look sees them whole.
        match judge_swap(self.consumer, self.home, &self.plan.sink, swap) {
            Ok(new) => {
                if new.judgement.verdict != TickVerdict::Pending {
                    let name = format!("{} {}", swap.dataset, swap.partition);
                    self.printer.note(&format!("{name}: {}: {}", word(new.judgement.verdict), new.detail));
                }
                judged.insert(swap.watermark.clone(), new);
            }
            Err(why) => self.printer.note(&format!("cannot tell yet: {why}")),
        }
    }

    fn record(&self, judged: &HashMap<WatermarkPath, Judged>) -> Result<Receipt, ConsumeError> {
        let judgements: Vec<(WatermarkPath, Judgement)> =
            judged.iter().map(|(watermark, j)| (watermark.clone(), j.judgement.clone())).collect();
        self.consumer.record(&self.plan.sink, self.plan.id, &judgements)
    }
}

fn retries_left(retries: usize) -> String {
    match retries {
        0 => "the last time".to_owned(),
        1 => "once more at most".to_owned(),
        n => format!("{n} times more at most"),
    }
}

/// Tries again when the daemon wrote between the check and the swap: that write was the end of a tick.
pub fn patiently(apply: impl Fn() -> Result<Applied, ConsumeError>) -> Result<Applied, ConsumeError> {
    let changed = |error: &ConsumeError| match error {
        ConsumeError::Refused(refusals) => refusals.iter().all(|r| matches!(r, Refusal::Changed { .. })),
        _ => false,
    };
    let mut result = apply();
    for _ in 0..CHANGED_RETRIES {
        match &result {
            Err(error) if changed(error) => result = apply(),
            _ => break,
        }
    }
    result
}
