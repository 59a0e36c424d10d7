//! `plan rewind` decides and counts from bounds what it decides and counts from every row.
//!
//! A plan needs every row for its evidence, and is refused where its counts are not those that bounds gave. So what is
//! compared here is all of it: the same refusals, the same plan, and no file read where nothing is to be done.

use std::fs;
use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use hypseq_testkit::small;
use serde_json::{Value, json};

use crate::support::{CLAUDE, T, by, copy, files, home, items, json_of, text};
use crate::verify::change_a_seq;

/// What is new in every plan.
const NEW: [&str; 4] = ["id", "created_at", "expires_at", "checksum"];

/// Exit status, answer and errors of a planning, and whether bounds gave it.
fn planned(home: &str, args: &[&str]) -> (i32, Value, String, bool) {
    let ran = json_of(home, &[&["-v", "plan", "rewind", "--reason", "x"], args].concat());
    let mut shown: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    if let Some(plan) = shown["plan"].as_object_mut() {
        plan.retain(|field, _| !NEW.contains(&field.as_str()));
    }
    let told = !ran.stderr.contains("every file is read");
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| !line.contains("every file is read")).collect();
    (ran.status, shown, errors.join("\n"), told)
}

/// Compares at many targets, and counts the answers that bounds gave.
fn assert_same(home: &str) -> usize {
    let status = json_of(home, &["status"]).json();
    let mut told = 0;
    for partition in items(&status["partitions"]) {
        for watermark in items(&partition["watermarks"]).iter().filter(|w| w["seq"].is_string()) {
            let sink = format!("{}/{}", text(&watermark["plugin"]), text(&watermark["instance"]));
            let named = ["--sink", &sink, "--dataset", text(&partition["dataset"]), "--partition"];
            let named = [&named[..], &[text(&partition["partition"])]].concat();
            for point in points(partition, watermark) {
                let point: Vec<&str> = point.iter().map(String::as_str).collect();
                let args = [&named[..], &point].concat();
                let (status, shown, errors, by_bounds) = planned(home, &args);
                let full = planned(home, &[&args[..], &["--full-scan"]].concat());
                assert_eq!((status, shown, errors), (full.0, full.1, full.2), "{home} {args:?}");
                told += usize::from(by_bounds);
            }
        }
    }
    told
}

/// Seqs from nothing to beyond the watermark, and times from before the first row to after the last.
fn points(partition: &Value, watermark: &Value) -> Vec<Vec<String>> {
    let seq: i64 = text(&watermark["seq"]).parse().expect("a seq");
    let seqs = [0, seq / 3, seq * 2 / 3, seq - 1, seq + 3];
    let mut points: Vec<Vec<String>> = seqs.iter().map(|s| vec!["--to-seq".to_owned(), s.to_string()]).collect();
    let generations = items(&partition["generations"]).iter();
    let Some(live) = generations.rev().find(|g| g["state"] == "live" && g["min_time"].is_string()) else {
        return points;
    };
    let time = |field: &str| DateTime::parse_from_rfc3339(text(&live[field])).expect("a time").timestamp_millis();
    let (first, last) = (time("min_time"), time("max_time"));
    for (millis, more) in [
        (first - 1, vec![]),
        (first + (last - first) / 4, vec!["--policy", "tight"]),
        (first + (last - first) / 2, vec!["--ignore-times-outside", "2026-07-22T00:00:00Z.."]),
        (first + (last - first) * 3 / 4, vec![]),
        (last, vec![]),
    ] {
        let at = DateTime::from_timestamp_millis(millis).expect("a time").to_rfc3339_opts(SecondsFormat::Millis, true);
        points.push(["--since", &at].iter().chain(&more).map(ToString::to_string).collect());
    }
    points
}

#[test]
fn on_the_corpora() {
    let mut told = 0;
    for corpus in ["neutral", "monotone", "legacy", "skew", "sinks"] {
        told += assert_same(&home(corpus));
    }
    assert!(told >= 130, "{told} answers from bounds");
}

#[test]
fn on_generated_caches() {
    let mut told = 0;
    for seed in 200..204 {
        let folder = tempfile::tempdir().expect("a folder");
        small(seed, folder.path()).expect("a cache");
        told += assert_same(&folder.path().to_string_lossy());
    }
    assert!(told >= 60, "{told} answers from bounds");
}

/// Makes a data file unreadable, its size as it was.
fn spoil(file: &Path) {
    let size = fs::metadata(file).expect("a file").len();
    fs::write(file, vec![0; usize::try_from(size).expect("a size")]).expect("written");
}

#[test]
fn nothing_to_do_needs_only_the_files_that_decide() {
    let (_folder, home) = copy("monotone");
    let claude = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    let home = home.to_string_lossy();
    // The rows of the greatest seqs tell that nothing is younger.
    let sql = "SELECT DISTINCT _file FROM raw.ai_gateway_messages WHERE _partition = 'source=claude' AND \
               _generation_state = 'live' AND _hyp_ingest_seq > 1279";
    let kept = json_of(&home, &["sql", "-c", sql]).exits(0).json();
    let kept = text(&items(&kept)[0]["_file"]).rsplit('/').next().expect("a name").to_owned();
    let spoiled: Vec<_> = files(&claude, ".parquet").into_iter().filter(|file| !file.ends_with(&kept)).collect();
    assert!(spoiled.len() > 50, "{}", spoiled.len());
    for file in &spoiled {
        spoil(file);
    }

    let sink = [&["plan", "rewind", "--sink", "central", "--reason", "x"][..], &CLAUDE].concat();
    for (point, says) in [
        (["--since", "2026-08-30T00:00:00.000Z"], "nothing to rewind for"),
        (["--to-seq", "1280"], "the watermark of sink central is 1280"),
    ] {
        let args = [&sink[..], &point].concat();
        let ran = json_of(&home, &args).exits(1);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        assert_eq!(ran.json()["plan"], Value::Null);
        let full = json_of(&home, &[&args[..], &["--full-scan"]].concat()).exits(2);
        assert!(full.stderr.contains("cannot be read whole"), "{}", full.stderr);
    }
}

#[test]
fn rows_count_where_a_manifest_is_wrong_and_it_is_said() {
    let (_folder, home) = copy("neutral");
    let retired = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095170826");
    change_a_seq(&files(&retired, ".parquet")[0], 0, 700_001);
    let args = [&["plan", "rewind", "--sink", "central", "--reason", "x", "--since", T][..], &CLAUDE].concat();
    let ran = json_of(&home.to_string_lossy(), &args).exits(3);
    assert!(ran.stderr.contains("its manifest says"), "{}", ran.stderr);
    let shown = ran.json();
    assert_eq!(by(&shown["refused"], "code", "unproven")["flag"], "--accept-unproven");
    assert_eq!(shown["plan"]["rewinds"][0]["counts"]["replayed"], json!(531));
}
