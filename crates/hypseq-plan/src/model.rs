//! The rewind plan as data: every field of the file, in the order in which it is written.
//!
//! A plan names positions, ids, times, counts and digests; it never holds captured content. Counts are
//! rows unless their name says otherwise. `null` is always spelled: a field that is left out is an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::path::WatermarkPath;
use crate::scalar::{Seq, Sha256, Time};

/// The version of the plan format that this crate reads and writes.
pub const PLAN_VERSION: u32 = 1;

/// The `kind` of a rewind plan.
pub const PLAN_KIND: &str = "hypaware.sink.rewind-plan";

/// How long a plan is valid unless its maker says otherwise.
pub const DEFAULT_LIFETIME: chrono::Duration = chrono::Duration::hours(24);

/// A rewind plan: *set these watermarks back to here, if the world still looks like this*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub v: u32,
    /// [`PLAN_KIND`].
    pub kind: String,
    /// UUID v7; a consumer applies it once.
    pub id: Uuid,
    /// When the plan was made.
    pub created_at: Time,
    /// A consumer refuses the plan after this.
    pub expires_at: Time,
    /// What made it.
    pub created_by: Tool,
    /// Why, in the operator's words; never empty.
    pub reason: String,
    /// Whose watermarks are set back.
    pub sink: Sink,
    /// One per partition; at least one.
    pub rewinds: Vec<Rewind>,
    /// Over the canonical form (RFC 8785) of the plan without this field; see [`Plan::seal`].
    pub checksum: Sha256,
}

/// The program that made a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A sink instance of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sink {
    /// The plugin, such as `@hypaware/central`.
    pub plugin: String,
    /// The instance, such as `central`.
    pub instance: String,
}

/// What happens to one partition's watermark, why, and what must still hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// The dataset, such as `ai_gateway_messages`.
    pub dataset: String,
    /// The partition's path below the dataset (`source=claude`); empty where the dataset has no segments.
    pub partition: String,
    /// The watermark's path relative to the state root: [`WatermarkPath::new`] of sink, dataset and partition.
    pub watermark: WatermarkPath,
    /// The watermark at planning time.
    pub observed: Observed,
    /// Where it goes.
    pub target: Target,
    /// What must still hold when the plan is consumed.
    pub guard: Guard,
    /// How the target was found.
    pub boundary: Boundary,
    /// What the rewind makes the sink do, counted in the live generation at planning time.
    pub counts: Counts,
    /// What each generation of the partition says about the boundary.
    pub evidence: Vec<Evidence>,
    /// Whether every generation that covers the boundary agrees on it, and at least one covers it.
    pub proven: bool,
    /// Evidence that does not come from the generations.
    pub witnesses: Vec<Witness>,
    /// The drawbacks that the operator accepted by name.
    pub accepted: Accepted,
    /// How to take the rewind back.
    pub undo: Undo,
}

/// A watermark as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// `continuation.seq`.
    pub seq: Seq,
    /// `exportedRowCount`: rows sent so far, resent ones included.
    pub exported_row_count: u64,
    /// `updatedAt`, as written in the file.
    pub updated_at: String,
}

/// The new position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Becomes `continuation.seq`: the sink then sends every row above it.
    pub last_exported_seq: Seq,
    /// The least seq that the sink will send; null when nothing follows.
    pub first_replayed_seq: Option<Seq>,
}

/// What a consumer checks before it changes anything. It asserts meaning, not bytes: the watermark moves
/// every minute. A missing precondition fails, and nothing is clamped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The watermark's `v`: 1.
    pub watermark_v: u32,
    /// The watermark's `continuation.v`: 1.
    pub continuation_v: u32,
    /// The watermark's seq is at least this (`observed.seq`): lower means that somebody else rewound it.
    pub min_seq: Seq,
    /// Its `exportedRowCount` is at least this (`observed.exported_row_count`).
    pub min_exported_row_count: u64,
    /// Its seq is greater than this (`target.last_exported_seq`): otherwise there is nothing to rewind.
    pub above_seq: Seq,
    /// The live generation at planning time, for people; a consumer goes by the table uuid and the rows.
    pub generation: String,
    /// The live generation's table uuid. Under another one the live generation must be a later compaction
    /// in which the two rows below still stand (or their absence is explained by deletes).
    pub table_uuid: String,
    /// The visible row with the greatest seq at or below the target; null when there is none.
    pub last_row: Option<Row>,
    /// The visible row with the least seq above the target; null when there is none.
    pub next_row: Option<Row>,
}

/// A row, by what identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// `_hyp_ingest_seq`.
    pub seq: Seq,
    /// The primary timestamp; null when the row, or the dataset, has none.
    pub time: Option<Time>,
    /// The row's own id, such as its `part_id`; null when it has none.
    pub id: Option<String>,
}

/// How the target was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    /// What decided between the candidates.
    pub policy: Policy,
    /// The time T asked for; null where the target was named as a position.
    pub at: Option<Time>,
    /// The time or position as the operator typed it, zone included.
    pub as_typed: String,
    /// The time zone that was named apart from the time; null when none was.
    pub zone: Option<String>,
    /// The column that T was compared with; null when there was no T.
    pub time_column: Option<String>,
    /// The greatest seq at or before T: nothing is resent from there. Null when there is no T or no such row.
    pub tight_seq: Option<Seq>,
    /// The greatest seq below the first row after T: nothing is lost from there. Null as above.
    pub safe_seq: Option<Seq>,
    /// The least seq of a row after T. Null as above.
    pub first_seq_after: Option<Seq>,
    /// The last row at or below the target.
    pub last_row: Option<Row>,
    /// The first row above the target.
    pub next_row: Option<Row>,
    /// The rows between safe and tight; null where the two agree or there is no T.
    pub straddle: Option<Straddle>,
    /// What was left out when the boundary was resolved; never left out of what is counted.
    pub exclusions: Exclusions,
}

/// What decided on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The highest position that loses nothing.
    Safe,
    /// The lowest position that resends nothing.
    Tight,
    /// The operator named the seq.
    Seq,
    /// The row whose rank is the watermark's `exportedRowCount`.
    ExportedCount,
}

/// The stretch of seqs in which rows before and after T are mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Straddle {
    /// Rows above `safe_seq` and at or below `tight_seq`.
    pub rows: u64,
    /// Rows that a rewind to `tight_seq` would skip.
    pub lost_at_tight: u64,
    /// Rows that a rewind to `safe_seq` sends again.
    pub resent_at_safe: u64,
}

/// What the operator left out of the resolution.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exclusions {
    /// Rows with a time outside this range; null when every time counted.
    pub ignore_times_outside: Option<TimeRange>,
    /// Rows for which this SQL predicate holds; null when there was none.
    pub exclude: Option<String>,
    /// How many rows were left out.
    pub rows: u64,
}

/// A range of times, both ends included; an end that is null is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeRange {
    /// The first.
    pub from: Option<Time>,
    /// The last.
    pub to: Option<Time>,
}

/// What the rewind makes the sink do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Rows above the target and at or below the watermark: those that the rewind sends.
    pub replayed: u64,
    /// Rows above the watermark: they would be sent anyway.
    pub pending: u64,
    /// Rows that are captured and not yet flushed: they have no seq yet.
    pub spooled: u64,
    /// Rows at or before T above the target: sent twice. Null when there is no T.
    pub resent: Option<u64>,
    /// Rows after T at or below the target: never sent. Null when there is no T.
    pub lost: Option<u64>,
    /// Rows without a time at or below the target.
    pub null_time_lost: u64,
    /// Rows without a time above the target.
    pub null_time_resent: u64,
    /// Rows above the target that today's policy drops again.
    pub withheld: u64,
    /// Rows of the gap that only older generations still hold: no rewind sends them.
    pub unrecoverable: u64,
    /// Rows without a seq: no watermark reaches them.
    pub legacy: u64,
    /// What will be sent as NDJSON, in bytes; an estimate.
    pub bytes: u64,
    /// In how many chunks; an estimate.
    pub chunks: u64,
}

/// What one generation says about the boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The generation's folder.
    pub generation: String,
    /// What it is to the partition.
    pub state: GenerationState,
    /// Its table uuid; null when its metadata is unreadable.
    pub table_uuid: Option<String>,
    /// The snapshot read, in decimal; null when there is none.
    pub snapshot_id: Option<String>,
    /// The name of the metadata file read, without its folder; null when there is none.
    pub metadata_file: Option<String>,
    /// The digest of that file; null when there is none.
    pub metadata_sha256: Option<Sha256>,
    /// Rows visible in it; null when it is unreadable.
    pub visible_rows: Option<u64>,
    /// The greatest seq in it; null when there is none.
    pub max_seq: Option<Seq>,
    /// What it says.
    pub verdict: Verdict,
    /// Order-free digest over (seq, time, id) of the rows at or below the target; null when not computed.
    pub digest_at_or_below: Option<String>,
    /// The same over the rows that the rewind sends again; null when not computed.
    pub digest_resent: Option<String>,
    /// The differences that the verdict rests on, in words; null when there are none.
    pub explanation: Option<String>,
}

/// What a generation is to its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GenerationState {
    /// The cursor points at it.
    Live,
    /// A compaction replaced it.
    Retired,
    /// Not referenced and not retired.
    Orphan,
    /// The cursor does not say.
    Unknown,
}

/// Whether a generation confirms the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Same last and next row.
    Agrees,
    /// They differ only by rows that metadata shows as deleted.
    AgreesAfterDeletes,
    /// Its last row lies before the next row: it confirms the last row only.
    EndsBefore,
    /// Rows flushed after it was retired explain all the difference.
    Grew,
    /// Anything else.
    Disagrees,
    /// It could not be read.
    Unreadable,
}

/// Independent evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// Where it comes from.
    pub kind: WitnessKind,
    /// Its number, in decimal: rows for a count, a seq for a position.
    pub value: String,
    /// What it says about the target.
    pub says: String,
}

/// Where a witness comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessKind {
    /// The watermark's `exportedRowCount`.
    ExportedRowCount,
    /// An export of the rows that the server has.
    Landed,
    /// A watermark of an earlier time, from a blob sink's file names or another plan.
    EarlierWatermark,
}

/// What the operator accepted, each by its own flag; nothing here implies anything else.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The exact number of rows that may be lost; null when none may.
    pub loss: Option<u64>,
    /// That policy drops rows again.
    pub withheld: bool,
    /// That the generations do not prove the boundary.
    pub unproven: bool,
    /// That everything is sent again (target 0).
    pub full_resend: bool,
}

/// The inverse of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// Where the watermark goes back to: `observed.seq`, or where it stood at the swap if that is greater.
    pub last_exported_seq: Seq,
    /// Valid while the watermark is below this: once the daemon has passed it, there is nothing to undo.
    pub valid_below_seq: Seq,
}
