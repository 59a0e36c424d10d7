//! Every generation of every corpus, against the figures that HypAware's own reader gives.

use std::path::{Path, PathBuf};

use hypseq_iceberg::{Bounds, DataFile, DeleteKind, Error, Table, unreferenced};
use serde_json::Value;

const SEQ_ID: i32 = 57;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn datasets(corpus: &str) -> PathBuf {
    testdata().join(corpus).join("hypaware/cache/datasets")
}

/// Each generation of `expected.json` with its folder.
fn generations() -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for corpus in ["neutral", "monotone", "legacy", "skew", "crashed", "sinks"] {
        let json = std::fs::read(testdata().join("expected").join(format!("{corpus}.expected.json"))).unwrap();
        let expected: Value = serde_json::from_slice(&json).unwrap();
        for partition in expected["partitions"].as_array().unwrap() {
            let text = |key: &str| partition[key].as_str().unwrap();
            let dir = datasets(corpus).join(text("dataset")).join(text("partition"));
            for generation in partition["generations"].as_array().unwrap() {
                found.push((dir.join(generation["generation"].as_str().unwrap()), generation.clone()));
            }
        }
    }
    found
}

fn data_files(table: &Table) -> Vec<DataFile> {
    let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap();
    assert_eq!(files.problems, []);
    files.data
}

#[test]
fn every_generation_has_the_rows_that_hypaware_sees() {
    let mut opened = 0;
    for (dir, expected) in generations() {
        if expected["has_metadata"] == false {
            let found = Table::open(&dir).unwrap_err();
            assert_eq!(found, Error::NoMetadata { path: dir, found: "there is no `metadata` folder".to_owned() });
            continue;
        }
        opened += 1;
        let table = Table::open(&dir).unwrap();
        let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap();
        assert_eq!(files.problems, []);
        assert_eq!(table.unreferenced_files(&files).unwrap(), [] as [PathBuf; 0]);
        let data = files.data;
        let visible: u64 = data.iter().map(|f| f.record_count - f.deleted_count().unwrap()).sum();
        assert_eq!(visible, expected["live_rows"].as_u64().unwrap(), "{}", dir.display());
        for file in &data {
            assert_eq!(file.deleted_rows().unwrap().len(), file.deleted_count().unwrap());
            assert_eq!(std::fs::metadata(&file.path).unwrap().len(), file.file_size);
        }
    }
    assert_eq!(opened, 45);
}

#[test]
fn bounds_of_the_seq_are_exact() {
    for (dir, expected) in generations() {
        if expected["has_metadata"] == false {
            continue;
        }
        let table = Table::open(&dir).unwrap();
        let data = data_files(&table);
        if data.iter().any(|f| f.deleted_count() != Some(0)) || expected["min_seq"].is_null() {
            continue;
        }
        let seq_id = table.metadata.current_schema().field("_hyp_ingest_seq").unwrap().id;
        let bounds: Vec<Bounds> = data.iter().filter_map(|f| f.bounds.get(&seq_id)).copied().collect();
        let as_text = |value: Option<i64>| Value::from(value.unwrap().to_string());
        assert_eq!(as_text(bounds.iter().filter_map(|b| b.lower).min()), expected["min_seq"], "{}", dir.display());
        assert_eq!(as_text(bounds.iter().filter_map(|b| b.upper).max()), expected["max_seq"], "{}", dir.display());
        // A file from before the column existed has no entry for it at all.
        let with_seq: u64 =
            data.iter().filter_map(|f| f.bounds.get(&seq_id).map(|b| f.record_count - b.nulls.unwrap())).sum();
        let null_seqs = expected["null_seq_rows"].as_u64().unwrap();
        assert_eq!(with_seq, expected["live_rows"].as_u64().unwrap() - null_seqs, "{}", dir.display());
    }
}

#[test]
fn reads_one_data_file_in_full() {
    let dir = datasets("neutral").join("ai_gateway_messages/source=claude/table-1796095174466");
    let table = Table::open(&dir).unwrap();
    assert_eq!(table.metadata_file, dir.join("metadata/v12.metadata.json"));
    assert_eq!(table.metadata.table_uuid, "01f78242-adcc-41bb-bfe4-87db8a202f83");
    assert_eq!(table.notes, [] as [&str; 0]);
    assert_eq!(table.metadata.snapshots.len(), 11);
    assert_eq!(table.metadata.current_snapshot().unwrap().operation.as_deref(), Some("append"));

    let data = data_files(&table);
    let file = data.iter().find(|f| f.path.ends_with("a3a1cc74-412d-4e50-8796-7bfbf6832310.parquet")).unwrap();
    assert_eq!(file.url, format!("{}/data/a3a1cc74-412d-4e50-8796-7bfbf6832310.parquet", table.metadata.location));
    let [delete] = file.deletes()[..] else { panic!("{:?}", file.deletes()) };
    assert_eq!(delete.path, dir.join("data/1cd86e3b-aa93-4667-ae8e-3209139f6906-deletes.puffin"));
    assert_eq!(delete.kind, DeleteKind::DeletionVector { offset: 4, length: 90, data_file_url: file.url.clone() });
    assert_eq!((delete.record_count, file.deleted_count()), (25, Some(25)));
    assert_eq!(file.deleted_rows().unwrap().0.iter().collect::<Vec<_>>(), (0..25).collect::<Vec<_>>());
    assert!(file.sequence_number <= delete.sequence_number);

    let first = data.iter().find(|f| f.path.ends_with("a7b76279-06b9-4eb5-94f6-58c8fd27818e.parquet")).unwrap();
    assert_eq!(first.record_count, 19);
    assert_eq!(first.snapshot_id, Some(5_587_618_449_760_367));
    assert_eq!(first.bounds[&SEQ_ID], Bounds { lower: Some(1335), upper: Some(1372), nulls: Some(0) });
    assert_eq!(first.bounds.keys().copied().collect::<Vec<_>>(), [10, 34, SEQ_ID]);
}

#[test]
fn every_older_snapshot_opens_too() {
    let dir = datasets("neutral").join("ai_gateway_messages/source=claude/table-1796095174466");
    let table = Table::open(&dir).unwrap();
    let rows = |f: &DataFile| f.record_count - f.deleted_count().unwrap();
    let visible: Vec<u64> =
        table.metadata.snapshots.iter().map(|s| table.files(s).unwrap().data.iter().map(rows).sum()).collect();
    // `total-records` less `total-position-deletes` of each snapshot's summary.
    assert_eq!(visible, [680, 709, 743, 793, 820, 844, 885, 925, 820, 860, 900]);
}

#[test]
fn an_orphan_without_metadata_is_listed() {
    let dir = datasets("crashed").join("ai_gateway_messages/source=claude/table-1796099999999");
    let found = unreferenced(&dir).unwrap();
    assert_eq!(found, [dir.join("data/077aa7e2-a97a-47a1-b105-7d8b77a32e64.parquet")], "and not the temporary file");
    assert_eq!(unreferenced(&dir.join("nope")).unwrap(), [] as [PathBuf; 0]);
}

#[test]
fn a_missing_version_hint_is_noted() {
    let dir = datasets("crashed").join("ai_gateway_messages/source=claude/table-1796095577882");
    let table = Table::open(&dir).unwrap();
    assert_eq!(table.notes, ["there is no `version-hint.text`; the metadata file with the highest number is read"]);
}
