//! `verify` over generations, whole and tampered with.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::support::{CLAUDE, T, by, copy, files, home, items, json_of, run};

const VERIFY: [&str; 3] = ["verify", "--at", T];

fn verdicts(shown: &Value) -> Vec<(String, String)> {
    let verdict = |g: &Value| (g["name"].to_string(), g["verdict"].as_str().unwrap_or_default().to_owned());
    items(&shown["generations"]).iter().map(verdict).collect()
}

fn verify(home: &str, point: &[&str], partition: &[&str]) -> (i32, Value) {
    let ran = json_of(home, &[&["verify"], point, partition].concat());
    (ran.status, ran.json())
}

#[test]
fn the_incident_is_proven() {
    let shown = json_of(&home("neutral"), &[&VERIFY, &CLAUDE[..]].concat()).exits(0).json();
    assert_eq!((&shown["seq"], &shown["proven"]), (&json!("722"), &json!(true)));
    let found: Vec<(String, String)> = verdicts(&shown);
    let found: Vec<&str> = found.iter().map(|(_, verdict)| verdict.as_str()).collect();
    assert_eq!(found, ["ends-before", "agrees", "agrees", "agrees"]);
    let live = by(&shown["generations"], "name", "table-1796095174466");
    assert_eq!((&live["state"], &live["covers"], &live["missing_rows"]), (&json!("live"), &json!(true), &json!(296)));
    assert_eq!(
        (&live["tight_seq"], &live["safe_seq"], &live["first_seq_after"]),
        (&json!("1254"), &json!("722"), &json!("724"))
    );
    let retired = by(&shown["generations"], "name", "table-1796095172778");
    assert!(retired["explanation"].as_str().is_some_and(|e| e.contains("-deletes.puffin")), "{retired:#}");
    assert_eq!(by(&shown["generations"], "name", "table")["covers"], false);

    let text = run([&["--home", &home("neutral")], &VERIFY[..], &CLAUDE].concat()).exits(0).stdout;
    assert!(text.contains("the boundary at seq 722 is proven"), "{text}");
    assert!(text.contains("2 generations beside the live one cover it and agree on both rows."), "{text}");
}

#[test]
fn a_deep_comparison_agrees_too() {
    let ran = json_of(&home("neutral"), &[&VERIFY[..], &["--deep"], &CLAUDE].concat()).exits(0);
    assert_eq!(ran.json()["proven"], true);
}

#[test]
fn rows_deleted_at_the_boundary_are_named() {
    let (status, shown) = verify(&home("neutral"), &["--seq", "523"], &CLAUDE);
    assert_eq!((status, &shown["proven"]), (0, &json!(true)));
    let older = by(&shown["generations"], "name", "table-1796095170826");
    assert_eq!(older["verdict"], "agrees-after-deletes");
}

/// Rewrites one data file with one seq changed, and says which row it was.
pub fn change_a_seq(file: &Path, position: usize, new_seq: i64) -> i64 {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("a file")).expect("a data file");
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().expect("a reader").map(|b| b.expect("a batch")).collect();
    let mut old = None;
    let mut passed = 0;
    let mut writer = ArrowWriter::try_new(File::create(file).expect("a file"), schema.clone(), None).expect("a writer");
    for batch in batches {
        let index = schema.index_of("_hyp_ingest_seq").expect("the column");
        let seqs = batch.column(index).as_primitive::<Int64Type>();
        let changed: Int64Array = (0..seqs.len())
            .map(|row| {
                let value = seqs.is_valid(row).then(|| seqs.value(row));
                if passed + row == position {
                    old = value;
                    return Some(new_seq);
                }
                value
            })
            .collect();
        passed += batch.num_rows();
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        columns[index] = Arc::new(changed);
        writer.write(&RecordBatch::try_new(schema.clone(), columns).expect("a batch")).expect("written");
    }
    writer.close().expect("closed");
    old.expect("a row with a seq")
}

#[test]
fn one_changed_seq_in_any_generation_is_found_and_named() {
    for generation in ["table", "table-1796095170826", "table-1796095172778", "table-1796095174466"] {
        for (pick, new_seq) in [(0, 700_001), (1, 100)] {
            let (_folder, home) = copy("neutral");
            let claude = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
            let data = files(&claude.join(generation), ".parquet");
            let file = &data[pick * (data.len() - 1)];
            let old = change_a_seq(file, 0, new_seq);
            let (status, shown) = verify(&home.to_string_lossy(), &["--seq", "722"], &CLAUDE);
            let context = format!("{generation} {} {old} → {new_seq}: {shown:#}", file.display());
            assert_eq!((status, &shown["proven"]), (1, &json!(false)), "{context}");
            let named = items(&shown["generations"]).iter().flat_map(|g| items(&g["unexplained"]));
            let seqs: Vec<&Value> = named.map(|d| &d["row"]["seq"]).collect();
            let (old, new) = (json!(old.to_string()), json!(new_seq.to_string()));
            assert!(seqs.iter().any(|s| **s == old || **s == new), "{context}");
        }
    }
}

#[test]
fn a_file_that_is_not_its_manifests_is_named_by_every_command() {
    let (_folder, home) = copy("neutral");
    let claude = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    let file = files(&claude.join("table-1796095174466"), ".parquet").remove(0);
    change_a_seq(&file, 0, 100);
    let home = home.to_string_lossy();
    for args in [&VERIFY[..], &["resolve", "--at", T]] {
        let ran = json_of(&home, &[args, &CLAUDE].concat());
        assert!(ran.stderr.contains("its manifest says") && ran.stderr.contains(".parquet"), "{}", ran.stderr);
    }
    let status = json_of(&home, &["status"]).json();
    let problem = by(&status["problems"], "code", "manifest-contradicted");
    assert_eq!(problem["path"], json!(file));
}

#[test]
fn a_changed_cell_is_found_by_a_deep_comparison_only() {
    let (_folder, home) = copy("neutral");
    let claude = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    let file = &files(&claude.join("table-1796095170826"), ".parquet")[0];
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("a file")).expect("a data file");
    let schema = reader.schema().clone();
    let batch = reader.with_batch_size(100_000).build().expect("a reader").next().expect("rows").expect("a batch");
    let index = schema.index_of("content_text").expect("the column");
    let texts = batch.column(index).as_string::<i32>();
    let changed: arrow::array::StringArray = texts
        .iter()
        .enumerate()
        .map(|(row, text)| if row == 0 { Some("changed".to_owned()) } else { text.map(str::to_owned) })
        .collect();
    let mut columns = batch.columns().to_vec();
    columns[index] = Arc::new(changed);
    let mut writer = ArrowWriter::try_new(File::create(file).expect("a file"), schema.clone(), None).expect("a writer");
    writer.write(&RecordBatch::try_new(schema, columns).expect("a batch")).expect("written");
    writer.close().expect("closed");
    let home = home.to_string_lossy();
    assert_eq!(verify(&home, &["--seq", "722"], &CLAUDE).0, 0);
    let (status, shown) = verify(&home, &["--seq", "722", "--deep"], &CLAUDE);
    assert_eq!(status, 1);
    let generation = by(&shown["generations"], "name", "table-1796095170826");
    assert_eq!(items(&generation["content_differs"]).len(), 1, "{generation:#}");
}

#[test]
fn every_corpus_is_proven_at_its_own_boundary() {
    for (name, partition, at) in [
        ("monotone", "source=claude", T),
        ("legacy", "source=claude", T),
        ("skew", "source=codex", T),
        ("crashed", "source=claude", "2026-07-26T12:00:00.000Z"),
        ("sinks", "source=claude", "2026-07-26T12:00:00.000Z"),
    ] {
        let partition = ["--dataset", "ai_gateway_messages", "--partition", partition];
        let (status, shown) = verify(&home(name), &["--at", at], &partition);
        assert_eq!((status, &shown["proven"]), (0, &json!(true)), "{name}: {shown:#}");
    }
}

#[test]
fn an_orphan_without_metadata_is_listed_and_does_not_spoil_the_proof() {
    let (_, shown) = verify(&home("crashed"), &["--at", "2026-07-26T12:00:00.000Z"], &CLAUDE);
    let orphan = by(&shown["generations"], "name", "table-1796099999999");
    assert_eq!((&orphan["verdict"], &orphan["state"]), (&json!("unreadable"), &json!("orphan")));
}

#[test]
fn an_unreadable_data_file_leaves_the_boundary_unproven() {
    let (_folder, home) = copy("neutral");
    let retired = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095170826");
    fs::write(&files(&retired, ".parquet")[0], b"").expect("emptied");
    let (status, shown) = verify(&home.to_string_lossy(), &["--seq", "722"], &CLAUDE);
    assert_eq!((status, &shown["proven"]), (1, &json!(false)));
    let generation = by(&shown["generations"], "name", "table-1796095170826");
    assert_eq!(generation["verdict"], "unreadable");
    assert!(generation["explanation"].as_str().is_some_and(|e| e.contains(".parquet")), "{generation:#}");
}
