//! From a partition and a point to one rewind of a plan: the target, its proof, and what it would make the sink do.

use anyhow::{Context, Result, anyhow, bail};
use hypseq_boundary::{Row, RowSet, Source};
use hypseq_cache::{Home, Partition, SpoolBatch, Watermark, WatermarkFile};
use hypseq_engine::Engine;
use hypseq_plan as plan;
use hypseq_plan::{Seq, Sha256, Time};

use crate::boundary::{Excluded, Point, Resolved, require_complete, resolve_point};
use crate::cli::{Accept, Policy};
use crate::exported::{Exported, Reading};
use crate::outgoing::{Outgoing, measure};
use crate::proof::Proof;
use crate::select;
use crate::survey::{Survey, Surveyed};
use crate::time::show;
use crate::watermarks;

/// What every rewind of a plan has in common.
pub struct Request<'a> {
    pub home: &'a Home,
    pub engine: &'a Engine,
    pub sink: plan::Sink,
    pub point: Point,
    pub as_typed: String,
    pub zone: Option<String>,
    pub policy: Policy,
    pub leave_out: &'a crate::cli::LeaveOut,
    pub zone_option: &'a crate::cli::Zone,
    pub time_column: Option<&'a str>,
    pub accept: &'a Accept,
    pub spool: &'a [SpoolBatch],
}

/// What planning a partition came to.
pub enum Planned {
    /// A rewind, with the reasons for which it is refused.
    Rewind(Box<Draft>),
    /// The watermark need not move; why.
    NothingToDo(String),
    /// There is no target to refuse or to accept; why, and what to spell.
    NoTarget(Refusal),
}

/// A rewind with what the operator must know about it beyond the plan's own fields.
pub struct Draft {
    pub rewind: plan::Rewind,
    pub refusals: Vec<Refusal>,
    pub remarks: Vec<String>,
}

/// Why a plan is refused, and the flag that would accept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    pub flag: String,
}

/// Plans one partition.
pub async fn plan(request: &Request<'_>, partition: &Partition, file: &WatermarkFile) -> Result<Planned> {
    let name = select::name(&partition.id);
    let watermark = file.state.as_ref().map_err(|problem| {
        anyhow!("{name}: {}\n  hint: {}; restore it from a backup before planning", problem.message, problem.advice)
    })?;
    let survey = Survey::of(partition, request.time_column)?;
    let reference = survey.reference(None)?;
    let live = &survey.generations[reference];
    require_complete(live)?;
    let excluded = Excluded::read(request.leave_out, request.zone_option, request.home, partition).await?;
    let resolved = resolve_point(live, &request.point, &excluded)?;
    let target = match target(request, &resolved) {
        Target::Seq(target) => target,
        Target::Nothing(why) => return Ok(Planned::NothingToDo(format!("{name}: {why}"))),
        Target::None(refusal) => return Ok(Planned::NoTarget(refusal)),
    };
    let skipped = |at: i64| {
        let Ok(cost) = live.scan.visible.cost(at, watermark.seq);
        cost.lost
    };
    if let (true, Point::At(when)) = (target >= watermark.seq, &request.point)
        && skipped(when.at) > 0
    {
        return Ok(Planned::NoTarget(Refusal {
            code: "loss",
            message: format!(
                "{name}: the watermark, {}, lies below the {} answer {target}, and {} younger than {} at or below it would \
                 never be sent",
                watermark.seq,
                if request.policy == Policy::Tight { "tight" } else { "safe" },
                crate::sentence::count(skipped(when.at), "row"),
                show(when.at)
            ),
            flag: "--policy safe".to_owned(),
        }));
    }
    if target >= watermark.seq {
        return Ok(Planned::NothingToDo(format!(
            "{name}: the watermark of sink {} is {}, at or below the target {target}; every row above the target will be sent \
             anyway",
            file.instance, watermark.seq
        )));
    }
    let at = if let Point::At(when) = &request.point { Some(when.at) } else { None };
    let proof = Proof::of(&survey, reference, target, at);
    let outgoing = measure(request.engine, request.home, partition, target).await?;
    let resent_before = watermarks::resent_before(request.home, file)?;
    let draft = Drafting {
        request,
        survey: &survey,
        live,
        watermark,
        target,
        at,
        resolved: &resolved,
        proof: &proof,
        resent_before,
    };
    Ok(Planned::Rewind(Box::new(draft.draft(&excluded, &outgoing)?)))
}

enum Target {
    Seq(i64),
    Nothing(String),
    None(Refusal),
}

fn target(request: &Request<'_>, resolved: &Resolved) -> Target {
    if let Some(position) = resolved.position {
        return Target::Seq(position);
    }
    let Some(boundary) = &resolved.boundary else { return Target::Nothing("there are no rows".to_owned()) };
    if boundary.first_seq_after.is_none() && boundary.sides.rows_after > 0 {
        return Target::None(Refusal {
            code: "exclusions",
            message: format!(
                "every one of the {} younger than {} was left out of the resolution",
                crate::sentence::count(boundary.sides.rows_after, "row"),
                show(boundary.at)
            ),
            flag: "leave out less with --ignore-times-outside or --exclude".to_owned(),
        });
    }
    if boundary.first_seq_after.is_none() {
        return Target::Nothing(format!(
            "no row with a seq is younger than {}: nothing to rewind for",
            show(boundary.at)
        ));
    }
    let chosen = match request.policy {
        Policy::Safe => boundary.safe_seq,
        Policy::Tight => boundary.tight_seq,
    };
    chosen.map_or_else(
        || {
            Target::None(Refusal {
                code: "full-resend",
                message: format!(
                    "no row's seq is a safe watermark for {}: even the first row is younger, so everything would be sent again",
                    show(boundary.at)
                ),
                flag: "--to-seq 0 --accept-full-resend (in place of --since)".to_owned(),
            })
        },
        Target::Seq,
    )
}

struct Drafting<'a> {
    request: &'a Request<'a>,
    survey: &'a Survey<'a>,
    live: &'a Surveyed,
    watermark: &'a Watermark,
    target: i64,
    at: Option<i64>,
    resolved: &'a Resolved,
    proof: &'a Proof,
    resent_before: u64,
}

impl Drafting<'_> {
    fn draft(&self, excluded: &Excluded, outgoing: &Outgoing) -> Result<Draft> {
        let id = &self.survey.partition.id;
        let union = self.survey.union();
        let accept = self.request.accept;
        let counts = self.counts(&union, outgoing);
        let exported = Exported {
            count: self.watermark.exported_row_count,
            legacy: self.survey.legacy_rows(),
            resent: self.resent_before,
        };
        let readings = exported.readings(&union, self.target);
        let observed = plan::Observed {
            seq: seq(self.watermark.seq)?,
            exported_row_count: self.watermark.exported_row_count,
            updated_at: self.watermark.updated_at.clone(),
        };
        let rows = &self.live.scan.visible;
        let last = rows.at_or_below(self.target).last().map(row).transpose()?;
        let next = rows.above(self.target).first().map(row).transpose()?;
        let refusals = self.refusals(&counts, outgoing, &readings);
        let rewind = plan::Rewind {
            dataset: id.dataset.clone(),
            partition: id.path.clone(),
            watermark: plan::WatermarkPath::new(&self.request.sink, &id.dataset, &id.path)?,
            target: plan::Target {
                last_exported_seq: seq(self.target)?,
                first_replayed_seq: next.as_ref().map(|r| r.seq),
            },
            guard: plan::Guard {
                watermark_v: 1,
                continuation_v: 1,
                min_seq: observed.seq,
                min_exported_row_count: observed.exported_row_count,
                above_seq: seq(self.target)?,
                generation: self.live.opened.generation.name.clone(),
                table_uuid: self.table()?.metadata.table_uuid.clone(),
                last_row: last.clone(),
                next_row: next.clone(),
            },
            boundary: self.boundary(excluded, last, next)?,
            counts,
            evidence: self.evidence()?,
            proven: self.proof.proven,
            witnesses: vec![exported.witness(&readings, self.target)],
            accepted: plan::Accepted {
                loss: accept.loss,
                withheld: accept.withheld,
                unproven: accept.unproven,
                full_resend: accept.full_resend,
            },
            undo: plan::Undo { last_exported_seq: observed.seq, valid_below_seq: observed.seq },
            observed,
        };
        Ok(Draft { rewind, refusals, remarks: self.remarks(&readings) })
    }

    fn table(&self) -> Result<&hypseq_iceberg::Table> {
        self.live.opened.table.as_ref().context("the live generation has no table")
    }

    fn counts(&self, union: &RowSet, outgoing: &Outgoing) -> plan::Counts {
        let rows = &self.live.scan.visible;
        let gap = union.between(self.target, self.watermark.seq);
        let cost = self.at.map(|at| {
            let Ok(cost) = rows.cost(at, self.target);
            cost
        });
        let no_time = |rows: &[Row]| rows.iter().filter(|r| r.time.is_none()).count() as u64;
        plan::Counts {
            replayed: rows.between(self.target, self.watermark.seq).len() as u64,
            pending: rows.above(self.watermark.seq).len() as u64,
            spooled: watermarks::spooled(self.request.spool, &self.survey.partition.id),
            resent: cost.map(|c| c.resent),
            lost: cost.map(|c| c.lost),
            null_time_lost: no_time(rows.at_or_below(self.target)),
            null_time_resent: no_time(rows.above(self.target)),
            withheld: outgoing.withheld,
            unrecoverable: gap.iter().filter(|r| rows.with_seq(r.seq).is_empty()).count() as u64,
            legacy: self.live.scan.legacy_rows,
            bytes: outgoing.bytes,
            chunks: outgoing.chunks,
        }
    }

    fn boundary(
        &self,
        excluded: &Excluded,
        last: Option<plan::Row>,
        next: Option<plan::Row>,
    ) -> Result<plan::Boundary> {
        let timed = self.resolved.boundary.as_ref().filter(|_| self.at.is_some());
        let optional = |s: Option<i64>| s.map(seq).transpose();
        let straddle = timed.filter(|b| b.inversion()).map(|b| plan::Straddle {
            rows: self.live.scan.visible.between(b.safe_seq.unwrap_or(0), b.tight_seq.unwrap_or(0)).len() as u64,
            lost_at_tight: b.cost_at_tight.lost,
            resent_at_safe: b.cost_at_safe.resent,
        });
        let end = |micros: Option<i64>| micros.and_then(Time::from_micros);
        Ok(plan::Boundary {
            policy: match (self.at, self.request.policy) {
                (None, _) => plan::Policy::Seq,
                (Some(_), Policy::Safe) => plan::Policy::Safe,
                (Some(_), Policy::Tight) => plan::Policy::Tight,
            },
            at: end(self.at),
            as_typed: self.request.as_typed.clone(),
            zone: self.request.zone.clone(),
            time_column: self.live.opened.columns.as_ref().and_then(|c| c.time.clone()).filter(|_| self.at.is_some()),
            tight_seq: optional(timed.and_then(|b| b.tight_seq))?,
            safe_seq: optional(timed.and_then(|b| b.safe_seq))?,
            first_seq_after: optional(timed.and_then(|b| b.first_seq_after))?,
            last_row: last,
            next_row: next,
            straddle,
            exclusions: plan::Exclusions {
                ignore_times_outside: excluded
                    .window
                    .map(|(from, to)| plan::TimeRange { from: end(from), to: end(to) }),
                exclude: excluded.predicate.as_ref().map(|(text, _)| text.clone()),
                rows: self.resolved.excluded_rows,
            },
        })
    }

    fn evidence(&self) -> Result<Vec<plan::Evidence>> {
        let witnessed = self.survey.generations.iter().zip(&self.proof.generations);
        witnessed
            .map(|(surveyed, witnessed)| {
                let rows = surveyed.complete().then_some(&surveyed.scan.visible);
                let digest = |rows: Option<&[Row]>| rows.map(|r| RowSet::digest(r).to_string());
                Ok(plan::Evidence {
                    generation: witnessed.name.clone(),
                    state: state(witnessed.state),
                    table_uuid: surveyed.opened.table.as_ref().map(|t| t.metadata.table_uuid.clone()),
                    snapshot_id: surveyed.opened.snapshot_id().map(|id| id.to_string()),
                    metadata_file: surveyed.opened.table.as_ref().and_then(|t| file_name(&t.metadata_file)),
                    metadata_sha256: surveyed.opened.table.as_ref().map(|t| Sha256::of(&t.metadata_bytes)),
                    visible_rows: witnessed.visible_rows,
                    max_seq: witnessed.max_seq.map(seq).transpose()?,
                    verdict: verdict(witnessed.comparison.verdict),
                    digest_at_or_below: digest(rows.map(|r| r.at_or_below(self.target))),
                    digest_resent: digest(rows.map(|r| r.between(self.target, self.watermark.seq))),
                    explanation: Some(witnessed.explanation.clone()),
                })
            })
            .collect()
    }

    fn refusals(&self, counts: &plan::Counts, outgoing: &Outgoing, readings: &[Reading]) -> Vec<Refusal> {
        let accept = self.request.accept;
        let mut refusals = Vec::new();
        // Without a time only the exported count can say what a target skips; the reading that skips least counts.
        let by_count = || readings.iter().map(|r| r.unsent_below(self.target)).min().unwrap_or(0);
        let lost = counts.lost.unwrap_or_else(by_count);
        if accept.loss.unwrap_or(0) != lost {
            let said = accept.loss.map(|n| format!(", not {n}")).unwrap_or_default();
            refusals.push(Refusal {
                code: "loss",
                message: format!("{} would never be sent{said}", crate::sentence::count(lost, "row")),
                flag: format!("--accept-loss {lost}"),
            });
        }
        if counts.withheld > 0 && !accept.withheld {
            refusals.push(Refusal {
                code: "withheld",
                message: format!(
                    "{} of the rows would be withheld again by today's policy ({}), and the watermark would move past them once \
                     more",
                    crate::sentence::grouped(counts.withheld),
                    outgoing.rules.join("; ")
                ),
                flag: "--accept-withheld".to_owned(),
            });
        }
        if !self.proof.proven && !accept.unproven {
            refusals.push(Refusal {
                code: "unproven",
                message: format!(
                    "the generations do not prove the boundary at seq {}; see hypseq verify --seq {}",
                    self.target, self.target
                ),
                flag: "--accept-unproven".to_owned(),
            });
        }
        let everything = self.live.scan.visible.at_or_below(self.target).is_empty();
        if everything && !accept.full_resend {
            refusals.push(Refusal {
                code: "full-resend",
                message: format!("no row lies at or below seq {}: everything would be sent again", self.target),
                flag: "--accept-full-resend".to_owned(),
            });
        }
        refusals
    }

    /// What speaks against the plan without refusing it: the exported count, and retention.
    fn remarks(&self, readings: &[Reading]) -> Vec<String> {
        let mut remarks = Vec::new();
        if readings.iter().any(|r| r.unsent_below(self.target) > 0) {
            let says: Vec<String> = readings.iter().map(|r| r.says(self.target)).collect();
            remarks.push(format!("Careful: by the exported count, {}.", says.join("; or ")));
        }
        if let Some((oldest, falls)) = self.retention_deadline() {
            let due = if falls < chrono::Utc::now().timestamp_micros() {
                format!("it has been due for deletion since {}: send before the next retention pass", show(falls))
            } else {
                format!("it will be deleted from {} on, and after that the plan cannot be met", show(falls))
            };
            remarks.push(format!(
                "The oldest row to be sent is of {}; by the window of the last retention pass {due}.",
                show(oldest)
            ));
        }
        remarks
    }

    fn retention_deadline(&self) -> Option<(i64, i64)> {
        let retention = self.survey.partition.cursor.as_ref().ok()?.retention.as_ref()?;
        let ran = chrono::DateTime::parse_from_rfc3339(retention.last_deleted_at.as_deref()?).ok()?;
        let window = ran.timestamp_millis().checked_sub(retention.last_cutoff_ms?)?.checked_mul(1000)?;
        let oldest = self.live.scan.visible.above(self.target).iter().filter_map(|r| r.time).min()?;
        Some((oldest, oldest.checked_add(window)?))
    }
}

fn seq(value: i64) -> Result<Seq> {
    Seq::new(value).with_context(|| format!("seq {value} is negative"))
}

fn row(row: &Row) -> Result<plan::Row> {
    Ok(plan::Row {
        seq: seq(row.seq)?,
        time: row.time.and_then(Time::from_micros),
        id: row.id.as_deref().map(str::to_owned),
    })
}

fn file_name(path: &std::path::Path) -> Option<String> {
    path.file_name().map(|n| n.to_string_lossy().into_owned())
}

fn state(state: hypseq_cache::GenerationState) -> plan::GenerationState {
    match state {
        hypseq_cache::GenerationState::Live => plan::GenerationState::Live,
        hypseq_cache::GenerationState::Retired => plan::GenerationState::Retired,
        hypseq_cache::GenerationState::Orphan => plan::GenerationState::Orphan,
        hypseq_cache::GenerationState::Unknown => plan::GenerationState::Unknown,
    }
}

fn verdict(verdict: hypseq_boundary::Verdict) -> plan::Verdict {
    match verdict {
        hypseq_boundary::Verdict::Agrees => plan::Verdict::Agrees,
        hypseq_boundary::Verdict::AgreesAfterDeletes => plan::Verdict::AgreesAfterDeletes,
        hypseq_boundary::Verdict::EndsBefore => plan::Verdict::EndsBefore,
        hypseq_boundary::Verdict::Grew => plan::Verdict::Grew,
        hypseq_boundary::Verdict::Disagrees => plan::Verdict::Disagrees,
        hypseq_boundary::Verdict::Unreadable => plan::Verdict::Unreadable,
    }
}

/// The watermark files of a sink, named by its instance or by plugin and instance.
pub fn sink_files<'a>(files: &'a [WatermarkFile], wanted: &str) -> Result<(plan::Sink, Vec<&'a WatermarkFile>)> {
    let full_name = |f: &WatermarkFile| format!("{}/{}", f.plugin, f.instance);
    let mine: Vec<&WatermarkFile> = files.iter().filter(|f| f.instance == wanted || full_name(f) == wanted).collect();
    let mut sinks: Vec<String> = mine.iter().map(|f| full_name(f)).collect();
    sinks.dedup();
    match (mine.first(), sinks.len()) {
        (Some(first), 1) => Ok((plan::Sink { plugin: first.plugin.clone(), instance: first.instance.clone() }, mine)),
        (Some(_), _) => bail!("several sinks are called `{wanted}`\n  hint: name one of {}", sinks.join(", ")),
        (None, _) => {
            let mut all: Vec<String> = files.iter().map(full_name).collect();
            all.dedup();
            let hint = if all.is_empty() {
                "no sink has a watermark here".to_owned()
            } else {
                format!("there are {}", all.join(", "))
            };
            bail!("there is no sink `{wanted}`\n  hint: {hint}")
        }
    }
}
