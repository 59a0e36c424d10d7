//! JSON columns: groups of a variant's metadata and value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, BinaryBuilder, StructArray};
use arrow::error::ArrowError;
use parquet_variant::VariantBuilder;
use parquet_variant_json::append_json;
use serde_json::Value;

use crate::schema::variant_fields;

/// A variant's metadata and value.
pub(crate) type Encoded = (Vec<u8>, Vec<u8>);

/// A variant null: JSON columns say null so, and never by a null group.
const NULL_METADATA: [u8; 3] = [1, 0, 0];
const NULL_VALUE: [u8; 1] = [0];

pub(crate) fn encode(json: &Value) -> Result<Encoded, ArrowError> {
    let mut builder = VariantBuilder::new();
    append_json(json, &mut builder)?;
    builder.try_finish()
}

/// Builds a column.
#[derive(Default)]
pub(crate) struct VariantColumn {
    metadata: BinaryBuilder,
    value: BinaryBuilder,
}

impl VariantColumn {
    pub(crate) fn append_null(&mut self) {
        self.metadata.append_value(NULL_METADATA);
        self.value.append_value(NULL_VALUE);
    }

    pub(crate) fn append(&mut self, (metadata, value): &Encoded) {
        self.metadata.append_value(metadata);
        self.value.append_value(value);
    }

    pub(crate) fn finish(mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![Arc::new(self.metadata.finish()), Arc::new(self.value.finish())];
        Arc::new(StructArray::new(variant_fields(), columns, None))
    }
}

/// A column of nothing but nulls.
pub(crate) fn nulls(rows: usize) -> ArrayRef {
    let mut column = VariantColumn::default();
    for _ in 0..rows {
        column.append_null();
    }
    column.finish()
}

/// How many of a column's variants are null.
pub(crate) fn null_count(column: &StructArray) -> usize {
    let values = column.column(1).as_binary::<i32>();
    values.iter().filter(|value| value.is_none_or(|value| value == NULL_VALUE)).count()
}
