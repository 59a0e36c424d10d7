//! The columns of data files whose table metadata is lost.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use hypseq_iceberg::{Field, FieldType, Schema};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::ParquetMetaDataReader;

use crate::datafile::DataFile;
use crate::variant::is_variant;

/// A schema for each file that has a readable footer.
pub(crate) fn schemas<'a>(files: impl Iterator<Item = &'a Arc<DataFile>>) -> Vec<Schema> {
    files.filter_map(|file| schema(file)).collect()
}

fn schema(file: &DataFile) -> Option<Schema> {
    let footer = ParquetMetaDataReader::new().parse_and_finish(&File::open(&file.path).ok()?).ok()?;
    let schema = parquet_to_arrow_schema(footer.file_metadata().schema_descr(), None).ok()?;
    let fields = (0..).zip(schema.fields()).map(|(id, field)| Field {
        id,
        name: field.name().clone(),
        required: false,
        field_type: field_type(field.data_type()),
    });
    Some(Schema { id: 0, fields: fields.collect() })
}

fn field_type(stored: &DataType) -> FieldType {
    match stored {
        DataType::Utf8 => FieldType::String,
        DataType::Int32 => FieldType::Int,
        DataType::Int64 => FieldType::Long,
        DataType::Float32 => FieldType::Float,
        DataType::Float64 => FieldType::Double,
        DataType::Boolean => FieldType::Boolean,
        DataType::Date32 => FieldType::Date,
        DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, None) => FieldType::Timestamp,
        DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, Some(_)) => FieldType::Timestamptz,
        DataType::Binary => FieldType::Binary,
        _ if is_variant(stored) => FieldType::Variant,
        _ => FieldType::Other,
    }
}
