//! A consumer that is killed, as a process of its own: at every step of its work, and at random moments. The watermarks
//! are then the old ones or the new ones, byte for byte, and the next run ends right.

#[path = "../race/support.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hypseq_plan::{AttemptState, ConsumeError, Consumer, Plan, Receipt, Refusal, Time, WatermarkPath, watermark_text};
use support::{DATASET, Sound, folder, leftovers, observed, plan, sink, write_watermarks};

const RUNS: usize = 500;
const WORKERS: usize = 4;
const MARKS: [(&str, i64, u64); 2] = [("source=claude", 1495, 665), ("source=codex", 1329, 299)];
const TARGETS: [i64; 2] = [722, 500];
const NOW: &str = "2026-12-01T10:00:00.000Z";

const STATE_ROOT: &str = "HYPSEQ_TEST_STATE_ROOT";
const STOP_AT: &str = "HYPSEQ_TEST_STOP_AT";

fn now() -> Time {
    NOW.parse().expect("a time")
}

/// The plan, sealed anew with times around [`NOW`] and an id that every process knows.
fn the_plan() -> Plan {
    let rewinds: Vec<_> = MARKS.iter().zip(TARGETS).map(|((path, at, sent), to)| (*path, *at, *sent, to)).collect();
    let mut plan = plan(&rewinds);
    plan.id = "019af5b1-7c00-7d2e-8a41-5f0c3b9e1d77".parse().expect("an id");
    plan.created_at = now();
    plan.expires_at = now().plus(hypseq_plan::DEFAULT_LIFETIME).expect("a time");
    plan.seal().expect("sealed");
    plan
}

#[test]
#[ignore = "is what the other tests run as its own process, to be killed"]
#[allow(clippy::print_stdout)]
fn the_consumer() {
    let state_root = PathBuf::from(std::env::var_os(STATE_ROOT).expect("a state root"));
    let stop_at: usize = std::env::var(STOP_AT).expect("a number").parse().expect("a number");
    let count = AtomicUsize::new(0);
    let on_step = |_| {
        if count.fetch_add(1, Ordering::Relaxed) == stop_at {
            println!("\nreached");
            std::io::stdout().flush().expect("flushed");
            loop {
                thread::park();
            }
        }
        Ok(())
    };
    let plan = the_plan();
    println!("\nbegun");
    std::io::stdout().flush().expect("flushed");
    let world = Sound(Some(now()));
    let _ = Consumer::new(&state_root, &world).on_step(&on_step).apply(&plan);
    println!("\nended");
}

/// Starts the consumer; it parks before its step number `stop_at`.
fn start(state_root: &Path, stop_at: usize) -> (Child, impl FnMut(&str) -> bool) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["the_consumer", "--exact", "--ignored", "--nocapture"])
        .env(STATE_ROOT, state_root)
        .env(STOP_AT, stop_at.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    // Whether it says this before it says that it ended.
    let wait_for = move |wanted: &str| loop {
        match lines.next() {
            Some(Ok(line)) if line == wanted => return true,
            Some(Ok(line)) if line == "ended" => return false,
            Some(Ok(_)) => {}
            _ => return false,
        }
    };
    (child, wait_for)
}

fn kill(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn new_home() -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let state_root = folder.path().join("hypaware");
    write_watermarks(&state_root, &MARKS);
    (folder, state_root)
}

fn texts(state_root: &Path) -> Vec<String> {
    let path = |(partition, ..): &(&str, i64, u64)| WatermarkPath::new(&sink(), DATASET, partition).expect("a path");
    MARKS.iter().map(|mark| fs::read_to_string(path(mark).under(state_root)).expect("a watermark")).collect()
}

fn old() -> Vec<String> {
    MARKS.iter().map(|(_, at, sent)| watermark_text(&observed(*at, *sent))).collect()
}

fn new() -> Vec<String> {
    let moved = |((_, _, sent), to): (&(&str, i64, u64), i64)| {
        let mut mark = observed(to, *sent);
        mark.updated_at = NOW.into();
        watermark_text(&mark)
    };
    MARKS.iter().zip(TARGETS).map(moved).collect()
}

/// How a killed run left its home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Unfinished,
    Applied,
}

/// Each watermark is whole; then the second run ends right.
fn assert_made_good(state_root: &Path) -> Left {
    for ((found, old), new) in texts(state_root).iter().zip(old()).zip(new()) {
        assert!(*found == old || *found == new, "{found}");
    }
    let plan = the_plan();
    let path =
        state_root.join("plugins/@hypaware/central/sink-instances/central/rewinds").join(format!("{}.json", plan.id));
    let left = match path.exists().then(|| Receipt::read(&path).expect("a whole receipt")) {
        None => Left::Nothing,
        Some(receipt) if receipt.attempts[0].state == AttemptState::Applied => Left::Applied,
        Some(_) => Left::Unfinished,
    };
    let world = Sound(Some(now()));
    match Consumer::new(state_root, &world).apply(&plan) {
        Ok(_) => assert_ne!(left, Left::Applied),
        Err(ConsumeError::Refused(why)) => {
            assert!(matches!(why[..], [Refusal::Used { .. }]) && left == Left::Applied, "{left:?}: {why:?}");
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(texts(state_root), new());
    let receipt = Receipt::read(&path).expect("a receipt");
    assert_eq!(receipt.attempts.iter().map(|a| a.state).collect::<Vec<_>>(), [AttemptState::Applied]);
    assert_eq!(leftovers(state_root), [""; 0].map(PathBuf::from));
    left
}

#[test]
fn a_kill_at_every_step_is_made_good() {
    for step in 0.. {
        let (_folder, state_root) = new_home();
        let (child, mut wait_for) = start(&state_root, step);
        let reached = wait_for("reached");
        kill(child);
        assert_made_good(&state_root);
        if !reached {
            assert!(step >= 18, "{step}");
            break;
        }
    }
}

#[test]
fn a_kill_at_any_moment_is_made_good() {
    // How long it takes undisturbed, so that the moments are spread over all of it.
    let took = (0..5).map(|_| {
        let (_folder, state_root) = new_home();
        let (child, mut wait_for) = start(&state_root, usize::MAX);
        wait_for("begun");
        let begun = Instant::now();
        wait_for("never");
        let took = begun.elapsed();
        kill(child);
        took
    });
    let took = took.max().expect("five runs");
    let next = AtomicUsize::new(0);
    let left: Vec<Left> = thread::scope(|scope| {
        let work = || {
            let mut left = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= RUNS {
                    return left;
                }
                let (_folder, state_root) = new_home();
                let (child, mut wait_for) = start(&state_root, usize::MAX);
                wait_for("begun");
                let part = u32::try_from((run * 7919) % 1000).unwrap_or(0);
                busy_wait(took * part / 1000);
                kill(child);
                left.push(assert_made_good(&state_root));
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("every run is made good")).collect()
    });
    assert_eq!(left.len(), RUNS);
    let count = |wanted: Left| left.iter().filter(|l| **l == wanted).count();
    // The moments were the right ones.
    assert!(count(Left::Unfinished) > 0, "{} unfinished", count(Left::Unfinished));
}

/// Sleeping is too coarse for moments within a millisecond.
fn busy_wait(span: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < span {
        std::hint::spin_loop();
    }
}
