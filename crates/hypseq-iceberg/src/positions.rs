//! Position-delete files: Parquet with the columns `file_path` and `pos`, a row for each deleted row.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use roaring::RoaringTreemap;

use crate::avro::Mismatch;
use crate::{Error, guarded, io_error};

const EXPECTED: &str = "a Parquet file of position deletes";

/// Deleted positions by the data file's URL, as written.
pub(crate) type Positions = BTreeMap<String, RoaringTreemap>;

/// Reads a position-delete file.
///
/// # Errors
/// [`Error::Io`], or [`Error::Invalid`] at the first thing that does not verify.
pub(crate) fn read(path: &Path, record_count: u64) -> Result<Positions, Error> {
    let file = File::open(path).map_err(|e| io_error(path, &e))?;
    let decoded = guarded(|| decode(file, record_count)).unwrap_or_else(|panic| Err(Mismatch::new(EXPECTED, &panic)));
    decoded.map_err(|mismatch| mismatch.in_file(path))
}

fn decode(file: File, record_count: u64) -> Result<Positions, Mismatch> {
    let mismatch = |e: &dyn std::fmt::Display| Mismatch::new(EXPECTED, e);
    // An embedded Arrow schema could ask for other types than the file's own.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(|e| mismatch(&e))?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), ["file_path", "pos"]);
    let reader = builder.with_projection(columns).build().map_err(|e| mismatch(&e))?;
    let mut rows = 0;
    let mut by_url = Positions::new();
    for batch in reader {
        let batch = batch.map_err(|e| mismatch(&e))?;
        rows += batch.num_rows() as u64;
        add(&mut by_url, &batch)?;
    }
    verify_row_count(rows, record_count)?;
    Ok(by_url)
}

fn add(by_url: &mut Positions, batch: &RecordBatch) -> Result<(), Mismatch> {
    let column = |name: &str| {
        let column = batch.column_by_name(name);
        column.ok_or_else(|| Mismatch::new("a position-delete file's columns", &format!("no `{name}`")))
    };
    let (urls, positions) = (column("file_path")?, column("pos")?);
    let urls = urls.as_string_opt::<i32>().ok_or_else(|| Mismatch::new("text in `file_path`", urls.data_type()))?;
    let positions = positions
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Mismatch::new("long in `pos`", positions.data_type()))?;
    // Files are sorted by URL: look the set up once for each run.
    let mut run: Option<(&str, RoaringTreemap)> = None;
    let mut flush = |run: Option<(&str, RoaringTreemap)>| {
        if let Some((url, rows)) = run {
            *by_url.entry(url.to_owned()).or_default() |= rows;
        }
    };
    for (url, position) in urls.iter().zip(positions) {
        let (url, position) = verify_row(url, position)?;
        if run.as_ref().is_none_or(|(current, _)| *current != url) {
            flush(run.replace((url, RoaringTreemap::new())));
        }
        if let Some((_, rows)) = &mut run {
            rows.insert(position);
        }
    }
    flush(run);
    Ok(())
}

fn verify_row(url: Option<&str>, position: Option<i64>) -> Result<(&str, u64), Mismatch> {
    let row = url.zip(position.and_then(|p| u64::try_from(p).ok()));
    row.ok_or_else(|| {
        let position = position.map_or_else(|| "null".to_owned(), |p| p.to_string());
        Mismatch::new("a URL and a position in each row", &format!("{} at {position}", url.unwrap_or("null")))
    })
}

fn verify_row_count(rows: u64, record_count: u64) -> Result<(), Mismatch> {
    if rows == record_count {
        return Ok(());
    }
    Err(Mismatch::new(
        format!("a position-delete file of {record_count} rows, as its manifest says"),
        &format!("one of {rows}"),
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::damage::damaged;

    fn read_bytes(bytes: &[u8]) -> Result<Positions, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path(), 40)
    }

    fn position_deletes() -> Vec<u8> {
        let urls: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..40).map(|i| format!("file:///t/data/{}", i / 20))));
        let positions: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40).map(|i| i % 20)));
        let batch = RecordBatch::try_from_iter([("file_path", urls), ("pos", positions)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    }

    #[test]
    fn reads_positions_by_url() {
        let positions = read_bytes(&position_deletes()).unwrap();
        let expected: RoaringTreemap = (0..20).collect();
        assert_eq!(
            positions,
            Positions::from([
                ("file:///t/data/0".to_owned(), expected.clone()),
                ("file:///t/data/1".to_owned(), expected)
            ])
        );
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_decoded_or_refused(bytes in damaged(position_deletes())) {
            let _ = read_bytes(&bytes);
        }
    }
}
