//! Answers in one form, whoever gave them: rows of texts, as hypseq prints them in CSV.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// Rows, each with a text per column; a null is an empty one.
pub type Answer = Vec<Vec<String>>;

const TIME: &str = "%Y-%m-%dT%H:%M:%S%.3fZ";

/// Reads CSV with a header.
pub fn of_csv(text: &[u8]) -> Result<Answer> {
    let rows = csv::Reader::from_reader(text).into_records();
    rows.map(|row| Ok(row?.iter().map(str::to_owned).collect())).collect()
}

/// The rows of record batches, in order.
pub fn of_batches(batches: &[RecordBatch]) -> Result<Answer> {
    let options = FormatOptions::new().with_timestamp_tz_format(Some(TIME));
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| Ok(column.value(row).try_to_string()?));
            rows.push(cells.collect::<Result<_>>()?);
        }
    }
    Ok(rows)
}

/// The rows of a Parquet file, sorted: an export has no order.
pub fn of_parquet(file: &Path) -> Result<Answer> {
    let reading = || format!("cannot read `{}`", file.display());
    let batches = ParquetRecordBatchReaderBuilder::try_new(File::open(file).with_context(reading)?)?.build()?;
    let mut rows = of_batches(&batches.collect::<Result<Vec<_>, _>>().with_context(reading)?)?;
    rows.sort_unstable();
    Ok(rows)
}

/// A value of hypseq's JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
