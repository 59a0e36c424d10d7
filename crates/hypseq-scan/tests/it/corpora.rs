//! Every generation of every corpus, against the figures that HypAware's own reader gives.

use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat};
use hypseq_scan::scan_files;
use serde_json::{Value, json};

use crate::support::{CORPORA, DELETED_FILE, NEUTRAL, VECTOR, generations, scan, testdata};

fn seq(value: Option<i64>) -> Value {
    value.map_or(Value::Null, |seq| seq.to_string().into())
}

fn time(value: Option<i64>) -> Value {
    let text = |micros| DateTime::from_timestamp_micros(micros).unwrap().to_rfc3339_opts(SecondsFormat::Millis, true);
    value.map_or(Value::Null, |micros| text(micros).into())
}

#[test]
fn every_generation_is_what_hypaware_sees() {
    let mut scanned = 0;
    for corpus in CORPORA {
        for expected in generations(corpus) {
            if expected.figures["has_metadata"] == false {
                continue;
            }
            scanned += 1;
            let scan = scan(&expected.dataset, &expected.dir);
            assert!(scan.complete(), "{:?}", scan.problems);
            let figures = json!({
                "live_rows": scan.visible_rows,
                "null_seq_rows": scan.legacy_rows,
                "null_time_rows": scan.null_time_rows,
                "min_seq": seq(scan.seqs().map(|s| s.0)),
                "max_seq": seq(scan.seqs().map(|s| s.1)),
                "min_time": time(scan.times.map(|t| t.0)),
                "max_time": time(scan.times.map(|t| t.1)),
            });
            for (name, figure) in figures.as_object().unwrap() {
                assert_eq!(*figure, expected.figures[name], "{name} of {}", expected.dir.display());
            }
            assert_eq!(scan.raw_rows, scan.visible_rows + scan.deleted_rows);
            assert_eq!(scan.visible.rows().len() as u64, scan.visible_rows - scan.legacy_rows);
        }
    }
    assert_eq!(scanned, 45);
}

#[test]
fn deleted_rows_are_named_with_the_file_that_deletes_them() {
    let scan = scan("ai_gateway_messages", &testdata().join(NEUTRAL));
    assert_eq!((scan.raw_rows, scan.deleted_rows, scan.visible_rows), (1_005, 105, 900));
    assert_eq!((scan.files_total, scan.files_read, scan.bytes), (48, 48, 689_868));
    let by_vector: Vec<i64> =
        scan.deleted.iter().filter(|d| d.by == [testdata().join(NEUTRAL).join(VECTOR)]).map(|d| d.row.seq).collect();
    assert_eq!(by_vector.len(), 25, "the rows of {DELETED_FILE}");
    assert!(by_vector.is_sorted());
    assert!(by_vector.iter().all(|seq| scan.visible.with_seq(*seq).is_empty()));
    let row = &scan.visible.with_seq(724)[0];
    assert_eq!(row.id.as_deref(), Some("msg_2fe3a4c66eb1234db8ca#0"));
    assert_eq!(time(row.time), "2026-07-29T06:00:50.955Z");
}

#[test]
fn legacy_rows_have_their_own_times() {
    let generation = "legacy/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095177949";
    let scan = scan("ai_gateway_messages", &testdata().join(generation));
    assert_eq!(scan.legacy_rows, 76);
    let range = |times: Option<(i64, i64)>| (time(times.map(|t| t.0)), time(times.map(|t| t.1)));
    assert_eq!(range(scan.legacy_times), ("2026-07-23T06:00:51.777Z".into(), "2026-07-25T06:19:03.001Z".into()));
    assert_eq!(range(scan.times), ("2026-07-23T06:00:51.777Z".into(), "2026-07-31T06:25:34.204Z".into()));
}

#[test]
fn an_orphans_rows_are_raw_rows() {
    let orphan = "crashed/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796099999999";
    let paths: Vec<PathBuf> = hypseq_iceberg::unreferenced(&testdata().join(orphan)).unwrap();
    let scan = scan_files(&paths);
    assert!(scan.complete());
    assert_eq!((scan.files_total, scan.files_read), (1, 1));
    assert_eq!((scan.raw_rows, scan.visible_rows, scan.bytes), (12, 0, 13_545));
}
