//! `plan apply`: sets the watermarks of a plan back, once, and on request watches what the daemon makes of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use hypseq_cache::Home;
use hypseq_plan::{
    ConsumeError, Consumer, FormatError, Outcome, Plan, ReadError, Receipt, Refusal, Sink, Swap, TickVerdict,
    WatermarkPath,
};

use crate::cli::{Global, PlanApply};
use crate::duration;
use crate::exit::ExitStatus;
use crate::follow::{Follow, Followed};
use crate::judging::{Judged, word};
use crate::live::Live;
use crate::plan_verdict::{PlanVerdict, RewindVerdict};
use crate::printer::Printer;
use crate::refusal::{Reason, chain};
use crate::select::{self, quote};
use crate::sentence::count;
use crate::watcher::Watcher;
use crate::world::CacheWorld;

pub fn run(global: &Global, args: &PlanApply, printer: &Printer) -> Result<ExitStatus> {
    let plan = read_plan(&args.file)?;
    let home = home_of(global, "plan apply")?;
    let world = CacheWorld::new(&home);
    let consumer = Consumer::new(state_root(&home)?, &world);
    let check = consumer.check(&plan)?;
    // Whatever the guards say by now, a run that did not end is brought to its end by applying the plan again, and of
    // one that did, what it could not clean up is removed before the plan is refused.
    let has_begun = |refusal: &Refusal| matches!(refusal, Refusal::Interrupted { .. } | Refusal::Used { .. });
    let begun = check.plan.iter().any(has_begun) && check.plan.iter().all(has_begun);
    if !check.holds() && !begun {
        return refuse(PlanVerdict::of_check(&plan, &check), printer);
    }
    if !begun {
        warn_of_policy(&home, &plan, printer);
    }
    let mut answer = PlanVerdict::of_check(&plan, &check);
    answer.reasons.clear();
    let result = if args.watch {
        let files: Vec<PathBuf> = plan.rewinds.iter().map(|r| r.watermark.under(consumer_root(&home))).collect();
        let watcher = Watcher::new(&files)?;
        let (timeout, retries) = (args.timeout, usize::from(args.retries));
        let timed = !begun;
        Follow { plan: &plan, home: &home, consumer: &consumer, watcher: &watcher, printer, timeout, retries, timed }
            .run()
    } else {
        consumer.apply(&plan).map(|applied| Followed::Applied {
            receipt: Box::new(applied.receipt),
            judged: HashMap::new(),
            stopped: false,
        })
    };
    let command = Retold { home: &home, consumer: &consumer, sink: &plan.sink, watched: args.watch, args };
    match result {
        Ok(Followed::Stopped) => command.stopped(answer, printer),
        Ok(Followed::Applied { receipt, judged, stopped }) => {
            command.applied(answer, &receipt, &judged, stopped, printer)
        }
        Err(ConsumeError::Refused(refusals)) => {
            answer.reasons = refusals.iter().map(Reason::of).collect();
            refuse(answer, printer)
        }
        Err(ConsumeError::Partial { receipt, source }) => {
            printer.error(&format!("applied in part: {}", chain(&*source)));
            command.partial(answer, &receipt, printer)
        }
        Err(error @ ConsumeError::Unfinished { .. }) => Err(error.into()),
        Err(error) => Err(anyhow!("{}\n  nothing was changed", chain(&error))),
    }
}

/// Reads a plan; an inverse plan is named as what it is.
fn read_plan(file: &Path) -> Result<Plan> {
    Plan::read(file).map_err(|error| match &error {
        ReadError::Format { source: FormatError::Kind { found, .. }, .. } if found.contains(hypseq_plan::UNDO_KIND) => {
            anyhow::Error::from(error).context(format!(
                "this is the inverse of a plan\n  hint: apply it with `hypseq plan undo {} --apply`",
                quote(&file.to_string_lossy())
            ))
        }
        _ => error.into(),
    })
}

/// The home of a command that sets watermarks.
pub fn home_of(global: &Global, what: &str) -> Result<Home> {
    if !global.cache.is_empty() {
        bail!("a bare cache root has no watermarks\n  hint: name the whole home with --home");
    }
    select::one_home(global, what)
}

pub fn state_root(home: &Home) -> Result<&Path> {
    home.state_root().context("the home has no state root")
}

fn consumer_root(home: &Home) -> &Path {
    home.state_root().unwrap_or_else(|| home.root())
}

/// Where the receipt of a plan lies.
pub fn receipt_path(home: &Home, sink: &Sink, id: &str) -> PathBuf {
    let instance = format!("plugins/{}/sink-instances/{}", sink.plugin, sink.instance);
    consumer_root(home).join(instance).join("rewinds").join(format!("{id}.json"))
}

/// Says that nothing was changed, and why.
pub fn refuse(mut answer: PlanVerdict, printer: &Printer) -> Result<ExitStatus> {
    let unknown = answer.all_reasons().next().is_some() && answer.all_reasons().all(Reason::is_unknown);
    for reason in answer.all_reasons() {
        printer.error(&format!("refused: {}", reason.text()));
    }
    answer.verdict = if unknown { "unknown" } else { "refused" };
    for rewind in &mut answer.rewinds {
        if rewind.verdict == "applicable" {
            rewind.verdict = "not-applied";
            "nothing was changed: it is all or nothing".clone_into(&mut rewind.detail);
        }
    }
    "Refused: nothing was changed".clone_into(&mut answer.headline);
    printer.report(&answer)?;
    Ok(if unknown { ExitStatus::CouldNotTell } else { ExitStatus::No })
}

/// Today's policy may withhold what it did not when the plan was made. The guards do not ask; a person wants to know.
fn warn_of_policy(home: &Home, plan: &Plan, printer: &Printer) {
    let policy = home.policy();
    for rewind in plan.rewinds.iter().filter(|r| !r.accepted.withheld) {
        let Ok(live) = Live::open(home, &rewind.dataset, &rewind.partition) else { continue };
        let (above, up_to) = (rewind.target.last_exported_seq.get(), rewind.observed.seq.get());
        let Ok(stretch) = live.stretch(&policy, above, up_to) else { continue };
        if stretch.withheld > 0 {
            printer.note(&format!(
                "warning: {} {}: today's policy withholds {} of the gap ({}), which the plan did not accept: the daemon will \
                 drop them again",
                rewind.dataset,
                rewind.partition,
                count(stretch.withheld, "row"),
                stretch.rules.join("; ")
            ));
        }
    }
}

/// Tells what was done.
struct Retold<'a> {
    home: &'a Home,
    consumer: &'a Consumer<'a>,
    sink: &'a Sink,
    watched: bool,
    args: &'a PlanApply,
}

impl Retold<'_> {
    fn stopped(&self, mut answer: PlanVerdict, printer: &Printer) -> Result<ExitStatus> {
        answer.verdict = "stopped";
        "Stopped before the swap: nothing was changed".clone_into(&mut answer.headline);
        for rewind in &mut answer.rewinds {
            rewind.verdict = "not-applied";
            "stopped while waiting for the daemon's own write; the plan is not used up".clone_into(&mut rewind.detail);
        }
        let again = format!("plan apply {} --watch", quote(&self.args.file.to_string_lossy()));
        answer.next = vec![select::command(self.home, &again)];
        printer.report(&answer)?;
        Ok(ExitStatus::No)
    }

    fn applied(
        &self,
        mut answer: PlanVerdict,
        receipt: &Receipt,
        judged: &HashMap<WatermarkPath, Judged>,
        stopped: bool,
        printer: &Printer,
    ) -> Result<ExitStatus> {
        for (rewind, swap) in answer.rewinds.iter_mut().zip(receipt.latest_swaps()) {
            self.fill(rewind, swap);
            match (judged.get(&swap.watermark), self.watched) {
                (Some(judged), _) => {
                    rewind.verdict = word(judged.judgement.verdict);
                    rewind.detail.clone_from(&judged.detail);
                }
                (None, true) => {
                    rewind.verdict = word(TickVerdict::Pending);
                    "set; what became of it could not be read from the cache".clone_into(&mut rewind.detail);
                }
                (None, false) => {}
            }
        }
        answer.watched = Some(self.watched);
        answer.attempts = Some(receipt.attempts.len());
        answer.receipt = Some(receipt_path(self.home, self.sink, &answer.id));
        let verdict = if self.watched { overall(&answer.rewinds) } else { "applied" };
        let (headline, next) = self.advice(verdict, stopped);
        answer.verdict = verdict;
        answer.headline = headline;
        answer.next = next;
        printer.report(&answer)?;
        Ok(if matches!(verdict, "applied" | "honoured") { ExitStatus::Yes } else { ExitStatus::No })
    }

    fn partial(&self, mut answer: PlanVerdict, receipt: &Receipt, printer: &Printer) -> Result<ExitStatus> {
        for (rewind, swap) in answer.rewinds.iter_mut().zip(receipt.latest_swaps()) {
            self.fill(rewind, swap);
        }
        answer.verdict = "partial";
        answer.receipt = Some(receipt_path(self.home, self.sink, &answer.id));
        "Applied in part: the daemon had taken up one watermark before the others could be set"
            .clone_into(&mut answer.headline);
        let list = select::command(self.home, "plan list      shows what was done; make a new plan for the rest");
        answer.next = vec![list];
        printer.report(&answer)?;
        Ok(ExitStatus::No)
    }

    fn fill(&self, rewind: &mut RewindVerdict, swap: &Swap) {
        let now = self.consumer.observe(self.sink, &swap.watermark).ok();
        rewind.current_seq = now.as_ref().map(|now| now.seq);
        rewind.exported_row_count = now.as_ref().map(|now| now.exported_row_count);
        (rewind.verdict, rewind.detail) = match swap.outcome {
            Outcome::Set => ("applied", format!("set from {} to {} and read back", swap.before.seq, swap.to)),
            Outcome::Overtaken => (
                "overtaken",
                format!(
                    "set from {} to {}, and written by the daemon before it could be read back",
                    swap.before.seq, swap.to
                ),
            ),
            Outcome::Unchanged => ("not-applied", "not set, or taken back".to_owned()),
            Outcome::Open => ("unfinished", "the run did not end".to_owned()),
        };
    }

    fn advice(&self, verdict: &str, stopped: bool) -> (String, Vec<String>) {
        let list = select::command(self.home, "plan list      shows what became of it after the next tick");
        let new_plan = "make a new plan with `hypseq plan rewind`".to_owned();
        match verdict {
            "applied" => {
                let headline = "Applied. Nothing was watched, so whether it survives the next tick is not known yet";
                (headline.to_owned(), vec![list])
            }
            "honoured" => ("Applied and honoured: the daemon sent the gap".to_owned(), Vec::new()),
            "clobbered" => (
                "Clobbered: a tick in flight wrote over every swap, and the gap was not sent".to_owned(),
                vec![format!("stop the daemon (`hyp daemon stop`), {new_plan}, apply it, start the daemon again")],
            ),
            "dropped-again" => (
                "Dropped again: nothing of the gap was sent, since policy still withholds it".to_owned(),
                vec![format!("lift what withholds the rows, then {new_plan}")],
            ),
            "pending" if stopped => {
                ("Stopped: the watermarks are set, and no tick has ended since".to_owned(), vec![list])
            }
            "pending" => (
                format!(
                    "Pending: the watermarks are set, and no tick has ended in {}",
                    duration::show(self.args.timeout)
                ),
                vec![list, "hyp daemon status      on the machine itself: does the daemon run?".to_owned()],
            ),
            _ => (
                "Unexplained: the watermark says neither that the rewind was honoured nor that it was lost".to_owned(),
                vec![select::command(self.home, "status      compares the watermark with the rows")],
            ),
        }
    }
}

/// The verdict that a person must act on first.
fn overall(rewinds: &[RewindVerdict]) -> &'static str {
    let order = ["clobbered", "dropped-again", "unexplained", "pending"];
    order.into_iter().find(|wanted| rewinds.iter().any(|r| r.verdict == *wanted)).unwrap_or("honoured")
}
