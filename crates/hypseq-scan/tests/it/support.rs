//! The corpora, and copies of a generation that a test may damage.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use hypseq_iceberg::{SnapshotFiles, Table};
use hypseq_scan::{Columns, Scan, scan_generation};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use tempfile::TempDir;

pub const CORPORA: [&str; 6] = ["neutral", "monotone", "legacy", "skew", "crashed", "sinks"];

/// The live generation of `neutral`, `source=claude`: 1005 rows, 105 of them deleted by four vectors.
pub const NEUTRAL: &str = "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";

/// Its data file of 25 rows, all deleted, and the vector that does it.
pub const DELETED_FILE: &str = "data/a3a1cc74-412d-4e50-8796-7bfbf6832310.parquet";
pub const VECTOR: &str = "data/1cd86e3b-aa93-4667-ae8e-3209139f6906-deletes.puffin";

/// A data file of it with 19 rows, none deleted.
pub const WHOLE_FILE: &str = "data/a7b76279-06b9-4eb5-94f6-58c8fd27818e.parquet";

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// A generation of `expected.json`.
pub struct Expected {
    pub dataset: String,
    pub dir: PathBuf,
    pub figures: Value,
}

pub fn generations(corpus: &str) -> Vec<Expected> {
    let json = fs::read(testdata().join("expected").join(format!("{corpus}.expected.json"))).unwrap();
    let expected: Value = serde_json::from_slice(&json).unwrap();
    let mut generations = Vec::new();
    for partition in expected["partitions"].as_array().unwrap() {
        let dataset = partition["dataset"].as_str().unwrap();
        let dir = testdata().join(corpus).join("hypaware/cache/datasets").join(dataset);
        let dir = dir.join(partition["partition"].as_str().unwrap());
        for figures in partition["generations"].as_array().unwrap() {
            generations.push(Expected {
                dataset: dataset.to_owned(),
                dir: dir.join(figures["generation"].as_str().unwrap()),
                figures: figures.clone(),
            });
        }
    }
    generations
}

pub fn open(dir: &Path) -> (Table, SnapshotFiles) {
    let table = Table::open(dir).unwrap();
    let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap();
    (table, files)
}

pub fn scan(dataset: &str, dir: &Path) -> Scan {
    let (table, files) = open(dir);
    scan_generation(&table, &files, &Columns::of(dataset, table.metadata.current_schema()))
}

/// A generation copied to where it may be damaged.
pub struct Copy(TempDir);

impl Copy {
    pub fn of(generation: &str) -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        for folder in ["data", "metadata"] {
            fs::create_dir(copy.path(folder)).unwrap();
            for file in fs::read_dir(testdata().join(generation).join(folder)).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), copy.path(folder).join(file.file_name())).unwrap();
            }
        }
        copy
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn scan(&self) -> Scan {
        scan("ai_gateway_messages", self.0.path())
    }

    pub fn only_data_file(&self) -> PathBuf {
        let files: Vec<_> = fs::read_dir(self.path("data")).unwrap().map(|file| file.unwrap().path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        file.clone()
    }

    /// Makes the manifest say that a data file has another number of rows. Below 64 it is one byte, right after the
    /// partition's last value, a date.
    pub fn set_record_count(&self, name: &str, from: u8, to: u8) {
        for file in fs::read_dir(self.path("metadata")).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let find = |bytes: &[u8], from: usize, what: &[u8]| {
                bytes[from..].windows(what.len()).position(|w| w == what).map(|at| from + at + what.len())
            };
            let entry = find(&bytes, 0, &[name.as_bytes(), b"\x0ePARQUET"].concat());
            if let Some(date) = entry.and_then(|entry| find(&bytes, entry, b"\x02\x142026-")) {
                let count = &mut bytes[date + "mm-dd".len()];
                assert_eq!(*count, from * 2);
                *count = to * 2;
                fs::write(&path, &bytes).unwrap();
            }
        }
    }

    /// Replaces a file by one of these columns, with as many rows to a row group.
    pub fn replace(&self, name: &str, columns: &[(&str, ArrayRef)], rows_per_group: usize) {
        let columns = columns.iter().map(|(name, column)| (*name, Arc::clone(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
        let file = File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

pub fn longs(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

pub fn texts(values: impl IntoIterator<Item = Option<&'static str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

pub fn micros(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}
