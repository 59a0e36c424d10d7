//! Spool files: rotated and active ones, half flushed ones, and damaged ones.

use std::fs;

use hypseq_cache::{Severity, SpoolRow};
use serde_json::{Value, json};

use crate::support::{Scratch, codes, only};

const SPOOL: &str = "hypaware/cache/datasets/logs/all/_hypaware_spool";

/// A line with one row per number.
fn line(numbers: &[i64]) -> String {
    let rows: Vec<Value> = numbers.iter().map(|number| json!({ "n": number })).collect();
    json!({ "version": 1, "columns": [{ "name": "n", "type": "INT32", "nullable": true }], "rows": rows }).to_string()
        + "\n"
}

/// The numbers in the spool, in order, and the codes of the problems.
fn numbers(scratch: &Scratch) -> (Vec<i64>, Vec<&'static str>) {
    let found = scratch.home().spool();
    let rows = found.value.iter().flat_map(|batch| &batch.rows);
    (rows.map(|row| row.values["n"].as_i64().unwrap()).collect(), codes(&found.problems))
}

#[test]
fn rotated_files_come_before_the_active_one() {
    let scratch = Scratch::new();
    scratch.file(&format!("{SPOOL}/active.jsonl"), line(&[5]) + &line(&[6, 7]));
    scratch.file(&format!("{SPOOL}/flush-20-1-b.jsonl"), line(&[3, 4]));
    scratch.file(&format!("{SPOOL}/flush-10-1-a.jsonl"), line(&[1]) + "\n" + &line(&[2]));
    scratch.file(&format!("{SPOOL}/last-flush.json"), "{");
    assert_eq!(numbers(&scratch), (vec![1, 2, 3, 4, 5, 6, 7], vec![]));
}

#[test]
fn batches_can_be_visited_one_by_one() {
    let scratch = Scratch::new();
    scratch.file(&format!("{SPOOL}/active.jsonl"), line(&[5]) + "{\n" + &line(&[6, 7]));
    let mut sizes = Vec::new();
    let problems = scratch.home().visit_spool(|batch| sizes.push(batch.rows.len()));
    assert_eq!(sizes, [1, 2]);
    assert_eq!(problems, scratch.home().spool().problems);
}

#[test]
fn datasets_and_labels_are_named() {
    let scratch = Scratch::new();
    for place in ["metrics/all", "logs/backfill", "logs/a b/ü", "logs"] {
        scratch.file(&format!("hypaware/cache/datasets/{place}/_hypaware_spool/active.jsonl"), line(&[1]));
    }
    scratch.file("hypaware/cache/datasets/logs/all/table/_hypaware_spool/active.jsonl", line(&[1]));
    let found = scratch.home().spool().value;
    let places: Vec<_> = found.iter().map(|batch| (batch.dataset.as_str(), batch.label.as_str())).collect();
    assert_eq!(places, [("logs", ""), ("logs", "a b/ü"), ("logs", "backfill"), ("metrics", "all")]);
}

#[test]
fn a_line_that_is_being_written() {
    let scratch = Scratch::copy("neutral");
    let active = "hypaware/cache/datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool/active.jsonl";
    let whole = fs::read(scratch.path(active)).unwrap();
    let mut content = whole.clone();
    content.extend_from_slice(&whole[..4000]);
    scratch.file(active, &content);
    let found = scratch.home().spool();
    assert_eq!(found.value.iter().map(|batch| batch.rows.len()).sum::<usize>(), 7);
    let problem = only(&found.problems);
    assert_eq!((problem.code, problem.severity), ("spool-cut", Severity::Warning));
    assert_eq!(
        problem.message,
        "expected a batch {version: 1, columns, rows} in the line at byte 8553, found JSON that breaks off or is \
         damaged at column 4000"
    );
}

#[test]
fn a_last_line_that_lacks_its_newline_only() {
    let scratch = Scratch::new();
    scratch.file(&format!("{SPOOL}/active.jsonl"), line(&[1, 2]).trim_end());
    assert_eq!(numbers(&scratch), (vec![1, 2], vec![]));
}

#[test]
fn a_damaged_line_in_the_middle() {
    let scratch = Scratch::new();
    scratch.file(&format!("{SPOOL}/active.jsonl"), line(&[1]) + &line(&[2])[..40] + &line(&[3]) + &line(&[4]));
    assert_eq!(numbers(&scratch), (vec![1, 4], vec!["spool-line-unreadable"]));
    assert_eq!(scratch.home().spool().problems[0].severity, Severity::Error);
}

#[test]
fn lines_of_another_shape() {
    for (bad, found) in [
        (line(&[1]).replace("\"version\":1", "\"version\":2"), "version 2"),
        (line(&[1]).replace("\"version\":1,", "").replace(",\"version\":1", ""), "JSON of another shape at column"),
        (line(&[1]).replace("\"type\"", "\"kind\""), "JSON of another shape at column"),
        ("{\"version\":1,\"columns\":[],\"rows\":[\"secret\"]}\n".to_owned(), "JSON of another shape at column"),
        ("{\"version\":1,\"columns\":[]}\n".to_owned(), "JSON of another shape at column"),
        ("\"secret\"\n".to_owned(), "JSON of another shape at column"),
    ] {
        let scratch = Scratch::new();
        scratch.file(&format!("{SPOOL}/active.jsonl"), &bad);
        let spool = scratch.home().spool();
        assert!(spool.value.is_empty(), "{bad}");
        let problem = only(&spool.problems);
        assert_eq!(problem.code, "spool-line-unreadable");
        assert!(problem.message.contains(&format!("byte 0, found {found}")), "{}", problem.message);
        assert!(!problem.message.contains("secret"), "{}", problem.message);
    }
}

#[test]
fn a_flush_under_way() {
    let scratch = Scratch::new();
    let (done, open) = (line(&[1, 2]), line(&[3]));
    let file = format!("{SPOOL}/flush-10-1-a.jsonl");
    scratch.file(&file, format!("{done}{open}"));
    let progress = format!("{file}.progress.json");
    scratch.file(&progress, format!(r#"{{"byteOffset":{},"updatedAt":"t"}}"#, done.len()));
    assert_eq!(numbers(&scratch), (vec![3], vec![]));

    scratch.file(&progress, format!(r#"{{"byteOffset":{}}}"#, done.len() + open.len()));
    assert_eq!(numbers(&scratch), (vec![], vec![]));
}

#[test]
fn progress_that_makes_no_sense() {
    let scratch = Scratch::new();
    let file = format!("{SPOOL}/flush-10-1-a.jsonl");
    scratch.file(&file, line(&[1, 2]));
    for progress in [r#"{"byteOffset":100000}"#, r#"{"byteOffset":-1}"#, "{}", ""] {
        scratch.file(&format!("{file}.progress.json"), progress);
        assert_eq!(numbers(&scratch), (vec![1, 2], vec!["spool-progress-unreadable"]), "{progress}");
    }
}

#[test]
fn the_source_of_a_row() {
    for (row, source) in [
        (json!({ "source": "a", "client_name": "b" }), "a"),
        (json!({ "source": "", "client_name": "b", "provider": "d" }), "b"),
        (json!({ "client_name": null, "conversation_source": "c", "provider": "d" }), "c"),
        (json!({ "source": 5, "provider": "d" }), "d"),
        (json!({ "n": 1 }), "unknown"),
    ] {
        let Value::Object(values) = row else { panic!() };
        assert_eq!(SpoolRow { values }.source(), source);
    }
}
