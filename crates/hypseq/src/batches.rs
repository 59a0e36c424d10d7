//! Rows of SQL in every format, written as they come.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use hypseq_engine::Rows;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::cli::Format;
use crate::printer::Printer;
use crate::time::show;

/// Rows that are looked at for the widths of a table before the first is printed.
const PREVIEW_ROWS: usize = 1000;

/// Writes a statement's rows to stdout. Returns how many there were.
pub async fn print(rows: Rows, printer: &Printer) -> Result<u64> {
    let mut out = BufWriter::new(io::stdout().lock());
    let count = match printer.format {
        Format::Json => json_array(rows, &mut out).await,
        Format::Ndjson => {
            each_row(rows, &mut out, |out, batch, row| Ok(writeln!(out, "{}", json_row(batch, row)?)?)).await
        }
        Format::Csv => csv_lines(rows, &mut out).await,
        Format::Table | Format::Markdown => aligned(rows, &mut out, printer).await,
    }?;
    out.flush()?;
    Ok(count)
}

async fn each_row(
    mut rows: Rows,
    out: &mut impl Write,
    mut write: impl FnMut(&mut dyn Write, &RecordBatch, usize) -> Result<()>,
) -> Result<u64> {
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            write(out, &batch, row)?;
        }
        count += batch.num_rows() as u64;
    }
    Ok(count)
}

async fn json_array(rows: Rows, out: &mut impl Write) -> Result<u64> {
    write!(out, "[")?;
    let mut first = true;
    let count = each_row(rows, out, |out, batch, row| {
        let separator = if std::mem::take(&mut first) { "\n  " } else { ",\n  " };
        Ok(write!(out, "{separator}{}", json_row(batch, row)?)?)
    })
    .await?;
    writeln!(out, "{}]", if count > 0 { "\n" } else { "" })?;
    Ok(count)
}

async fn csv_lines(rows: Rows, out: &mut impl Write) -> Result<u64> {
    let mut writer = csv::Writer::from_writer(out);
    let schema = rows.schema();
    if !schema.fields().is_empty() {
        writer.write_record(schema.fields().iter().map(|f| f.name()))?;
    }
    let mut rows = rows;
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>()?;
            writer.write_record(cells.iter().map(|cell| cell.as_deref().unwrap_or_default()))?;
        }
        count += batch.num_rows() as u64;
    }
    writer.flush()?;
    Ok(count)
}

/// A table for people: aligned columns, or one column per line where they would not fit the terminal.
async fn aligned(mut rows: Rows, out: &mut impl Write, printer: &Printer) -> Result<u64> {
    let schema = rows.schema();
    if schema.fields().is_empty() {
        while let Some(batch) = rows.next().await {
            batch?;
        }
        return Ok(0);
    }
    let markdown = printer.format == Format::Markdown;
    let mut preview = Vec::new();
    let mut previewed = 0;
    while previewed < PREVIEW_ROWS {
        let Some(batch) = rows.next().await else { break };
        let batch = batch?;
        previewed += batch.num_rows();
        preview.push(batch);
    }
    let mut layout = Layout::of(schema.fields(), &preview, markdown)?;
    layout.expanded = !markdown && printer.width.is_some_and(|width| layout.total() > width);
    layout.header(out)?;
    let mut count = 0u64;
    for batch in &preview {
        layout.rows(out, batch, &mut count)?;
    }
    drop(preview);
    while let Some(batch) = rows.next().await {
        layout.rows(out, &batch?, &mut count)?;
    }
    if !markdown {
        writeln!(out, "({count} row{})", if count == 1 { "" } else { "s" })?;
    }
    Ok(count)
}

struct Layout {
    names: Vec<String>,
    right: Vec<bool>,
    widths: Vec<usize>,
    markdown: bool,
    expanded: bool,
}

impl Layout {
    fn of(fields: &arrow::datatypes::Fields, preview: &[RecordBatch], markdown: bool) -> Result<Self> {
        let names: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
        let right = fields.iter().map(|f| f.data_type().is_numeric()).collect();
        let mut layout =
            Self { widths: names.iter().map(|n| n.width()).collect(), names, right, markdown, expanded: false };
        for batch in preview {
            for row in 0..batch.num_rows() {
                for (index, cell) in layout.cells(batch, row)?.iter().enumerate() {
                    layout.widths[index] = layout.widths[index].max(cell.width());
                }
            }
        }
        Ok(layout)
    }

    /// Columns with two blanks between them.
    fn total(&self) -> usize {
        self.widths.iter().map(|w| w + 2).sum::<usize>().saturating_sub(2)
    }

    fn cells(&self, batch: &RecordBatch, row: usize) -> Result<Vec<String>> {
        batch.columns().iter().map(|column| Ok(self.escape(text(column, row)?))).collect()
    }

    fn escape(&self, cell: Option<String>) -> String {
        let cell = cell.unwrap_or_default();
        let cell = if cell.contains(['\n', '\r', '\t']) {
            cell.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
        } else {
            cell
        };
        if self.markdown { cell.replace('|', "\\|") } else { cell }
    }

    fn header(&self, out: &mut impl Write) -> Result<()> {
        if self.expanded {
            return Ok(());
        }
        self.line(out, &self.names)?;
        if self.markdown {
            let rule: Vec<String> = self.widths.iter().zip(&self.right).map(|(w, r)| rule(*w, *r)).collect();
            writeln!(out, "|{}|", rule.join("|"))?;
        } else {
            let rules: Vec<String> = self.widths.iter().map(|w| "─".repeat(*w)).collect();
            writeln!(out, "{}", rules.join("  "))?;
        }
        Ok(())
    }

    fn rows(&self, out: &mut impl Write, batch: &RecordBatch, count: &mut u64) -> Result<()> {
        for row in 0..batch.num_rows() {
            *count += 1;
            let cells = self.cells(batch, row)?;
            if self.expanded {
                let name_width = self.names.iter().map(|n| n.width()).max().unwrap_or(0);
                writeln!(out, "── row {count} ──")?;
                for (name, cell) in self.names.iter().zip(&cells) {
                    writeln!(out, "{name}{}  {cell}", " ".repeat(name_width - name.width()))?;
                }
            } else {
                self.line(out, &cells)?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut impl Write, cells: &[String]) -> Result<()> {
        let padded = cells.iter().enumerate().map(|(index, cell)| {
            let pad = " ".repeat(self.widths[index].saturating_sub(cell.width()));
            if self.right[index] { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        if self.markdown {
            let padded: Vec<String> = padded.collect();
            writeln!(out, "| {} |", padded.join(" | "))?;
        } else {
            writeln!(out, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn rule(width: usize, right: bool) -> String {
    if right { format!("{}:", "-".repeat(width + 1)) } else { "-".repeat(width + 2) }
}

/// A cell as text: times in UTC with milliseconds and a `Z`; none for null.
pub fn text(array: &ArrayRef, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    if let Some(micros) = micros(array, row) {
        return Ok(Some(show(micros)));
    }
    let options = FormatOptions::default().with_display_error(false);
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    let value = formatter.value(row).try_to_string().context("a value cannot be shown")?;
    Ok(Some(value))
}

/// A row as a JSON object, columns in order.
pub fn json_row(batch: &RecordBatch, row: usize) -> Result<String> {
    let mut line = String::from("{");
    for (index, (field, column)) in batch.schema_ref().fields().iter().zip(batch.columns()).enumerate() {
        if index > 0 {
            line.push(',');
        }
        line.push_str(&Value::String(field.name().clone()).to_string());
        line.push(':');
        line.push_str(&json_value(field, column, row)?.to_string());
    }
    line.push('}');
    Ok(line)
}

/// Seqs are strings in JSON, since they may exceed what a JSON number holds exactly. A column is taken for one when it
/// is a BIGINT and its name says `seq`.
fn is_seq(field: &Field) -> bool {
    field.data_type() == &DataType::Int64 && field.name().to_lowercase().contains("seq")
}

/// Whether a text column holds JSON: the canonical Arrow extension type.
fn is_json(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json")
}

fn json_value(field: &Field, array: &ArrayRef, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    macro_rules! number {
        ($type:ty) => {
            json!(array.as_primitive::<$type>().value(row))
        };
    }
    Ok(match array.data_type() {
        DataType::Int64 if is_seq(field) => Value::String(array.as_primitive::<Int64Type>().value(row).to_string()),
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
        DataType::List(item) => json_items(item, &array.as_list::<i32>().value(row))?,
        DataType::LargeList(item) => json_items(item, &array.as_list::<i64>().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let entries = fields.iter().zip(columns).map(|(f, c)| Ok((f.name().clone(), json_value(f, c, row)?)));
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

fn json_items(item: &Field, items: &ArrayRef) -> Result<Value> {
    Ok(Value::Array((0..items.len()).map(|index| json_value(item, items, index)).collect::<Result<_>>()?))
}

/// A timestamp in microseconds; none for other types.
fn micros(array: &ArrayRef, row: usize) -> Option<i64> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000),
        TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000)),
    }
}
