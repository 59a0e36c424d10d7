//! `plan apply` killed at random moments: the watermark is the old one or the new one, byte for byte, and the next run
//! ends right. (Every single step is tried in `hypseq-testkit`.)

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::life::{INSTANCE, Life, SENT, TARGET, text};
use crate::support::command;

const RUNS: usize = 100;
const MOST_RUNS: usize = 500;
const WORKERS: usize = 2;

/// Kills an apply: some from its start on, some from when it takes the lock, some from when it has said what it intends.
fn kill_once(life: &Life, run: usize, whole: Duration) {
    let mut child = command()
        .args(["--home", &life.home(), "plan", "apply", &life.plan()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let part = u32::try_from(run * 7919 % 1000).unwrap_or(0);
    if run.is_multiple_of(4) {
        thread::sleep(whole * part / 1000);
    } else {
        let sign = life.home.join(INSTANCE).join(if run % 4 > 1 { "rewinds" } else { "rewind.lock" });
        while !sign.exists() && child.try_wait().expect("a child").is_none() {
            std::hint::spin_loop();
        }
        // In memory it takes less than a millisecond, on a disk that is flushed ten.
        let span = Duration::from_micros([0, 12_000, 30, 150][run % 4]);
        let begun = Instant::now();
        while begun.elapsed() < span * part / 1000 {
            std::hint::spin_loop();
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn assert_made_good(life: &Life, old: &str) -> bool {
    let now = life.watermark_text();
    let unfinished = life.home.join(INSTANCE).join("rewinds").read_dir().is_ok_and(|mut entries| {
        entries.any(|entry| {
            let text = fs::read_to_string(entry.expect("an entry").path()).unwrap_or_default();
            text.contains("\"state\": \"intent\"") || text.contains("\"state\": \"swapping\"")
        })
    });
    if now != *old {
        let receipt = life.receipt();
        assert_eq!(receipt["attempts"][0]["swaps"][0]["written"], now.as_str());
        let at = receipt["attempts"][0]["begun_at"].as_str().expect("a time");
        assert_eq!(now, text(TARGET, SENT, at));
    }
    let again = life.json("apply", &[]);
    assert!(
        again.status == 0 || (again.status == 1 && again.stderr.contains("was used before (applied)")),
        "{}",
        again.stderr
    );
    let receipt = life.receipt();
    assert_eq!(
        (&receipt["attempts"][0]["state"], receipt["attempts"].as_array().map(Vec::len)),
        (&"applied".into(), Some(1))
    );
    let at = receipt["attempts"][0]["begun_at"].as_str().expect("a time");
    assert_eq!(life.watermark_text(), text(TARGET, SENT, at));
    assert!(life.leftovers().is_empty(), "{:?}", life.leftovers());
    unfinished
}

#[test]
fn a_kill_at_any_moment_is_made_good() {
    let life = Life::new();
    let begun = Instant::now();
    life.json("apply", &[]).exits(0);
    let whole = begun.elapsed();
    let (next, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let work = || {
            // One home for all runs of a worker: its plan is made once.
            let life = Life::new();
            let old = life.watermark_text();
            loop {
                // On a busy machine few kills fall between the intent and the end: then there are more.
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= MOST_RUNS || (run >= RUNS && unfinished.load(Ordering::Relaxed) > 0) {
                    return;
                }
                kill_once(&life, run, whole);
                unfinished.fetch_add(usize::from(assert_made_good(&life, &old)), Ordering::Relaxed);
                let instance = life.home.join(INSTANCE);
                fs::remove_dir_all(instance.join("rewinds")).expect("removed");
                fs::remove_file(instance.join("rewind.lock")).expect("removed");
                fs::write(life.watermark(), &old).expect("written");
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().expect("every run is made good");
        }
    });
    assert!(unfinished.into_inner() > 0, "no kill fell into an apply");
}
