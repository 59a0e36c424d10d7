//! A rewind of a plan, planned again from what stands in the plan itself: the same question, asked of the cache as it
//! is now.

use anyhow::{Context, Result, anyhow};
use hypseq_cache::{Home, Partition, SpoolBatch, WatermarkFile};
use hypseq_engine::Engine;
use hypseq_plan as plan;
use hypseq_plan::{Plan, Rewind, Seq, Time};

use crate::answer::Reading;
use crate::boundary::Point;
use crate::cli::{Accept, LeaveOut, Policy, Zone};
use crate::live::Live;
use crate::planning::{self, Planned, Request, sink_files};
use crate::printer::Printer;
use crate::time::When;

/// Everything that planning reads of a home.
pub struct Replanner<'a> {
    pub home: &'a Home,
    pub engine: &'a Engine,
    pub partitions: Vec<Partition>,
    pub watermarks: Vec<WatermarkFile>,
    pub spool: Vec<SpoolBatch>,
    pub printer: &'a Printer,
}

/// What planning a rewind again came to.
pub enum Again {
    /// The rewind that would be planned now, and whether its target and the plan's cut the visible rows alike.
    Rewind(Box<Rewind>, bool),
    /// Nothing would be planned now; why.
    Nothing(String),
}

impl Replanner<'_> {
    /// Plans a rewind again.
    pub async fn replan(&self, plan: &Plan, rewind: &Rewind) -> Result<Again> {
        let found = self.partitions.iter().find(|p| p.id.dataset == rewind.dataset && p.id.path == rewind.partition);
        let partition =
            found.ok_or_else(|| anyhow!("there is no partition {} {} here", rewind.dataset, rewind.partition))?;
        let (sink, mine) = sink_files(&self.watermarks, &format!("{}/{}", plan.sink.plugin, plan.sink.instance))?;
        let file = mine.into_iter().find(|f| f.is_for(&partition.id)).context("its watermark is not there")?;
        let boundary = &rewind.boundary;
        let leave_out = leave_out(&boundary.exclusions);
        let accept = accept(&rewind.accepted);
        let zone = Zone { tz: None };
        let request = Request {
            home: self.home,
            engine: self.engine,
            sink,
            point: point(rewind),
            as_typed: boundary.as_typed.clone(),
            zone: boundary.zone.clone(),
            policy: if boundary.policy == plan::Policy::Tight { Policy::Tight } else { Policy::Safe },
            leave_out: &leave_out,
            zone_option: &zone,
            time_column: boundary.time_column.as_deref(),
            accept: &accept,
            spool: &self.spool,
            // A second look goes by the rows alone.
            reading: Reading::Full,
            printer: self.printer,
        };
        Ok(match planning::plan(&request, partition, file).await? {
            Planned::NothingToDo(why) => Again::Nothing(why),
            Planned::NoTarget(refusal) => Again::Nothing(refusal.message),
            Planned::Rewind(draft) => {
                let mut again = draft.rewind;
                if boundary.policy == plan::Policy::ExportedCount {
                    again.boundary.policy = boundary.policy;
                }
                let targets = [rewind.target.last_exported_seq, again.target.last_exported_seq];
                let same_cut = self.same_cut(partition, targets)?;
                Again::Rewind(Box::new(again), same_cut)
            }
        })
    }

    fn same_cut(&self, partition: &Partition, [one, other]: [Seq; 2]) -> Result<bool> {
        let (low, high) = (one.min(other).get(), one.max(other).get());
        if low == high {
            return Ok(true);
        }
        let live = Live::open(self.home, &partition.id.dataset, &partition.id.path).map_err(anyhow::Error::msg)?;
        Ok(live.rows(low + 1, high).map_err(anyhow::Error::msg)?.rows().is_empty())
    }
}

/// The question that a plan answers: its time, else its position. A target found by the exported count is taken as
/// a position, since that count has moved on.
fn point(rewind: &Rewind) -> Point {
    match rewind.boundary.at {
        Some(at) => Point::At(When {
            at: at.millis().saturating_mul(1000),
            typed: rewind.boundary.as_typed.clone(),
            unit: None,
        }),
        None => Point::Seq(rewind.target.last_exported_seq.get()),
    }
}

fn leave_out(exclusions: &plan::Exclusions) -> LeaveOut {
    let end = |time: Option<Time>| time.map(|time| time.to_string()).unwrap_or_default();
    LeaveOut {
        ignore_times_outside: exclusions
            .ignore_times_outside
            .as_ref()
            .map(|range| format!("{}..{}", end(range.from), end(range.to))),
        exclude: exclusions.exclude.clone(),
    }
}

fn accept(accepted: &plan::Accepted) -> Accept {
    Accept {
        loss: accepted.loss,
        withheld: accepted.withheld,
        unproven: accepted.unproven,
        full_resend: accepted.full_resend,
    }
}
