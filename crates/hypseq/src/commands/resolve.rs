//! `resolve`: the boundary of a time, a seq or an id, with what each choice would cost.

use anyhow::Result;
use hypseq_cache::Home;
use serde_json::{Value, json};

use crate::answer::{Answer, Reading};
use crate::boundary::{Excluded, Point, block_on};
use crate::cli::{Global, Resolve};
use crate::exit::ExitStatus;
use crate::explain;
use crate::fleet;
use crate::grid::Grid;
use crate::hole::Hole;
use crate::json;
use crate::opened::{Opened, reference};
use crate::printer::{Printer, Report};
use crate::select;
use crate::time::show;

pub fn run(global: &Global, args: &Resolve, printer: &Printer) -> Result<ExitStatus> {
    let point =
        Point::parse(args.point.at.as_deref(), args.point.seq.as_deref(), args.point.id.as_deref(), &args.zone)?;
    let homes = select::homes(global)?;
    let progress = printer.progress("reading the generation");
    let question = |home: &Home, _: &str| resolve_home(home, homes.len() > 1, &point, args, printer);
    let (reports, status) = fleet::ask(&homes, printer, question, Resolution::status)?;
    drop(progress);
    printer.reports(&reports, homes.len() > 1)?;
    Ok(status)
}

fn resolve_home(home: &Home, fleet: bool, point: &Point, args: &Resolve, printer: &Printer) -> Result<Resolution> {
    let found = home.partitions();
    printer.problems(&found.problems);
    let target = &args.target;
    let partition = select::one_partition(&found.value, target.dataset.as_deref(), target.partition.as_deref())?;
    let generation = reference(partition, target.generation.as_deref())?;
    let opened = Opened::of(partition, generation, target.time_column.as_deref())?;
    let excluded = block_on(Excluded::read(&args.leave_out, &args.zone, home, partition))??;
    let reading = if args.full_scan { Reading::Full } else { Reading::Bounds };
    let (opened, answer) = Answer::find(opened, point, &excluded, reading, printer)?;
    let missing = match point {
        Point::Seq(seq) if answer.resolved.last_row.as_ref().is_none_or(|row| row.seq != *seq) => {
            Some(Hole::explain(home, &found.value, &opened, partition, *seq)?)
        }
        _ => None,
    };
    Ok(Resolution {
        home: home.name().to_owned(),
        fleet,
        home_flag: explain::home_flag(home),
        sink: explain::sink_name(home),
        id: partition.id.clone(),
        point: point.clone(),
        opened,
        answer,
        hole: missing,
    })
}

/// A boundary, with the generation that it was found in.
struct Resolution {
    home: String,
    fleet: bool,
    home_flag: String,
    sink: String,
    id: hypseq_cache::PartitionId,
    point: Point,
    opened: Opened,
    answer: Answer,
    hole: Option<Hole>,
}

impl Resolution {
    fn status(&self) -> ExitStatus {
        let resolved = &self.answer.resolved;
        let found = match &resolved.boundary {
            Some(boundary) if resolved.position.is_none() => {
                boundary.first_seq_after.is_some() && boundary.safe_seq.is_some()
            }
            _ => resolved.last_row.is_some() && resolved.next_row.is_some(),
        };
        if found { ExitStatus::Yes } else { ExitStatus::No }
    }

    fn at(&self) -> Option<i64> {
        match &self.point {
            Point::At(when) => Some(when.at),
            _ => self.answer.resolved.boundary.as_ref().map(|b| b.at),
        }
    }
}

impl Report for Resolution {
    fn json(&self) -> Value {
        let Answer { resolved, .. } = &self.answer;
        let boundary = resolved.boundary.as_ref();
        let sides = boundary.map(|b| b.sides).unwrap_or_default();
        let value = json!({
            "dataset": self.id.dataset,
            "partition": self.id.path,
            "generation": self.opened.generation.name,
            "at": json::time(self.at()),
            "time_column": self.opened.columns.as_ref().and_then(|c| c.time.as_deref()),
            "seq": json::seq(resolved.position),
            "tight_seq": json::seq(boundary.and_then(|b| b.tight_seq)),
            "safe_seq": json::seq(boundary.and_then(|b| b.safe_seq)),
            "first_seq_after": json::seq(boundary.and_then(|b| b.first_seq_after)),
            "inversion": boundary.is_some_and(hypseq_boundary::Boundary::inversion),
            "last_row": json::row(resolved.last_row.as_ref()),
            "next_row": json::row(resolved.next_row.as_ref()),
            "tight_row": json::row(boundary.and_then(|b| b.tight_row.as_ref())),
            "rows_at_or_before": sides.rows_at_or_before,
            "rows_after": sides.rows_after,
            "lost_at_tight": boundary.map_or(0, |b| b.cost_at_tight.lost),
            "resent_at_tight": boundary.map_or(0, |b| b.cost_at_tight.resent),
            "lost_at_safe": boundary.map_or(0, |b| b.cost_at_safe.lost),
            "resent_at_safe": boundary.map_or(0, |b| b.cost_at_safe.resent),
            "null_time_rows": sides.null_time_rows,
            "null_time_lost_at_safe": boundary.map_or(0, |b| b.cost_at_safe.null_time_lost),
            "null_time_lost_at_tight": boundary.map_or(0, |b| b.cost_at_tight.null_time_lost),
            "null_time_resent_at_safe": boundary.map_or(0, |b| b.cost_at_safe.null_time_resent),
            "legacy_rows": self.answer.legacy_rows,
            "excluded_rows": resolved.excluded_rows,
            "duplicate_ids": self.answer.repeated_ids,
            "hole": self.hole.as_ref().map(Hole::json),
            "ambiguous": self.answer.ambiguous.as_ref().map(|(unit, seqs)| json!({
                "unit": unit,
                "rows": seqs.len(),
                "min_seq": json::seq(seqs.first().copied()),
                "max_seq": json::seq(seqs.last().copied()),
            })),
            "curve": boundary.map_or_else(Vec::new, |b| b.curve.iter().map(|p| json!({
                "seq": json::seq(Some(p.seq)),
                "lost": p.lost,
                "resent": p.resent,
            })).collect()),
            "files_total": self.answer.files_total,
            "files_read": self.answer.files_read,
        });
        fleet::named(value, self.fleet.then_some(&self.home))
    }

    fn text(&self, printer: &Printer) -> String {
        let context = explain::Context {
            home_flag: &self.home_flag,
            id: &self.id,
            generation: &self.opened.generation,
            point: &self.point,
            answer: &self.answer,
            hole: self.hole.as_ref(),
            sink: &self.sink,
        };
        context.text(printer)
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            "home",
            "dataset",
            "partition",
            "generation",
            "choice",
            ">seq",
            "time",
            "id",
            ">rows lost",
            ">rows resent",
        ]);
        for choice in explain::choices(&self.answer.resolved) {
            grid.row([
                self.home.clone(),
                self.id.dataset.clone(),
                self.id.path.clone(),
                self.opened.generation.name.clone(),
                choice.name.to_owned(),
                choice.seq.to_string(),
                choice.row.as_ref().and_then(|r| r.time).map_or_else(String::new, show),
                choice.row.as_ref().and_then(|r| r.id.as_deref()).unwrap_or_default().to_owned(),
                choice.cost.map_or_else(String::new, |(lost, _)| lost.to_string()),
                choice.cost.map_or_else(String::new, |(_, resent)| resent.to_string()),
            ]);
        }
        grid
    }
}
