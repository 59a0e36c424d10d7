//! `plan rewind`: plans to set watermarks back; a dry run unless a file is named.

use std::path::Path;

use anyhow::{Context, Result, bail};
use hypseq_cache::{Home, Partition, WatermarkFile};
use hypseq_plan as plan;
use hypseq_plan::{Plan, Time};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::answer::Reading;
use crate::boundary::Point;
use crate::cli::{Global, Memory, PlanRewind};
use crate::commands::sql;
use crate::exit::ExitStatus;
use crate::explain::home_flag;
use crate::figures::PartitionFigures;
use crate::grid::Grid;
use crate::plan_text;
use crate::planning::{Draft, Planned, Refusal, Request, plan, sink_files};
use crate::printer::{Printer, Report};
use crate::select;
use crate::watermarks;

pub fn run(global: &Global, args: &PlanRewind, printer: &Printer) -> Result<ExitStatus> {
    if !global.cache.is_empty() {
        bail!("a bare cache root has no watermarks to set back\n  hint: name the whole home with --home");
    }
    let home = select::one_home(global, "plan rewind")?;
    if args.reason.trim().is_empty() {
        bail!("--reason is empty\n  hint: say why; it stands in the plan and in its receipt");
    }
    let tz = args.zone.tz.as_deref();
    let point = Point::parse(args.point.since.as_deref(), args.point.to_seq.as_deref(), None, &args.zone)?;
    let found = home.partitions();
    printer.problems(&found.problems);
    let files = home.watermarks();
    printer.problems(&files.problems);
    let (sink, mine) = sink_files(&files.value, &args.sink)?;
    let chosen = choose(args, &home, &found.value, &mine)?;
    let spool = home.spool();
    printer.problems(&spool.problems);
    let progress = printer.progress("reading every generation");
    let outcome = tokio::runtime::Runtime::new()?.block_on(async {
        let (engine, _) = sql::open(std::slice::from_ref(&home), &Memory::default(), printer).await?;
        let request = Request {
            home: &home,
            engine: &engine,
            sink: sink.clone(),
            as_typed: args.point.since.clone().or_else(|| args.point.to_seq.clone()).unwrap_or_default(),
            zone: tz.map(str::to_owned),
            point,
            policy: args.policy,
            leave_out: &args.leave_out,
            zone_option: &args.zone,
            time_column: args.time_column.as_deref(),
            accept: &args.accept,
            spool: &spool.value,
            reading: if args.full_scan { Reading::Full } else { Reading::Bounds },
            printer,
        };
        let mut outcome = Outcome::default();
        for (partition, file) in chosen {
            match plan(&request, partition, file).await? {
                Planned::Rewind(draft) => outcome.drafts.push(draft),
                Planned::NothingToDo(why) => outcome.idle.push(why),
                Planned::NoTarget(refusal) => outcome.refusals.push(refusal),
            }
        }
        anyhow::Ok(outcome)
    })?;
    drop(progress);
    finish(args, &home, sink, outcome, printer)
}

/// The partitions to plan, each with the sink's watermark file.
fn choose<'a>(
    args: &PlanRewind,
    home: &Home,
    partitions: &'a [Partition],
    files: &[&'a WatermarkFile],
) -> Result<Vec<(&'a Partition, &'a WatermarkFile)>> {
    let pair = |partition: &'a Partition| {
        let file = files.iter().find(|f| f.is_for(&partition.id));
        file.map(|file| (partition, *file)).with_context(|| {
            format!(
                "sink {} has no watermark for {}\n  hint: without one it sends everything, legacy rows included; there is \
                 nothing to set back",
                args.sink,
                select::name(&partition.id)
            )
        })
    };
    let dataset = args.dataset.as_deref();
    if args.all_gaps {
        let mut chosen = Vec::new();
        for partition in select::partitions(partitions, dataset, None) {
            let Some(file) = files.iter().find(|f| f.is_for(&partition.id)) else { continue };
            let Ok(watermark) = &file.state else {
                chosen.push((partition, *file));
                continue;
            };
            let time_column = args.time_column.as_deref();
            let read = PartitionFigures::read(partition, time_column, &[watermark.seq], Reading::Bounds)?;
            // One that cannot be read whole is planned all the same: the planning refuses it and says why.
            let gap = !read.complete || {
                let resent = watermarks::resent_before(home, file)?;
                let rows = read.at_or_below.values().sum();
                let figures = watermarks::unsent(watermark, rows, read.legacy_rows, resent);
                let unknown = || {
                    format!(
                        "{}: whether there is a gap cannot be told: {}\n  hint: name the partition with --partition",
                        select::name(&partition.id),
                        figures.note.as_deref().unwrap_or_default()
                    )
                };
                figures.suspected_unsent.with_context(unknown)? > 0
            };
            if gap {
                chosen.push((partition, *file));
            }
        }
        return Ok(chosen);
    }
    if args.partition.is_empty() {
        let with_watermark: Vec<Partition> =
            partitions.iter().filter(|p| files.iter().any(|f| f.is_for(&p.id))).cloned().collect();
        let one = select::one_partition(&with_watermark, dataset, None)?.id.clone();
        let partition = partitions.iter().find(|p| p.id == one).context("the partition is gone")?;
        return Ok(vec![pair(partition)?]);
    }
    args.partition.iter().map(|path| pair(select::one_partition(partitions, dataset, Some(path))?)).collect()
}

#[derive(Default)]
struct Outcome {
    drafts: Vec<Draft>,
    idle: Vec<String>,
    refusals: Vec<Refusal>,
}

fn finish(args: &PlanRewind, home: &Home, sink: plan::Sink, outcome: Outcome, printer: &Printer) -> Result<ExitStatus> {
    for why in &outcome.idle {
        printer.note(why);
    }
    let mut refusals = outcome.refusals;
    refusals.extend(outcome.drafts.iter().flat_map(|d| d.refusals.iter().cloned()));
    let remarks = outcome.drafts.iter().flat_map(|d| d.remarks.iter().cloned()).collect();
    let rewinds: Vec<plan::Rewind> = outcome.drafts.into_iter().map(|d| d.rewind).collect();
    let plan = if rewinds.is_empty() { None } else { Some(seal(args, sink, rewinds)?) };
    let status = match (&plan, refusals.is_empty()) {
        (_, false) => ExitStatus::Refused,
        (Some(_), true) => ExitStatus::Yes,
        (None, true) => ExitStatus::No,
    };
    let mut written = None;
    if let (Some(plan), Some(out), ExitStatus::Yes) = (&plan, &args.out, status) {
        plan.write(out, home.root()).with_context(|| format!("the plan was not written to `{}`", out.display()))?;
        written = Some(out.as_path());
    }
    for refusal in &refusals {
        printer.error(&format!("refused: {}\n  hint: {}", refusal.message, refusal.flag));
    }
    if plan.is_none() && status == ExitStatus::No {
        printer.note("nothing to do");
    }
    printer.report(&Proposal {
        plan: plan.as_ref(),
        written,
        refusals: &refusals,
        remarks,
        home_flag: home_flag(home),
    })?;
    Ok(status)
}

fn seal(args: &PlanRewind, sink: plan::Sink, rewinds: Vec<plan::Rewind>) -> Result<Plan> {
    let created_at = Time::now();
    let lifetime = chrono::Duration::hours(i64::from(args.expires_in));
    let mut plan = Plan {
        v: plan::PLAN_VERSION,
        kind: plan::PLAN_KIND.to_owned(),
        id: Uuid::now_v7(),
        created_at,
        expires_at: created_at.plus(lifetime).context("the plan would expire beyond the calendar")?,
        created_by: plan::Tool { name: "hypseq".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        reason: args.reason.clone(),
        sink,
        rewinds,
        checksum: plan::Sha256::of(&[]),
    };
    plan.seal()?;
    Ok(plan)
}

struct Proposal<'a> {
    plan: Option<&'a Plan>,
    written: Option<&'a Path>,
    refusals: &'a [Refusal],
    remarks: Vec<String>,
    home_flag: String,
}

impl Report for Proposal<'_> {
    fn json(&self) -> Value {
        let refusals = self.refusals.iter().map(|r| json!({ "code": r.code, "message": r.message, "flag": r.flag }));
        json!({
            "written": self.written,
            "plan": self.plan,
            "refused": refusals.collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }

    fn text(&self, printer: &Printer) -> String {
        let Some(plan) = self.plan else { return String::new() };
        let mut text = plan_text::text(plan, printer);
        for remark in &self.remarks {
            text.push('\n');
            text.push_str(&printer.paragraph(2, remark));
        }
        let end = match (self.written, self.refusals.is_empty()) {
            (Some(path), _) => {
                let file = select::quote(&path.to_string_lossy());
                format!(
                    "Written to {file}\n  Next: hypseq plan show {file}             have it reviewed\n        hypseq {} plan apply \
                     {file} --watch\n",
                    self.home_flag
                )
            }
            (None, false) => "Nothing was written: it is refused.\n".to_owned(),
            (None, true) => "Dry run: nothing was written. Next: the same command with --out FILE.\n".to_owned(),
        };
        text.push('\n');
        text.push_str(&end);
        text
    }

    fn grid(&self) -> Grid {
        self.plan.map_or_else(plan_text::empty_grid, plan_text::grid)
    }
}
