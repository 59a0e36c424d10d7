//! The files beside the tables: cursors, the allocator, watermarks, policy stores and the spool.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::content::{date, day, iso};
use crate::error::{Error, io};
use crate::schema::Kind;
use crate::spec::Dataset;
use crate::truth::WatermarkTruth;

/// `cursor.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cursor<'a> {
    pub epoch: u64,
    pub row_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<&'a Compaction>,
    pub layout: &'static str,
    pub table_dir: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<&'a Retention>,
}

/// The last compaction.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compaction {
    previous_table_dir: String,
    compacted_at: String,
    resettle_baseline_files: usize,
    data_files_before: i64,
    writer_generation: u32,
}

impl Compaction {
    pub(crate) fn new(previous_table_dir: String, now_ms: i64, files: usize, files_before: i64) -> Self {
        Self {
            previous_table_dir,
            compacted_at: iso(now_ms),
            resettle_baseline_files: files,
            data_files_before: files_before,
            writer_generation: 2,
        }
    }
}

/// The last retention pass.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retention {
    last_cutoff_date: String,
    last_cutoff_ms: i64,
    last_deleted_at: String,
    rows_deleted: u64,
    last_snapshot_id: Option<String>,
}

impl Retention {
    pub(crate) fn new(cutoff_ms: i64, now_ms: i64, rows_deleted: u64, snapshot_id: Option<i64>) -> Self {
        Self {
            last_cutoff_date: date(day(cutoff_ms)),
            last_cutoff_ms: cutoff_ms,
            last_deleted_at: iso(now_ms),
            rows_deleted,
            last_snapshot_id: snapshot_id.map(|id| id.to_string()),
        }
    }
}

/// Writes JSON as HypAware does: two spaces, and a final newline.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> Result<(), Error> {
    let mut json = serde_json::to_vec_pretty(content)?;
    json.push(b'\n');
    write_bytes(path, &json)
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    fs::write(path, bytes).map_err(io(path))
}

/// `_hyp_ingest_seq.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Allocator {
    v: u32,
    next_seq: String,
    updated_at: String,
}

impl Allocator {
    pub(crate) fn new(next_seq: i64, now_ms: i64) -> Self {
        Self { v: 1, next_seq: next_seq.to_string(), updated_at: iso(now_ms) }
    }
}

/// A watermark.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Watermark {
    v: u32,
    continuation: Continuation,
    exported_row_count: u64,
    updated_at: String,
}

#[derive(Debug, Serialize)]
struct Continuation {
    v: u32,
    seq: String,
}

impl Watermark {
    pub(crate) fn new(truth: WatermarkTruth, at_ms: i64) -> Self {
        let continuation = Continuation { v: 1, seq: truth.seq.to_string() };
        Self { v: 1, continuation, exported_row_count: truth.exported, updated_at: iso(at_ms) }
    }
}

/// `client-sync.json` for sources that are opted out.
pub(crate) fn client_sync(sources: &[String]) -> Value {
    let entries: Vec<Value> = sources.iter().map(|source| json!({"source": source, "class": "local-only"})).collect();
    json!({"version": 1, "entries": entries})
}

/// `local-only.json`.
pub(crate) fn local_only(folders: &[(String, String)]) -> Value {
    let entries: Vec<Value> = folders.iter().map(|(dir, class)| json!({"dir": dir, "class": class})).collect();
    json!({"version": 2, "entries": entries})
}

/// Writes a spool of messages: one batch in one line.
pub(crate) fn write_spool(dir: &Path, rows: &[Map<String, Value>], flushed_at_ms: i64) -> Result<(), Error> {
    let columns: Vec<Value> = Dataset::Messages
        .schema(0, false)
        .fields
        .iter()
        .map(|column| json!({"name": column.name, "type": spool_type(column.kind), "nullable": !column.required}))
        .collect();
    let mut line = serde_json::to_vec(&json!({"version": 1, "columns": columns, "rows": rows}))?;
    line.push(b'\n');
    write_bytes(&dir.join("active.jsonl"), &line)?;
    write(
        &dir.join("last-flush.json"),
        &json!({"flushedAt": iso(flushed_at_ms), "rowCount": 40, "bytesWritten": 40_689}),
    )
}

fn spool_type(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "STRING",
        Kind::Int => "INT32",
        Kind::Long => "INT64",
        Kind::Boolean => "BOOLEAN",
        Kind::Timestamptz => "TIMESTAMP",
        Kind::Variant => "JSON",
    }
}
