//! What the allowed statements do.

use std::time::Duration;

use hypseq_engine::{Error, ScalarValue};
use serde_json::{Value, json};

use super::answers::{RUNTIME, corpus, rows, try_rows, value};

#[test]
fn a_text_compared_with_a_time_is_read_as_a_time() {
    let engine = corpus("neutral");
    let after = |text: &str| {
        value(&engine, &format!("SELECT count(*) FROM ai_gateway_messages WHERE message_created_at > {text}"))
    };
    let expected = after("to_timestamp(1785272400)");
    assert_eq!(expected, 722);
    for text in
        ["'2026-07-28T21:00:00Z'", "'2026-07-28T23:00:00+02:00'", "'2026-07-28 21:00:00'", "'2026-07-28T21:00:00.000Z'"]
    {
        assert_eq!(after(text), expected, "{text}");
    }
    let day = value(
        &engine,
        "SELECT count(*) FROM ai_gateway_messages WHERE message_created_at BETWEEN '2026-07-28' AND '2026-07-29'",
    );
    assert_eq!(
        day,
        value(
            &engine,
            "SELECT count(*) FROM ai_gateway_messages WHERE date_trunc('day', message_created_at) = '2026-07-28'"
        )
    );
    let one = "'2026-07-29T06:00:50.955Z'";
    assert_eq!(
        value(&engine, &format!("SELECT count(*) FROM ai_gateway_messages WHERE message_created_at IN ({one})")),
        1
    );
}

#[test]
fn a_text_that_is_no_time_is_an_error_that_names_it() {
    let engine = corpus("neutral");
    for condition in
        ["> 'last tuesday'", "BETWEEN '2026-07-28' AND 'last tuesday'", "IN ('last tuesday')", "= 'last tuesday'"]
    {
        let error = try_rows(
            &engine,
            &format!("SELECT count(*) FROM ai_gateway_messages WHERE message_created_at {condition}"),
        )
        .unwrap_err();
        assert!(error.to_string().contains("'last tuesday'"), "{condition}: {error}");
        assert!(error.to_string().contains("\n  hint: write a time as '2026-07-28T21:00:00Z'"), "{condition}: {error}");
    }
}

#[test]
fn a_number_compared_with_a_time_is_an_error_with_a_hint() {
    let sql = "SELECT count(*) FROM ai_gateway_messages WHERE message_created_at > 1785272400";
    let error = try_rows(&corpus("neutral"), sql).unwrap_err().to_string();
    assert!(error.contains("\n  hint: write a time as"), "{error}");
}

#[test]
fn an_unknown_column_is_said_without_all_the_others() {
    let error = try_rows(&corpus("neutral"), "SELECT sesion_id FROM ai_gateway_messages").unwrap_err().to_string();
    assert!(error.contains("Did you mean 'ai_gateway_messages.session_id'"), "{error}");
    assert!(error.ends_with("\n  hint: DESCRIBE shows the columns of a table"), "{error}");
    assert!(!error.contains("gateway_id"), "{error}");
}

#[test]
fn a_text_compared_with_a_seq_is_read_as_a_number() {
    let engine = corpus("neutral");
    let above =
        |seq: &str| value(&engine, &format!("SELECT count(*) FROM ai_gateway_messages WHERE _hyp_ingest_seq > {seq}"));
    assert_eq!(above("'999'"), above("999"));
}

#[test]
fn names_are_written_as_they_are() {
    let engine = corpus("sinks");
    let sql = "select COUNT(*) AS n, Max(severityNumber) AS most FROM logs WHERE serviceName LIKE 'svc%' GROUP BY severityText";
    assert!(!rows(&engine, sql).is_empty());
    assert_eq!(value(&engine, "SELECT Count(\"serviceName\") FROM hyp.live.logs"), 200);
    assert!(try_rows(&engine, "SELECT servicename FROM logs").unwrap_err().to_string().contains("serviceName"));
}

#[test]
fn json_functions_work_on_variant_columns() {
    let engine = corpus("neutral");
    let sql = "SELECT attributes->'gateway'->>'identity_source' AS source, json_get_int(attributes, 'gateway', 'latency_ms') AS ms,
               json_get(attributes, 'gateway', 'latency_ms') AS any_ms, json_get(attributes, 'gateway') AS part,
               json_get(attributes, 'nothing') AS nothing
               FROM ai_gateway_messages WHERE _hyp_ingest_seq = 162";
    let expected = json!({
        "source": "native",
        "ms": 421,
        "any_ms": "421",
        "part": "{\"identity_source\":\"native\",\"latency_ms\":421}",
        "nothing": null,
    });
    assert_eq!(Value::from(rows(&engine, sql).remove(0)), expected);
    let calls = "SELECT count(*) FROM ai_gateway_messages WHERE tool_args->>'cmd' IS NOT NULL";
    assert_eq!(
        value(&engine, calls),
        value(&engine, "SELECT count(*) FROM ai_gateway_messages WHERE tool_args LIKE '%\"cmd\"%'")
    );
}

#[test]
fn parameters_are_bound_as_values() {
    let engine = corpus("neutral");
    let run = |sql: &str, params: &[(&str, ScalarValue)]| {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        RUNTIME.block_on(async { engine.query_with_params(sql, params).await?.collect().await })
    };
    let count = |sql: &str, params: &[(&str, ScalarValue)]| {
        run(sql, params)
            .map(|batches| batches.iter().map(hypseq_engine::arrow::array::RecordBatch::num_rows).sum::<usize>())
    };
    let from = "SELECT 1 FROM ai_gateway_messages WHERE";
    assert_eq!(
        count(&format!("{from} _hyp_ingest_seq BETWEEN $low AND $low + 10"), &[("low", ScalarValue::from(715_i64))])
            .unwrap(),
        11
    );
    let at = ScalarValue::from("2026-07-28T21:00:00Z");
    assert_eq!(count(&format!("{from} message_created_at > $at"), &[("at", at)]).unwrap(), 722);
    let quote = ScalarValue::from("x' OR role = 'user");
    assert_eq!(count(&format!("{from} role = $role"), &[("role", quote)]).unwrap(), 0);
    let error = count(&format!("{from} role = $role"), &[]).unwrap_err().to_string();
    assert!(error.contains("$role"), "{error}");
}

#[test]
fn views_stand_beside_the_datasets() {
    let engine = corpus("neutral");
    rows(&engine, "CREATE VIEW sent AS SELECT * FROM complete.ai_gateway_messages WHERE _hyp_ingest_seq <= 722");
    assert_eq!(value(&engine, "SELECT count(*) FROM sent WHERE source = 'claude'"), 665);
    rows(&engine, "CREATE OR REPLACE VIEW sent AS SELECT 1 AS a");
    assert_eq!(value(&engine, "SELECT a FROM sent"), 1);
    for sql in [
        "CREATE VIEW ai_gateway_messages AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW ai_gateway_messages AS SELECT 1 AS a",
    ] {
        assert!(try_rows(&engine, sql).is_err(), "{sql}");
    }
    assert_eq!(value(&engine, "SELECT count(*) FROM ai_gateway_messages"), 1199);
}

#[test]
fn files_of_others_can_be_joined() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("landed.csv");
    std::fs::write(&path, "part_id,received\nmsg_2e8343f37f517db95ecf#0,2026-07-28T14:30:00Z\nother,\n").unwrap();
    let engine = corpus("neutral");
    rows(
        &engine,
        &format!(
            "CREATE EXTERNAL TABLE landed STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true')",
            path.display()
        ),
    );
    let sql = "SELECT _hyp_ingest_seq FROM ai_gateway_messages JOIN landed USING (part_id)";
    assert_eq!(value(&engine, sql), 722);
}

#[test]
fn tables_and_columns_are_described() {
    let engine = corpus("sinks");
    let tables = rows(&engine, "SHOW TABLES");
    let names: Vec<_> = tables
        .iter()
        .filter(|row| row["table_schema"] != "information_schema")
        .map(|row| {
            format!(
                "{}.{}.{}",
                row["table_catalog"].as_str().unwrap(),
                row["table_schema"].as_str().unwrap(),
                row["table_name"].as_str().unwrap()
            )
        })
        .collect();
    let datasets = ["ai_gateway_messages", "logs"];
    let of_datasets = ["complete", "live", "raw", "spool"]
        .iter()
        .flat_map(|schema| datasets.map(|dataset| format!("hyp.{schema}.{dataset}")));
    let metadata = [
        "allocator",
        "data_files",
        "delete_files",
        "deleted_rows",
        "generations",
        "partitions",
        "problems",
        "seqs",
        "snapshots",
        "watermarks",
    ];
    let expected: Vec<_> = metadata.iter().map(|table| format!("hyp.cache.{table}")).chain(of_datasets).collect();
    assert_eq!(names, expected);
    let described = rows(&engine, "DESCRIBE raw.logs");
    let columns: Vec<_> = described.iter().map(|row| row["column_name"].as_str().unwrap()).collect();
    let last = [
        "_hyp_ingest_seq",
        "source",
        "_generation",
        "_generation_state",
        "_partition",
        "_file",
        "_pos",
        "_deleted",
        "_referenced",
    ];
    assert_eq!(columns[columns.len() - last.len()..], last);
    assert_eq!(columns[..3], ["serviceName", "timestamp", "observedTimestamp"]);
}

#[test]
fn an_unknown_table_is_named() {
    let error = try_rows(&corpus("skew"), "SELECT * FROM nothing").unwrap_err();
    assert!(matches!(error, Error::Query(_)));
    assert_eq!(error.to_string(), "table 'hyp.live.nothing' not found\n  hint: SHOW TABLES lists all tables");
}

#[test]
fn files_are_left_out_by_the_bounds_of_their_manifests() {
    let engine = corpus("neutral");
    let opened = |condition: &str| {
        let plan =
            rows(&engine, &format!("EXPLAIN ANALYZE SELECT count(*) FROM ai_gateway_messages WHERE {condition}"));
        let text = plan[0]["plan"].as_str().unwrap();
        let files = text.split("files=").nth(1).unwrap_or_else(|| panic!("{text}"));
        let numbers = files.split([' ', ',']).filter_map(|word| word.parse::<usize>().ok());
        let [needed, all] = numbers.take(2).collect::<Vec<_>>()[..] else { panic!("{files}") };
        (needed, all)
    };
    let (matched, total) = opened("_hyp_ingest_seq = 722");
    assert!(matched <= 2 && total > 30, "{matched} of {total}");
    let (matched, total) = opened("message_created_at > '2026-08-06T00:00:00Z'");
    assert!(matched * 3 < total, "{matched} of {total}");
    assert_eq!(opened("source = 'codex'").0, 15);
}

#[test]
fn json_access_works_over_renamed_columns() {
    let engine = corpus("neutral");
    let renamed = "SELECT part_index AS n, part_index AS m, role AS part_type, part_type AS role, attributes
                   FROM ai_gateway_messages";
    let sql =
        format!("SELECT part_type, min(json_get_int(attributes, 'gateway', 'latency_ms')) FROM ({renamed}) GROUP BY 1");
    assert_eq!(rows(&engine, &sql).len(), 2);
}

#[test]
fn a_cancelled_join_gives_its_threads_back() {
    let series = "generate_series(1, 1000000)";
    for endless in [
        format!("SELECT count(*) FROM {series} a(x), {series} b(y) WHERE (a.x * b.y) % 7 = 8"),
        format!("SELECT count(*) FROM {series} a(x), {series} b(y), (SELECT 1) c"),
        format!("SELECT count(*) FROM {series} a(x) JOIN {series} b(y) ON a.x % 2 = b.y % 2 AND a.x + b.y < 0"),
        format!("SELECT a.x + b.y FROM {series} a(x), {series} b(y) WHERE random() + a.x * b.y < 0"),
    ] {
        assert_stops(&endless);
    }
}

fn assert_stops(endless: &str) {
    let engine = corpus("neutral");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    // The timer of a runtime stands still while all of its threads are at work.
    let (wake, woken) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        wake.send(())
    });
    runtime.block_on(async {
        tokio::select! {
            counted = async { engine.query(endless).await?.collect().await } => panic!("{endless}: {counted:?}"),
            woken = woken => woken.unwrap(),
        }
    });
    // Waits for what is still running.
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(runtime);
        done.send(())
    });
    ended.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| panic!("{endless} goes on"));
}

#[test]
fn a_value_that_must_be_known_is_an_error_where_it_is_not() {
    let engine = corpus("neutral");
    assert_eq!(value(&engine, "SELECT count(*) FROM raw.ai_gateway_messages WHERE NOT known(_deleted)"), 3497);
    let error = try_rows(&engine, "SELECT known(tool_name) FROM ai_gateway_messages").unwrap_err().to_string();
    assert!(error.contains("is not known"), "{error}");
    assert!(try_rows(&engine, "SELECT known(NULL)").is_err());
    // Of files that other conditions leave out nothing need be known.
    assert_eq!(
        value(&engine, "SELECT count(*) FROM ai_gateway_messages WHERE tool_name = 'Bash' AND known(tool_name) <> ''"),
        value(&engine, "SELECT count(*) FROM ai_gateway_messages WHERE tool_name = 'Bash'")
    );
}

#[test]
fn a_condition_without_columns_is_allowed() {
    let engine = corpus("neutral");
    let view = "(SELECT _hyp_ingest_seq AS seq, false AS gone FROM ai_gateway_messages)";
    assert_eq!(value(&engine, &format!("SELECT count(seq) FROM {view} WHERE seq > 999 OR NOT gone")), 1199);
    assert_eq!(value(&engine, &format!("SELECT count(seq) FROM {view} WHERE seq > 999 AND gone")), 0);
}
