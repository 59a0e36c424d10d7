//! Several homes at once, and bare cache roots.

use serde_json::json;

use crate::support::{CLAUDE, T, home, items, run, testdata};

#[test]
fn every_result_names_its_home() {
    let args = ["--home", &home("neutral"), "--home", &home("monotone"), "--format", "json", "resolve", "--at", T];
    let shown = run([&args[..], &CLAUDE].concat()).exits(0).json();
    let safe: Vec<_> = items(&shown).iter().map(|r| (r["home"].clone(), r["safe_seq"].clone())).collect();
    assert_eq!(safe, [(json!("neutral"), json!("722")), (json!("monotone"), json!("719"))]);
}

#[test]
fn a_glob_is_a_fleet() {
    let glob = testdata().join("[mn]*").to_string_lossy().into_owned();
    let sql = "SELECT home, count(*) AS rows FROM ai_gateway_messages GROUP BY home ORDER BY home";
    let ran = run(["--home", &glob, "--format", "csv", "sql", "-c", sql]).exits(0);
    assert_eq!(ran.stdout, "home,rows\nmonotone,1280\nneutral,1199\n");
    let status = run(["--home", &glob, "--format", "json", "status"]).exits(0).json();
    assert_eq!(items(&status).len(), 2);
}

#[test]
fn a_bare_cache_root_has_everything_but_watermarks() {
    let cache = format!("{}/hypaware/cache", home("neutral"));
    let status = run(["--cache", &cache, "--format", "json", "status"]).exits(0).json();
    assert_eq!(items(&status["partitions"][0]["watermarks"]).len(), 0);
    let shown =
        run([&["--cache", &cache, "--format", "json", "resolve", "--at", T][..], &CLAUDE].concat()).exits(0).json();
    assert_eq!(shown["safe_seq"], "722");
    let plan = ["--cache", &cache, "plan", "rewind", "--sink", "central", "--since", T, "--reason", "x"];
    assert!(run(plan).exits(2).stderr.contains("--home"));
}

#[test]
fn a_plan_is_for_one_home() {
    let args =
        ["--home", &home("neutral"), "--home", &home("monotone"), "plan", "rewind", "--sink", "central", "--since", T];
    let ran = run([&args[..], &["--reason", "x"]].concat()).exits(2);
    assert!(ran.stderr.contains("one home"), "{}", ran.stderr);
}

#[test]
fn the_home_comes_from_the_environment_too() {
    let output = crate::support::command().env("HYP_HOME", home("skew")).args(["--format", "json", "status"]).output();
    let shown: serde_json::Value = serde_json::from_slice(&output.expect("runs").stdout).expect("JSON");
    assert_eq!(shown["home"], "skew");
}

#[test]
fn a_folder_that_is_no_home_does_not_stop_the_others() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let empty = folder.path().to_string_lossy().into_owned();
    let neutral = home("neutral");
    let both = ["--home", &neutral, "--home", &empty, "--format", "json"];
    let status = run([&both[..], &["status"]].concat()).exits(2);
    assert_eq!(status.json()[0]["home"], "neutral");
    assert!(status.stderr.contains(&empty), "{}", status.stderr);
    let shown = run([&both[..], &["resolve", "--at", T], &CLAUDE].concat()).exits(2).json();
    assert_eq!(shown[0]["safe_seq"], "722");
    let sql = run([
        "--home",
        &neutral,
        "--home",
        &empty,
        "--format",
        "csv",
        "sql",
        "-c",
        "SELECT count(*) AS n FROM logs_or_not",
    ]);
    assert_eq!(sql.status, 2);
    let sql = run(["--home", &neutral, "--home", &empty, "--format", "csv", "sql", "-c", "SELECT 1 AS one"]).exits(2);
    assert_eq!(sql.stdout, "one\n1\n");
}

#[test]
fn a_home_that_is_named_twice_counts_once() {
    let neutral = home("neutral");
    let twice = format!("{neutral}/../neutral");
    let sql = ["sql", "-c", "SELECT count(*) AS n FROM ai_gateway_messages"];
    let ran = run([&["--home", &neutral, "--home", &twice, "--format", "csv"][..], &sql].concat()).exits(0);
    assert_eq!(ran.stdout, "n\n1199\n");
}
