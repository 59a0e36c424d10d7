//! What became of swaps: the watermarks as they are now, against what the live generation and today's policy let
//! expect.

use hypseq_cache::Home;
use hypseq_plan::{Consumer, Judgement, Sink, Swap, TickVerdict, Time, judge};

use crate::live::{Live, Stretch};
use crate::sentence::count;

/// The name of a verdict in every output.
pub fn word(verdict: TickVerdict) -> &'static str {
    match verdict {
        TickVerdict::Honoured => "honoured",
        TickVerdict::Clobbered => "clobbered",
        TickVerdict::DroppedAgain => "dropped-again",
        TickVerdict::Pending => "pending",
        TickVerdict::Unexplained => "unexplained",
    }
}

/// A verdict over a swap, and why in words.
#[derive(Debug, Clone)]
pub struct Judged {
    pub judgement: Judgement,
    pub detail: String,
}

/// Judges a swap by its watermark as it is now; why that is not possible, otherwise.
pub fn judge_swap(consumer: &Consumer<'_>, home: &Home, sink: &Sink, swap: &Swap) -> Result<Judged, String> {
    let now = consumer.observe(sink, &swap.watermark).map_err(|error| crate::refusal::chain(&error))?;
    let live = Live::open(home, &swap.dataset, &swap.partition)?;
    let policy = home.policy();
    let gap = live.stretch(&policy, swap.to.get(), swap.before.seq.get())?;
    let arrived = live.stretch(&policy, swap.before.seq.get(), now.seq.get())?;
    let verdict = judge(&swap.before, swap.to, &now, gap.sendable, arrived.sendable);
    let judgement = Judgement {
        at: Time::now(),
        verdict,
        seq: now.seq,
        exported_row_count: now.exported_row_count,
        expected: gap.sendable,
        arrived: arrived.sendable,
    };
    let detail = detail(&judgement, swap, &gap, &waiting(home, sink));
    Ok(Judged { judgement, detail })
}

fn detail(judgement: &Judgement, swap: &Swap, gap: &Stretch, waiting: &str) -> String {
    let (before, now) = (swap.before.exported_row_count, judgement.exported_row_count);
    let sent = now.checked_sub(before).map_or_else(
        || format!("exportedRowCount fell from {before} to {now}"),
        |sent| format!("{} sent since the swap (exportedRowCount {before} → {now})", count(sent, "row")),
    );
    let expected =
        format!("{} of the gap and {} beyond it were to be sent", count(judgement.expected, "row"), judgement.arrived);
    match judgement.verdict {
        TickVerdict::Honoured => format!("the daemon went back and sent the gap: {sent}; {expected}"),
        TickVerdict::Clobbered => {
            format!("a tick was in flight and wrote over the swap, so nothing of the gap was sent: {sent}; {expected}")
        }
        TickVerdict::DroppedAgain => {
            let rules = if gap.rules.is_empty() {
                "no rule that can be seen here; look for a .hypignore on the machine itself".to_owned()
            } else {
                gap.rules.join("; ")
            };
            format!("nothing of the gap was sent: {sent}. Withheld by policy: {rules}")
        }
        TickVerdict::Pending => {
            format!("no tick has ended since the swap: none has run, or the sink fails{waiting}")
        }
        TickVerdict::Unexplained => {
            format!("neither honoured nor clobbered, somebody else may have changed the watermark: {sent}; {expected}")
        }
    }
}

/// What waits in the sink's outbox, in words.
fn waiting(home: &Home, sink: &Sink) -> String {
    let batches: usize = home.outbox().value.iter().filter(|o| o.instance == sink.instance).map(|o| o.batches).sum();
    match batches {
        0 => String::new(),
        1 => "; 1 batch waits in its outbox".to_owned(),
        n => format!("; {n} batches wait in its outbox"),
    }
}
