//! `resolve`: the boundary of a time, a seq or an id, with what each choice would cost.

use anyhow::Result;
use hypseq_cache::Home;
use serde_json::{Value, json};

use crate::boundary::{Excluded, Point, Resolved, block_on, require_complete, resolve_point};
use crate::cli::{Global, Resolve};
use crate::exit::ExitStatus;
use crate::explain;
use crate::fleet;
use crate::grid::Grid;
use crate::hole::Hole;
use crate::json;
use crate::printer::{Printer, Report};
use crate::select;
use crate::survey::{Surveyed, reference, survey};
use crate::time::{When, show};

pub fn run(global: &Global, args: &Resolve, printer: &Printer) -> Result<ExitStatus> {
    let point =
        Point::parse(args.point.at.as_deref(), args.point.seq.as_deref(), args.point.id.as_deref(), &args.zone)?;
    let homes = select::homes(global)?;
    let progress = printer.progress("reading the generation");
    let question = |home: &Home| resolve_home(home, homes.len() > 1, &point, args, printer);
    let (reports, status) = fleet::ask(&homes, printer, question, Resolution::status)?;
    drop(progress);
    printer.reports(&reports)?;
    Ok(status)
}

fn resolve_home(home: &Home, fleet: bool, point: &Point, args: &Resolve, printer: &Printer) -> Result<Resolution> {
    let found = home.partitions();
    printer.problems(&found.problems);
    let target = &args.target;
    let partition = select::one_partition(&found.value, target.dataset.as_deref(), target.partition.as_deref())?;
    let generation = reference(partition, target.generation.as_deref())?;
    let surveyed = survey(partition, generation, target.time_column.as_deref())?;
    printer.problems(&surveyed.problems);
    require_complete(&surveyed)?;
    let excluded = block_on(Excluded::read(&args.leave_out, &args.zone, home, partition))??;
    let resolved = resolve_point(&surveyed, point, &excluded)?;
    let missing = match point {
        Point::Seq(seq) if surveyed.scan.visible.with_seq(*seq).is_empty() => {
            Some(Hole::explain(home, &found.value, &surveyed, partition, *seq)?)
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
        surveyed,
        resolved,
        excluded,
        hole: missing,
    })
}

/// A boundary, with the generation that it was found in.
pub struct Resolution {
    home: String,
    fleet: bool,
    home_flag: String,
    sink: String,
    id: hypseq_cache::PartitionId,
    point: Point,
    surveyed: Surveyed,
    resolved: Resolved,
    excluded: Excluded,
    hole: Option<Hole>,
}

impl Resolution {
    fn status(&self) -> ExitStatus {
        let found = match &self.resolved.boundary {
            Some(boundary) if self.resolved.position.is_none() => {
                boundary.first_seq_after.is_some() && boundary.safe_seq.is_some()
            }
            _ => self.resolved.last_row.is_some() && self.resolved.next_row.is_some(),
        };
        if found { ExitStatus::Yes } else { ExitStatus::No }
    }

    /// Rows in the interval that a time without milliseconds leaves open.
    fn ambiguous(&self) -> Option<(&'static str, Vec<i64>)> {
        let Point::At(When { at, unit: Some(unit), .. }) = &self.point else { return None };
        let end = at.saturating_add(unit.micros());
        let rows = self.surveyed.scan.visible.rows().iter();
        let seqs: Vec<i64> = rows.filter(|r| r.time.is_some_and(|t| (*at..end).contains(&t))).map(|r| r.seq).collect();
        (!seqs.is_empty()).then_some((unit.as_str(), seqs))
    }

    fn at(&self) -> Option<i64> {
        match &self.point {
            Point::At(when) => Some(when.at),
            _ => self.resolved.boundary.as_ref().map(|b| b.at),
        }
    }
}

impl Report for Resolution {
    fn json(&self) -> Value {
        let scan = &self.surveyed.scan;
        let boundary = self.resolved.boundary.as_ref();
        let sides = boundary.map(|b| b.sides).unwrap_or_default();
        let value = json!({
            "dataset": self.id.dataset,
            "partition": self.id.path,
            "generation": self.surveyed.generation.name,
            "at": json::time(self.at()),
            "time_column": self.surveyed.columns.as_ref().and_then(|c| c.time.as_deref()),
            "seq": json::seq(self.resolved.position),
            "tight_seq": json::seq(boundary.and_then(|b| b.tight_seq)),
            "safe_seq": json::seq(boundary.and_then(|b| b.safe_seq)),
            "first_seq_after": json::seq(boundary.and_then(|b| b.first_seq_after)),
            "inversion": boundary.is_some_and(hypseq_boundary::Boundary::inversion),
            "last_row": json::row(self.resolved.last_row.as_ref()),
            "next_row": json::row(self.resolved.next_row.as_ref()),
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
            "legacy_rows": scan.legacy_rows,
            "excluded_rows": self.resolved.excluded_rows,
            "duplicate_ids": scan.visible.repeated_ids(),
            "hole": self.hole.as_ref().map(Hole::json),
            "ambiguous": self.ambiguous().map(|(unit, seqs)| json!({
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
            "files_total": scan.files_total,
            "files_read": scan.files_read,
        });
        fleet::named(value, self.fleet.then_some(&self.home))
    }

    fn text(&self, printer: &Printer) -> String {
        let context = explain::Context {
            home_flag: &self.home_flag,
            id: &self.id,
            surveyed: &self.surveyed,
            point: &self.point,
            resolved: &self.resolved,
            excluded: &self.excluded,
            ambiguous: self.ambiguous(),
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
        for choice in explain::choices(&self.resolved) {
            grid.row([
                self.home.clone(),
                self.id.dataset.clone(),
                self.id.path.clone(),
                self.surveyed.generation.name.clone(),
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
