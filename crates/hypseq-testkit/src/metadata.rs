//! The table metadata, `vN.metadata.json`, as HypAware writes it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::schema::{PartitionField, TableSchema};

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TableMetadata {
    pub format_version: u8,
    pub table_uuid: String,
    pub location: String,
    pub last_sequence_number: i64,
    pub last_updated_ms: i64,
    pub last_column_id: i32,
    pub current_schema_id: i32,
    pub schemas: Vec<TableSchema>,
    pub default_spec_id: i32,
    pub partition_specs: Vec<PartitionSpec>,
    pub last_partition_id: i32,
    pub sort_orders: Vec<SortOrder>,
    pub default_sort_order_id: i32,
    pub next_row_id: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refs: BTreeMap<&'static str, Ref>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_snapshot_id: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snapshot_log: Vec<SnapshotLog>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metadata_log: Vec<MetadataLog>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PartitionSpec {
    pub spec_id: i32,
    pub fields: Vec<PartitionField>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SortOrder {
    pub order_id: i32,
    pub fields: [(); 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Snapshot {
    #[serde(rename = "snapshot-id")]
    pub id: i64,
    pub sequence_number: i64,
    pub timestamp_ms: i64,
    pub manifest_list: String,
    pub summary: Summary,
    pub schema_id: i32,
    pub first_row_id: i64,
    pub added_rows: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_snapshot_id: Option<i64>,
}

/// Counts are written as texts.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub operation: &'static str,
    #[serde(flatten)]
    pub counts: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Ref {
    pub snapshot_id: i64,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SnapshotLog {
    pub timestamp_ms: i64,
    pub snapshot_id: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetadataLog {
    pub timestamp_ms: i64,
    pub metadata_file: String,
}

impl TableMetadata {
    pub(crate) fn new(
        location: String,
        uuid: String,
        now_ms: i64,
        schema: TableSchema,
        fields: &[PartitionField],
    ) -> Self {
        Self {
            format_version: 3,
            table_uuid: uuid,
            location,
            last_sequence_number: 0,
            last_updated_ms: now_ms,
            last_column_id: last_id(&schema),
            current_schema_id: schema.schema_id,
            schemas: vec![schema],
            default_spec_id: 0,
            partition_specs: vec![PartitionSpec { spec_id: 0, fields: fields.to_vec() }],
            last_partition_id: fields.last().map_or(0, |field| field.field_id),
            sort_orders: vec![SortOrder { order_id: 0, fields: [] }],
            default_sort_order_id: 0,
            next_row_id: 0,
            snapshots: Vec::new(),
            refs: BTreeMap::new(),
            current_snapshot_id: None,
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
        }
    }

    pub(crate) fn replace_schema(&mut self, schema: TableSchema) {
        self.last_column_id = last_id(&schema);
        self.current_schema_id = schema.schema_id;
        self.schemas.push(schema);
    }

    pub(crate) fn add_snapshot(&mut self, snapshot: Snapshot) {
        self.last_sequence_number = snapshot.sequence_number;
        self.next_row_id = snapshot.first_row_id + snapshot.added_rows;
        self.current_snapshot_id = Some(snapshot.id);
        self.refs.insert("main", Ref { snapshot_id: snapshot.id, kind: "branch" });
        let (timestamp_ms, snapshot_id) = (snapshot.timestamp_ms, snapshot.id);
        self.snapshot_log.push(SnapshotLog { timestamp_ms, snapshot_id });
        self.snapshots.push(snapshot);
    }
}

fn last_id(schema: &TableSchema) -> i32 {
    schema.fields.iter().map(|column| column.id).max().unwrap_or(0)
}
