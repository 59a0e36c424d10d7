//! Canned queries, each with its answer on a real cache.

use serde_json::json;

use crate::support::{by, home, items, run};

fn csv(args: &[&str]) -> String {
    let neutral = home("neutral");
    run([&["--home", &neutral, "--format", "csv", "query"][..], args].concat()).exits(0).stdout
}

#[test]
fn boundary_per_generation() {
    assert_eq!(
        csv(&["boundary-per-generation", "--param", "at=2026-07-28T21:00:00Z"]),
        "generation,state,tight_seq,safe_seq,first_seq_after,rows_lost_at_tight,rows_resent_at_safe,problem\n\
         table,retired,482,482,,0,0,\n\
         table-1796095170826,retired,722,722,724,0,0,\n\
         table-1796095172778,retired,722,722,724,0,0,\n\
         table-1796095174466,live,1254,722,724,269,50,\n"
    );
}

#[test]
fn gap_candidates() {
    assert_eq!(
        csv(&["gap-candidates", "--param", "exported=665", "--param", "watermark=1495"]),
        "_partition,boundary_seq,boundary_time,next_seq,rows_at_or_below,suspected_unsent_rows\n\
         source=claude,722,2026-07-28T14:26:02.373Z,724,1196,531\n"
    );
}

#[test]
fn out_of_order() {
    assert_eq!(
        csv(&["out-of-order"]),
        "from_seq,to_seq,rows,min_time,max_time,max_minutes_late\n\
         1205,1254,50,2026-07-22T01:00:00.000Z,2026-07-22T01:00:49.000Z,18088\n"
    );
}

#[test]
fn rows_around_seq() {
    let shown = csv(&["rows-around-seq", "--param", "seq=722", "--param", "rows=1"]);
    assert_eq!(
        shown,
        "_hyp_ingest_seq,message_created_at,_generation,_deleted\n\
         722,2026-07-28T14:26:02.373Z,table-1796095174466,false\n\
         724,2026-07-29T06:00:50.955Z,table-1796095174466,false\n"
    );
}

#[test]
fn rows_per_day() {
    let shown = csv(&["rows-per-day"]);
    assert_eq!(shown.lines().nth(1), Some("source=claude,2026-07-22T00:00:00.000Z,105,162,1254"));
    let rows: u64 = shown.lines().skip(1).filter_map(|l| l.split(',').nth(2)?.parse::<u64>().ok()).sum();
    assert_eq!(rows, 1199);
}

#[test]
fn only_in_one_generation() {
    let pair = ["--param", "has=table-1796095172778", "--param", "lacks=table-1796095174466"];
    let shown = csv(&[&["only-in-one-generation"], &pair[..]].concat());
    let rows: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(rows.len(), 105);
    assert!(rows.iter().all(|r| r.ends_with(",true")), "retention deleted them all");
}

#[test]
fn listed_and_shown() {
    let list = run(["query", "--list", "--format", "json"]).exits(0).json();
    assert_eq!(items(&list).len(), 16);
    let shown = run(["query", "rows-per-day", "--show"]).exits(0).stdout;
    assert!(shown.starts_with("-- name: rows-per-day\n-- purpose: rows per day"), "{shown}");
    let seq = &by(&list, "name", "rows-around-seq")["params"][3];
    assert_eq!(seq, &json!({"name": "seq", "type": "BIGINT", "default": null, "about": "the seq in the middle"}));
}

#[test]
fn a_folder_of_ones_own() {
    let folder = tempfile::TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("mine.sql"), "-- purpose: mine\nSELECT 1 AS one\n").expect("written");
    let queries = folder.path().to_string_lossy().into_owned();
    assert_eq!(csv(&["mine", "--queries", &queries]), "one\n1\n");
}

#[test]
fn unknown_names_are_refused_with_the_list() {
    let neutral = home("neutral");
    let ran = run(["--home", &neutral, "query", "nope"]).exits(2);
    assert!(ran.stderr.contains("rows-around-seq"), "{}", ran.stderr);
    let ran = run(["--home", &neutral, "query", "rows-around-seq"]).exits(2);
    assert!(ran.stderr.contains("`seq` is missing"), "{}", ran.stderr);
    let ran = run(["--home", &neutral, "query", "rows-per-day", "--param", "dataset=nope"]).exits(2);
    assert!(ran.stderr.contains("there is no dataset `nope`"), "{}", ran.stderr);
}
