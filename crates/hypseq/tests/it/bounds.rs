//! Bounds first and the full scan print the same.

use hypseq_testkit::small;
use serde_json::Value;

use crate::support::{T, home, items, json_of};

/// What may differ: how much was read, and what only a scan of every row can tell.
const DIFFER: [&str; 3] = ["files_read", "duplicate_ids", "compared"];

fn answer(home: &str, args: &[&str]) -> (i32, Value) {
    let ran = json_of(home, args);
    let mut shown = serde_json::from_str(&ran.stdout).unwrap_or_default();
    leave_out(&mut shown);
    (ran.status, shown)
}

/// Takes out what may differ, at any depth.
fn leave_out(shown: &mut Value) {
    match shown {
        Value::Object(fields) => {
            fields.retain(|name, _| !DIFFER.contains(&name.as_str()));
            fields.values_mut().for_each(leave_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        _ => {}
    }
}

fn assert_same(home: &str, args: &[&str]) {
    let full = answer(home, &[args, &["--full-scan"]].concat());
    assert_eq!(answer(home, args), full, "{home} {args:?}");
}

fn assert_all_same(home: &str) {
    assert_same(home, &["status"]);
    let status = json_of(home, &["status"]).json();
    for partition in items(&status["partitions"]) {
        let name = |key: &str| partition[key].as_str().unwrap_or_default();
        let partition = ["--dataset", name("dataset"), "--partition", name("partition")];
        for point in [["--at", T], ["--seq", "300"], ["--seq", "722"]] {
            assert_same(home, &[&["resolve"], &point[..], &partition].concat());
            assert_same(home, &[&["verify"], &point[..], &partition].concat());
        }
        assert_same(
            home,
            &[&["resolve", "--at", T, "--ignore-times-outside", "2026-07-23T00:00:00Z.."], &partition[..]].concat(),
        );
    }
}

#[test]
fn on_the_corpora() {
    for corpus in ["neutral", "legacy", "skew", "crashed", "sinks"] {
        assert_all_same(&home(corpus));
    }
}

#[test]
fn on_generated_caches() {
    for seed in 100..104 {
        let folder = tempfile::tempdir().expect("a folder");
        small(seed, folder.path()).expect("a cache");
        assert_all_same(&folder.path().to_string_lossy());
    }
}

#[test]
fn the_boundary_reads_few_files() {
    let resolved = json_of(&home("neutral"), &["resolve", "--at", T, "--partition", "source=claude"]).json();
    assert_eq!((&resolved["files_read"], &resolved["files_total"]), (&Value::from(4), &Value::from(48)));
    let verified = json_of(&home("neutral"), &["verify", "--at", T, "--partition", "source=claude"]).json();
    assert_eq!((&verified["files_read"], &verified["files_total"]), (&Value::from(12), &Value::from(160)));
    assert_eq!(verified["compared"], "counts");
    let full = json_of(&home("neutral"), &["verify", "--full-scan", "--at", T, "--partition", "source=claude"]).json();
    assert_eq!(full["compared"], "rows");
}
