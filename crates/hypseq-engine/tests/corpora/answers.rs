//! Opening a corpus and taking its answers as JSON.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use hypseq_cache::{Home, Problem};
use hypseq_engine::arrow::array::{Array, AsArray, RecordBatch};
use hypseq_engine::arrow::datatypes::{
    DataType, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use hypseq_engine::{Engine, EngineOptions, Error};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Drives the engine in tests that are not asynchronous themselves.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The folder of a corpus.
pub fn home(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A copy of a corpus in a folder of its own, which holds the home under the corpus' name.
pub fn copy(name: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    copy_folder(&home(name), &dir.path().join(name));
    dir
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// An engine over homes, and what was wrong with them.
pub fn open(homes: &[PathBuf]) -> (Engine, Vec<Problem>) {
    let homes: Vec<Home> = homes.iter().map(|home| Home::open(home).unwrap()).collect();
    RUNTIME.block_on(Engine::open(&homes, &EngineOptions::default())).unwrap()
}

/// An engine over one corpus.
pub fn corpus(name: &str) -> Engine {
    open(&[home(name)]).0
}

/// The rows of a query, as objects.
pub fn rows(engine: &Engine, sql: &str) -> Vec<Map<String, Value>> {
    try_rows(engine, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The rows of a query, or why there are none.
pub fn try_rows(engine: &Engine, sql: &str) -> Result<Vec<Map<String, Value>>, Error> {
    let batches = RUNTIME.block_on(async { engine.query(sql).await?.collect().await })?;
    Ok(batches.iter().flat_map(objects).collect())
}

/// The only value of a query.
pub fn value(engine: &Engine, sql: &str) -> Value {
    let rows = rows(engine, sql);
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
    rows[0].values().next().unwrap().clone()
}

fn objects(batch: &RecordBatch) -> Vec<Map<String, Value>> {
    let schema = batch.schema();
    let object = |row| {
        let cells = schema.fields().iter().zip(batch.columns());
        cells.map(|(field, column)| (field.name().clone(), cell(column, row))).collect()
    };
    (0..batch.num_rows()).map(object).collect()
}

fn cell(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().value(row).into(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == "UTC" => {
            let time = column.as_primitive::<TimestampMicrosecondType>().value_as_datetime(row).unwrap();
            time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string().into()
        }
        other => panic!("unexpected type {other}"),
    }
}
