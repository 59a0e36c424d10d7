//! From a partition and a point to one rewind of a plan: the target, its proof, and what it would make the sink do.

use anyhow::{Context, Result, anyhow, bail};
use hypseq_boundary::{Row, RowSet};
use hypseq_cache::{Home, Partition, Severity, SpoolBatch, Watermark, WatermarkFile};
use hypseq_engine::Engine;
use hypseq_plan as plan;
use hypseq_plan::Sha256;

use crate::answer::Reading;
use crate::boundary::{Excluded, Point, require_complete};
use crate::cli::{Accept, Policy};
use crate::opened::{Opened, place};
use crate::outgoing::{Outgoing, measure};
use crate::printer::Printer;
use crate::proof::Proof;
use crate::select;
use crate::sizing::{Question, Size, check, seq};
use crate::survey::{Survey, Surveyed};
use crate::time::show;

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
    /// Whether bounds may tell that there is nothing to plan, and what the rows must come to.
    pub reading: Reading,
    pub printer: &'a Printer,
}

/// What planning a partition came to.
pub enum Planned<R> {
    /// A rewind.
    Rewind(R),
    /// The watermark need not move; why.
    NothingToDo(String),
    /// There is no target to refuse or to accept; why, and what to spell.
    NoTarget(Refusal),
}

impl<R> Planned<R> {
    /// Goes on from a rewind.
    pub fn try_map<T>(self, go_on: impl FnOnce(R) -> Result<T>) -> Result<Planned<T>> {
        Ok(match self {
            Self::Rewind(rewind) => Planned::Rewind(go_on(rewind)?),
            Self::NothingToDo(why) => Planned::NothingToDo(why),
            Self::NoTarget(refusal) => Planned::NoTarget(refusal),
        })
    }
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
pub async fn plan(request: &Request<'_>, partition: &Partition, file: &WatermarkFile) -> Result<Planned<Draft>> {
    let name = select::name(&partition.id);
    let watermark = file.state.as_ref().map_err(|problem| {
        anyhow!("{name}: {}\n  hint: {}; restore it from a backup before planning", problem.message, problem.advice)
    })?;
    let opened = Opened::all(partition, request.time_column)?;
    let reference = place(partition, None, &opened)?;
    let excluded = Excluded::read(request.leave_out, request.zone_option, request.home, partition).await?;
    let question = Question { request, partition, file, watermark, excluded: &excluded };
    let bounds = match question.by_bounds(&opened, reference) {
        Ok(Planned::Rewind(size)) => Some(size),
        Ok(Planned::NothingToDo(why)) => return Ok(Planned::NothingToDo(why)),
        Ok(Planned::NoTarget(refusal)) => return Ok(Planned::NoTarget(refusal)),
        Err(why) => {
            if request.reading == Reading::Bounds {
                request.printer.detail(&format!("{name}: every file is read: {why:#}"));
            }
            None
        }
    };
    let survey = Survey::scan(partition, opened);
    request.printer.problems(survey.problems().filter(|problem| problem.severity == Severity::Warning));
    let live = &survey.generations[reference];
    require_complete(live)?;
    let rows = question.by_rows(&survey, reference)?;
    if let Some(bounds) = &bounds {
        let contradicted = survey.generations.iter().any(|surveyed| !surveyed.scan.doubts.is_empty());
        check(&name, bounds, &rows, contradicted)?;
    }
    let size = match rows {
        Planned::Rewind(size) => size,
        Planned::NothingToDo(why) => return Ok(Planned::NothingToDo(why)),
        Planned::NoTarget(refusal) => return Ok(Planned::NoTarget(refusal)),
    };
    let at = if let Point::At(when) = &request.point { Some(when.at) } else { None };
    let proof = Proof::of(&survey, reference, size.target, at);
    let outgoing = measure(request.engine, request.home, partition, size.target).await?;
    let drafting =
        Drafting { request, survey: &survey, live, watermark, size: &size, proof: &proof, outgoing: &outgoing };
    Ok(Planned::Rewind(drafting.draft()?))
}

struct Drafting<'a> {
    request: &'a Request<'a>,
    survey: &'a Survey<'a>,
    live: &'a Surveyed,
    watermark: &'a Watermark,
    size: &'a Size,
    proof: &'a Proof,
    outgoing: &'a Outgoing,
}

impl Drafting<'_> {
    fn draft(&self) -> Result<Draft> {
        let id = &self.survey.partition.id;
        let Size { target, boundary, counts, witness, .. } = self.size;
        let accept = self.request.accept;
        let observed = plan::Observed {
            seq: seq(self.watermark.seq)?,
            exported_row_count: self.watermark.exported_row_count,
            updated_at: self.watermark.updated_at.clone(),
        };
        let rewind = plan::Rewind {
            dataset: id.dataset.clone(),
            partition: id.path.clone(),
            watermark: plan::WatermarkPath::new(&self.request.sink, &id.dataset, &id.path)?,
            target: plan::Target {
                last_exported_seq: seq(*target)?,
                first_replayed_seq: boundary.next_row.as_ref().map(|r| r.seq),
            },
            guard: plan::Guard {
                watermark_v: 1,
                continuation_v: 1,
                min_seq: observed.seq,
                min_exported_row_count: observed.exported_row_count,
                above_seq: seq(*target)?,
                generation: self.live.opened.generation.name.clone(),
                table_uuid: self.table()?.metadata.table_uuid.clone(),
                last_row: boundary.last_row.clone(),
                next_row: boundary.next_row.clone(),
            },
            boundary: boundary.clone(),
            counts: plan::Counts {
                withheld: self.outgoing.withheld,
                bytes: self.outgoing.bytes,
                chunks: self.outgoing.chunks,
                ..counts.clone()
            },
            evidence: self.evidence()?,
            proven: self.proof.proven,
            witnesses: vec![witness.clone()],
            accepted: plan::Accepted {
                loss: accept.loss,
                withheld: accept.withheld,
                unproven: accept.unproven,
                full_resend: accept.full_resend,
            },
            undo: plan::Undo { last_exported_seq: observed.seq, valid_below_seq: observed.seq },
            observed,
        };
        Ok(Draft { rewind, refusals: self.refusals(), remarks: self.remarks() })
    }

    fn table(&self) -> Result<&hypseq_iceberg::Table> {
        self.live.opened.table.as_ref().context("the live generation has no table")
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
                    digest_at_or_below: digest(rows.map(|r| r.at_or_below(self.size.target))),
                    digest_resent: digest(rows.map(|r| r.between(self.size.target, self.watermark.seq))),
                    explanation: Some(witnessed.explanation.clone()),
                })
            })
            .collect()
    }

    fn refusals(&self) -> Vec<Refusal> {
        let Self { size: Size { target, boundary, counts, readings, .. }, outgoing, .. } = self;
        let accept = self.request.accept;
        let mut refusals = Vec::new();
        // Without a time only the exported count can say what a target skips; the reading that skips least counts.
        let by_count = || readings.iter().map(|r| r.unsent_below(*target)).min().unwrap_or(0);
        let lost = counts.lost.unwrap_or_else(by_count);
        if accept.loss.unwrap_or(0) != lost {
            let said = accept.loss.map(|n| format!(", not {n}")).unwrap_or_default();
            refusals.push(Refusal {
                code: "loss",
                message: format!("{} would never be sent{said}", crate::sentence::count(lost, "row")),
                flag: format!("--accept-loss {lost}"),
            });
        }
        if outgoing.withheld > 0 && !accept.withheld {
            refusals.push(Refusal {
                code: "withheld",
                message: format!(
                    "{} of the rows would be withheld again by today's policy ({}), and the watermark would move past them once \
                     more",
                    crate::sentence::grouped(outgoing.withheld),
                    outgoing.rules.join("; ")
                ),
                flag: "--accept-withheld".to_owned(),
            });
        }
        if !self.proof.proven && !accept.unproven {
            refusals.push(Refusal {
                code: "unproven",
                message: format!(
                    "the generations do not prove the boundary at seq {target}; see hypseq verify --seq {target}"
                ),
                flag: "--accept-unproven".to_owned(),
            });
        }
        if boundary.last_row.is_none() && !accept.full_resend {
            refusals.push(Refusal {
                code: "full-resend",
                message: format!("no row lies at or below seq {target}: everything would be sent again"),
                flag: "--accept-full-resend".to_owned(),
            });
        }
        refusals
    }

    /// What speaks against the plan without refusing it: the exported count, and retention.
    fn remarks(&self) -> Vec<String> {
        let Size { target, readings, .. } = self.size;
        let mut remarks = Vec::new();
        if readings.iter().any(|r| r.unsent_below(*target) > 0) {
            let says: Vec<String> = readings.iter().map(|r| r.says(*target)).collect();
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
        let oldest = self.live.scan.visible.above(self.size.target).iter().filter_map(|r| r.time).min()?;
        Some((oldest, oldest.checked_add(window)?))
    }
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
