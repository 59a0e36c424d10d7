//! Every figure of HypAware's own reader, on every cache.

use serde_json::{Value, json};

use crate::support::{CLAUDE, CORPORA, T, by, expected, home, items, json_of, run, text};

#[test]
fn status_shows_every_generation() {
    let mut generations = 0;
    for name in CORPORA {
        let status = json_of(&home(name), &["status"]).exits(0).json();
        assert_eq!(status["home"], name);
        for partition in items(&expected(name)["partitions"]) {
            let found = items(&status["partitions"])
                .iter()
                .find(|p| p["dataset"] == partition["dataset"] && p["partition"] == partition["partition"])
                .unwrap_or_else(|| panic!("{name}: no {}", partition["partition"]));
            let expected = items(&partition["generations"]);
            assert_eq!(items(&found["generations"]).len(), expected.len());
            for generation in expected {
                let shown = by(&found["generations"], "name", text(&generation["generation"]));
                generations += 1;
                if generation["has_metadata"] == true {
                    compare(shown, generation);
                } else {
                    assert_eq!(shown["state"], "orphan");
                    assert_eq!(shown["visible_rows"], 0);
                    let problem = items(&status["problems"]).iter().any(|p| p["code"] == "generation-without-metadata");
                    assert!(problem, "{name}");
                }
            }
        }
    }
    assert_eq!(generations, 47);
}

fn compare(shown: &Value, expected: &Value) {
    for (ours, theirs) in [
        ("visible_rows", "live_rows"),
        ("legacy_rows", "null_seq_rows"),
        ("null_time_rows", "null_time_rows"),
        ("min_seq", "min_seq"),
        ("max_seq", "max_seq"),
        ("min_time", "min_time"),
        ("max_time", "max_time"),
    ] {
        assert_eq!(shown[ours], expected[theirs], "{}: {ours}", expected["generation"]);
    }
    if expected["retired"] == true {
        assert_eq!(shown["state"], "retired");
    }
    assert_eq!(shown["raw_rows"], json!(number(shown, "visible_rows") + number(shown, "deleted_rows")));
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn resolve_gives_every_boundary() {
    let mut boundaries = 0;
    for name in CORPORA {
        for partition in items(&expected(name)["partitions"]) {
            for generation in items(&partition["generations"]) {
                let Some(times) = generation["at"].as_object() else { continue };
                for (at, expected) in times {
                    let args = [
                        "resolve",
                        "--dataset",
                        text(&partition["dataset"]),
                        "--partition",
                        text(&partition["partition"]),
                        "--generation",
                        text(&generation["generation"]),
                        "--at",
                        at,
                    ];
                    let ran = json_of(&home(name), &args);
                    let shown = ran.json();
                    let context = format!("{name} {} at {at}", generation["generation"]);
                    check(&shown, expected, generation, &context);
                    let answered = !shown["safe_seq"].is_null() && !shown["first_seq_after"].is_null();
                    assert_eq!(ran.status, i32::from(!answered), "{context}");
                    boundaries += 1;
                }
            }
        }
    }
    assert_eq!(boundaries, 225);
}

fn check(shown: &Value, expected: &Value, generation: &Value, context: &str) {
    for (ours, theirs) in [
        ("tight_seq", "last_seq_at_or_before"),
        ("first_seq_after", "first_seq_after"),
        ("rows_at_or_before", "rows_at_or_before"),
        ("rows_after", "rows_after"),
        ("lost_at_tight", "unsent_lost_at_last"),
        ("resent_at_safe", "duplicates_at_below"),
    ] {
        assert_eq!(shown[ours], expected[theirs], "{context}: {ours}");
    }
    // With no row after the time HypAware's reader names no seq; the greatest one loses nothing (seq-resolution).
    let nothing_after = expected["first_seq_after"].is_null();
    let safe =
        if nothing_after { &expected["last_seq_at_or_before"] } else { &expected["greatest_seq_below_first_after"] };
    assert_eq!(&shown["safe_seq"], safe, "{context}: safe_seq");
    assert_eq!(shown["legacy_rows"], generation["null_seq_rows"], "{context}");
    assert!(shown["files_read"].as_u64() <= shown["files_total"].as_u64(), "{context}");
}

#[test]
fn the_incident() {
    let shown = json_of(&home("neutral"), &[&["resolve", "--at", T], &CLAUDE[..]].concat()).exits(0).json();
    for (field, value) in [
        ("generation", json!("table-1796095174466")),
        ("at", json!(T)),
        ("time_column", json!("message_created_at")),
        ("tight_seq", json!("1254")),
        ("safe_seq", json!("722")),
        ("first_seq_after", json!("724")),
        ("inversion", json!(true)),
        ("lost_at_tight", json!(269)),
        ("resent_at_safe", json!(50)),
        ("ambiguous", json!(null)),
        ("last_row", json!({"seq": "722", "time": "2026-07-28T14:26:02.373Z", "id": "msg_2e8343f37f517db95ecf#0"})),
        ("next_row", json!({"seq": "724", "time": "2026-07-29T06:00:50.955Z", "id": "msg_2fe3a4c66eb1234db8ca#0"})),
        (
            "curve",
            json!([
                {"seq": "722", "lost": 0, "resent": 50},
                {"seq": "1204", "lost": 269, "resent": 50},
                {"seq": "1254", "lost": 269, "resent": 0},
            ]),
        ),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    let text = run([&["--home", &home("neutral"), "resolve", "--at", T], &CLAUDE[..]].concat()).exits(0).stdout;
    assert!(text.contains("1254: rewinding there would lose 269 rows."), "{text}");
    assert!(
        text.contains(
            "Rewinding to 722 loses nothing and sends 50 rows again (of that time or older; twice if they had landed)."
        ),
        "{text}"
    );
}

#[test]
fn outliers_can_be_left_out_and_are_still_counted() {
    let skew = home("skew");
    let window = ["--ignore-times-outside", "2026-01-01T00:00:00.000Z..2027-01-01T00:00:00.000Z"];
    let shown = json_of(&skew, &[&["resolve", "--at", T], &CLAUDE[..], &window].concat()).exits(0).json();
    let figures = ["tight_seq", "safe_seq", "first_seq_after", "inversion", "lost_at_safe", "excluded_rows"];
    let shown: Vec<&Value> = figures.iter().map(|f| &shown[*f]).collect();
    assert_eq!(json!(shown), json!(["450", "450", "452", false, 1, 2]));

    let predicate = ["--exclude", "message_created_at > '2030-01-01T00:00:00Z'"];
    let shown = json_of(&skew, &[&["resolve", "--at", T], &CLAUDE[..], &predicate].concat()).exits(0).json();
    let shown: Vec<&Value> = figures.iter().map(|f| &shown[*f]).collect();
    assert_eq!(json!(shown), json!(["450", "450", "452", false, 1, 1]));

    let text = run([&["--home", &skew, "resolve", "--at", T], &CLAUDE[..]].concat()).stdout;
    assert!(text.contains("2031-01-01T00:00:00.000Z"), "the row in the way is shown\n{text}");
    assert!(text.contains("--ignore-times-outside ..2030-12-31T23:59:59.999Z"), "{text}");
}

#[test]
fn rows_with_one_time_stay_together_and_a_time_to_the_second_is_ambiguous() {
    let skew = home("skew");
    let resolve = |at: &str| json_of(&skew, &[&["resolve", "--at", at], &CLAUDE[..]].concat()).json();
    let (tie, before) = (resolve("2026-07-26T06:07:29.153Z"), resolve("2026-07-26T06:07:29.152Z"));
    assert_eq!(number(&tie, "rows_at_or_before") - number(&before, "rows_at_or_before"), 8);
    assert_eq!(tie["ambiguous"], Value::Null);

    let second = resolve("2026-07-26T06:07:29Z");
    assert_eq!((&second["ambiguous"]["unit"], &second["ambiguous"]["rows"]), (&json!("second"), &json!(8)));
    assert_eq!(second["rows_at_or_before"], before["rows_at_or_before"]);
}

#[test]
fn seq_and_id_name_the_same_boundary() {
    let neutral = home("neutral");
    let by_seq = json_of(&neutral, &[&["resolve", "--seq", "723"], &CLAUDE[..]].concat()).exits(0).json();
    let by_id =
        json_of(&neutral, &[&["resolve", "--id", "msg_2e8343f37f517db95ecf#0"], &CLAUDE[..]].concat()).exits(0).json();
    assert_eq!(by_seq["last_row"], by_id["last_row"]);
    assert_eq!((&by_seq["last_row"]["seq"], &by_seq["next_row"]["seq"]), (&json!("722"), &json!("724")));
    assert_eq!(by_id["seq"], "722");
}

#[test]
fn every_row_is_what_select_shows() {
    let mut rows = 0;
    for name in CORPORA {
        let path = crate::support::testdata().join(format!("expected/{name}.rows.ndjson"));
        for line in std::fs::read_to_string(path).expect("rows").lines() {
            let mut row: Value = serde_json::from_str(line).expect("a row");
            let fields = row.as_object_mut().expect("an object");
            let dataset = fields.remove("_dataset").expect("a dataset");
            let partition = fields.remove("_partition").expect("a partition");
            let (key, value) = match fields.get("_hyp_ingest_seq").and_then(Value::as_str) {
                Some(seq) => ("_hyp_ingest_seq", seq.to_owned()),
                None => ("part_id", format!("'{}'", text(&fields["part_id"]))),
            };
            let conditions: Vec<String> = text(&partition)
                .split('/')
                .filter_map(|segment| segment.split_once('='))
                .map(|(key, value)| format!("\"{key}\" = '{value}'"))
                .collect();
            let sql =
                format!("SELECT * FROM {} WHERE {key} = {value} AND {}", text(&dataset), conditions.join(" AND "));
            let ran = run(["--home", &home(name), "-q", "--format", "ndjson", "sql", "-c", &sql]).exits(0);
            let lines: Vec<&str> = ran.stdout.lines().collect();
            assert_eq!(lines.len(), 1, "{name}: {sql}");
            let shown: Value = serde_json::from_str(lines[0]).expect("a row");
            for (field, expected) in row.as_object().expect("an object") {
                assert_eq!(&shown[field], expected, "{name} {partition}: {field}");
            }
            rows += 1;
        }
    }
    assert_eq!(rows, 152);
}

#[test]
fn a_seq_that_is_no_row_is_explained() {
    let neutral = home("neutral");
    for (seq, kind, words) in [
        ("721", "elsewhere", "ai_gateway_messages source=codex"),
        ("523", "deleted", "-deletes.puffin"),
        ("5000", "unallocated", "the next seq is 2049"),
        ("1500", "unknown", "reserved and never stamped"),
    ] {
        let shown = json_of(&neutral, &[&["resolve", "--seq", seq], &CLAUDE[..]].concat()).json();
        assert_eq!(shown["hole"]["kind"], kind, "{seq}: {shown:#}");
        assert!(text(&shown["hole"]["detail"]).contains(words), "{seq}: {}", shown["hole"]);
    }
    let row = json_of(&neutral, &[&["resolve", "--seq", "722"], &CLAUDE[..]].concat()).json();
    assert_eq!(row["hole"], Value::Null);
}

#[test]
fn rows_flushed_twice_are_reported() {
    let shown = json_of(
        &home("neutral"),
        &[&["resolve", "--full-scan", "--at", T, "--generation", "table-1796095170826"], &CLAUDE[..]].concat(),
    );
    assert_eq!(shown.json()["duplicate_ids"], 2);
}

#[test]
fn an_exclusion_is_one_expression() {
    for predicate in ["_hyp_ingest_seq > 1) OR (1 = 1", "_hyp_ingest_seq >", "1 = 1; DROP TABLE x"] {
        let args = [&["resolve", "--at", T, "--exclude", predicate][..], &CLAUDE].concat();
        let ran = json_of(&home("neutral"), &args).exits(2);
        assert!(ran.stderr.contains("is not one SQL expression"), "{}", ran.stderr);
    }
}
