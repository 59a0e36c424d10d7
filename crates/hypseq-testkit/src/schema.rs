//! The datasets' columns, in Iceberg's, Parquet's and Arrow's terms.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit as ParquetTimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type};
use serde::{Deserialize, Serialize};

use crate::spec::Dataset;

/// A column as the table metadata has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Column {
    pub id: i32,
    pub name: String,
    pub required: bool,
    #[serde(rename = "type")]
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    String,
    Int,
    Long,
    Boolean,
    Timestamptz,
    Variant,
}

/// A schema version of the table metadata.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TableSchema {
    #[serde(rename = "type")]
    kind: &'static str,
    pub schema_id: i32,
    pub fields: Vec<Column>,
}

/// A field of the partition spec, identity on a column.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PartitionField {
    source_id: i32,
    pub field_id: i32,
    pub name: &'static str,
    transform: &'static str,
}

/// What rows stamp their seq into; an old schema lacks it.
pub(crate) const SEQ: &str = "_hyp_ingest_seq";

const MESSAGE_PARTITIONS: &[PartitionField] = &[
    partition(3, 1000, "session_id"),
    partition(4, 1001, "conversation_id"),
    partition(13, 1002, "cwd"),
    partition(56, 1003, "date"),
];

const fn partition(source_id: i32, field_id: i32, name: &'static str) -> PartitionField {
    PartitionField { source_id, field_id, name, transform: "identity" }
}

/// Read off the table metadata that HypAware 1.24.0 writes.
static MESSAGES: LazyLock<Vec<Column>> = LazyLock::new(|| columns(include_str!("../schemas/ai_gateway_messages.json")));
static LOGS: LazyLock<Vec<Column>> = LazyLock::new(|| columns(include_str!("../schemas/logs.json")));

fn columns(json: &str) -> Vec<Column> {
    serde_json::from_str(json).expect("a list of columns, as the crate's tests find it")
}

impl Dataset {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "ai_gateway_messages",
            Self::Logs => "logs",
        }
    }

    pub(crate) fn time_column(self) -> &'static str {
        match self {
            Self::Messages => "message_created_at",
            Self::Logs => "timestamp",
        }
    }

    pub(crate) fn id_column(self) -> &'static str {
        match self {
            Self::Messages => "part_id",
            Self::Logs => "spanId",
        }
    }

    pub(crate) fn partition_fields(self) -> &'static [PartitionField] {
        match self {
            Self::Messages => MESSAGE_PARTITIONS,
            Self::Logs => &[],
        }
    }

    /// Its columns with or without the seq.
    pub(crate) fn schema(self, schema_id: i32, with_seq: bool) -> TableSchema {
        let columns = match self {
            Self::Messages => &*MESSAGES,
            Self::Logs => &*LOGS,
        };
        let fields = columns.iter().filter(|column| with_seq || column.name != SEQ).cloned().collect();
        TableSchema { kind: "struct", schema_id, fields }
    }
}

impl TableSchema {
    pub(crate) fn arrow(&self) -> SchemaRef {
        let fields: Vec<Field> = self.fields.iter().map(|c| Field::new(&c.name, c.kind.arrow(), !c.required)).collect();
        Arc::new(Schema::new(fields))
    }

    pub(crate) fn parquet(&self) -> Result<SchemaDescriptor, ParquetError> {
        let fields: Result<Vec<_>, _> = self.fields.iter().map(|column| column.parquet().map(Arc::new)).collect();
        let root = Type::group_type_builder("root").with_fields(fields?).build()?;
        Ok(SchemaDescriptor::new(Arc::new(root)))
    }
}

/// The two binary columns of a variant group.
pub(crate) fn variant_fields() -> Fields {
    Fields::from(vec![Field::new("metadata", DataType::Binary, false), Field::new("value", DataType::Binary, true)])
}

impl Kind {
    fn arrow(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Variant => DataType::Struct(variant_fields()),
        }
    }
}

impl Column {
    fn parquet(&self) -> Result<Type, ParquetError> {
        let repetition = if self.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let primitive = |physical| {
            Type::primitive_type_builder(&self.name, physical).with_repetition(repetition).with_id(Some(self.id))
        };
        match self.kind {
            // HypAware's writer gives texts the older annotation only.
            Kind::String => primitive(Physical::BYTE_ARRAY).with_converted_type(ConvertedType::UTF8).build(),
            Kind::Int => primitive(Physical::INT32).build(),
            Kind::Long => primitive(Physical::INT64).build(),
            Kind::Boolean => primitive(Physical::BOOLEAN).build(),
            Kind::Timestamptz => primitive(Physical::INT64)
                .with_logical_type(Some(LogicalType::timestamp(true, ParquetTimeUnit::MICROS)))
                .build(),
            Kind::Variant => self.parquet_variant(repetition),
        }
    }

    fn parquet_variant(&self, repetition: Repetition) -> Result<Type, ParquetError> {
        let binary = |name: &str, repetition| {
            Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition).build().map(Arc::new)
        };
        Type::group_type_builder(&self.name)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::variant(None)))
            .with_fields(vec![binary("metadata", Repetition::REQUIRED)?, binary("value", Repetition::OPTIONAL)?])
            .with_id(Some(self.id))
            .build()
    }
}
