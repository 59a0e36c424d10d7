//! What differs between a rewind as it was planned and the same rewind planned now, and which of that matters.
//!
//! A cache that is in use differs a minute later: the watermark has moved on, rows have arrived, a compaction has made
//! another generation. None of that makes a plan stale. What matters is whatever the operator decided on and would
//! decide on again: the boundary itself, rows that would be lost or withheld, rows of the gap that are gone, the proof.

use anyhow::Result;
use hypseq_plan::{Drift, Rewind, drift};
use serde_json::{Map, Value, json};

/// One field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDrift {
    /// Below the rewind, such as `counts.replayed`; evidence stands under its generation's name.
    pub drift: Drift,
    /// Why it matters; none for ordinary progress.
    pub matters: Option<&'static str>,
}

impl FieldDrift {
    pub fn json(&self) -> Value {
        let Drift { place, was, is } = &self.drift;
        json!({ "place": place, "was": was, "is": is, "matters": self.matters.is_some(), "why": self.matters })
    }

    /// The field in one line; a whole object is not spelled out.
    pub fn line(&self) -> String {
        let text = |value: &Option<Value>| match value {
            None | Some(Value::Null) => "nothing".to_owned(),
            Some(Value::String(text)) if text.contains(' ') => format!("“{text}”"),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(_) | Value::Array(_)) => "there".to_owned(),
            Some(other) => other.to_string(),
        };
        format!("{}: was {}, is {}", self.drift.place, text(&self.drift.was), text(&self.drift.is))
    }
}

/// Every field in which two plannings of a rewind differ. `same_cut`: no visible row lies between their targets.
pub fn compare(planned: &Rewind, now: &Rewind, same_cut: bool) -> Result<Vec<FieldDrift>> {
    let found = drift(&by_generation(planned)?, &by_generation(now)?)?;
    let judged = |drift: Drift| {
        let matters = matters(&drift.place, planned, now, same_cut);
        FieldDrift { drift, matters }
    };
    Ok(found.into_iter().map(judged).collect())
}

fn matters(place: &str, planned: &Rewind, now: &Rewind, same_cut: bool) -> Option<&'static str> {
    let (was, is) = (&planned.counts, &now.counts);
    let accepted = &planned.accepted;
    match place {
        "target.last_exported_seq" if !same_cut => Some("asked again, the same question has another answer now"),
        "counts.lost" if is.lost > was.lost && is.lost != accepted.loss => {
            Some("rows after the time asked for would never be sent, and the plan does not accept that")
        }
        "counts.null_time_lost" if is.null_time_lost > was.null_time_lost => {
            Some("more rows without a time lie at or below the target")
        }
        "counts.withheld" if is.withheld > was.withheld && !accepted.withheld => {
            Some("today's policy would withhold them again, and the plan does not accept that")
        }
        "counts.unrecoverable" if is.unrecoverable > was.unrecoverable => {
            Some("rows of the gap have been deleted since: no rewind sends them")
        }
        "counts.replayed" if is.replayed < was.replayed => Some("fewer rows of the gap are left to be sent"),
        "proven" if planned.proven && !now.proven && !accepted.unproven => {
            Some("the generations do not prove the boundary any more")
        }
        _ => None,
    }
}

/// A rewind as JSON, its evidence keyed by generation: a new one must not shift all the others.
fn by_generation(rewind: &Rewind) -> Result<Value> {
    let mut value = serde_json::to_value(rewind)?;
    let mut evidence = Map::new();
    for witness in &rewind.evidence {
        evidence.insert(witness.generation.clone(), serde_json::to_value(witness)?);
    }
    if let Value::Object(fields) = &mut value {
        fields.insert("evidence".to_owned(), Value::Object(evidence));
    }
    Ok(value)
}
