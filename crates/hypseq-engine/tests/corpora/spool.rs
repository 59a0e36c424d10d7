//! Schema `spool`.

use std::fs;

use serde_json::json;

use super::answers::{copy, corpus, open, rows, try_rows, value};

const SPOOL: &str =
    "neutral/hypaware/cache/datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool/active.jsonl";

#[test]
fn spooled_rows_have_the_columns_of_their_dataset() {
    let engine = corpus("neutral");
    let first = rows(
        &engine,
        "SELECT part_id, message_created_at, message_index, is_sidechain, attributes->>'gateway' AS gateway, source,
                _hyp_ingest_seq, _file
         FROM spool.ai_gateway_messages ORDER BY message_created_at LIMIT 1",
    );
    assert_eq!(
        json!(first),
        json!([{
            "part_id": "msg_029a8964bd3702090b40#0",
            "message_created_at": "2026-08-07T01:00:50.983Z",
            "message_index": 52,
            "is_sidechain": false,
            "gateway": r#"{"identity_source":"native","latency_ms":826}"#,
            "source": "claude",
            "_hyp_ingest_seq": null,
            "_file": "datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool/active.jsonl",
        }])
    );
    let both = "SELECT count(*) FROM (SELECT part_id FROM ai_gateway_messages UNION ALL
                SELECT part_id FROM spool.ai_gateway_messages)";
    assert_eq!(value(&engine, "SELECT count(*) FROM spool.ai_gateway_messages"), 7);
    assert_eq!(value(&engine, both), 1199 + 7);
}

#[test]
fn a_dataset_without_spooled_rows_has_none() {
    assert_eq!(value(&corpus("legacy"), "SELECT count(*) FROM spool.ai_gateway_messages"), 0);
}

#[test]
fn a_dataset_that_was_never_flushed_is_there() {
    let dir = copy("neutral");
    let spool = dir.path().join("neutral/hypaware/cache/datasets/logs/logs_v1/_hypaware_spool");
    fs::create_dir_all(&spool).unwrap();
    let line = r#"{"version":1,"columns":[{"name":"timestamp","type":"TIMESTAMP"},{"name":"body","type":"JSON"},{"name":"n","type":"INT64"},{"name":"x","type":"DOUBLE"}],"rows":[{"timestamp":"2026-08-07T01:00:50.983Z","body":{"a":[1]},"n":9007199254740993,"x":0.5},{"timestamp":null,"body":"text"}]}"#;
    fs::write(spool.join("active.jsonl"), format!("{line}\n")).unwrap();
    let (engine, _) = open(&[dir.path().join("neutral")]);
    let found = rows(&engine, "SELECT timestamp, body, n, x, source FROM spool.logs ORDER BY timestamp NULLS LAST");
    assert_eq!(
        json!(found),
        json!([
            { "timestamp": "2026-08-07T01:00:50.983Z", "body": r#"{"a":[1]}"#, "n": 9_007_199_254_740_993_i64, "x": 0.5,
              "source": "unknown" },
            { "timestamp": null, "body": "\"text\"", "n": null, "x": null, "source": "unknown" },
        ])
    );
}

#[test]
fn a_damaged_line_is_a_problem_afterwards() {
    let dir = copy("neutral");
    let path = dir.path().join(SPOOL);
    let spool = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{spool}{{\"version\":1\n")).unwrap();
    let (engine, _) = open(&[dir.path().join("neutral")]);
    assert_eq!(engine.problems(), []);
    assert_eq!(value(&engine, "SELECT count(*) FROM spool.ai_gateway_messages"), 7);
    let codes: Vec<_> = engine.problems().iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["spool-line-unreadable"]);
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_the_file() {
    for (written, wrong) in
        [("\"message_index\":52", "\"message_index\":\"x\""), ("2026-08-07T01:00:50.983Z", "yesterday")]
    {
        let dir = copy("neutral");
        let path = dir.path().join(SPOOL);
        let spool = fs::read_to_string(&path).unwrap();
        assert!(spool.contains(written));
        fs::write(&path, spool.replacen(written, wrong, 1)).unwrap();
        let (engine, _) = open(&[dir.path().join("neutral")]);
        let error = try_rows(&engine, "SELECT count(*) FROM spool.ai_gateway_messages").unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    let dir = copy("neutral");
    let path = dir.path().join(SPOOL);
    let spool = fs::read_to_string(&path).unwrap();
    fs::write(&path, spool.replacen("\"2026-08-07T01:00:50.983Z\"", "1786064450983", 1)).unwrap();
    let (engine, _) = open(&[dir.path().join("neutral")]);
    let error = try_rows(&engine, "SELECT count(*) FROM spool.ai_gateway_messages").unwrap_err().to_string();
    assert!(error.contains("expected `message_created_at` as a text with a time"), "{error}");
    assert!(!error.contains("1786064450983"), "{error}");
    // All else goes on, and knows of it.
    assert_eq!(value(&engine, "SELECT count(*) FROM ai_gateway_messages"), 1199);
    assert!(!rows(&engine, "SHOW TABLES").is_empty());
    assert_eq!(value(&engine, "SELECT code FROM cache.problems"), "spool-value-unreadable");
}
