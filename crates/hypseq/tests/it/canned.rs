//! Every canned query on three caches, as snapshots, and what they are listed and shown as.
//!
//! The snapshots were compared with figures that a script outside of this repository made from the raw rows
//! (`SELECT * FROM raw.…`), which are themselves tested against HypAware's own reader.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Ran, command, copy, files, home, items, run, text};

/// A query's parameters on a home.
fn params(home: &str, query: &str) -> &'static [&'static str] {
    match (home, query) {
        (
            _,
            "duplicate-ids" | "generations" | "no-longer-visible" | "out-of-order" | "rows-per-day" | "sink-lag"
            | "spooled",
        ) => &[],
        (_, "top-sessions") => &["sessions=5"],

        ("neutral" | "legacy", "boundary-per-generation") => &["at=2026-07-28T21:00:00Z"],
        ("neutral", "gap-candidates") => &["exported=665", "watermark=1495"],
        ("neutral", "holes") => &["from=700", "to=760"],
        ("neutral", "only-in-one-generation") => {
            &["partition=source=codex", "has=table-1796095174804", "lacks=table-1796095173140"]
        }
        ("neutral", "rows-around-seq") => &["seq=722"],
        ("neutral", "sessions-in-gap") => &["from=724", "to=1495"],
        ("neutral", "straddling-files") => &["at=2026-07-28T10:00:00Z"],
        ("neutral", "tool-calls") => &["from=700", "to=800"],

        ("legacy", "gap-candidates") => &["exported=210", "watermark=240"],
        ("legacy", "holes") => &["to=60"],
        ("legacy", "only-in-one-generation") => &["partition=source=codex", "has=table-1796095178154", "lacks=table"],
        ("legacy", "rows-around-seq") => &["seq=120"],
        ("legacy", "sessions-in-gap") => &["from=1", "to=120"],
        ("legacy", "straddling-files") => &["at=2026-07-27T06:10:00Z"],
        ("legacy", "tool-calls") => &["from=1", "to=60"],

        ("sinks", "boundary-per-generation") => &["at=2026-07-26T12:00:00Z"],
        ("sinks", "gap-candidates") => &["exported=150", "watermark=580"],
        ("sinks", "holes") => &["from=370", "to=430"],
        ("sinks", "only-in-one-generation") => &["partition=source=codex", "has=table-1796095185707", "lacks=table"],
        ("sinks", "rows-around-seq") => &["seq=400"],
        ("sinks", "sessions-in-gap") => &["from=300", "to=420"],
        ("sinks", "straddling-files") => &["at=2026-07-20T06:10:00Z"],
        ("sinks", "tool-calls") => &["from=380", "to=480"],
        _ => panic!("say what {query} is asked on {home}"),
    }
}

/// The same on a dataset that has neither sessions nor ids nor tools.
const LOGS: [(&str, &[&str]); 8] = [
    ("boundary-per-generation", &["at=2026-07-26T12:00:00Z"]),
    ("holes", &["from=30", "to=70"]),
    ("no-longer-visible", &[]),
    ("out-of-order", &[]),
    ("rows-around-seq", &["seq=420"]),
    ("rows-per-day", &[]),
    ("spooled", &[]),
    ("straddling-files", &["at=2026-07-22T00:00:00Z"]),
];

fn queries() -> Vec<String> {
    let list = run(["query", "--list", "--format", "json"]).exits(0).json();
    items(&list).iter().map(|query| text(&query["name"]).to_owned()).collect()
}

fn answer(name: &str, query: &str, params: &[&str]) -> String {
    let home = home(name);
    let params = params.iter().flat_map(|param| ["--param", *param]);
    // One watermark of `sinks` is cut.
    let status = if (name, query) == ("sinks", "sink-lag") { 2 } else { 0 };
    run(["--home", &home, "--format", "csv", "query", query].into_iter().chain(params)).exits(status).stdout
}

/// Compares with a snapshot that says what was asked.
fn assert_snapshot(name: &str, asked: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_description(asked);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

#[test]
fn every_query_on_three_caches() {
    for query in queries() {
        for home in ["neutral", "legacy", "sinks"] {
            let params = params(home, &query);
            let asked = format!("query {query} {}", params.join(" "));
            assert_snapshot(&format!("canned-{query}-{home}"), asked.trim_end(), &answer(home, &query, params));
        }
    }
}

#[test]
fn queries_that_need_no_session_and_no_id_on_logs() {
    for (query, more) in LOGS {
        let names = ["dataset=logs", "partition=source=unknown"];
        let names = names.iter().filter(|name| match **name {
            "partition=source=unknown" => !matches!(query, "rows-per-day" | "spooled"),
            _ => true,
        });
        let params: Vec<&str> = names.chain(more).copied().collect();
        let asked = format!("query {query} {}", params.join(" "));
        assert_snapshot(&format!("canned-{query}-sinks-logs"), &asked, &answer("sinks", query, &params));
    }
}

#[test]
fn a_dataset_without_the_columns_is_an_error_that_names_them() {
    let sinks = home("sinks");
    for (query, column) in [("top-sessions", "session_id"), ("duplicate-ids", "part_id")] {
        let ran = run(["--home", &sinks, "query", query, "--param", "dataset=logs"]).exits(2);
        assert!(ran.stderr.contains(&format!("No field named {column}")), "{}", ran.stderr);
    }
}

#[test]
fn listed_and_shown() {
    let shown = command().args(["query", "--list"]).env("COLUMNS", "80").output().expect("runs").stdout;
    assert_snapshot("query-list", "query --list, 80 columns", &String::from_utf8(shown).expect("text"));
    let shown = run(["query", "holes", "--show"]).exits(0).stdout;
    assert_snapshot("query-show", "query holes --show", &shown);
}

#[test]
fn a_fleet_is_asked_home_by_home() {
    let (neutral, monotone) = (home("neutral"), home("monotone"));
    let fleet = ["--home", &neutral, "--home", &monotone, "query", "gap-candidates", "--param", "exported=661"];
    let fleet = [&fleet[..], &["--param", "watermark=1280", "--format"]].concat();
    let csv = run([&fleet[..], &["csv"]].concat()).exits(0).stdout;
    let alone = |home: &str| {
        let shown = answer(home, "gap-candidates", &["exported=661", "watermark=1280"]);
        let rows: Vec<String> = shown.lines().skip(1).map(|row| format!("{home},{row}\n")).collect();
        rows.concat()
    };
    let header = "home,_partition,boundary_seq,boundary_time,next_seq,rows_at_or_below,suspected_unsent_rows\n";
    assert_eq!(csv, [header, &alone("neutral"), &alone("monotone")].concat());
    assert!(csv.contains("\nmonotone,source=claude,719,"), "{csv}");

    let json = run([&fleet[..], &["json"]].concat()).exits(0).json();
    let found: Vec<[&str; 3]> = items(&json)
        .iter()
        .filter(|row| row["_partition"] == "source=claude")
        .map(|row| [text(&row["home"]), text(&row["boundary_seq"]), text(&row["next_seq"])])
        .collect();
    assert_eq!(found, [["neutral", "717", "718"], ["monotone", "719", "721"]]);
}

#[test]
fn a_fleet_is_shown_as_one_home_is() {
    let (neutral, monotone) = (home("neutral"), home("monotone"));
    let folder = TempDir::new().expect("a folder");
    let sql = "-- purpose: x\nSELECT 2 AS z, NULL AS a, count(*) AS rows FROM ai_gateway_messages\n";
    fs::write(folder.path().join("x.sql"), sql).expect("written");
    let queries = folder.path().to_string_lossy().into_owned();
    let shown = |format| {
        let args = ["--home", &neutral, "--home", &monotone, "--format", format, "query", "x", "--queries", &queries];
        run(args).exits(0).stdout
    };
    assert_eq!(
        shown("table"),
        "home      z  a     rows\n\
         ────────  ─  ────  ────\n\
         neutral   2  NULL  1199\n\
         monotone  2  NULL  1280\n\
         (2 rows)\n"
    );
    assert_eq!(
        shown("ndjson"),
        "{\"home\":\"neutral\",\"z\":2,\"a\":null,\"rows\":1199}\n\
         {\"home\":\"monotone\",\"z\":2,\"a\":null,\"rows\":1280}\n"
    );
}

#[test]
fn homes_of_the_same_name_are_shown_by_their_paths() {
    let ((_one, first), (_other, second)) = (copy("skew"), copy("skew"));
    let [first, second] = [first, second].map(|home| home.to_string_lossy().into_owned());
    let neutral = home("neutral");
    let args = ["--home", &first, "--home", &neutral, "--home", &second, "--format", "json", "query", "rows-per-day"];
    let shown = run(args).exits(0).json();
    let mut homes: Vec<&str> = items(&shown).iter().map(|row| text(&row["home"])).collect();
    homes.dedup();
    assert_eq!(homes, [&first, "neutral", &second]);
}

#[test]
fn answers_with_different_columns_are_refused() {
    let ((_one, neutral), skew) = (copy("neutral"), home("skew"));
    let spool =
        neutral.join("hypaware/cache/datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool/active.jsonl");
    let rows = fs::read_to_string(&spool).expect("the spool");
    let more = "\"columns\":[{\"name\":\"more\",\"type\":\"STRING\",\"nullable\":true},";
    fs::write(&spool, rows.replace("\"columns\":[", more)).expect("written");
    let folder = TempDir::new().expect("a folder");
    let sql = "-- purpose: x\nSELECT * FROM spool.ai_gateway_messages\n";
    fs::write(folder.path().join("x.sql"), sql).expect("written");
    let (neutral, queries) = (neutral.to_string_lossy(), folder.path().to_string_lossy());
    let ran = run(["--home", &*neutral, "--home", &skew, "query", "x", "--queries", &*queries]).exits(2);
    let expected = "error: the answers of neutral and skew have different columns\n  hint: ask each alone\n";
    assert_eq!((&*ran.stdout, &*ran.stderr), ("", expected));
}

#[test]
fn a_home_that_cannot_answer_does_not_stop_the_others() {
    let (neutral, sinks) = (home("neutral"), home("sinks"));
    let args = ["--home", &neutral, "--home", &sinks, "--format", "csv", "query", "rows-per-day"];
    let args = [&args[..], &["--param", "dataset=logs", "--param", "time=timestamp"]].concat();
    let ran = run(args).exits(2);
    assert!(ran.stderr.contains("neutral: parameter `dataset`: there is no dataset `logs`"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("home,_partition,day,rows,") && ran.stdout.contains("\nsinks,"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("neutral"), "{}", ran.stdout);
}

/// A copy of `neutral` with something in it changed.
fn changed(change: impl FnOnce(&Path)) -> (TempDir, PathBuf) {
    let (dir, home) = copy("neutral");
    change(&home.join("hypaware"));
    (dir, home)
}

fn ask(home: &Path, args: &[&str]) -> Ran {
    let home = home.display().to_string();
    run([&["--home", &home, "--format", "csv", "query"][..], args].concat())
}

const CLAUDE: &str = "cache/datasets/ai_gateway_messages/source=claude";

#[test]
fn where_the_live_generation_is_unknown_nothing_is_said_to_be_behind_or_gone() {
    let (_dir, home) = changed(|root| fs::write(root.join(CLAUDE).join("cursor.json"), "{").expect("written"));
    let lag = ask(&home, &["sink-lag"]);
    let of_claude = lag.stdout.lines().find(|line| line.contains("source=claude")).expect("a row");
    assert!(
        of_claude.starts_with("@hypaware/central,central,ai_gateway_messages,source=claude,1495,,,,1196,665,"),
        "{of_claude}"
    );
    for query in ["no-longer-visible", "out-of-order", "rows-per-day", "top-sessions"] {
        let ran = ask(&home, &[query]).exits(2);
        assert!(ran.stderr.contains("is not known"), "{query}: {}", ran.stderr);
        assert!(ran.stdout.lines().count() <= 1, "{query}: {}", ran.stdout);
    }
}

#[test]
fn a_generation_that_cannot_be_read_whole_is_not_answered_from_its_rest() {
    let (_dir, home) = changed(|root| {
        let metadata = root.join(CLAUDE).join("table-1796095174466/metadata");
        let files = fs::read_dir(metadata).expect("listed").map(|entry| entry.expect("an entry").path());
        let manifests = files.filter(|path| path.to_string_lossy().ends_with("-m0.avro"));
        let manifest = manifests.max_by_key(|path| path.metadata().expect("its size").len()).expect("a manifest");
        fs::write(manifest, "Obj").expect("written");
    });
    let boundary = ask(&home, &["boundary-per-generation", "--param", "at=2026-07-28T21:00:00Z"]).exits(2);
    let live = boundary.stdout.lines().find(|line| line.contains(",live,")).expect("a row");
    assert!(live.starts_with("table-1796095174466,live,,,,,,"), "{live}");
    assert!(live.contains("-m0.avro"), "{live}");
    assert!(boundary.stdout.contains("table-1796095172778,retired,722,722,724,0,0,\n"), "{}", boundary.stdout);
    for query in ["rows-per-day", "top-sessions", "out-of-order", "no-longer-visible"] {
        let shown = ask(&home, &[query]).exits(2).stdout;
        assert!(shown.lines().count() <= 1, "{query}: {shown}");
    }
}

#[test]
fn what_no_sink_needs_does_not_stop_sink_lag() {
    let (_dir, home) = changed(|root| {
        let watermarks = root.join("plugins/@hypaware/central/sink-instances/central/watermarks/ai_gateway_messages");
        fs::copy(watermarks.join("source=codex.json"), watermarks.join("source=gone.json")).expect("copied");
        for delete in files(&root.join(CLAUDE).join("table-1796095172778"), ".puffin") {
            fs::write(delete, "PFA1").expect("written");
        }
    });
    let lag = ask(&home, &["sink-lag"]);
    assert!(lag.stdout.contains(",source=claude,1495,1495,0,,1196,665,"), "{}{}", lag.stdout, lag.stderr);
    assert!(lag.stdout.contains(",source=gone,1329,,,,0,299,"), "{}", lag.stdout);
}

#[test]
fn files_without_bounds_may_straddle_a_time() {
    let partition = "partition=client=claude/date=2026-07-20";
    let shown =
        answer("legacy", "straddling-files", &["dataset=legacy_messages", partition, "at=2026-07-25T00:00:00Z"]);
    assert!(shown.lines().count() > 1 && shown.lines().skip(1).all(|line| line.ends_with(",,")), "{shown}");
}

#[test]
fn without_the_allocator_nobody_can_tell_what_was_allocated() {
    let (_dir, home) = changed(|root| fs::write(root.join("cache/_hyp_ingest_seq.json"), "{").expect("written"));
    let holes = ask(&home, &["holes", "--param", "from=712", "--param", "to=715"]).exits(2);
    assert!(holes.stdout.contains("\n712,714,3,3,,,ai_gateway_messages source=codex\n"), "{}", holes.stdout);
}

#[test]
fn seqs_beyond_the_allocator_are_unallocated() {
    let shown = answer("neutral", "holes", &["from=1496", "to=2060"]);
    assert!(shown.contains("\n1496,2060,565,0,12,553,\n"), "{shown}");
}
