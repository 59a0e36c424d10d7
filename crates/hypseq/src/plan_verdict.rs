//! What `plan check`, `plan apply` and `plan undo` answer: one verdict over the plan and one per watermark.

use std::fmt::Write as _;
use std::path::PathBuf;

use hypseq_plan::{Check, Plan, Refusal, Seq, Sink};
use serde_json::{Map, Value, json};

use crate::drifting::FieldDrift;
use crate::grid::Grid;
use crate::printer::{Printer, Report};
use crate::refusal::Reason;
use crate::sentence::count;

/// The answer.
pub struct PlanVerdict {
    pub id: String,
    pub sink: Sink,
    pub reason: String,
    pub verdict: &'static str,
    /// The answer in one line.
    pub headline: String,
    /// What stands against the plan as a whole.
    pub reasons: Vec<Reason>,
    pub rewinds: Vec<RewindVerdict>,
    /// What to do now.
    pub next: Vec<String>,
    /// Where it is recorded, once it is.
    pub receipt: Option<PathBuf>,
    /// Whether the following ticks were watched; none where that is not the question.
    pub watched: Option<bool>,
    /// How often the watermarks were set; none where that is not the question.
    pub attempts: Option<usize>,
}

/// The answer for one watermark.
pub struct RewindVerdict {
    pub dataset: String,
    pub partition: String,
    pub verdict: &'static str,
    /// At planning time; for an undo, before the rewind.
    pub observed_seq: Seq,
    /// As it is now; none when it cannot be read.
    pub current_seq: Option<Seq>,
    pub exported_row_count: Option<u64>,
    pub target_seq: Seq,
    /// The verdict in words.
    pub detail: String,
    pub reasons: Vec<Reason>,
    /// None where it was not looked for.
    pub drift: Option<Vec<FieldDrift>>,
}

impl PlanVerdict {
    /// What the guards say of a plan, before anything else is known.
    pub fn of_check(plan: &Plan, check: &Check) -> Self {
        let reasons: Vec<Reason> = check.plan.iter().map(Reason::of).collect();
        // Once a run has set the watermarks, that the guards fail tells nothing.
        let begun = check.plan.iter().any(|r| matches!(r, Refusal::Used { .. } | Refusal::Interrupted { .. }));
        let mut checks = check.rewinds.iter();
        let rewinds: Vec<RewindVerdict> = plan
            .rewinds
            .iter()
            .map(|rewind| {
                let checked = checks.next();
                let refusals = checked.filter(|_| !begun).map_or(&[][..], |c| &c.refusals);
                let own: Vec<Reason> = refusals.iter().map(Reason::of).collect();
                let current = checked.and_then(|c| c.current.as_ref());
                let (verdict, detail) = match (checked, own.is_empty()) {
                    _ if begun => ("used", "not looked at: a run of the plan has begun before".to_owned()),
                    (None, _) => ("unknown", "not looked at: see what stands against the plan".to_owned()),
                    (Some(_), true) => ("applicable", "every guard holds".to_owned()),
                    (Some(_), false) if own.iter().all(Reason::is_unknown) => ("unknown", messages(&own)),
                    (Some(_), false) => ("stale", messages(&own)),
                };
                RewindVerdict {
                    dataset: rewind.dataset.clone(),
                    partition: rewind.partition.clone(),
                    verdict,
                    observed_seq: rewind.observed.seq,
                    current_seq: current.map(|c| c.seq),
                    exported_row_count: current.map(|c| c.exported_row_count),
                    target_seq: rewind.target.last_exported_seq,
                    detail,
                    reasons: own,
                    drift: None,
                }
            })
            .collect();
        let worst = |wanted: &str| rewinds.iter().any(|r| r.verdict == wanted);
        let verdict = if !reasons.is_empty() || worst("stale") {
            "stale"
        } else if worst("unknown") {
            "unknown"
        } else {
            "applicable"
        };
        Self {
            id: plan.id.to_string(),
            sink: plan.sink.clone(),
            reason: plan.reason.clone(),
            verdict,
            headline: String::new(),
            reasons,
            rewinds,
            next: Vec::new(),
            receipt: None,
            watched: None,
            attempts: None,
        }
    }

    /// Every reason, of the plan and of its rewinds.
    pub fn all_reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().chain(self.rewinds.iter().flat_map(|r| &r.reasons))
    }
}

fn messages(reasons: &[Reason]) -> String {
    reasons.iter().map(|r| r.message.as_str()).collect::<Vec<_>>().join("; ")
}

impl Report for PlanVerdict {
    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("id".into(), json!(self.id));
        object.insert("verdict".into(), json!(self.verdict));
        object.insert("reasons".into(), self.reasons.iter().map(Reason::json).collect());
        object.insert("rewinds".into(), self.rewinds.iter().map(RewindVerdict::json).collect());
        if let Some(watched) = self.watched {
            object.insert("watched".into(), json!(watched));
        }
        if let Some(attempts) = self.attempts {
            object.insert("attempts".into(), json!(attempts));
        }
        if let Some(receipt) = &self.receipt {
            object.insert("receipt".into(), json!(receipt));
        }
        Value::Object(object)
    }

    fn text(&self, printer: &Printer) -> String {
        let mut text = format!("{}\n", printer.strong(&self.headline));
        let _ = writeln!(text, "  plan {}, sink {} ({})", self.id, self.sink.instance, self.sink.plugin);
        let _ = writeln!(text, "  reason: {}", self.reason);
        for reason in &self.reasons {
            let _ = writeln!(text, "  {}", reason.message);
        }
        for rewind in &self.rewinds {
            rewind.text(&mut text);
        }
        if let Some(receipt) = &self.receipt {
            let _ = write!(text, "\nReceipt: {}\n", receipt.display());
        }
        for (at, next) in self.next.iter().enumerate() {
            let label = if at == 0 { "\nNext: " } else { "      " };
            let _ = writeln!(text, "{label}{next}");
        }
        text
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            "dataset",
            "partition",
            "verdict",
            ">observed seq",
            ">current seq",
            ">target seq",
            ">exported row count",
            "detail",
        ]);
        let optional = |value: Option<String>| value.unwrap_or_default();
        for rewind in &self.rewinds {
            grid.row([
                rewind.dataset.clone(),
                rewind.partition.clone(),
                rewind.verdict.to_owned(),
                rewind.observed_seq.to_string(),
                optional(rewind.current_seq.map(|s| s.to_string())),
                rewind.target_seq.to_string(),
                optional(rewind.exported_row_count.map(|n| n.to_string())),
                rewind.detail.clone(),
            ]);
        }
        grid
    }
}

impl RewindVerdict {
    fn json(&self) -> Value {
        let mut object = Map::new();
        for (key, value) in [
            ("dataset", json!(self.dataset)),
            ("partition", json!(self.partition)),
            ("verdict", json!(self.verdict)),
            ("observed_seq", json!(self.observed_seq)),
            ("current_seq", json!(self.current_seq)),
            ("target_seq", json!(self.target_seq)),
            ("exported_row_count", json!(self.exported_row_count)),
            ("detail", json!(self.detail)),
            ("reasons", self.reasons.iter().map(Reason::json).collect()),
        ] {
            object.insert(key.to_owned(), value);
        }
        if let Some(drift) = &self.drift {
            object.insert("drift".to_owned(), drift.iter().map(FieldDrift::json).collect());
        }
        Value::Object(object)
    }

    fn text(&self, text: &mut String) {
        let name = if self.partition.is_empty() {
            self.dataset.clone()
        } else {
            format!("{} {}", self.dataset, self.partition)
        };
        let now = self.current_seq.map_or_else(|| "unreadable".to_owned(), |seq| seq.to_string());
        let _ = write!(
            text,
            "\n{name}: {}\n  watermark {now} now, {} in the plan, target {}\n",
            self.verdict, self.observed_seq, self.target_seq
        );
        if self.reasons.is_empty() {
            let _ = writeln!(text, "  {}", self.detail);
        }
        for reason in &self.reasons {
            let _ = writeln!(text, "  {}", reason.message);
        }
        let Some(drift) = &self.drift else { return };
        let (matters, ordinary): (Vec<_>, Vec<_>) = drift.iter().partition(|d| d.matters.is_some());
        if !matters.is_empty() {
            let verb = if matters.len() == 1 { "matters" } else { "matter" };
            let _ = writeln!(text, "  Derived again, {} {verb}:", count(matters.len() as u64, "difference"));
        }
        for field in matters {
            let _ = writeln!(text, "    {}\n      {}", field.line(), field.matters.unwrap_or_default());
        }
        if !ordinary.is_empty() {
            let verb = if ordinary.len() == 1 { "is" } else { "are" };
            let differences = count(ordinary.len() as u64, "difference");
            let _ = writeln!(text, "  Derived again, {differences} {verb} ordinary progress:");
        }
        for field in ordinary {
            let _ = writeln!(text, "    {}", field.line());
        }
    }
}
