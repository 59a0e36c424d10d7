//! Schema `cache`.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::CORPORA;
use super::answers::{RUNTIME, copy, corpus, home, open, rows, value};

fn expected(name: &str) -> Value {
    let text = fs::read_to_string(home("expected").join(format!("{name}.expected.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn generations_have_the_figures_of_hypawares_own_reader() {
    let number = |seq: &Value| seq.as_str().map_or(Value::Null, |seq| seq.parse::<i64>().unwrap().into());
    let mut compared = 0;
    for name in CORPORA {
        let engine = corpus(name);
        for partition in expected(name)["partitions"].as_array().unwrap() {
            for generation in partition["generations"].as_array().unwrap() {
                if generation["has_metadata"] != true {
                    continue;
                }
                let found = rows(
                    &engine,
                    &format!(
                        "SELECT visible_rows, legacy_rows, null_time_rows, min_seq, max_seq, min_time, max_time
                         FROM cache.generations
                         WHERE dataset = '{}' AND partition = '{}' AND generation = '{}' AND problem IS NULL",
                        partition["dataset"].as_str().unwrap(),
                        partition["partition"].as_str().unwrap(),
                        generation["generation"].as_str().unwrap(),
                    ),
                );
                let wanted = json!([{
                    "visible_rows": generation["live_rows"],
                    "legacy_rows": generation["null_seq_rows"],
                    "null_time_rows": generation["null_time_rows"],
                    "min_seq": number(&generation["min_seq"]),
                    "max_seq": number(&generation["max_seq"]),
                    "min_time": generation["min_time"],
                    "max_time": generation["max_time"],
                }]);
                assert_eq!(json!(found), wanted, "{name} {generation}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 45);
}

#[test]
fn partitions_say_what_their_cursors_say() {
    let engine = corpus("neutral");
    assert_eq!(
        json!(rows(&engine, "SELECT * EXCLUDE (path) FROM cache.partitions WHERE partition = 'source=claude'")),
        json!([{
            "dataset": "ai_gateway_messages",
            "partition": "source=claude",
            "live_generation": "table-1796095174466",
            "generations": 4,
            "time_column": "message_created_at",
            "retention_cutoff": "2026-07-22T00:00:00.000Z",
            "retention_ran_at": "2026-08-05T00:00:00.000Z",
            "retention_deleted_rows": 105,
        }])
    );
    for name in CORPORA {
        let found = rows(
            &corpus(name),
            "SELECT dataset, partition, live_generation FROM cache.partitions ORDER BY dataset, partition",
        );
        // It is unknown where the cursor cannot be read.
        let live = |p: &Value| p["live_generation"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let known = |p: &Value| json!([p["dataset"], live(p), p["partition"]]);
        let mut wanted: Vec<Value> = expected(name)["partitions"].as_array().unwrap().iter().map(known).collect();
        wanted.sort_by_key(|row| [row[0].to_string(), row[2].to_string()]);
        let found: Vec<Value> = found.into_iter().map(|row| row.values().cloned().collect()).collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn data_files_bound_their_rows() {
    for name in CORPORA {
        let engine = corpus(name);
        let datasets =
            rows(&engine, "SELECT DISTINCT dataset, time_column FROM cache.partitions WHERE time_column <> ''");
        for row in datasets {
            let (dataset, time) = (row["dataset"].as_str().unwrap(), row["time_column"].as_str().unwrap());
            let by_manifest = rows(
                &engine,
                &format!(
                    "SELECT file, raw_rows, deleted_rows, min_seq, max_seq, legacy_rows, min_time, max_time, null_time_rows
                     FROM cache.data_files WHERE dataset = '{dataset}' AND referenced ORDER BY file"
                ),
            );
            let by_rows = rows(
                &engine,
                &format!(
                    "SELECT _file AS file, count(*) AS raw_rows, count(*) FILTER (WHERE _deleted) AS deleted_rows,
                            min(_hyp_ingest_seq) AS min_seq, max(_hyp_ingest_seq) AS max_seq,
                            count(*) - count(_hyp_ingest_seq) AS legacy_rows, min(\"{time}\") AS min_time,
                            max(\"{time}\") AS max_time, count(*) - count(\"{time}\") AS null_time_rows
                     FROM raw.\"{dataset}\" WHERE _referenced GROUP BY _file ORDER BY file"
                ),
            );
            assert!(!by_rows.is_empty(), "{name} {dataset}");
            // A table from before there were seqs has no bounds for them.
            let without_seq = |rows: Vec<serde_json::Map<String, Value>>| -> Vec<Value> {
                let strip = |mut row: serde_json::Map<String, Value>| {
                    if row["min_seq"].is_null() {
                        row.remove("legacy_rows");
                    }
                    Value::from(row)
                };
                rows.into_iter().map(strip).collect()
            };
            assert_eq!(without_seq(by_manifest), without_seq(by_rows), "{name} {dataset}");
        }
    }
}

#[test]
fn files_that_no_snapshot_reaches_are_listed() {
    let engine = corpus("crashed");
    let found = "SELECT count(*) FROM cache.data_files WHERE NOT referenced";
    let rows_there = "SELECT count(DISTINCT _file) FROM raw.ai_gateway_messages WHERE NOT _referenced";
    assert_eq!(value(&engine, found), value(&engine, rows_there));
    assert_ne!(value(&engine, found), 0);
    assert_eq!(
        value(&engine, "SELECT sum(unreferenced_files) FROM cache.generations WHERE problem IS NULL"),
        value(
            &engine,
            "SELECT count(*) FROM cache.data_files d JOIN cache.generations g USING (dataset, partition, generation)
             WHERE NOT d.referenced AND g.problem IS NULL"
        )
    );
}

#[test]
fn delete_files_say_what_they_delete() {
    for name in ["neutral", "sinks", "skew"] {
        let engine = corpus(name);
        let by_file =
            "SELECT data_file AS file, sum(deleted_rows) AS deleted FROM cache.delete_files GROUP BY 1 ORDER BY 1";
        let by_rows = "SELECT _file AS file, count(*) AS deleted FROM raw.ai_gateway_messages
                       WHERE _deleted GROUP BY 1 ORDER BY 1";
        assert_eq!(rows(&engine, by_file), rows(&engine, by_rows), "{name}");
    }
    let kinds = "SELECT DISTINCT kind FROM cache.delete_files";
    assert_eq!(value(&corpus("neutral"), kinds), "deletion vector");
}

#[test]
fn deleted_rows_are_told_one_by_one() {
    for name in ["neutral", "skew"] {
        let engine = corpus(name);
        let by_delete = "SELECT data_file AS file, pos FROM cache.deleted_rows ORDER BY 1, 2";
        let by_row = "SELECT _file AS file, _pos AS pos FROM raw.ai_gateway_messages WHERE _deleted ORDER BY 1, 2";
        assert_eq!(rows(&engine, by_delete), rows(&engine, by_row), "{name}");
        let of_files = "SELECT file, count(*) AS deleted_rows FROM cache.deleted_rows GROUP BY 1 ORDER BY 1";
        let files = "SELECT file, sum(deleted_rows) AS deleted_rows FROM cache.delete_files GROUP BY 1 ORDER BY 1";
        assert_eq!(rows(&engine, of_files), rows(&engine, files), "{name}");
    }
}

#[test]
fn what_is_unreadable_in_a_watermark_or_the_allocator_is_a_problem_afterwards() {
    let dir = copy("sinks");
    fs::write(dir.path().join("sinks/hypaware/cache/_hyp_ingest_seq.json"), "{").unwrap();
    let (engine, _) = open(&[dir.path().join("sinks")]);
    let codes = || engine.problems().iter().map(|problem| problem.code).collect::<Vec<_>>();
    assert_eq!(codes(), [""; 0]);
    assert_eq!(value(&engine, "SELECT count(*) FROM cache.allocator"), 0);
    assert_eq!(codes(), ["allocator-unreadable"]);
    assert_eq!(value(&engine, "SELECT count(*) FROM cache.watermarks WHERE seq IS NULL"), 1);
    assert_eq!(codes(), ["allocator-unreadable", "watermark-unreadable"]);
}

#[test]
fn a_cache_without_partitions_has_no_seqs() {
    let dir = tempfile::TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("hypaware/cache/datasets")).unwrap();
    let (engine, _) = open(&[dir.path().to_owned()]);
    assert_eq!(value(&engine, "SELECT count(seq) FROM cache.seqs WHERE dataset = 'logs'"), 0);
}

#[test]
fn snapshots_are_a_chain_that_ends_in_the_current_one() {
    let engine = corpus("neutral");
    let orphans = "SELECT count(*) FROM cache.snapshots s LEFT ANTI JOIN cache.snapshots p
                   ON s.parent_id = p.snapshot_id WHERE s.parent_id IS NOT NULL";
    assert_eq!(value(&engine, orphans), 0);
    assert_eq!(
        value(&engine, "SELECT count(*) FROM cache.snapshots WHERE is_current"),
        value(&engine, "SELECT count(*) FROM cache.generations WHERE problem IS NULL")
    );
    let newest =
        "SELECT count(*) FROM cache.snapshots s JOIN cache.generations g USING (snapshot_id) WHERE s.is_current";
    assert_eq!(value(&engine, newest), 7);
}

#[test]
fn watermarks_and_the_allocator_are_there() {
    let engine = corpus("neutral");
    assert_eq!(
        json!(rows(&engine, "SELECT * EXCLUDE (path) FROM cache.watermarks WHERE partition = 'source=claude'")),
        json!([{
            "plugin": "@hypaware/central",
            "instance": "central",
            "dataset": "ai_gateway_messages",
            "partition": "source=claude",
            "seq": 1495,
            "exported_row_count": 665,
            "updated_at": "2026-12-01T03:19:36.701Z",
        }])
    );
    assert_eq!(value(&engine, "SELECT next_seq FROM cache.allocator"), 2049);
}

#[test]
fn a_watermark_whose_name_was_changed_still_names_its_partition() {
    let dir = copy("neutral");
    let datasets = dir.path().join("neutral/hypaware/cache/datasets/ai_gateway_messages");
    let watermarks = "neutral/hypaware/plugins/@hypaware/central/sink-instances/central/watermarks/ai_gateway_messages";
    let watermarks = dir.path().join(watermarks);
    fs::rename(datasets.join("source=claude"), datasets.join("source=claude code")).unwrap();
    fs::rename(watermarks.join("source=claude.json"), watermarks.join("source=claude_code.json")).unwrap();
    let (engine, _) = open(&[dir.path().join("neutral")]);
    assert_eq!(value(&engine, "SELECT partition FROM cache.watermarks WHERE seq = 1495"), "source=claude code");
}

#[test]
fn what_cannot_be_read_is_a_problem_and_has_no_figures() {
    let dir = copy("neutral");
    let metadata = "hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095172778/metadata";
    let metadata = dir.path().join("neutral").join(metadata);
    let manifest = fs::read_dir(&metadata).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.filter(|path| path.to_string_lossy().ends_with("-m0.avro")).min().unwrap();
    fs::write(&manifest, b"Obj").unwrap();
    let (engine, _) = open(&[dir.path().join("neutral")]);
    let damaged = rows(
        &engine,
        "SELECT generation, visible_rows, data_files, problem LIKE '%-m0.avro%' AS says FROM cache.generations
         WHERE problem IS NOT NULL",
    );
    let wanted = json!([{
        "generation": "table-1796095172778", "visible_rows": null, "data_files": null, "says": true,
    }]);
    assert_eq!(json!(damaged), wanted);
    let problems = rows(&engine, "SELECT severity, code, path FROM cache.problems");
    let path = manifest.display().to_string();
    assert_eq!(json!(problems), json!([{ "severity": "error", "code": "metadata-unreadable", "path": path }]));
}

#[test]
fn a_fleet_names_the_home_of_each_row() {
    let (engine, _) = open(&[home("neutral"), home("legacy")]);
    let found = rows(&engine, "SELECT home, next_seq > 0 AS known FROM cache.allocator ORDER BY home");
    assert_eq!(json!(found), json!([{ "home": "legacy", "known": true }, { "home": "neutral", "known": true }]));
}

#[test]
fn every_seq_is_somewhere_once_per_partition() {
    for name in CORPORA {
        let engine = corpus(name);
        let twice =
            "SELECT count(*) FROM (SELECT 1 FROM cache.seqs GROUP BY dataset, partition, seq HAVING count(*) > 1)";
        assert_eq!(value(&engine, twice), 0, "{name}");
        for dataset in rows(&engine, "SELECT DISTINCT dataset FROM cache.partitions") {
            let dataset = dataset["dataset"].as_str().unwrap();
            let seqs = format!("SELECT count(*) FROM cache.seqs WHERE dataset = '{dataset}'");
            let complete = format!("SELECT count(_hyp_ingest_seq) FROM complete.\"{dataset}\"");
            assert_eq!(value(&engine, &seqs), value(&engine, &complete), "{name} {dataset}");
        }
    }
    let found = rows(&corpus("sinks"), "SELECT * FROM cache.seqs WHERE dataset = 'logs' ORDER BY seq LIMIT 1");
    let wanted = json!([{
        "seq": 41, "dataset": "logs", "partition": "source=unknown", "time": "2026-07-20T07:00:00.000Z",
        "generation": "table-1796095185684", "deleted": false,
    }]);
    assert_eq!(json!(found), wanted);
}

/// A thread that worked for rayon while it held a generation's lock could be given a job that waited for the same lock.
#[test]
fn tables_that_read_the_same_manifests_at_once_do_not_wait_for_each_other() {
    let sql =
        "SELECT count(*) FROM cache.data_files d JOIN cache.delete_files x USING (generation), cache.generations g
               JOIN cache.data_files e ON e.generation = g.generation, (SELECT 1 FROM raw.logs LIMIT 1)";
    for _ in 0..40 {
        let engine = corpus("sinks");
        let counted = RUNTIME.block_on(async {
            let counting = async { engine.query(sql).await?.collect().await };
            tokio::time::timeout(Duration::from_mins(1), counting).await
        });
        counted.expect("it ends").unwrap();
    }
}
