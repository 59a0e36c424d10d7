//! The rewind plan: a file that says *set these watermarks back to here, if the world still looks like this*.
//!
//! A plan is written offline, reviewed by a person and consumed once. This crate holds its model, its one
//! canonical form with the checksum over it, reading, writing, its JSON Schema, and the consumer. It knows
//! nothing of caches beyond watermark files, and is small enough for a daemon to embed.
//!
//! Making a plan: fill a [`Plan`], [`Plan::seal`] it, [`Plan::write`] it. Consuming one: [`Plan::read`] it and
//! give it to a [`Consumer`], with a [`World`] that answers for the cache. `examples/tick_loop.rs` shows a
//! daemon that does so between its ticks.

mod checksum;
mod consume;
mod drift;
mod fsio;
mod model;
mod path;
mod read;
mod scalar;
mod schema;
mod validate;
mod watermark;
mod write;

pub use checksum::CanonicalError;
pub use consume::{
    Applied, Attempt, AttemptState, BoundaryRefusal, Check, ConsumeError, Consumer, Judgement, Outcome, Receipt,
    ReceiptFile, Refusal, Restore, RewindCheck, Step, Swap, TickVerdict, UNDO_KIND, UNDO_VERSION, UndoPlan, World,
    judge, receipts,
};
pub use drift::{Drift, drift};
pub use model::{
    Accepted, Boundary, Counts, DEFAULT_LIFETIME, Evidence, Exclusions, GenerationState, Guard, Observed, PLAN_KIND,
    PLAN_VERSION, Plan, Policy, Rewind, Row, Sink, Straddle, Target, TimeRange, Tool, Undo, Verdict, Witness,
    WitnessKind,
};
pub use path::{PathError, WatermarkPath};
pub use read::{FormatError, ReadError};
pub use scalar::{ScalarError, Seq, Sha256, Time};
pub use schema::plan_schema;
pub use validate::Invalid;
pub use watermark::{WatermarkError, parse_watermark, watermark_text};
pub use write::WriteError;
