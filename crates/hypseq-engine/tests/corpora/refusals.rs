//! Statements that are refused, and why.

use std::sync::LazyLock;

use std::fs;

use hypseq_engine::{Engine, Error};

use super::answers::{RUNTIME, copy, corpus, home, open, rows, try_rows, value};

static SKEW: LazyLock<Engine> = LazyLock::new(|| corpus("skew"));

/// The statement, the reason and the hint of a refusal.
fn refusal(sql: &str) -> (String, String, String) {
    match try_rows(&SKEW, sql) {
        Err(Error::Refused { statement, reason, hint }) => (statement, reason, hint),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn statements_that_change_something() {
    for (sql, name) in [
        ("DROP TABLE ai_gateway_messages", "DROP TABLE"),
        ("DROP VIEW v", "DROP VIEW"),
        ("INSERT INTO ai_gateway_messages VALUES (1)", "INSERT INTO"),
        ("UPDATE ai_gateway_messages SET role = 'x'", "UPDATE"),
        ("DELETE FROM ai_gateway_messages", "DELETE FROM"),
        ("CREATE TABLE t (a INT)", "CREATE TABLE"),
        ("CREATE TABLE t AS SELECT 1", "CREATE TABLE"),
        ("CREATE SCHEMA s", "CREATE SCHEMA"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("EXECUTE p", "EXECUTE"),
        ("BEGIN", "BEGIN"),
        ("TRUNCATE TABLE ai_gateway_messages", "TRUNCATE TABLE"),
        ("EXPLAIN DROP TABLE ai_gateway_messages", "DROP TABLE"),
        ("EXPLAIN ANALYZE INSERT INTO ai_gateway_messages VALUES (1)", "INSERT INTO"),
    ] {
        let (statement, _, hint) = refusal(sql);
        assert!(statement.starts_with(name), "{sql}: {statement}");
        assert!(hint.contains("allowed are queries, EXPLAIN, SHOW, DESCRIBE"), "{hint}");
    }
    refusal("SELECT 1 AS a INTO t");
}

#[test]
fn the_unsafe_optimiser_option_stays_off() {
    let engine = corpus("skew");
    for option in ["enable_aggregate_dynamic_filter_pushdown", "enable_dynamic_filter_pushdown"] {
        for sql in [
            format!("SET datafusion.optimizer.{option} = true"),
            format!("SET DATAFUSION.OPTIMIZER.{} TO 'true'", option.to_uppercase()),
            format!("set \"datafusion\".\"optimizer\".\"{option}\" = true"),
            format!("RESET datafusion.optimizer.{option}"),
            format!("EXPLAIN ANALYZE SET datafusion.optimizer.{option} = true"),
        ] {
            assert!(try_rows(&engine, &sql).is_err(), "{sql}");
        }
        assert!(refusal(&format!("SET datafusion.optimizer.{option} = true")).1.contains("wrongly"));
        assert!(refusal(&format!("RESET datafusion.optimizer.{option}")).1.contains("wrongly"));
    }
    rows(&engine, "SET datafusion.execution.batch_size = 100");
    rows(&engine, "RESET datafusion.execution.batch_size");
    let shown = rows(&engine, "SHOW datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown").remove(0);
    assert_eq!(shown["value"], "false");
}

#[test]
fn the_time_zone_stays_unset() {
    for sql in [
        "SET datafusion.execution.time_zone = '+02:00'",
        "SET TIME ZONE '+02:00'",
        "SET TIMEZONE = '+02:00'",
        "RESET datafusion.execution.time_zone",
    ] {
        assert!(refusal(sql).1.contains("in UTC"), "{sql}");
    }
}

#[test]
fn settings_that_could_change_an_answer() {
    for name in ["sql_parser.dialect", "runtime.temp_directory", "optimizer.max_passes", "catalog.default_schema"] {
        let (statement, _, hint) = refusal(&format!("SET datafusion.{name} = '1'"));
        assert_eq!(statement, format!("SET datafusion.{name}"));
        assert!(hint.contains("datafusion.execution.target_partitions"), "{hint}");
    }
}

#[test]
fn a_script_is_refused_before_any_of_it_is_run() {
    let engine = corpus("skew");
    let error = engine.parse("CREATE VIEW v AS SELECT 1; DROP VIEW v").unwrap_err();
    assert!(matches!(error, Error::Refused { .. }));
    assert!(try_rows(&engine, "SELECT * FROM v").is_err());
    assert!(engine.parse("SELECT 1; SELEC 2").is_err());
}

#[test]
fn one_statement_is_expected() {
    let engine = corpus("skew");
    let error = RUNTIME.block_on(engine.query("SELECT 1; SELECT 2")).err().unwrap();
    assert_eq!(error.to_string(), "expected one statement, found 2");
    assert_eq!(RUNTIME.block_on(engine.query("")).err().unwrap().to_string(), "expected one statement, found 0");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_into_a_home() {
    let dir = copy("skew");
    let (engine, _) = open(&[dir.path().join("skew")]);
    let inside = dir.path().join("skew");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(inside.join("hypaware"), &link).unwrap();
    let dangling = dir.path().join("dangling");
    std::os::unix::fs::symlink(inside.join("not-there.csv"), &dangling).unwrap();
    let inside = inside.display();
    for target in [
        format!("{inside}/x.csv"),
        format!("{inside}/new/folder/x.csv"),
        format!("{inside}/hypaware/cache/x.csv"),
        format!("{}/outside/../skew/x.csv", dir.path().display()),
        format!("file://{inside}/x.csv"),
        format!("{}/x.csv", link.display()),
        dangling.display().to_string(),
    ] {
        let sql = format!("COPY (SELECT 1) TO '{target}' STORED AS CSV");
        let Err(Error::Refused { statement, .. }) = try_rows(&engine, &sql) else { panic!("{sql} is not refused") };
        assert_eq!(statement, format!("COPY TO '{target}'"));
    }
    assert!(matches!(try_rows(&engine, "COPY (SELECT 1) TO 's3://bucket/x.csv'"), Err(Error::Refused { .. })));
    assert_eq!(files(&dir.path().join("skew")), files(&home("skew")));
}

#[test]
fn the_bare_cache_root_is_protected_as_well() {
    let dir = copy("skew");
    let cache = dir.path().join("skew/hypaware/cache");
    let homes = [hypseq_cache::Home::open_cache(&cache).unwrap()];
    let (engine, _) = RUNTIME.block_on(Engine::open(&homes, &hypseq_engine::EngineOptions::default())).unwrap();
    let sql = format!("COPY (SELECT 1) TO '{}/x.csv'", cache.display());
    assert!(matches!(try_rows(&engine, &sql), Err(Error::Refused { .. })));
}

/// Why a statement is refused.
fn refused_by(engine: &Engine, sql: &str) -> String {
    match try_rows(engine, sql) {
        Err(Error::Refused { reason, .. }) => reason,
        other => panic!("{sql} is not refused: {other:?}"),
    }
}

#[test]
fn a_home_that_was_not_named_is_protected_as_well() {
    let dir = copy("skew");
    let home = dir.path().join("skew");
    let cache = hypseq_cache::Home::open_cache(&home.join("hypaware/cache")).unwrap();
    let options = hypseq_engine::EngineOptions::default();
    let (beside_the_cache, _) = RUNTIME.block_on(Engine::open(&[cache], &options)).unwrap();
    for engine in [beside_the_cache, corpus("neutral")] {
        for place in ["x.csv", "hypaware/plugins/x.csv", "hypaware/cache/datasets/x.csv"] {
            let sql = format!("COPY (SELECT 1) TO '{}'", home.join(place).display());
            assert!(refused_by(&engine, &sql).contains("nothing is ever written there"), "{sql}");
        }
    }
    let bare = dir.path().join("bare");
    fs::rename(home.join("hypaware/cache"), &bare).unwrap();
    let sql = format!("COPY (SELECT 1) TO '{}/x.csv'", bare.display());
    assert!(refused_by(&corpus("neutral"), &sql).contains("nothing is ever written there"));
    // A copy from before there were seqs has no allocator.
    fs::remove_file(bare.join("_hyp_ingest_seq.json")).unwrap();
    assert!(refused_by(&corpus("neutral"), &sql).contains("nothing is ever written there"));
}

#[test]
fn one_new_file_is_written() {
    let dir = tempfile::TempDir::new().unwrap();
    let engine = corpus("skew");
    let place = |name: &str| dir.path().join(name).display().to_string();
    fs::write(place("mine.csv"), "precious").unwrap();
    for (target, options, says) in [
        ("mine.csv", "", "it is there already"),
        ("nowhere/x.csv", "", "there is no such folder"),
        ("folder/", "STORED AS CSV", "one file is written"),
        ("rows", "STORED AS CSV", "its name has no ending"),
        ("part?/x.csv", "", "one file is written"),
        ("x.csv", "PARTITIONED BY (a)", "one file is written"),
    ] {
        let format = if options.is_empty() { "STORED AS CSV" } else { options };
        let format = if format.contains("STORED") { format.to_owned() } else { format!("STORED AS CSV {format}") };
        let sql = format!("COPY (SELECT 1 AS a, 2 AS b) TO '{}' {format}", place(target));
        assert!(refused_by(&engine, &sql).contains(says), "{sql}");
    }
    let analyze = format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{}'", place("y.csv"));
    assert!(refused_by(&engine, &analyze).contains("it would write the file"));
    assert_eq!(files(dir.path()), ["mine.csv"]);
    assert_eq!(fs::read_to_string(place("mine.csv")).unwrap(), "precious");
}

#[test]
fn a_copy_that_fails_leaves_no_file() {
    let home = copy("skew");
    let (engine, _) = open(&[home.path().join("skew")]);
    let files_of = "SELECT file FROM cache.data_files WHERE state = 'live' ORDER BY min_seq DESC LIMIT 1";
    let data_file = value(&engine, files_of);
    let data_file = home.path().join("skew/hypaware/cache").join(data_file.as_str().unwrap());
    let mut bytes = fs::read(&data_file).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0xff);
    fs::write(&data_file, bytes).unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    for name in ["x.csv", "x.ndjson", "x.parquet"] {
        let sql = format!("COPY (SELECT * FROM ai_gateway_messages) TO '{}'", dir.path().join(name).display());
        assert!(matches!(try_rows(&engine, &sql), Err(Error::Unreadable(_))), "{sql}");
    }
    assert_eq!(files(dir.path()), [""; 0]);
}

#[test]
fn copies_outside_are_written() {
    let dir = tempfile::TempDir::new().unwrap();
    let engine = corpus("skew");
    for name in ["rows.parquet", "rows.csv", "rows.json"] {
        let path = dir.path().join(name).display().to_string();
        let columns = "_hyp_ingest_seq, message_created_at, attributes";
        let copied = rows(&engine, &format!("COPY (SELECT {columns} FROM ai_gateway_messages) TO '{path}'")).remove(0);
        let count = value(&engine, "SELECT count(*) FROM ai_gateway_messages");
        assert_eq!(copied["count"], count, "{name}");
        assert!(std::fs::metadata(&path).unwrap().len() > 1_000);
    }
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|path| format!("{name}/{path}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}
