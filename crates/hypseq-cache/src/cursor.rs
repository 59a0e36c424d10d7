//! `cursor.json`, which says which of a partition's generations is live.

use std::path::Path;

use serde_json::{Map, Value};

use crate::Problem;
use crate::json::{self, Object};

/// `cursor.json`, which says which generation is live. Fields of other HypAware versions are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Epoch of the older layout.
    pub epoch: u64,
    /// A book-keeping figure that drifts; never a count.
    pub row_count: u64,
    /// `source-table` in today's layout.
    pub layout: Option<String>,
    /// The live folder in today's layout.
    pub table_dir: Option<String>,
    /// The last retention pass.
    pub retention: Option<Retention>,
}

/// The last retention pass over a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Rows older than this were deleted; milliseconds since 1970, UTC.
    pub last_cutoff_ms: Option<i64>,
    /// When the pass ran, as written.
    pub last_deleted_at: Option<String>,
    /// How many rows that pass deleted.
    pub rows_deleted: Option<u64>,
}

impl Cursor {
    /// What a partition of the oldest form says by having no cursor at all: its own folder is the table.
    pub(crate) const OLDEST_FORM: Self =
        Self { epoch: 0, row_count: 0, layout: None, table_dir: None, retention: None };

    /// The folder of the live generation, relative to the partition; `.` for the partition folder itself.
    pub fn live_name(&self) -> String {
        if self.layout.as_deref() == Some("source-table") {
            self.table_dir.clone().unwrap_or_else(|| "table".to_owned())
        } else if self.epoch > 0 || self.row_count > 0 {
            format!("epoch={}", self.epoch)
        } else {
            ".".to_owned()
        }
    }
}

const ADVICE: &str = "which generation is live is unknown: compare all of them, or put back cursor.json from a \
    backup; HypAware itself goes on as if the partition were empty";

/// Reads a cursor that is there. A retention record that makes no sense does not spoil the rest.
pub(crate) fn read(path: &Path, problems: &mut Vec<Problem>) -> Result<Cursor, Problem> {
    let unreadable = |message: String| Problem::error("cursor-unreadable", path, message, ADVICE);
    let bytes = json::read(path)
        .map_err(|error| unreadable(format!("expected to read it, found: {error}")))?
        .unwrap_or_default();
    let map = json::parse(&bytes).map_err(unreadable)?;
    let mut cursor = parse(&map).map_err(unreadable)?;
    match map.get("retention").map(retention).transpose() {
        Ok(retention) => cursor.retention = retention,
        Err(message) => problems.push(Problem::warning(
            "cursor-retention-unreadable",
            path,
            message,
            "rows may have been deleted by retention; when is unknown",
        )),
    }
    Ok(cursor)
}

fn parse(map: &Map<String, Value>) -> Result<Cursor, String> {
    let file = Object::new(map);
    let count = "a non-negative integer";
    Ok(Cursor {
        epoch: file.optional("epoch", count, Value::as_u64)?.unwrap_or(0),
        row_count: file.optional("rowCount", count, Value::as_u64)?.unwrap_or(0),
        // A layout of a later version may name its live folder in another way.
        layout: file.optional("layout", "\"source-table\" or \"epoch\"", |value| {
            json::string(value).filter(|layout| matches!(layout.as_str(), "source-table" | "epoch"))
        })?,
        table_dir: file.optional("tableDir", "the name of a folder in the partition", |value| {
            json::string(value).filter(|name| is_folder_name(name))
        })?,
        retention: None,
    })
}

fn retention(value: &Value) -> Result<Retention, String> {
    let map = value
        .as_object()
        .ok_or_else(|| format!("expected `retention` to be an object, found {}", json::describe(value)))?;
    let record = Object::new(map);
    Ok(Retention {
        last_cutoff_ms: record.optional("lastCutoffMs", "an integer", Value::as_i64)?,
        last_deleted_at: record.optional_string("lastDeletedAt")?,
        rows_deleted: record.optional("rowsDeleted", "a non-negative integer", Value::as_u64)?,
    })
}

/// One plain name: nothing that leaves the partition's folder, on any system.
fn is_folder_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0', ':'])
}
