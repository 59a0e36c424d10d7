//! `COPY … TO`, and tables over files of others.

use std::fs;

use hypseq_cache::Home;
use hypseq_engine::{Engine, EngineOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::answers::{RUNTIME, corpus, home, rows, try_rows, value};

const TWO_ROWS: &str = "SELECT _hyp_ingest_seq, message_created_at, part_id, attributes FROM ai_gateway_messages
                        WHERE _hyp_ingest_seq IN (722, 724) ORDER BY _hyp_ingest_seq";

fn copied(format: &str) -> (TempDir, String) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(format!("rows.{format}"));
    let engine = corpus("neutral");
    let count = rows(&engine, &format!("COPY ({TWO_ROWS}) TO '{}'", path.display()));
    assert_eq!(json!(count), json!([{ "count": 2 }]));
    (dir, path.display().to_string())
}

#[test]
fn times_in_files_are_as_they_are_printed() {
    let (_dir, path) = copied("csv");
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "_hyp_ingest_seq,message_created_at,part_id,attributes");
    assert!(lines[1].starts_with("722,2026-07-28T14:26:02.373Z,msg_2e8343f37f517db95ecf#0,"), "{}", lines[1]);

    for format in ["ndjson", "json"] {
        let (_dir, path) = copied(format);
        let text = fs::read_to_string(path).unwrap();
        let row: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(row["_hyp_ingest_seq"], 724);
        assert_eq!(row["message_created_at"], "2026-07-29T06:00:50.955Z");
    }
}

#[test]
fn files_can_be_read_again_and_joined() {
    for (format, stored_as) in [("parquet", "PARQUET"), ("csv", "CSV"), ("ndjson", "NDJSON"), ("json", "JSON")] {
        let (_dir, path) = copied(format);
        let engine = corpus("neutral");
        rows(&engine, &format!("CREATE EXTERNAL TABLE landed STORED AS {stored_as} LOCATION '{path}'"));
        let joined = "SELECT count(*) FROM ai_gateway_messages JOIN landed USING (part_id)";
        assert_eq!(value(&engine, joined), 2, "{format}");
        let missing = "SELECT count(*) FROM ai_gateway_messages LEFT ANTI JOIN landed USING (part_id)";
        assert_eq!(value(&engine, missing), 1199 - 2, "{format}");
        let by_time = "SELECT count(*) FROM landed WHERE message_created_at > '2026-07-28T21:00:00Z'";
        assert_eq!(value(&engine, by_time), 1, "{format}");
    }
}

#[test]
fn json_of_several_types_is_text_in_a_file() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("rows.csv");
    let latency = "SELECT json_get(attributes, 'gateway', 'latency_ms') AS latency FROM ai_gateway_messages
                   WHERE _hyp_ingest_seq = 722";
    let engine = corpus("neutral");
    rows(&engine, &format!("COPY ({latency}) TO '{}'", path.display()));
    let printed = value(&engine, latency);
    assert_eq!(fs::read_to_string(path).unwrap(), format!("latency\n{}\n", printed.as_str().unwrap()));
}

#[test]
fn a_format_that_is_not_written_is_an_error() {
    let dir = TempDir::new().unwrap();
    let engine = corpus("neutral");
    for (target, said, found) in [
        ("rows", "", "found none"),
        ("rows.txt", "", "found `txt`"),
        ("rows.csv", "STORED AS XML", "found `XML`"),
        ("rows.arrow", "", "found `arrow`"),
    ] {
        let path = dir.path().join(target);
        let error = try_rows(&engine, &format!("COPY ({TWO_ROWS}) TO '{}' {said}", path.display())).unwrap_err();
        assert!(error.to_string().contains(found), "{error}");
        assert!(!path.exists());
    }
}

fn with_memory(bytes: usize) -> Engine {
    let homes = [Home::open(&home("neutral")).unwrap()];
    let options = EngineOptions { memory_limit: Some(bytes), ..EngineOptions::default() };
    RUNTIME.block_on(Engine::open(&homes, &options)).unwrap().0
}

#[test]
fn what_does_not_fit_in_memory_is_spilled() {
    let many = "SELECT count(*), max(n) FROM (SELECT row_number() OVER (ORDER BY a.value DESC, b.value) AS n
                FROM generate_series(1, 1000) a, generate_series(1, 1000) b)";
    let engine = with_memory(24 << 20);
    let found = rows(&engine, many);
    assert_eq!(found[0].values().cloned().collect::<Vec<_>>(), [json!(1_000_000), json!(1_000_000)]);
    let spills = |engine: &Engine| {
        let plan = rows(engine, &format!("EXPLAIN ANALYZE {many}"));
        let text = plan[0]["plan"].as_str().unwrap().to_owned();
        let counts =
            text.split("spill_count=").skip(1).filter_map(|rest| rest.split([',', ']']).next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    assert!(spills(&engine) > 0);
    assert_eq!(spills(&corpus("neutral")), 0);
}

#[test]
fn what_cannot_be_spilled_says_how_to_go_on() {
    let engine = with_memory(100_000);
    let sorted = "SELECT * FROM ai_gateway_messages ORDER BY content_text";
    let error = try_rows(&engine, sorted).unwrap_err().to_string();
    assert!(error.contains("more memory than it may have"), "{error}");
    assert!(error.contains("--memory-limit"), "{error}");
}
