//! `generation(…)` and `snapshot(…)`.

use serde_json::{Value, json};

use super::CORPORA;
use super::answers::{corpus, home, open, rows, try_rows, value};

#[test]
fn a_generation_shows_its_visible_rows() {
    let mut compared = 0;
    for name in CORPORA {
        let engine = corpus(name);
        for row in rows(&engine, "SELECT dataset, partition, generation, visible_rows FROM cache.generations") {
            let [dataset, partition, generation] =
                ["dataset", "partition", "generation"].map(|c| row[c].as_str().unwrap());
            let from = format!("generation('{dataset}', '{partition}', '{generation}')");
            // What is left of a compaction that was killed.
            if generation == "table-1796099999999" {
                let error = try_rows(&engine, &format!("SELECT * FROM {from}")).unwrap_err().to_string();
                assert!(error.contains("has no readable metadata"), "{error}");
                assert!(error.contains("hint: schema raw"), "{error}");
                continue;
            }
            let raw = format!(
                "SELECT _hyp_ingest_seq AS seq FROM raw.\"{dataset}\" WHERE _partition = '{partition}'
                 AND _generation = '{generation}' AND _referenced AND NOT _deleted ORDER BY seq"
            );
            let found = rows(&engine, &format!("SELECT _hyp_ingest_seq AS seq FROM {from} ORDER BY seq"));
            assert_eq!(found, rows(&engine, &raw), "{name} {from}");
            assert_eq!(found.len() as u64, row["visible_rows"].as_u64().unwrap(), "{name} {from}");
            compared += 1;
        }
    }
    assert_eq!(compared, 45);
}

#[test]
fn a_snapshot_shows_the_rows_of_its_time() {
    let engine = corpus("neutral");
    let snapshots = rows(
        &engine,
        "SELECT snapshot_id, is_current FROM cache.snapshots
         WHERE partition = 'source=claude' AND generation = 'table-1796095174466' ORDER BY sequence_number",
    );
    let count = |id: &serde_json::Value| {
        value(&engine, &format!("SELECT count(*) FROM snapshot('ai_gateway_messages', 'source=claude', {id})"))
    };
    let counts: Vec<_> = snapshots.iter().map(|row| count(&row["snapshot_id"])).collect();
    assert_eq!(counts.last().unwrap(), 900);
    // The retention pass deleted 105 rows in one of the commits.
    let counts: Vec<i64> = counts.iter().map(|count| count.as_i64().unwrap()).collect();
    assert!(counts.windows(2).any(|pair| pair[0] - pair[1] == 105), "{counts:?}");
    let newest = &snapshots.last().unwrap()["snapshot_id"];
    let as_text = format!("SELECT count(*) FROM snapshot('ai_gateway_messages', 'source=claude', '{newest}')");
    assert_eq!(value(&engine, &as_text), 900);
    let where_it_is = format!(
        "SELECT DISTINCT source FROM snapshot('ai_gateway_messages', 'source=claude', {newest}) WHERE _hyp_ingest_seq > 722"
    );
    assert_eq!(value(&engine, &where_it_is), "claude");
}

#[test]
fn seq_at_has_both_answers_to_a_time() {
    let engine = corpus("neutral");
    let at = |time: &str| {
        let sql = format!("SELECT * FROM seq_at('ai_gateway_messages', 'source=claude', {time})");
        json!(rows(&engine, &sql))
    };
    let wanted = json!([{
        "tight_seq": 1254, "safe_seq": 722, "first_seq_after": 724, "rows_at_or_before": 419, "rows_after": 481,
        "lost_at_tight": 269, "resent_at_safe": 50, "null_time_rows": 0,
    }]);
    assert_eq!(at("'2026-07-28T21:00:00Z'"), wanted);
    assert_eq!(at("TIMESTAMP '2026-07-28 21:00:00'"), wanted);
    assert_eq!(at("'2026-07-28T23:00:00+02:00'"), wanted);
    for (name, dataset, partition, time) in times() {
        let expected =
            &partition["generations"].as_array().unwrap().iter().find(|g| g["live"] == true).unwrap()["at"][&time];
        let found = rows(
            &corpus(name),
            &format!(
                "SELECT tight_seq, first_seq_after FROM seq_at('{dataset}', {}, '{time}')",
                quoted(&partition["partition"])
            ),
        );
        let number = |seq: &Value| seq.as_str().map_or(Value::Null, |seq| seq.parse::<i64>().unwrap().into());
        let wanted = json!([{
            "tight_seq": number(&expected["last_seq_at_or_before"]), "first_seq_after": number(&expected["first_seq_after"]),
        }]);
        assert_eq!(json!(found), wanted, "{name} {partition} {time}");
    }
}

fn quoted(text: &Value) -> String {
    format!("'{}'", text.as_str().unwrap())
}

/// Every time at which HypAware's own reader was asked about a live generation with a known time column.
fn times() -> Vec<(&'static str, String, Value, String)> {
    let mut times = Vec::new();
    for name in CORPORA {
        let text = std::fs::read_to_string(home("expected").join(format!("{name}.expected.json"))).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        for partition in expected["partitions"].as_array().unwrap() {
            let dataset = partition["dataset"].as_str().unwrap();
            let live = partition["generations"].as_array().unwrap().iter().find(|g| g["live"] == true);
            if let (Some(live), "ai_gateway_messages" | "logs") = (live, dataset) {
                let at = live["at"].as_object().into_iter().flatten();
                times.extend(at.map(|(at, _)| (name, dataset.to_owned(), partition.clone(), at.clone())));
            }
        }
    }
    assert!(times.len() > 20);
    times
}

#[test]
fn time_of_seq_has_the_rows_on_both_sides() {
    let engine = corpus("neutral");
    let found = rows(&engine, "SELECT * FROM time_of_seq('ai_gateway_messages', 'source=claude', 723)");
    let wanted = json!([{
        "last_seq": 722, "last_time": "2026-07-28T14:26:02.373Z", "last_id": "msg_2e8343f37f517db95ecf#0",
        "next_seq": 724, "next_time": "2026-07-29T06:00:50.955Z", "next_id": "msg_2fe3a4c66eb1234db8ca#0",
    }]);
    assert_eq!(json!(found), wanted);
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let engine = corpus("neutral");
    for (from, says) in [
        (
            "generation('nothing', 'source=claude', 'table')",
            "there is no dataset `nothing`\n  hint: there are ai_gateway_",
        ),
        (
            "generation('ai_gateway_messages', 'source=x', 'table')",
            "there is no partition `source=x`\n  hint: there are source=claude, source=codex",
        ),
        (
            "generation('ai_gateway_messages', 'source=codex', 'table-1')",
            "there is no generation `table-1`\n  hint: there are table-1796095174804, table-1796095173140, table",
        ),
        ("generation('ai_gateway_messages', 'source=codex')", "expected generation('<dataset>', "),
        ("generation('ai_gateway_messages', 'source=codex', 7)", "expected generation('<dataset>', "),
        ("snapshot('ai_gateway_messages', 'source=codex', 7)", "has a snapshot 7\n  hint: they are in cache.snapshots"),
        ("snapshot('ai_gateway_messages', 'source=codex', 'x')", "<snapshot id>), found 'x'"),
        (
            "seq_at('ai_gateway_messages', 'source=codex', 'tuesday')",
            "'<time>'), found 'tuesday'\n  hint: write a time as",
        ),
        (
            "seq_at('ai_gateway_messages', 'source=codex', '2026-07-28 21:00:00')",
            "is a time without a zone\n  hint: end",
        ),
        ("seq_at('ai_gateway_messages', 'source=codex', '2026-07-28')", "is a time without a zone\n  hint: end"),
        ("seq_at('ai_gateway_messages', 'source=codex', 1785272400)", "'<time>'), found 1785272400"),
        ("time_of_seq('ai_gateway_messages', 'source=codex', _pos)", "<seq>)"),
    ] {
        let error = try_rows(&engine, &format!("SELECT * FROM {from}")).unwrap_err().to_string();
        assert!(error.contains(says), "{from}: {error}");
    }
}

#[test]
fn in_a_fleet_every_home_is_looked_at() {
    let (engine, _) = open(&[home("neutral"), home("monotone")]);
    let found =
        value(&engine, "SELECT count(DISTINCT home) FROM generation('ai_gateway_messages', 'source=claude', 'table')");
    assert_eq!(found, 2);
}
