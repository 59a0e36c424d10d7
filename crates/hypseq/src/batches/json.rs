//! Rows as JSON, columns in order.

use std::io::Write;

use anyhow::Result;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use hypseq_engine::is_text_in_json;
use serde_json::{Value, json};

use super::cell::{is_null, text};
use super::{Room, Source, each_line};

/// One document: an array of objects.
pub async fn array(source: &mut Source<'_>, room: &mut Room, out: &mut impl Write) -> Result<()> {
    write!(out, "[")?;
    let mut separator = "\n  ";
    let rows = each_line(source, room, |batch, index| {
        write!(out, "{separator}{}", row(batch, index)?)?;
        separator = ",\n  ";
        Ok(())
    });
    rows.await?;
    writeln!(out, "{}]", if room.rows > 0 { "\n" } else { "" })?;
    Ok(())
}

/// One object per line.
pub async fn lines(source: &mut Source<'_>, room: &mut Room, out: &mut impl Write) -> Result<()> {
    each_line(source, room, |batch, index| Ok(writeln!(out, "{}", row(batch, index)?)?)).await
}

/// A row as a JSON object, columns in order.
pub fn row(batch: &RecordBatch, row: usize) -> Result<String> {
    let mut line = String::from("{");
    for (index, (field, column)) in batch.schema_ref().fields().iter().zip(batch.columns()).enumerate() {
        if index > 0 {
            line.push(',');
        }
        line.push_str(&Value::String(field.name().clone()).to_string());
        line.push(':');
        line.push_str(&value(field.name(), field, column, row)?.to_string());
    }
    line.push('}');
    Ok(line)
}

/// Whether a text column holds JSON: the canonical Arrow extension type.
fn is_json(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json")
}

/// A value of a field. Its name is the column's also for what is in a list: items have none of their own.
fn value(name: &str, field: &Field, array: &ArrayRef, row: usize) -> Result<Value> {
    if is_null(array, row) {
        return Ok(Value::Null);
    }
    macro_rules! number {
        ($type:ty) => {
            json!(array.as_primitive::<$type>().value(row))
        };
    }
    Ok(match array.data_type() {
        DataType::Int64 if is_text_in_json(name) => {
            Value::String(array.as_primitive::<Int64Type>().value(row).to_string())
        }
        DataType::Int64 => number!(Int64Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int8 => number!(Int8Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::List(item) => values(name, item, &array.as_list::<i32>().value(row))?,
        DataType::LargeList(item) => values(name, item, &array.as_list::<i64>().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let entries = fields.iter().zip(columns).map(|(f, c)| Ok((f.name().clone(), value(f.name(), f, c, row)?)));
            Value::Object(entries.collect::<Result<_>>()?)
        }
        _ => {
            let text = text(array, row)?.unwrap_or_default();
            match serde_json::from_str(&text) {
                Ok(value) if is_json(field) => value,
                _ => Value::String(text),
            }
        }
    })
}

fn values(name: &str, item: &Field, items: &ArrayRef) -> Result<Value> {
    Ok(Value::Array((0..items.len()).map(|index| value(name, item, items, index)).collect::<Result<_>>()?))
}
