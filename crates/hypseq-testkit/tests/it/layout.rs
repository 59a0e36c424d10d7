//! What a generated cache looks like, beside one that HypAware wrote.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray};
use hypseq_testkit::{CacheSpec, DeleteForm, Doomed, Flow, PartitionSpec, Step, generate};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, PageType, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet_variant::Variant;
use parquet_variant_json::VariantToJson as _;
use serde_json::Value;
use tempfile::TempDir;

const REAL: &str = "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";

fn real() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(REAL)
}

/// A cache of one partition with a purge and several row groups per file, and its live generation's folder.
fn made() -> (TempDir, PathBuf) {
    let spec = CacheSpec {
        partitions: vec![PartitionSpec { sessions: 1, session_rows: 40..=40, ..PartitionSpec::messages("claude") }],
        steps: vec![
            Step::Flow(Flow { flush_rows: 40, ..Flow::hours(&[40], 0..=3) }),
            Step::Delete { partition: 0, rows: Doomed::Any(6), form: DeleteForm::Vectors },
        ],
        row_group_rows: Some(15),
        ..CacheSpec::default()
    };
    let home = tempfile::tempdir().unwrap();
    generate(&spec, home.path()).unwrap();
    let dir = home.path().join("hypaware/cache/datasets/ai_gateway_messages/source=claude/table");
    (home, dir)
}

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_str().unwrap().ends_with(suffix));
    found.sort();
    found
}

fn data_file(dir: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(&files(&dir.join("data"), ".parquet")[0]).unwrap()).unwrap()
}

fn iceberg_schema(metadata: &ParquetMetaData) -> Value {
    let entries = metadata.file_metadata().key_value_metadata().unwrap();
    assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["iceberg.schema"]);
    serde_json::from_str(entries[0].value.as_ref().unwrap()).unwrap()
}

#[test]
fn data_files_have_the_same_columns() {
    let (_home, dir) = made();
    let (made, real) = (data_file(&dir), data_file(&real()));
    let (made, real) = (made.metadata(), real.metadata());
    assert_eq!(made.file_metadata().schema(), real.file_metadata().schema());
    assert_eq!(iceberg_schema(made), iceberg_schema(real));
}

#[test]
fn data_files_are_encoded_in_the_same_way() {
    let (_home, dir) = made();
    let reader = data_file(&dir);
    assert_eq!(reader.metadata().file_metadata().created_by(), Some("hypseq-testkit"));
    let rows: Vec<_> =
        reader.metadata().row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
    assert_eq!(rows, [15, 15, 10]);
    for group in 0..3 {
        let pages = reader.get_row_group(group).unwrap();
        for column in 0..pages.num_columns() {
            let metadata = pages.metadata().column(column);
            assert_eq!(metadata.compression(), Compression::SNAPPY);
            assert_eq!((metadata.column_index_offset(), metadata.offset_index_offset()), (None, None));
            assert_eq!(metadata.bloom_filter_offset(), None);
            for page in pages.get_column_page_reader(column).unwrap() {
                let page = page.unwrap();
                let is_right = match page.page_type() {
                    PageType::DATA_PAGE_V2 if metadata.column_type() == Physical::BOOLEAN => {
                        page.encoding() == Encoding::RLE
                    }
                    PageType::DATA_PAGE_V2 => matches!(page.encoding(), Encoding::PLAIN | Encoding::RLE_DICTIONARY),
                    kind => kind == PageType::DICTIONARY_PAGE,
                };
                assert!(is_right, "{}: {:?} {:?}", metadata.column_path(), page.page_type(), page.encoding());
            }
        }
    }
}

/// For each column whether its footer states a least and a greatest value.
fn bounds(metadata: &ParquetMetaData) -> BTreeMap<String, bool> {
    let of = |column: &ColumnChunkMetaData| {
        let statistics = column.statistics().unwrap();
        assert!(statistics.null_count_opt().is_some());
        (column.column_path().string(), statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some())
    };
    metadata.row_group(0).columns().iter().map(of).collect()
}

#[test]
fn footers_state_the_same_and_no_times() {
    let (_home, dir) = made();
    let made = bounds(data_file(&dir).metadata());
    assert_eq!(made, bounds(data_file(&real()).metadata()));
    assert!(made["_hyp_ingest_seq"] && !made["message_created_at"] && !made["conversation_started_at"]);
}

/// The fields of a JSON object, of those in it, and of the first element of lists.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(list) => list.iter().take(1).map(shape).collect(),
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        other => other.clone(),
    }
}

fn newest_metadata(dir: &Path) -> Value {
    let hint = fs::read_to_string(dir.join("metadata/version-hint.text")).unwrap();
    serde_json::from_slice(&fs::read(dir.join(format!("metadata/v{hint}.metadata.json"))).unwrap()).unwrap()
}

#[test]
fn table_metadata_has_the_same_shape() {
    let (_home, dir) = made();
    let (made, real) = (newest_metadata(&dir), newest_metadata(&real()));
    assert_eq!(shape(&made), shape(&real));
    assert_eq!(made["schemas"], real["schemas"]);
    assert_eq!(made["partition-specs"], real["partition-specs"]);
    assert_eq!(made["snapshots"][1]["summary"]["operation"], "delete");
    let summary = |metadata: &Value| {
        let snapshots = metadata["snapshots"].as_array().unwrap();
        shape(&snapshots.iter().find(|snapshot| snapshot["summary"]["operation"] == "delete").unwrap()["summary"])
    };
    assert_eq!(summary(&made), summary(&real));
    assert_eq!(made["snapshots"][1]["parent-snapshot-id"], made["snapshots"][0]["snapshot-id"]);
    let location = "file:///home/op/.hyp/hypaware/cache/datasets/ai_gateway_messages/source=claude/table";
    assert_eq!(made["location"], location);
    assert!(made["snapshots"][0]["manifest-list"].as_str().unwrap().starts_with(&format!("{location}/metadata/snap-")));
    assert!(!Path::new(location.strip_prefix("file://").unwrap()).exists());
}

/// The metadata of an Avro file: a map of texts after four bytes.
fn avro_header(path: &Path) -> BTreeMap<String, String> {
    fn long(rest: &mut &[u8]) -> usize {
        let length = rest.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let (bytes, after) = rest.split_at(length);
        *rest = after;
        bytes.iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f)) >> 1
    }
    fn text(rest: &mut &[u8]) -> String {
        let length = long(rest);
        let (text, after) = rest.split_at(length);
        *rest = after;
        String::from_utf8(text.to_vec()).unwrap()
    }
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[4..];
    let count = long(&mut rest);
    (0..count).map(|_| (text(&mut rest), text(&mut rest))).collect()
}

/// Headers of Avro files, those whose names end so.
fn headers(dir: &Path, suffix: &str) -> Vec<BTreeMap<String, String>> {
    files(&dir.join("metadata"), suffix).iter().map(|path| avro_header(path)).collect()
}

#[test]
fn manifests_have_the_same_headers() {
    let (_home, dir) = made();
    let find = |headers: Vec<BTreeMap<String, String>>, content: &str| {
        let header = headers.into_iter().find(|header| header["content"] == content);
        header.unwrap()
    };
    for content in ["data", "deletes"] {
        let made = find(headers(&dir, "-m0.avro"), content);
        assert_eq!(made, find(headers(&real(), "-m0.avro"), content), "{content}");
    }
    let made = headers(&dir, ".avro").into_iter().find(|header| header.contains_key("snapshot-id")).unwrap();
    let real = headers(&real(), ".avro").into_iter().find(|header| header.contains_key("snapshot-id")).unwrap();
    assert_eq!(made["avro.schema"], real["avro.schema"]);
    assert_eq!(made.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
}

#[test]
fn a_deletion_vector_has_a_puffin_file_of_its_own() {
    let (_home, dir) = made();
    let (made, real) = (files(&dir.join("data"), ".puffin"), files(&real().join("data"), ".puffin"));
    assert_eq!(made.len(), 1);
    let footer = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        let (rest, tail) = bytes.split_at(bytes.len() - 12);
        assert_eq!(&tail[4..], b"\0\0\0\0PFA1");
        let length = u32::from_le_bytes(tail[..4].try_into().unwrap()) as usize;
        serde_json::from_slice::<Value>(&rest[rest.len() - length..]).unwrap()
    };
    let (made, real) = (footer(&made[0]), footer(&real[0]));
    assert_eq!(shape(&made), shape(&real));
    assert_eq!(made["blobs"][0]["properties"]["cardinality"], "6");
}

/// The JSON texts of a variant column.
fn variants(dir: &Path, name: &str) -> Vec<String> {
    let file = File::open(&files(&dir.join("data"), ".parquet")[0]).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    let in_batch = |batch: &arrow::array::RecordBatch| {
        let column = batch.column_by_name(name).unwrap().as_struct();
        assert_eq!(column.null_count(), 0);
        let (metadata, value) = (column.column(0).as_binary::<i32>(), column.column(1).as_binary::<i32>());
        let json = |row| Variant::new(metadata.value(row), value.value(row)).to_json_string().unwrap();
        (0..batch.num_rows()).map(json).collect::<Vec<_>>()
    };
    batches.iter().flat_map(in_batch).collect()
}

#[test]
fn json_columns_are_variants_and_null_is_one_too() {
    let (_home, dir) = made();
    assert!(variants(&dir, "raw_frame").iter().all(|json| json == "null"));
    let latencies = variants(&dir, "attributes");
    assert!(latencies.iter().all(|json| json.starts_with(r#"{"gateway":{"identity_source":"native","latency_ms":"#)));
    let args: Vec<_> = variants(&dir, "tool_args").into_iter().filter(|json| json != "null").collect();
    assert!(!args.is_empty() && args.len() < 40);
    let value: Value = serde_json::from_str(&args[0]).unwrap();
    assert_eq!(value["deep"]["s"], "é✓");
}
