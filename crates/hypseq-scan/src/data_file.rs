//! One data file, opened: its columns and its rows.

use std::fs::File;
use std::path::Path;

use arrow::array::RecordBatch;
use hypseq_iceberg::{Schema, guarded};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

/// Why a data file's rows cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub(crate) struct Unusable {
    expected: String,
    found: String,
}

impl Unusable {
    pub(crate) fn new(expected: impl Into<String>, found: &dyn std::fmt::Display) -> Self {
        Self { expected: expected.into(), found: found.to_string() }
    }

    fn parquet(found: &dyn std::fmt::Display) -> Self {
        Self::new("a readable Parquet file", found)
    }
}

/// A top-level column of a data file.
#[derive(Debug)]
pub(crate) struct Column {
    pub id: Option<i32>,
    pub name: String,
}

/// A data file whose footer has been read.
pub(crate) struct DataFileReader(ParquetRecordBatchReaderBuilder<File>);

impl DataFileReader {
    fn open(path: &Path) -> Result<Self, Unusable> {
        let file = File::open(path).map_err(|e| Unusable::parquet(&e))?;
        // An Arrow schema that some writers embed could ask for other types than the file's own.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
            .map(Self)
            .map_err(|e| Unusable::parquet(&e))
    }

    /// Rows, as the footer says.
    pub(crate) fn rows(&self) -> Result<u64, Unusable> {
        let rows = self.0.metadata().file_metadata().num_rows();
        u64::try_from(rows).map_err(|_| Unusable::new("a footer with 0 or more rows", &rows))
    }

    /// Its top-level columns, in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let fields = self.0.parquet_schema().root_schema().get_fields().iter();
        fields
            .map(|field| {
                let info = field.get_basic_info();
                Column { id: info.has_id().then(|| info.id()), name: field.name().to_owned() }
            })
            .collect()
    }

    /// The rows in order, with these top-level columns only.
    pub(crate) fn batches(
        self,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, Unusable>>, Unusable> {
        let mask = ProjectionMask::roots(self.0.parquet_schema(), columns);
        let reader = self.0.with_projection(mask).with_batch_size(8192).build().map_err(|e| Unusable::parquet(&e))?;
        Ok(reader.map(|batch| batch.map_err(|e| Unusable::parquet(&e))))
    }
}

/// Opens a data file and reads it; a panic of the Parquet decoder is an error.
pub(crate) fn read<T>(path: &Path, read: impl FnOnce(DataFileReader) -> Result<T, Unusable>) -> Result<T, Unusable> {
    guarded(|| read(DataFileReader::open(path)?)).unwrap_or_else(|panic| Err(Unusable::parquet(&panic)))
}

/// Where the table's column of that name stands in a file: by field id, and by name among columns without one.
pub(crate) fn position(columns: &[Column], schema: &Schema, name: &str) -> Option<usize> {
    let by_id = schema.field(name).and_then(|field| columns.iter().position(|c| c.id == Some(field.id)));
    by_id.or_else(|| columns.iter().position(|c| c.id.is_none() && c.name == name))
}

pub(crate) fn verify_row_count(found: u64, expected: u64) -> Result<(), Unusable> {
    if found == expected {
        return Ok(());
    }
    Err(Unusable::new(format!("{expected} rows, as its manifest says"), &found))
}
