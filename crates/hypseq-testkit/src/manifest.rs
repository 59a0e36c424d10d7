//! Manifests and manifest lists.

use std::sync::Arc;

use crate::avro::{Record, container};
use crate::bounds::{Metrics, as_long, truncated_above, truncated_below};
use crate::schema::{PartitionField, TableSchema};

const ENTRY_SCHEMA: &str = include_str!("../schemas/manifest.avsc");
const LIST_SCHEMA: &str = include_str!("../schemas/manifest-list.avsc");

/// Fields that only manifests of deletes have.
const DELETE_FIELDS: &str = concat!(
    r#"{"name":"equality_ids","field-id":135,"default":null,"type":["null",{"type":"array","items":"int","element-id":136}]},"#,
    r#"{"name":"referenced_data_file","type":["null","string"],"default":null,"field-id":143},"#,
    r#"{"name":"content_offset","type":["null","long"],"default":null,"field-id":144},"#,
    r#"{"name":"content_size_in_bytes","type":["null","long"],"default":null,"field-id":145},"#,
);

/// What a manifest's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Data,
    Deletes,
}

impl Contents {
    fn number(self) -> i64 {
        match self {
            Self::Data => 0,
            Self::Deletes => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Existing,
    Added,
    Deleted,
}

/// A data file or a delete file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub status: Status,
    pub snapshot_id: i64,
    /// None to inherit the manifest's.
    pub sequence_number: Option<i64>,
    pub url: String,
    pub format: &'static str,
    pub partition: Vec<Option<String>>,
    pub record_count: i64,
    pub file_size: i64,
    /// None for delete files, and where the writer left them out.
    pub metrics: Option<Arc<Metrics>>,
    /// Where a deletion vector is, and of which data file.
    pub vector: Option<Vector>,
}

#[derive(Debug, Clone)]
pub(crate) struct Vector {
    pub data_file: String,
    pub offset: i64,
    pub length: i64,
}

/// A manifest as its list describes it.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub url: String,
    pub length: i64,
    pub contents: Contents,
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub snapshot_id: i64,
    pub entries: Vec<Tally>,
    pub partitions: Vec<PartitionSummary>,
    pub first_row_id: Option<i64>,
}

/// What of an entry its list counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    pub status: Status,
    pub rows: i64,
}

/// The values of one partition field over a manifest.
#[derive(Debug, Clone)]
pub(crate) struct PartitionSummary {
    contains_null: bool,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Entry {
    fn encode(&self, contents: Contents) -> Record {
        let mut out = Record::default();
        out.long(match self.status {
            Status::Existing => 0,
            Status::Added => 1,
            Status::Deleted => 2,
        });
        out.some().long(self.snapshot_id);
        for _ in ["sequence_number", "file_sequence_number"] {
            out.optional(self.sequence_number, |out, number| {
                out.long(number);
            });
        }
        out.long(contents.number());
        out.text(&self.url).text(self.format);
        for value in &self.partition {
            out.optional(value.as_deref(), |out, value| {
                out.text(value);
            });
        }
        out.long(self.record_count).long(self.file_size);
        let metrics = self.metrics.as_ref();
        out.null();
        longs(&mut out, metrics.map(|metrics| &metrics.values));
        longs(&mut out, metrics.map(|metrics| &metrics.nulls));
        out.null();
        bytes(&mut out, metrics.map(|metrics| &metrics.lower));
        bytes(&mut out, metrics.map(|metrics| &metrics.upper));
        out.null();
        match contents {
            Contents::Data => {
                out.some().long(0);
            }
            Contents::Deletes => {
                out.null().null();
                out.optional(self.vector.as_ref(), |out, vector| {
                    out.text(&vector.data_file);
                });
                for number in [|vector: &Vector| vector.offset, |vector: &Vector| vector.length] {
                    out.optional(self.vector.as_ref().map(number), |out, number| {
                        out.long(number);
                    });
                }
            }
        }
        out.null();
        out
    }
}

/// A map is an array of keys and values; one without any is null.
fn longs(out: &mut Record, map: Option<&Vec<(i32, i64)>>) {
    out.optional(map.filter(|map| !map.is_empty()), |out, map| {
        out.array(map, |out, (key, value)| {
            out.long(i64::from(*key)).long(*value);
        });
    });
}

fn bytes(out: &mut Record, map: Option<&Vec<(i32, Vec<u8>)>>) {
    out.optional(map.filter(|map| !map.is_empty()), |out, map| {
        out.array(map, |out, (key, value)| {
            out.long(i64::from(*key)).bytes(value);
        });
    });
}

/// A manifest's bytes.
pub(crate) fn encode(
    contents: Contents,
    entries: &[Entry],
    schema: &TableSchema,
    fields: &[PartitionField],
    sync: [u8; 16],
) -> Result<Vec<u8>, serde_json::Error> {
    let partition_field = |field: &PartitionField| {
        format!(r#"{{"name":"{}","field-id":{},"default":null,"type":["null","string"]}}"#, field.name, field.field_id)
    };
    let partition: Vec<String> = fields.iter().map(partition_field).collect();
    let deletes = if contents == Contents::Deletes { DELETE_FIELDS } else { "" };
    let entry_schema =
        ENTRY_SCHEMA.trim_end().replace("@PARTITION@", &partition.join(",")).replace("@DELETES@", deletes);
    let metadata = [
        ("format-version", "3"),
        ("schema-id", &schema.schema_id.to_string()),
        ("content", if contents == Contents::Data { "data" } else { "deletes" }),
        ("schema", &serde_json::to_string(schema)?),
        ("partition-spec", &serde_json::to_string(fields)?),
        ("partition-spec-id", "0"),
    ];
    let records: Vec<Record> = entries.iter().map(|entry| entry.encode(contents)).collect();
    Ok(container(&entry_schema, &metadata, sync, &records))
}

/// The partition values of a manifest's entries, field by field.
pub(crate) fn summarize(entries: &[Entry], fields: usize) -> Vec<PartitionSummary> {
    let summary = |field: usize| {
        let values = || entries.iter().filter_map(move |entry| entry.partition.get(field));
        PartitionSummary {
            contains_null: values().any(Option::is_none),
            lower: values().flatten().min().map(|value| truncated_below(value)),
            upper: values().flatten().max().map(|value| truncated_above(value)),
        }
    };
    (0..fields).map(summary).collect()
}

/// A manifest list's bytes.
pub(crate) fn encode_list(manifests: &[Listed], snapshot_id: i64, sequence_number: i64, sync: [u8; 16]) -> Vec<u8> {
    let metadata = [
        ("format-version", "3"),
        ("snapshot-id", &snapshot_id.to_string()),
        ("sequence-number", &sequence_number.to_string()),
    ];
    let records: Vec<Record> = manifests.iter().map(Listed::encode).collect();
    container(LIST_SCHEMA.trim_end(), &metadata, sync, &records)
}

impl Listed {
    fn encode(&self) -> Record {
        let mut out = Record::default();
        out.text(&self.url).long(self.length).long(0);
        out.long(self.contents.number());
        out.long(self.sequence_number).long(self.min_sequence_number).long(self.snapshot_id);
        let of = |status| self.entries.iter().filter(move |entry| entry.status == status);
        for status in [Status::Added, Status::Existing, Status::Deleted] {
            out.long(as_long(of(status).count()));
        }
        for status in [Status::Added, Status::Existing, Status::Deleted] {
            out.long(of(status).map(|entry| entry.rows).sum());
        }
        out.some().array(&self.partitions, |out, field| {
            out.boolean(field.contains_null).null();
            for bound in [&field.lower, &field.upper] {
                out.optional(bound.as_deref(), |out, bound| {
                    out.bytes(bound);
                });
            }
        });
        out.optional(self.first_row_id, |out, id| {
            out.long(id);
        });
        out
    }
}
