//! Wrong arguments and damaged files: a clear message, the right exit status, and the rest of the answer.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{CLAUDE, Ran, T, by, command, copy, files, home, items, json_of, run};

const LIVE: &str = "hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466";

/// A refusal before there is any answer: nothing on stdout, and these words on stderr.
fn refused(args: &[&str], words: &[&str]) {
    let ran = run(args).exits(2);
    assert_eq!(ran.stdout, "", "{args:?}");
    says(&ran, words);
}

fn says(ran: &Ran, words: &[&str]) {
    for word in words {
        assert!(ran.stderr.contains(word), "expected {word:?} in: {}", ran.stderr);
    }
}

fn damaged(change: impl FnOnce(&Path)) -> (TempDir, String) {
    let (folder, home) = copy("neutral");
    change(&home);
    (folder, home.to_string_lossy().into_owned())
}

/// The newest metadata file of a generation.
fn newest_metadata(generation: &Path) -> PathBuf {
    let hint = fs::read_to_string(generation.join("metadata/version-hint.text")).expect("a hint");
    generation.join(format!("metadata/v{}.metadata.json", hint.trim()))
}

fn resolve(home: &str) -> Vec<&str> {
    [&["--home", home, "resolve", "--at", T][..], &CLAUDE].concat()
}

#[test]
fn no_such_home() {
    refused(&["--home", "/no/such/home", "status"], &["/no/such/home", "hint"]);
}

#[test]
fn an_empty_folder() {
    let folder = TempDir::new().expect("a folder");
    refused(&["--home", &folder.path().to_string_lossy(), "status"], &["hypaware", "hint"]);
}

#[test]
fn a_bare_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    refused(&["--home", &file.path().to_string_lossy(), "status"], &["file", "hint"]);
}

#[test]
fn a_cache_root_given_as_a_home() {
    refused(&["--home", &format!("{}/hypaware/cache", home("neutral")), "status"], &["--cache"]);
}

#[test]
fn a_glob_that_matches_nothing() {
    refused(&["--home", "/no/such/*", "status"], &["matches no folder"]);
}

#[test]
fn an_unknown_dataset() {
    let neutral = home("neutral");
    refused(
        &["--home", &neutral, "resolve", "--at", T, "--dataset", "nope"],
        &["--dataset nope", "--dataset ai_gateway_messages --partition source=claude"],
    );
    refused(&["--home", &neutral, "sql", "-c", "SELECT 1 FROM nope"], &["nope"]);
    refused(&["--home", &neutral, "status", "--dataset", "nope"], &["nope"]);
}

#[test]
fn two_candidates_are_listed() {
    refused(
        &["--home", &home("neutral"), "resolve", "--at", T],
        &["2 partitions fit", "--partition source=claude", "--partition source=codex"],
    );
}

#[test]
fn an_unknown_generation() {
    let neutral = home("neutral");
    let args = [&resolve(&neutral)[..], &["--generation", "table-1"]].concat();
    refused(&args, &["table-1", "table-1796095174466"]);
}

#[test]
fn a_time_without_a_zone_shows_both_readings() {
    let neutral = home("neutral");
    let naive = [&["--home", &neutral, "resolve", "--at", "2026-07-28T21:00:00"][..], &CLAUDE].concat();
    refused(&naive, &["has no zone", "as UTC it is 2026-07-28T21:00:00.000Z", "local time", "--tz"]);
    let zoned = json_of(
        &neutral,
        &[&["resolve", "--at", "2026-07-28T23:00:00", "--tz", "Europe/Berlin"], &CLAUDE[..]].concat(),
    );
    assert_eq!(zoned.exits(0).json()["at"], T);
}

#[test]
fn what_is_no_time_and_no_seq() {
    let neutral = home("neutral");
    refused(&[&["--home", &neutral, "resolve", "--at", "soon"][..], &CLAUDE].concat(), &["`soon` is not a time"]);
    for seq in ["-1", "9223372036854775808", "7a", ""] {
        let seq = format!("--seq={seq}");
        refused(&[&["--home", &neutral, "resolve", &seq][..], &CLAUDE].concat(), &["is not a seq"]);
    }
    refused(&[&["--home", &neutral, "resolve", "--id", "nope"][..], &CLAUDE].concat(), &["`nope`"]);
}

#[test]
fn points_that_exclude_each_other() {
    let neutral = home("neutral");
    refused(&["--home", &neutral, "resolve", "--at", T, "--seq", "5"], &["cannot be used with"]);
    refused(&["--home", &neutral, "resolve"], &["--at"]);
}

#[test]
fn an_unknown_live_generation_is_not_guessed() {
    let crashed = home("crashed");
    let codex = ["--dataset", "ai_gateway_messages", "--partition", "source=codex"];
    let args = [&["--home", &crashed, "resolve", "--at", T][..], &codex].concat();
    refused(&args, &["live generation is unknown", "--generation", "table-1796095578086"]);
    let named = [&args[..], &["--generation", "table-1796095578086"]].concat();
    assert_eq!(run(named).status, 0);
}

#[test]
fn a_cut_metadata_file() {
    let (_folder, home) = damaged(|home| {
        let file = newest_metadata(&home.join(LIVE));
        let bytes = fs::read(&file).expect("metadata");
        fs::write(&file, &bytes[..bytes.len() / 2]).expect("cut");
    });
    refused(&resolve(&home), &["v12.metadata.json", "expected"]);
    let status = json_of(&home, &["status"]).exits(2).json();
    let problem = items(&status["problems"]).iter().find(|p| p["code"] == "metadata-unreadable").expect("a problem");
    assert!(problem["message"].as_str().is_some_and(|m| m.contains("v12.metadata.json")), "{problem}");
    let claude = by(&status["partitions"], "partition", "source=claude");
    assert_eq!(by(&claude["generations"], "name", "table")["visible_rows"], 482);
    assert_eq!(by(&claude["generations"], "name", "table-1796095174466")["complete"], false);
}

#[test]
fn a_data_file_of_zero_bytes() {
    let mut name = String::new();
    let (_folder, home) = damaged(|home| {
        let file = files(&home.join(LIVE), ".parquet").remove(0);
        name = file.file_name().expect("a name").to_string_lossy().into_owned();
        fs::write(file, b"").expect("emptied");
    });
    refused(&resolve(&home), &[&name, "47 of 48 data files"]);
    let status = json_of(&home, &["status"]).exits(2).json();
    let codex = by(&status["partitions"], "partition", "source=codex");
    assert_eq!(by(&codex["generations"], "name", "table-1796095174804")["visible_rows"], 299);
    let sql = run(["--home", &home, "sql", "-c", "SELECT max(_hyp_ingest_seq) FROM ai_gateway_messages"]).exits(2);
    says(&sql, &[&name]);
}

#[test]
fn a_missing_data_file() {
    let (_folder, home) =
        damaged(|home| fs::remove_file(files(&home.join(LIVE), ".parquet").remove(3)).expect("removed"));
    refused(&resolve(&home), &[".parquet", "47 of 48 data files"]);
}

#[test]
fn a_deletion_vector_with_a_bad_crc() {
    let (_folder, home) = damaged(|home| {
        let file = files(&home.join(LIVE), ".puffin").remove(0);
        let mut bytes = fs::read(&file).expect("a vector");
        bytes[20] ^= 1;
        fs::write(&file, bytes).expect("damaged");
    });
    refused(&resolve(&home), &["-deletes.puffin", "CRC"]);
    let status = json_of(&home, &["status"]).exits(2).json();
    let problem = items(&status["problems"]).iter().any(|p| p["message"].as_str().is_some_and(|m| m.contains("CRC")));
    assert!(problem, "{status:#}");
}

#[test]
fn a_manifest_that_names_a_path_outside_the_generation() {
    let (_folder, home) = damaged(|home| {
        // Of the same length, so that the Avro around it stays whole.
        let (inside, outside) = (&b"/table-1796095174466/data/"[..], &b"/table-1796095174466/../../"[..26]);
        let mut changed = 0;
        for file in files(&home.join(LIVE), "-m0.avro") {
            let mut bytes = fs::read(&file).expect("a manifest");
            while let Some(at) = bytes.windows(inside.len()).position(|w| w == inside) {
                bytes[at..at + inside.len()].copy_from_slice(outside);
                changed += 1;
            }
            fs::write(&file, bytes).expect("changed");
        }
        assert!(changed > 0);
    });
    refused(&resolve(&home), &["outside"]);
    let claude = json_of(&home, &["status"]).exits(2).json();
    let claude = by(&claude["partitions"], "partition", "source=claude");
    assert_eq!(by(&claude["generations"], "name", "table-1796095172778")["visible_rows"], 680);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for format in ["table", "json", "ndjson", "csv", "markdown"] {
        let sql = "SELECT * FROM raw.ai_gateway_messages";
        let mut child = command()
            .args(["--home", &home("neutral"), "--format", format, "sql", "-c", sql])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}
