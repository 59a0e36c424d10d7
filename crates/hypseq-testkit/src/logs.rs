//! The content of `logs`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray, new_null_array};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use serde_json::{Value, json};

use crate::content::{Content, times};
use crate::rows::Row;
use crate::schema::{Kind, SEQ, TableSchema};
use crate::text::write_text;
use crate::variants::{self, VariantColumn};

pub(crate) fn span_id(content: &Content<'_>, row: &Row) -> String {
    format!("{:016x}", content.rng(row, 1).next())
}

fn body(content: &Content<'_>, row: &Row) -> Value {
    let mut text = String::new();
    write_text(&mut text, content.text_bytes, &mut content.rng(row, 2));
    json!({"msg": text, "n": row.index})
}

/// The columns of a data file, in the schema's order.
pub(crate) fn columns(content: &Content<'_>, schema: &TableSchema, rows: &[Row]) -> Result<Vec<ArrayRef>, ArrowError> {
    schema.fields.iter().map(|field| column(content, rows, &field.name, field.kind)).collect()
}

fn column(content: &Content<'_>, rows: &[Row], name: &str, kind: Kind) -> Result<ArrayRef, ArrowError> {
    let column: ArrayRef = match name {
        "serviceName" => {
            Arc::new(rows.iter().map(|row| Some(format!("svc{}", row.place % 3))).collect::<StringArray>())
        }
        "timestamp" => Arc::new(times(rows.iter().map(|row| row.time_ms))),
        "observedTimestamp" => {
            Arc::new(times(rows.iter().map(|row| Some(row.time_ms.unwrap_or(content.session(row).started_ms)))))
        }
        "severityNumber" => Arc::new(Int32Array::from(vec![9; rows.len()])),
        "severityText" => Arc::new(StringArray::from_iter_values(rows.iter().map(|_| "INFO"))),
        "body" => variants(rows, |row| body(content, row))?,
        "spanId" => Arc::new(rows.iter().map(|row| Some(span_id(content, row))).collect::<StringArray>()),
        "resource" => variants(rows, |row| json!({"host": format!("h{}", row.place % 2)}))?,
        "attributes" => variants(rows, |row| json!({"k": row.place % 5}))?,
        SEQ => Arc::new(rows.iter().map(|row| row.seq).collect::<Int64Array>()),
        _ => match kind {
            Kind::Variant => variants::nulls(rows.len()),
            Kind::Int => new_null_array(&DataType::Int32, rows.len()),
            _ => new_null_array(&DataType::Utf8, rows.len()),
        },
    };
    Ok(column)
}

fn variants(rows: &[Row], value: impl Fn(&Row) -> Value) -> Result<ArrayRef, ArrowError> {
    let mut column = VariantColumn::default();
    for row in rows {
        column.append(&variants::encode(&value(row))?);
    }
    Ok(column.finish())
}
