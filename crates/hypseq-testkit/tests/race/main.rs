//! Rewinds at random moments against a daemon that never stops: every one ends with a verdict, and the daemon's own log
//! says that the verdict is true.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hypseq_plan::{
    ConsumeError, Consumer, Judgement, Observed, Outcome, Plan, Receipt, Refusal, TickVerdict, Time, judge,
    parse_watermark, watermark_text,
};
use hypseq_testkit::daemon::{DaemonSpec, Event, Feed, Replay, What, replays, run};
use support::{Model, SPEC, Sound, folder, leftovers, plan, sink, write_watermarks};

const RUNS: usize = 500;
const WORKERS: usize = 24;
const CLAUDE: &str = "source=claude";

/// Rows with every third seq; the watermark stands at the 300th row, and goes back to the 200th.
const OLD: i64 = 900;
const TARGET: i64 = 600;
const GAP: u64 = 100;

fn rows() -> Vec<i64> {
    (1..=2000).map(|n| n * 3).collect()
}

fn rows_between(above: i64, up_to: i64) -> u64 {
    rows().iter().filter(|seq| **seq > above && **seq <= up_to).count() as u64
}

#[test]
#[ignore = "is what the other test runs as its own process"]
fn the_daemon() {
    let spec: DaemonSpec = serde_json::from_str(&std::env::var(SPEC).expect("a spec")).expect("a spec");
    // An error means that the home was removed: the test has ended.
    let _ = run(spec);
}

/// What a run is like, by its number: a run in ten under an opt-out, another with a server that often fails.
fn spec(state_root: &Path, run: usize) -> DaemonSpec {
    if run % 10 == 3 {
        let policy = state_root.join("usage-policy");
        std::fs::create_dir_all(&policy).expect("a folder");
        let store = r#"{"version":1,"entries":[{"source":"claude","class":"local-only"}]}"#;
        std::fs::write(policy.join("client-sync.json"), store).expect("written");
    }
    DaemonSpec {
        state_root: state_root.to_owned(),
        plugin: sink().plugin,
        instance: sink().instance,
        partitions: vec![Feed {
            dataset: support::DATASET.into(),
            partition: CLAUDE.into(),
            seqs: rows(),
            captured: 300,
        }],
        log: state_root.join("daemon.log"),
        seed: run as u64,
        pause_ms: (0, 100),
        tick_ms: (50, 100),
        arrivals: (0, 3),
        failing_permille: if run % 10 == 6 { 400 } else { 0 },
        compacting_permille: 0,
    }
}

/// What a rewind came to.
struct Ended {
    verdict: TickVerdict,
    at: Time,
    receipt: Receipt,
}

/// Applies at once, whatever the daemon is doing, and looks until there is a verdict.
fn rewind(state_root: &Path, plan: &Plan, withheld: bool) -> Ended {
    let world = Sound(None);
    let consumer = Consumer::new(state_root, &world);
    let watermark = &plan.rewinds[0].watermark;
    let insist = |swap: &dyn Fn() -> Result<Receipt, ConsumeError>| loop {
        match swap() {
            Ok(receipt) => return receipt,
            Err(ConsumeError::Refused(why)) if matches!(why[..], [Refusal::Changed { .. }]) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let mut receipt = insist(&|| Ok(consumer.apply(plan)?.receipt));
    let deadline = Instant::now() + Duration::from_secs(4);
    let mut retries = 4;
    loop {
        let swap = receipt.latest_swaps()[0].clone();
        let now: Observed = consumer.observe(&plan.sink, watermark).expect("a watermark");
        let sendable = |above, up_to| if withheld { 0 } else { rows_between(above, up_to) };
        let expected = sendable(swap.to.get(), swap.before.seq.get());
        let arrived = sendable(swap.before.seq.get(), now.seq.get());
        let verdict = judge(&swap.before, swap.to, &now, expected, arrived);
        if verdict == TickVerdict::Pending && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
            continue;
        }
        let (seq, exported_row_count) = (now.seq, now.exported_row_count);
        let judgement = Judgement { at: Time::now(), verdict, seq, exported_row_count, expected, arrived };
        let at = judgement.at;
        receipt = consumer.record(&plan.sink, plan.id, &[(watermark.clone(), judgement)]).expect("recorded");
        if verdict != TickVerdict::Clobbered || retries == 0 {
            return Ended { verdict, at, receipt };
        }
        retries -= 1;
        receipt = insist(&|| Ok(consumer.swap_again(plan)?.receipt));
    }
}

/// Runs one race; the verdict, and in how many attempts.
fn race(run: usize) -> (TickVerdict, usize) {
    let folder = folder();
    let state_root = folder.path().join("hypaware");
    write_watermarks(&state_root, &[(CLAUDE, OLD, 300)]);
    let plan = plan(&[(CLAUDE, OLD, 300, TARGET)]);
    let spec = spec(&state_root, run);
    let model = Model::start(&spec);
    model.wait_for_ticks(1);
    // A random moment of a tick, or between two.
    thread::sleep(Duration::from_millis((run as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % 200));
    let withheld = run % 10 == 3;
    let Ended { verdict, at, receipt } = rewind(&state_root, &plan, withheld);
    model.wait_for_ticks(2);
    let log = model.log();
    drop(model);

    assert_like_hypaware(&log);
    let written = std::fs::read_to_string(plan.rewinds[0].watermark.under(&state_root)).expect("a watermark");
    assert_eq!(watermark_text(&parse_watermark(&written).expect("a watermark")), written);

    let found = replays(&log, 0, TARGET);
    let context = || format!("run {run}: {verdict:?} at {at}\n{receipt:#?}\n{found:#?}\n{log:#?}");
    match verdict {
        TickVerdict::Honoured => {
            assert!(matches!(found[..], [Replay { sent, dropped: 0, .. }] if sent >= GAP), "{}", context());
        }
        // While the rows are withheld, a tick that went back and one that wrote over the swap leave the same watermark;
        // that nothing was sent is true of both.
        TickVerdict::DroppedAgain => {
            let is_true = found.iter().all(|replay| replay.sent == 0 && replay.dropped >= GAP);
            assert!(withheld && found.len() <= 1 && is_true, "{}", context());
        }
        TickVerdict::Clobbered => assert!(found.is_empty(), "{}", context()),
        TickVerdict::Pending => assert!(found.iter().all(|r| r.wall_ms >= at.millis()), "{}", context()),
        TickVerdict::Unexplained => panic!("{}", context()),
    }
    // Every swap but the last was lost to a tick in flight, and none was made for any other reason.
    let (last, earlier) = receipt.attempts.split_last().expect("an attempt");
    let verdict_of = |attempt: &hypseq_plan::Attempt| attempt.swaps[0].judgement.as_ref().map(|j| j.verdict);
    assert!(earlier.iter().all(|a| verdict_of(a) == Some(TickVerdict::Clobbered)), "{}", context());
    assert_eq!(verdict_of(last), Some(verdict));
    assert!(receipt.attempts.iter().all(|a| matches!(a.swaps[0].outcome, Outcome::Set | Outcome::Overtaken)));
    // The model may have been ended while it wrote; nothing of the consumer's is left.
    let left: Vec<_> =
        leftovers(&state_root).into_iter().filter(|p| p.to_string_lossy().contains(".rewind-")).collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from));
    (verdict, receipt.attempts.len())
}

/// The judge itself is right: each tick that wrote had read before, counted from what it had read, and sent or dropped
/// something; one that failed left the watermark alone.
fn assert_like_hypaware(log: &[Event]) {
    for pair in log.chunks_exact(2) {
        let [read, ended] = pair else { unreachable!("pairs") };
        assert_eq!((read.what, ended.tick), (What::Read, read.tick), "{log:#?}");
        match ended.what {
            What::Wrote => {
                assert!(ended.seq > read.seq && ended.sent + ended.dropped > 0, "{ended:?}");
                assert_eq!(ended.exported, read.exported + ended.sent);
            }
            What::Idle | What::Failed => assert_eq!((ended.seq, ended.exported), (read.seq, read.exported)),
            _ => panic!("{ended:?}"),
        }
    }
}

#[test]
fn every_verdict_is_true() {
    let next = AtomicUsize::new(0);
    let ended: Vec<(TickVerdict, usize)> = thread::scope(|scope| {
        let work = || {
            let mut ended = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= RUNS {
                    return ended;
                }
                ended.push(race(run));
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("every verdict is true")).collect()
    });
    assert_eq!(ended.len(), RUNS);
    let count = |wanted: TickVerdict| ended.iter().filter(|(verdict, _)| *verdict == wanted).count();
    let again = ended.iter().filter(|(_, attempts)| *attempts > 1).count();
    // The race is one: swaps fell into running ticks, and were made again.
    assert!(again > RUNS / 10, "{again} swapped again");
    assert!(count(TickVerdict::Honoured) > RUNS / 2, "{} honoured", count(TickVerdict::Honoured));
    assert!(count(TickVerdict::DroppedAgain) > 0);
}
