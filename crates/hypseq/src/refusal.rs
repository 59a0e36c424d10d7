//! What stands against a plan, for programs and for people: a code, the message with its causes, and what would help.

use std::error::Error;

use hypseq_plan::{BoundaryRefusal, Refusal};
use serde_json::{Value, json};

/// A reason not to consume a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub code: &'static str,
    pub message: String,
    pub hint: Option<&'static str>,
}

impl Reason {
    pub fn of(refusal: &Refusal) -> Self {
        let (code, hint) = code_and_hint(refusal);
        Self { code, message: chain(refusal), hint }
    }

    /// Whether the question could not be answered at all.
    pub fn is_unknown(&self) -> bool {
        self.code == UNKNOWN
    }

    pub fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message, "hint": self.hint })
    }

    /// Message and hint as they go to stderr.
    pub fn text(&self) -> String {
        match self.hint {
            Some(hint) => format!("{}\n  hint: {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

const UNKNOWN: &str = "unknown";
const NEW_PLAN: &str = "make a new plan with `hypseq plan rewind`, and look at what it says now";

fn code_and_hint(refusal: &Refusal) -> (&'static str, Option<&'static str>) {
    match refusal {
        Refusal::Plan(_) => ("unusable", Some(NEW_PLAN)),
        Refusal::Sink(_) => ("impossible-sink", Some(NEW_PLAN)),
        Refusal::Expired { .. } => ("expired", Some(NEW_PLAN)),
        Refusal::Interrupted { .. } => ("interrupted", Some("run `hypseq plan apply` with this plan once more")),
        Refusal::Used { .. } => ("used", Some("see what became of it with `hypseq plan list`")),
        Refusal::Locked { .. } => ("locked", Some("wait until the other run has ended")),
        Refusal::NoInstance { .. } => ("no-sink", Some("name the home that the plan was made for with --home")),
        Refusal::NoWatermark { .. } => ("no-watermark", Some("name the home that the plan was made for with --home")),
        Refusal::Link { .. } => ("link", Some("put the folder or file itself in place of the link")),
        Refusal::Kind { .. } => ("wrong-kind", None),
        Refusal::Watermark { .. } => {
            ("watermark-unreadable", Some("restore it from a backup, or let the daemon write it anew"))
        }
        Refusal::SeqFell { .. } => ("seq-fell", Some(NEW_PLAN)),
        Refusal::CountFell { .. } => ("count-fell", Some(NEW_PLAN)),
        Refusal::NotAbove { .. } => ("nothing-to-rewind", Some("every row above the target will be sent anyway")),
        Refusal::Boundary { source: BoundaryRefusal::AnotherTable { .. }, .. } => {
            ("another-home", Some("name the home that the plan was made for with --home, or make a new plan"))
        }
        Refusal::Boundary { source: BoundaryRefusal::Moved(_), .. } => ("boundary-moved", Some(NEW_PLAN)),
        Refusal::Boundary { source: BoundaryRefusal::Unknown(_), .. } => {
            (UNKNOWN, Some("see `hypseq status` for what cannot be read"))
        }
        Refusal::Changed { .. } => {
            ("changed", Some("apply it again; --watch times the swap by the daemon's own writes"))
        }
        Refusal::NotClobbered { .. } => ("not-clobbered", None),
        Refusal::NoReceipt { .. } => ("no-receipt", Some("there is nothing to take back here; is it another home?")),
        Refusal::AnotherPlan { .. } => ("another-plan", Some("use the plan file that was applied")),
        Refusal::NotApplied { .. } => ("not-applied", Some("see its receipt with `hypseq plan list`")),
        Refusal::Passed { .. } => ("passed", Some("the rows were sent again; nothing can take that back")),
        Refusal::NotTheInverse { .. } => ("not-the-inverse", Some("make a new one with `hypseq plan undo`")),
    }
}

/// A message with those of its causes.
pub fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
