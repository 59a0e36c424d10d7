//! Reads generated homes with nothing but the Parquet crate for rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use hypseq_cache::{GenerationState as CacheState, Home, Partition};
use hypseq_iceberg::{DataFile, Table};
use hypseq_testkit::{GenerationState, PartitionTruth, Truth};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A row: its seq, its time in microseconds, and its id.
pub type Row = (Option<i64>, Option<i64>, String);

/// The rows of a data file in physical order.
pub fn read_file(path: &Path, partition: &PartitionTruth) -> Vec<Row> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    let batch = concat_batches(&schema, &batches).unwrap();
    let seqs = batch.column_by_name("_hyp_ingest_seq").map(AsArray::as_primitive::<Int64Type>);
    let times = batch.column_by_name(partition.time_column).unwrap().as_primitive::<TimestampMicrosecondType>();
    let ids = batch.column_by_name(partition.id_column).unwrap().as_string::<i32>();
    (0..batch.num_rows())
        .map(|row| {
            let seq = seqs.filter(|seqs| seqs.is_valid(row)).map(|seqs| seqs.value(row));
            (seq, times.is_valid(row).then(|| times.value(row)), ids.value(row).to_owned())
        })
        .collect()
}

/// Rows with how often each occurs.
pub fn count(rows: impl IntoIterator<Item = Row>) -> BTreeMap<Row, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row).or_default() += 1;
    }
    counts
}

/// A generation as it was read: its rows, visible and deleted.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents {
    pub visible: BTreeMap<Row, usize>,
    pub deleted: BTreeMap<Row, usize>,
}

/// What the truth says of a generation.
pub fn expected(partition: &PartitionTruth, generation: usize) -> Contents {
    let row = |row: &hypseq_testkit::RowTruth| (row.seq, row.time_ms.map(|ms| ms * 1000), row.id.clone());
    Contents {
        visible: count(partition.rows.iter().filter(|r| r.is_visible(generation)).map(row)),
        deleted: count(partition.rows.iter().filter(|r| r.is_deleted(generation)).map(row)),
    }
}

/// Compares a home with its truth: states, counts, rows, deletes, bounds, watermarks and the allocator. Nothing may be
/// reported as a problem.
pub fn assert_true(home: &Path, truth: &Truth) {
    let home = Home::open(home).unwrap();
    assert_eq!(home.allocator().unwrap().unwrap().next_seq, truth.next_seq);
    assert_eq!(home.policy().problems, []);
    let spool = home.spool();
    assert_eq!(spool.problems, []);
    assert_eq!(spool.value.iter().map(|batch| batch.rows.len()).sum::<usize>(), truth.spooled);
    let partitions = home.partitions();
    assert_eq!(partitions.problems, []);
    assert_eq!(partitions.value.len(), truth.partitions.len());
    for expected in &truth.partitions {
        let found = partitions.value.iter().find(|partition| {
            (partition.id.dataset.as_str(), &partition.id.path) == (expected.dataset, &expected.path)
        });
        assert_partition(found.unwrap(), expected);
    }
    assert_watermarks(&home, truth);
}

fn assert_watermarks(home: &Home, truth: &Truth) {
    let watermarks = home.watermarks();
    assert_eq!(watermarks.problems, []);
    let found: BTreeMap<String, (i64, u64)> = watermarks
        .value
        .iter()
        .map(|file| {
            let watermark = file.state.as_ref().unwrap();
            (format!("{}/{}", file.dataset, file.partition), (watermark.seq, watermark.exported_row_count))
        })
        .collect();
    let expected = truth.partitions.iter().filter_map(|partition| {
        let watermark = partition.watermark?;
        Some((format!("{}/{}", partition.dataset, partition.path), (watermark.seq, watermark.exported)))
    });
    assert_eq!(found, expected.collect());
}

fn assert_partition(found: &Partition, truth: &PartitionTruth) {
    let states: Vec<_> = found.generations.iter().map(|g| (g.name.clone(), g.state)).collect();
    let expected_states = truth.generations.iter().map(|generation| {
        let state = match generation.state {
            GenerationState::Live => CacheState::Live,
            GenerationState::Retired => CacheState::Retired,
        };
        (generation.name.clone(), state)
    });
    assert_eq!(states, expected_states.collect::<Vec<_>>());
    for (place, generation) in found.generations.iter().enumerate() {
        let table = Table::open(&generation.dir).unwrap();
        assert_eq!(table.notes, [] as [&str; 0]);
        let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap();
        assert_eq!(files.problems, []);
        assert_eq!(table.unreferenced_files(&files).unwrap(), [] as [std::path::PathBuf; 0]);
        let said = &truth.generations[place];
        assert_eq!(files.data.len() as u64, said.data_files, "{}", generation.name);
        let raw: u64 = files.data.iter().map(|file| file.record_count).sum();
        let deleted: u64 = files.data.iter().map(|file| file.deleted_count().unwrap()).sum();
        assert_eq!((raw, raw - deleted), (said.raw_rows, said.visible_rows), "{}", generation.name);

        let mut rows = Vec::new();
        for file in &files.data {
            let in_file = read_file(&file.path, truth);
            assert_file(&table, file, truth, &in_file);
            let gone = file.deleted_rows().unwrap();
            rows.extend(in_file.into_iter().zip(0..).map(|(row, place)| (row, gone.contains(place))));
        }
        let (deleted, visible): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, gone)| *gone);
        let rows_of = |rows: Vec<(Row, bool)>| count(rows.into_iter().map(|(row, _)| row));
        let contents = Contents { visible: rows_of(visible), deleted: rows_of(deleted) };
        assert_eq!(contents, expected(truth, place), "{}", generation.name);
    }
}

/// What a manifest states of a file is true; it need not state all.
fn assert_file(table: &Table, file: &DataFile, truth: &PartitionTruth, rows: &[Row]) {
    assert_eq!(rows.len() as u64, file.record_count);
    assert_eq!(std::fs::metadata(&file.path).unwrap().len(), file.file_size);
    let id = |name: &str| table.metadata.current_schema().field(name).unwrap().id;
    let columns = [
        (id("_hyp_ingest_seq"), rows.iter().map(|row| row.0).collect::<Vec<_>>()),
        (id(truth.time_column), rows.iter().map(|row| row.1).collect()),
    ];
    for (id, values) in columns {
        let Some(stated) = file.bounds.get(&id) else { continue };
        let known = || values.iter().flatten().copied();
        assert!(stated.lower.is_none() || stated.lower == known().min());
        assert!(stated.upper.is_none() || stated.upper == known().max());
        let nulls = values.iter().filter(|value| value.is_none()).count() as u64;
        assert!(stated.nulls.is_none_or(|stated| stated == nulls));
    }
}
