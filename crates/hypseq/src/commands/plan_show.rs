//! `plan show`: a plan in words, stale or not.

use anyhow::Result;
use hypseq_plan::{Plan, Time};
use serde_json::{Value, json};

use crate::cli::PlanFile;
use crate::exit::ExitStatus;
use crate::grid::Grid;
use crate::plan_text;
use crate::printer::{Printer, Report};

pub fn run(args: &PlanFile, printer: &Printer) -> Result<ExitStatus> {
    let plan = Plan::read(&args.file)?;
    let expired = Time::now() >= plan.expires_at;
    if expired {
        printer.note(&format!("this plan expired at {}: a consumer will refuse it", plan.expires_at));
    }
    printer.report(&Shown { plan: &plan })?;
    Ok(if expired { ExitStatus::No } else { ExitStatus::Yes })
}

struct Shown<'a> {
    plan: &'a Plan,
}

impl Report for Shown<'_> {
    fn json(&self) -> Value {
        json!(self.plan)
    }

    fn text(&self, printer: &Printer) -> String {
        plan_text::text(self.plan, printer)
    }

    fn grid(&self) -> Grid {
        plan_text::grid(self.plan)
    }
}
