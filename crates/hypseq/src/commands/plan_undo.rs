//! `plan undo`: the inverse of a plan that was applied; a dry run unless a file is named or it is to be applied.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use hypseq_cache::Home;
use hypseq_plan::{ConsumeError, Consumer, FormatError, Plan, ReadError, Seq, Tool, UndoPlan};
use serde_json::{Value, json};

use crate::cli::{Global, PlanUndo};
use crate::commands::plan_apply::{home_of, receipt_path, refuse, state_root};
use crate::exit::ExitStatus;
use crate::grid::Grid;
use crate::plan_verdict::{PlanVerdict, RewindVerdict};
use crate::printer::{Printer, Report};
use crate::refusal::{Reason, chain};
use crate::select::{self, quote};
use crate::world::CacheWorld;

/// What the file holds.
enum Given {
    Plan(Box<Plan>),
    Inverse(Box<UndoPlan>),
}

pub fn run(global: &Global, args: &PlanUndo, printer: &Printer) -> Result<ExitStatus> {
    let given = read(&args.file)?;
    let home = home_of(global, "plan undo")?;
    let world = CacheWorld::new(&home);
    let consumer = Consumer::new(state_root(&home)?, &world);
    let undo = match given {
        Given::Inverse(_) if args.out.is_some() => bail!("`{}` is the inverse already", args.file.display()),
        Given::Inverse(undo) => *undo,
        Given::Plan(plan) => match invert(&consumer, &plan) {
            Ok(undo) => undo,
            Err(ConsumeError::Refused(refusals)) => {
                let mut answer =
                    PlanVerdict::of_check(&plan, &hypseq_plan::Check { plan: refusals, rewinds: Vec::new() });
                answer.rewinds.clear();
                return refuse(answer, printer);
            }
            Err(error) => return Err(error.into()),
        },
    };
    if let Some(out) = &args.out {
        undo.write(out, home.root()).with_context(|| format!("the plan was not written to `{}`", out.display()))?;
    }
    let mut answer = describe(&undo, &consumer);
    if args.apply {
        match consumer.undo(&undo) {
            Ok(applied) => {
                let receipt = receipt_path(&home, &undo.sink, &undo.id.to_string());
                answer = describe(&undo, &consumer);
                answer.verdict = "applied";
                answer.receipt = Some(receipt);
                answer.attempts = Some(applied.receipt.attempts.len());
                "Undone: the watermarks are where they were before the rewind".clone_into(&mut answer.headline);
                for rewind in &mut answer.rewinds {
                    rewind.verdict = "applied";
                    rewind.detail = format!("set from {} to {} and read back", rewind.observed_seq, rewind.target_seq);
                }
            }
            Err(ConsumeError::Refused(refusals)) => {
                answer.reasons = refusals.iter().map(Reason::of).collect();
                return refuse(answer, printer);
            }
            Err(error @ (ConsumeError::Unfinished { .. } | ConsumeError::Partial { .. })) => return Err(error.into()),
            Err(error) => return Err(anyhow!("{}\n  nothing was changed", chain(&error))),
        }
    } else {
        answer.next = next(&home, args);
    }
    printer.report(&Inverse { answer, undo: &undo, written: args.out.as_deref() })?;
    Ok(ExitStatus::Yes)
}

fn read(file: &Path) -> Result<Given> {
    match Plan::read(file) {
        Ok(plan) => Ok(Given::Plan(Box::new(plan))),
        Err(ReadError::Format { source: FormatError::Kind { found, .. }, .. })
            if found.contains(hypseq_plan::UNDO_KIND) =>
        {
            Ok(Given::Inverse(Box::new(UndoPlan::read(file)?)))
        }
        Err(error) => Err(error.into()),
    }
}

fn invert(consumer: &Consumer<'_>, plan: &Plan) -> Result<UndoPlan, ConsumeError> {
    let tool = Tool { name: "hypseq".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    consumer.invert(plan, tool, format!("takes back {}: {}", plan.id, plan.reason))
}

fn describe(undo: &UndoPlan, consumer: &Consumer<'_>) -> PlanVerdict {
    let rewinds = undo.restores.iter().map(|restore| {
        let current: Option<(Seq, u64)> =
            consumer.observe(&undo.sink, &restore.watermark).ok().map(|now| (now.seq, now.exported_row_count));
        RewindVerdict {
            dataset: restore.dataset.clone(),
            partition: restore.partition.clone(),
            verdict: "applicable",
            observed_seq: restore.from,
            current_seq: current.map(|(seq, _)| seq),
            exported_row_count: current.map(|(_, count)| count),
            target_seq: restore.to,
            detail: format!("the daemon has not passed {} again", restore.to),
            reasons: Vec::new(),
            drift: None,
        }
    });
    PlanVerdict {
        id: undo.id.to_string(),
        sink: undo.sink.clone(),
        reason: undo.reason.clone(),
        verdict: "applicable",
        headline: format!("The rewind {} can be taken back", undo.undoes),
        reasons: Vec::new(),
        rewinds: rewinds.collect(),
        next: Vec::new(),
        receipt: None,
        watched: None,
        attempts: None,
    }
}

fn next(home: &Home, args: &PlanUndo) -> Vec<String> {
    let command = |rest: String| select::command(home, &rest);
    let file = quote(&args.file.to_string_lossy());
    match &args.out {
        Some(out) => vec![command(format!("plan undo {} --apply", quote(&out.to_string_lossy())))],
        None => vec![
            command(format!("plan undo {file} --apply")),
            command(format!("plan undo {file} --out FILE      to look at it first")),
        ],
    }
}

struct Inverse<'a> {
    answer: PlanVerdict,
    undo: &'a UndoPlan,
    written: Option<&'a Path>,
}

impl Report for Inverse<'_> {
    fn json(&self) -> Value {
        let mut value = self.answer.json();
        if let Value::Object(fields) = &mut value {
            fields.insert("undoes".to_owned(), json!(self.undo.undoes));
            fields.insert("written".to_owned(), json!(self.written));
            fields.insert("plan".to_owned(), json!(self.undo));
        }
        value
    }

    fn text(&self, printer: &Printer) -> String {
        let mut text = self.answer.text(printer);
        if let Some(path) = self.written {
            let _ = write!(text, "\nWritten to {}\n", path.display());
        }
        text
    }

    fn grid(&self) -> Grid {
        self.answer.grid()
    }
}
