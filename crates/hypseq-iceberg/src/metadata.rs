//! The table metadata (`vN.metadata.json`).

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// UTF-8 text.
    String,
    /// 32-bit signed.
    Int,
    /// 64-bit signed.
    Long,
    /// 32-bit floating point.
    Float,
    /// 64-bit floating point.
    Double,
    /// True or false.
    Boolean,
    /// Days since 1970.
    Date,
    /// Microseconds without a zone.
    Timestamp,
    /// Microseconds since 1970, UTC.
    Timestamptz,
    /// Parquet variant: metadata and value.
    Variant,
    /// Bytes.
    Binary,
    /// Any other type, nested ones included. HypAware writes none; the column's values are not interpreted here.
    Other,
}

impl FieldType {
    fn parse(type_name: &Value) -> Self {
        match type_name.as_str() {
            Some("string") => Self::String,
            Some("int") => Self::Int,
            Some("long") => Self::Long,
            Some("float") => Self::Float,
            Some("double") => Self::Double,
            Some("boolean") => Self::Boolean,
            Some("date") => Self::Date,
            Some("timestamp") => Self::Timestamp,
            Some("timestamptz") => Self::Timestamptz,
            Some("variant") => Self::Variant,
            Some("binary") => Self::Binary,
            _ => Self::Other,
        }
    }

    /// Whether a manifest's bounds of this type are eight little-endian bytes and exact.
    pub(crate) fn has_long_bounds(self) -> bool {
        matches!(self, Self::Long | Self::Timestamptz)
    }
}

/// A column of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Field id, stable over renames.
    pub id: i32,
    /// Name.
    pub name: String,
    /// Whether null is not allowed.
    pub required: bool,
    /// Type.
    pub field_type: FieldType,
}

/// A schema version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Schema id.
    pub id: i32,
    /// Columns in order.
    pub fields: Vec<Field>,
}

impl Schema {
    /// The column of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id.
    pub id: i64,
    /// Its parent, where there is one.
    pub parent_id: Option<i64>,
    /// Sequence number.
    pub sequence_number: i64,
    /// When it was committed, in milliseconds since 1970, UTC.
    pub timestamp_ms: i64,
    /// `append`, `delete`, …
    pub operation: Option<String>,
    /// The schema it was written under.
    pub schema_id: Option<i32>,
    /// URL of its manifest list, as written.
    pub manifest_list: String,
}

/// What of the table metadata is used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMetadata {
    /// 1, 2 or 3.
    pub format_version: u8,
    /// `table-uuid`; a compaction makes a new one.
    pub table_uuid: String,
    /// URL under which every other URL of the table lies.
    pub location: String,
    /// Last sequence number.
    pub last_sequence_number: i64,
    /// All schema versions.
    pub schemas: Vec<Schema>,
    /// Which of them is current.
    pub current_schema_id: i32,
    current_schema: Schema,
    /// Snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// The current one, which is among `snapshots`; none for a table without a commit.
    pub current_snapshot_id: Option<i64>,
}

impl TableMetadata {
    /// Parses a metadata file, unpacked.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is not JSON of that shape, is of another format version, or names a current schema
    /// or snapshot that it does not hold.
    pub(crate) fn parse(json: &[u8], path: &Path) -> Result<Self, Error> {
        let invalid = |expected: &str, found: String| Error::Invalid {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
        };
        let raw: RawMetadata =
            serde_json::from_slice(json).map_err(|e| invalid("Iceberg table metadata as JSON", e.to_string()))?;
        let format_version = verify_version(raw.format_version)
            .ok_or_else(|| invalid("format version 1, 2 or 3", raw.format_version.to_string()))?;
        let schemas: Vec<Schema> = raw.schemas.into_iter().map(RawSchema::into_schema).collect();
        let current_schema = schemas.iter().find(|s| s.id == raw.current_schema_id).cloned().ok_or_else(|| {
            invalid("the current schema among the schemas", format!("no schema {}", raw.current_schema_id))
        })?;
        let mut snapshots: Vec<Snapshot> = raw.snapshots.into_iter().map(RawSnapshot::into_snapshot).collect();
        snapshots.sort_by_key(|s| (s.sequence_number, s.timestamp_ms));
        // Some writers put -1 where there is none.
        let current_snapshot_id = raw.current_snapshot_id.filter(|id| *id != -1);
        if let Some(id) = current_snapshot_id.filter(|id| snapshots.iter().all(|s| s.id != *id)) {
            return Err(invalid("the current snapshot among the snapshots", format!("no snapshot {id}")));
        }
        Ok(Self {
            format_version,
            table_uuid: raw.table_uuid,
            location: raw.location,
            last_sequence_number: raw.last_sequence_number,
            schemas,
            current_schema_id: raw.current_schema_id,
            current_schema,
            snapshots,
            current_snapshot_id,
        })
    }

    /// The current schema.
    pub fn current_schema(&self) -> &Schema {
        &self.current_schema
    }

    /// The current snapshot.
    pub fn current_snapshot(&self) -> Option<&Snapshot> {
        let id = self.current_snapshot_id?;
        self.snapshots.iter().find(|s| s.id == id)
    }
}

fn verify_version(version: u64) -> Option<u8> {
    u8::try_from(version).ok().filter(|v| (1..=3).contains(v))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawMetadata {
    format_version: u64,
    table_uuid: String,
    location: String,
    #[serde(default)]
    last_sequence_number: i64,
    schemas: Vec<RawSchema>,
    current_schema_id: i32,
    #[serde(default)]
    snapshots: Vec<RawSnapshot>,
    current_snapshot_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawSchema {
    #[serde(default)]
    schema_id: i32,
    fields: Vec<RawField>,
}

impl RawSchema {
    fn into_schema(self) -> Schema {
        let field = |f: RawField| Field {
            id: f.id,
            field_type: FieldType::parse(&f.field_type),
            name: f.name,
            required: f.required,
        };
        Schema { id: self.schema_id, fields: self.fields.into_iter().map(field).collect() }
    }
}

#[derive(Deserialize)]
struct RawField {
    id: i32,
    name: String,
    required: bool,
    #[serde(rename = "type")]
    field_type: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawSnapshot {
    snapshot_id: i64,
    parent_snapshot_id: Option<i64>,
    #[serde(default)]
    sequence_number: i64,
    timestamp_ms: i64,
    #[serde(default)]
    summary: RawSummary,
    schema_id: Option<i32>,
    manifest_list: String,
}

#[derive(Default, Deserialize)]
struct RawSummary {
    operation: Option<String>,
}

impl RawSnapshot {
    fn into_snapshot(self) -> Snapshot {
        Snapshot {
            id: self.snapshot_id,
            parent_id: self.parent_snapshot_id,
            sequence_number: self.sequence_number,
            timestamp_ms: self.timestamp_ms,
            operation: self.summary.operation,
            schema_id: self.schema_id,
            manifest_list: self.manifest_list,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> Value {
        json!({
            "format-version": 3, "table-uuid": "u", "location": "file:///t", "last-sequence-number": 2,
            "current-schema-id": 1,
            "schemas": [
                {"schema-id": 0, "fields": []},
                {"schema-id": 1, "fields": [
                    {"id": 1, "name": "at", "required": true, "type": "timestamptz"},
                    {"id": 2, "name": "ns", "required": false, "type": "timestamptz_ns"},
                    {"id": 3, "name": "list", "required": false,
                     "type": {"type": "list", "element-id": 4, "element": "int", "element-required": false}},
                ]},
            ],
            "current-snapshot-id": 7_296_217_089_805_208_i64,
            "snapshots": [
                {"snapshot-id": 7_296_217_089_805_208_i64, "parent-snapshot-id": 3, "sequence-number": 2, "timestamp-ms": 20,
                 "summary": {"operation": "delete", "total-records": "1"}, "schema-id": 1, "manifest-list": "file:///t/b"},
                {"snapshot-id": 3, "sequence-number": 1, "timestamp-ms": 10, "manifest-list": "file:///t/a"},
            ],
        })
    }

    fn parse(value: &Value) -> Result<TableMetadata, String> {
        TableMetadata::parse(value.to_string().as_bytes(), Path::new("v1.metadata.json")).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_what_is_used() {
        let table = parse(&metadata()).unwrap();
        assert_eq!((table.format_version, table.table_uuid.as_str(), table.location.as_str()), (3, "u", "file:///t"));
        let schema = table.current_schema();
        let types: Vec<_> = schema.fields.iter().map(|f| (f.id, f.required, f.field_type)).collect();
        assert_eq!(
            types,
            [(1, true, FieldType::Timestamptz), (2, false, FieldType::Other), (3, false, FieldType::Other)]
        );
        assert_eq!(schema.field("ns").map(|f| f.id), Some(2));
        assert_eq!(schema.field("nope"), None);
        assert_eq!(table.snapshots.iter().map(|s| s.id).collect::<Vec<_>>(), [3, 7_296_217_089_805_208]);
        let current = table.current_snapshot().unwrap();
        assert_eq!((current.parent_id, current.operation.as_deref()), (Some(3), Some("delete")));
    }

    #[test]
    fn a_table_without_a_commit_has_no_snapshot() {
        for none in [json!(null), json!(-1)] {
            let mut value = metadata();
            value["current-snapshot-id"] = none;
            assert_eq!(parse(&value).unwrap().current_snapshot(), None);
        }
        let mut value = metadata();
        value.as_object_mut().unwrap().retain(|k, _| k != "current-snapshot-id" && k != "snapshots");
        assert_eq!(parse(&value).unwrap().current_snapshot(), None);
    }

    fn assert_rejected(key: &str, value: Value, message: &str) {
        let mut metadata = metadata();
        metadata[key] = value;
        assert_eq!(parse(&metadata).unwrap_err(), format!("`v1.metadata.json`: {message}"));
    }

    #[test]
    fn rejects_another_format_version() {
        assert_rejected("format-version", json!(4), "expected format version 1, 2 or 3, found 4");
        assert_rejected("format-version", json!(0), "expected format version 1, 2 or 3, found 0");
        assert_rejected("format-version", json!(259), "expected format version 1, 2 or 3, found 259");
    }

    #[test]
    fn rejects_a_current_schema_that_is_not_there() {
        assert_rejected(
            "current-schema-id",
            json!(5),
            "expected the current schema among the schemas, found no schema 5",
        );
    }

    #[test]
    fn rejects_a_current_snapshot_that_is_not_there() {
        assert_rejected(
            "current-snapshot-id",
            json!(5),
            "expected the current snapshot among the snapshots, found no snapshot 5",
        );
    }

    #[test]
    fn rejects_what_is_not_metadata() {
        let error = TableMetadata::parse(b"{\"format-version\": 3, ", Path::new("v1.metadata.json")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`v1.metadata.json`: expected Iceberg table metadata as JSON, found EOF while parsing a value at line 1 column 22"
        );
        assert_rejected(
            "location",
            json!(5),
            "expected Iceberg table metadata as JSON, found invalid type: integer `5`, expected a string at line 1 column 118",
        );
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;
        use crate::damage::{damaged, testdata};

        proptest! {
            #[test]
            fn damaged_metadata_is_parsed_or_refused(json in damaged(testdata(
                "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466/metadata/\
                 v12.metadata.json",
            ))) {
                if let Ok(table) = TableMetadata::parse(&json, Path::new("v1.metadata.json")) {
                    table.current_schema();
                    prop_assert_eq!(table.current_snapshot().is_some(), table.current_snapshot_id.is_some());
                }
            }
        }
    }
}
