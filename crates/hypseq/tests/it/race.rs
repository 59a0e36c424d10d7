//! `plan apply --watch` against the model of the daemon, which never stops ticking: the verdicts are true, by the
//! model's own log. (The library without the timing is raced in `hypseq-testkit`.)

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hypseq_testkit::daemon::{DaemonSpec, Event, Feed, Replay, What, read_log, replays, run as run_model};
use serde_json::Value;
use tempfile::TempDir;

use crate::life::{INSTANCE, folder, text};
use crate::support::{CLAUDE, copy_tree, files, items, json_of, run, testdata};

const RUNS: usize = 200;
const WORKERS: usize = 20;
const SPEC: &str = "HYPSEQ_DAEMON_SPEC";

/// Where the watermark of claude stands at first, in `monotone`, and where the plan takes it: both are rows.
const OLD_ROW: usize = 900;
const TARGET_ROW: usize = 700;
const GAP: u64 = (OLD_ROW - TARGET_ROW) as u64;

/// The plan, and the seqs of the rows that it was made over.
struct Prepared {
    _folder: TempDir,
    plan: PathBuf,
    seqs: Vec<i64>,
}

impl Prepared {
    fn new() -> Self {
        let sql = "SELECT _hyp_ingest_seq AS s FROM ai_gateway_messages WHERE source = 'claude' ORDER BY s";
        let monotone = testdata().join("monotone").to_string_lossy().into_owned();
        let rows = run(["--home", &monotone, "--format", "ndjson", "sql", "-c", sql]).exits(0).stdout;
        let seq = |line: &str| {
            let row: Value = serde_json::from_str(line).expect("JSON");
            row["s"].as_str().and_then(|s| s.parse().ok()).or_else(|| row["s"].as_i64()).expect("a seq")
        };
        let seqs: Vec<i64> = rows.lines().map(seq).collect();
        let folder = folder();
        let home = folder.path().join("home");
        new_home(&home, &seqs, false);
        let plan = folder.path().join("plan.json");
        let target = seqs[TARGET_ROW - 1].to_string();
        let out = plan.to_string_lossy().into_owned();
        let args = ["plan", "rewind", "--sink", "central", "--reason", "race", "--to-seq", &target, "--out", &out];
        json_of(&home.to_string_lossy(), &[&args[..], &CLAUDE].concat()).exits(0);
        Self { _folder: folder, plan, seqs }
    }
}

/// A home whose watermark is its own. Its cache is the one of `monotone`, or a copy of it where it will be compacted.
fn new_home(home: &Path, seqs: &[i64], own_cache: bool) {
    let cache = testdata().join("monotone/hypaware/cache").canonicalize().expect("a path");
    let claude = "datasets/ai_gateway_messages/source=claude";
    fs::create_dir_all(home.join("hypaware")).expect("a folder");
    if own_cache {
        copy_tree(&cache.join(claude), &home.join("hypaware/cache").join(claude));
    } else {
        symlink(&cache, home.join("hypaware/cache")).expect("a link");
    }
    let watermark = home.join(INSTANCE).join("watermarks/ai_gateway_messages/source=claude.json");
    fs::create_dir_all(watermark.parent().expect("a folder")).expect("a folder");
    fs::write(watermark, text(seqs[OLD_ROW - 1], OLD_ROW as u64, "2026-12-01T03:19:28.968Z")).expect("written");
}

#[test]
#[ignore = "is what the other test runs as its own process"]
fn the_daemon() {
    let spec: DaemonSpec = serde_json::from_str(&std::env::var(SPEC).expect("a spec")).expect("a spec");
    // An error means that the home was removed: the test has ended.
    let _ = run_model(spec);
}

/// The model in a process of its own, ended when it is dropped.
struct Model {
    child: Child,
    log: PathBuf,
}

impl Model {
    fn start(spec: &DaemonSpec) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["race::the_daemon", "--exact", "--ignored", "--nocapture"])
            .env(SPEC, serde_json::to_string(spec).expect("JSON"))
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        Self { child, log: spec.log.clone() }
    }

    fn log(&self) -> Vec<Event> {
        read_log(&self.log).unwrap_or_default()
    }

    fn wait_for_ticks(&self, more: usize) {
        let reads = || self.log().iter().filter(|event| event.what == What::Read).count();
        let wanted = reads() + more;
        let deadline = Instant::now() + Duration::from_secs(30);
        while reads() < wanted {
            assert!(Instant::now() < deadline, "the model has stopped");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a run is like, by its number.
fn kind(run: usize) -> &'static str {
    match run % 10 {
        3 => "opted out",
        6 => "failing",
        8 => "compacting",
        _ => "plain",
    }
}

/// Runs one race; the verdict, and in how many attempts.
fn race(prepared: &Prepared, run: usize) -> (String, usize) {
    let folder = folder();
    let home = folder.path().join("home");
    let kind = kind(run);
    new_home(&home, &prepared.seqs, kind == "compacting");
    if kind == "opted out" {
        let policy = home.join("hypaware/usage-policy");
        fs::create_dir_all(&policy).expect("a folder");
        let store = r#"{"version":1,"entries":[{"source":"claude","class":"local-only"}]}"#;
        fs::write(policy.join("client-sync.json"), store).expect("written");
    }
    let feed = Feed {
        dataset: "ai_gateway_messages".into(),
        partition: "source=claude".into(),
        seqs: prepared.seqs.clone(),
        captured: OLD_ROW,
    };
    let model = Model::start(&DaemonSpec {
        state_root: home.join("hypaware"),
        plugin: "@hypaware/central".into(),
        instance: "central".into(),
        partitions: vec![feed],
        log: folder.path().join("daemon.log"),
        seed: run as u64,
        pause_ms: (0, 100),
        tick_ms: (50, 100),
        arrivals: (0, 2),
        failing_permille: if kind == "failing" { 400 } else { 0 },
        compacting_permille: if kind == "compacting" { 150 } else { 0 },
    });
    model.wait_for_ticks(1);
    thread::sleep(Duration::from_millis((run as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % 200));
    let plan = prepared.plan.to_string_lossy();
    let args = ["plan", "apply", &plan, "--watch", "--timeout", "12s", "--retries", "6"];
    let ran = json_of(&home.to_string_lossy(), &args);
    model.wait_for_ticks(2);
    let log = model.log();
    drop(model);

    let target = prepared.seqs[TARGET_ROW - 1];
    let found = replays(&log, 0, target);
    let answer = ran.json();
    let verdict = answer["verdict"].as_str().expect("a verdict").to_owned();
    let rewinds = home.join(INSTANCE).join("rewinds");
    let receipts: Vec<PathBuf> =
        fs::read_dir(&rewinds).expect("receipts").map(|e| e.expect("an entry").path()).collect();
    let receipt: Value = serde_json::from_slice(&fs::read(&receipts[0]).expect("a receipt")).expect("JSON");
    let judgements: Vec<&Value> = items(&receipt["attempts"]).iter().map(|a| &a["swaps"][0]["judgement"]).collect();
    let context = || format!("run {run}, {kind}: {verdict}\n{}\n{receipt:#}\n{found:#?}\n{log:#?}", ran.stderr);
    match verdict.as_str() {
        "honoured" => assert!(matches!(found[..], [Replay { sent, dropped: 0, .. }] if sent >= GAP), "{}", context()),
        // While the rows are withheld, a tick that went back and one that wrote over the swap leave the same watermark;
        // that nothing was sent is true of both.
        "dropped-again" => {
            let is_true = found.iter().all(|replay| replay.sent == 0 && replay.dropped >= GAP);
            assert!(kind == "opted out" && found.len() <= 1 && is_true, "{}", context());
        }
        "clobbered" => assert!(found.is_empty(), "{}", context()),
        "pending" => {
            let at = judgements.last().and_then(|j| j["at"].as_str()).expect("a time");
            let at = chrono::DateTime::parse_from_rfc3339(at).expect("a time").timestamp_millis();
            assert!(found.iter().all(|replay| replay.wall_ms >= at), "{}", context());
        }
        _ => panic!("{}", context()),
    }
    assert_eq!(ran.status, i32::from(verdict != "honoured"), "{}", context());
    let (last, earlier) = judgements.split_last().expect("an attempt");
    assert_eq!(last["verdict"], verdict, "{}", context());
    assert!(earlier.iter().all(|judgement| judgement["verdict"] == "clobbered"), "{}", context());
    let left = files(&home.join("hypaware/plugins"), "");
    assert!(!left.iter().any(|path| path.to_string_lossy().contains(".rewind-")), "{left:?}");
    (verdict, judgements.len())
}

#[test]
fn every_verdict_is_true() {
    let prepared = Prepared::new();
    let next = AtomicUsize::new(0);
    let ended: Vec<(String, usize)> = thread::scope(|scope| {
        let work = || {
            let mut ended = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= RUNS {
                    return ended;
                }
                ended.push(race(&prepared, run));
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("every verdict is true")).collect()
    });
    assert_eq!(ended.len(), RUNS);
    let count = |wanted: &str| ended.iter().filter(|(verdict, _)| verdict == wanted).count();
    assert!(count("honoured") > RUNS / 2, "{ended:?}");
    assert!(count("dropped-again") > 0, "{ended:?}");
}
