//! Runs that stop at every step: killed there, or refused by the file system there. A panic in the hook
//! stands for the kill, since nothing in the library cleans up while unwinding but the lock, which a kill
//! releases as well.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hypseq_plan::{
    Applied, AttemptState, ConsumeError, Consumer, Outcome, Plan, Refusal, Step, TickVerdict, Tool, UndoPlan,
};

use crate::home::{CLAUDE, CODEX, Home, NOW, Told, one, original, text, two};
use crate::sample::{seq, time};

/// What happens at a step.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The process is killed.
    Kill,
    /// The file system refuses once.
    Refuse,
    /// The file system refuses from then on.
    RefuseAll,
}

struct Stopped;

/// Runs `job` with a fault before its step number `at`; none when it was killed. Says whether it got that far.
fn with_fault<T>(fault: Fault, at: usize, job: impl FnOnce(&dyn Fn(Step) -> io::Result<()>) -> T) -> (bool, Option<T>) {
    let count = Cell::new(0);
    let hook = |_: Step| {
        let step = count.replace(count.get() + 1);
        match fault {
            Fault::Kill if step == at => resume_unwind(Box::new(Stopped)),
            Fault::Refuse if step == at => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Fault::RefuseAll if step >= at => Err(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Ok(()),
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| job(&hook)));
    (count.get() > at, result.ok())
}

fn apply_with_fault(
    home: &Home,
    plan: &Plan,
    fault: Fault,
    at: usize,
) -> (bool, Option<Result<Applied, ConsumeError>>) {
    with_fault(fault, at, |hook| Consumer::new(&home.state_root, &Told::well()).on_step(hook).apply(plan))
}

fn apply(home: &Home, plan: &Plan) -> Result<Applied, ConsumeError> {
    Consumer::new(&home.state_root, &Told::well()).apply(plan)
}

/// The steps of an undisturbed run.
fn steps(plan: &Plan) -> Vec<Step> {
    let home = Home::new();
    let steps = RefCell::new(Vec::new());
    let hook = |step| {
        steps.borrow_mut().push(step);
        Ok(())
    };
    Consumer::new(&home.state_root, &Told::well()).on_step(&hook).apply(plan).unwrap();
    steps.into_inner()
}

fn old() -> [String; 2] {
    [original(CLAUDE), original(CODEX)]
}

fn new() -> [String; 2] {
    [text(722, 665, NOW), text(500, 299, NOW)]
}

fn now(home: &Home) -> [String; 2] {
    [home.text(CLAUDE), home.text(CODEX)]
}

/// Each watermark is whole, the old one or the new one.
fn assert_whole(home: &Home) {
    for ((now, old), new) in now(home).iter().zip(old()).zip(new()) {
        assert!(*now == old || *now == new, "{now}");
    }
}

/// The plan is applied, once, and nothing else is left.
fn assert_applied(home: &Home, plan: &Plan) {
    assert_eq!(now(home), new());
    let receipt = home.receipt(plan);
    assert_eq!(receipt.attempts.len(), 1);
    assert_eq!(receipt.attempts[0].state, AttemptState::Applied);
    assert!(receipt.attempts[0].swaps.iter().all(|swap| swap.outcome == Outcome::Set));
    assert_eq!(home.leftovers(), [""; 0]);
    let refused = apply(home, plan).unwrap_err();
    assert!(matches!(&refused, ConsumeError::Refused(r) if matches!(r[..], [Refusal::Used { .. }])), "{refused}");
}

#[test]
fn the_steps_are_these() {
    let state = |state| Some(state);
    let (intent, swapping, applied) =
        (state(AttemptState::Intent), state(AttemptState::Swapping), state(AttemptState::Applied));
    assert_eq!(
        steps(&two()),
        [
            Step::RemoveTemporaries,
            Step::WriteReceipt { state: intent },
            Step::PublishReceipt { state: intent },
            Step::WriteTemporaries { at: 0 },
            Step::WriteTemporaries { at: 1 },
            Step::WriteReceipt { state: swapping },
            Step::PublishReceipt { state: swapping },
            Step::Compare { at: 0 },
            Step::Rename { at: 0 },
            Step::Compare { at: 1 },
            Step::Rename { at: 1 },
            Step::FlushFolder { at: 0 },
            Step::ReadBack { at: 0 },
            Step::FlushFolder { at: 1 },
            Step::ReadBack { at: 1 },
            Step::WriteReceipt { state: applied },
            Step::PublishReceipt { state: applied },
            Step::RemoveTemporaries,
        ]
    );
}

#[test]
fn a_kill_at_any_step_is_made_good_by_the_next_run() {
    for at in 0..steps(&two()).len() {
        let home = Home::new();
        assert!(apply_with_fault(&home, &two(), Fault::Kill, at).1.is_none());
        assert_whole(&home);
        match apply(&home, &two()) {
            Ok(_) => {}
            // Killed while it removed its temporary files: it had been applied.
            Err(ConsumeError::Refused(r)) => assert!(matches!(r[..], [Refusal::Used { .. }]), "{at}"),
            Err(other) => panic!("{at}: {other}"),
        }
        assert_applied(&home, &two());
    }
}

#[test]
fn a_second_kill_at_any_step_of_the_recovery_is_made_good_too() {
    // One step for each state that the first kill can leave: intent, none set, one set, all set.
    let steps = steps(&two());
    let left = [
        Step::WriteTemporaries { at: 1 },
        Step::Compare { at: 0 },
        Step::Compare { at: 1 },
        Step::FlushFolder { at: 0 },
    ];
    for first in left.map(|step| steps.iter().position(|s| *s == step).unwrap()) {
        for second in 0.. {
            let home = Home::new();
            apply_with_fault(&home, &two(), Fault::Kill, first);
            let (reached, _) = apply_with_fault(&home, &two(), Fault::Kill, second);
            assert_whole(&home);
            let _ = apply(&home, &two());
            assert_applied(&home, &two());
            if !reached {
                break;
            }
        }
    }
}

#[test]
fn a_run_that_ended_just_after_the_last_swap_is_finished_and_not_repeated() {
    let ended = steps(&one()).iter().position(|step| matches!(step, Step::FlushFolder { .. })).unwrap();
    let home = Home::new();
    apply_with_fault(&home, &one(), Fault::Kill, ended);
    // The daemon honours the rewind before anyone runs again. To rewind once more would send 531 rows twice.
    home.tick(CLAUDE, 1495, 1196);
    let applied = apply(&home, &one()).unwrap();
    assert!(applied.finished_earlier_run);
    assert_eq!(applied.receipt.attempts[0].swaps[0].outcome, Outcome::Overtaken);
    assert_eq!(home.text(CLAUDE), text(1495, 1196, "2026-12-01T10:00:59.000Z"));
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn a_run_that_ended_just_before_its_swap_is_taken_back_even_if_the_daemon_goes_on() {
    let ended = steps(&one()).iter().position(|step| matches!(step, Step::Rename { .. })).unwrap();
    let home = Home::new();
    apply_with_fault(&home, &one(), Fault::Kill, ended);
    home.tick(CLAUDE, 1500, 670);
    let applied = apply(&home, &one()).unwrap();
    assert!(!applied.finished_earlier_run);
    assert_eq!(applied.receipt.attempts[0].swaps[0].before.seq, seq(1500));
    assert_eq!(home.text(CLAUDE), text(722, 670, NOW));
}

#[test]
fn check_says_that_a_run_did_not_end() {
    let home = Home::new();
    apply_with_fault(&home, &one(), Fault::Kill, 3);
    let world = Told::well();
    let check = Consumer::new(&home.state_root, &world).check(&one()).unwrap();
    assert!(matches!(check.plan[..], [Refusal::Interrupted { .. }]), "{check:?}");
}

#[test]
fn a_copy_of_a_receipt_stands_for_nothing() {
    let set = steps(&one()).iter().position(|step| matches!(step, Step::FlushFolder { .. })).unwrap();
    let home = Home::new();
    apply_with_fault(&home, &one(), Fault::Kill, set);
    std::fs::copy(home.receipt_path(&one()), home.instance().join("rewinds/copy.json")).unwrap();
    assert!(apply(&home, &one()).unwrap().finished_earlier_run);
    assert_eq!(home.receipt(&one()).attempts[0].state, AttemptState::Applied);
}

#[test]
fn another_plan_makes_good_what_a_killed_run_left() {
    let second = steps(&two()).iter().position(|step| *step == Step::Rename { at: 1 }).unwrap();
    let home = Home::new();
    apply_with_fault(&home, &two(), Fault::Kill, second);
    assert_eq!(now(&home), [new()[0].clone(), old()[1].clone()]);

    let mut other = one();
    other.id = "019af5b1-7c00-7d2e-8a41-000000000000".parse().unwrap();
    other.expires_at = time("2026-12-01T09:30:00.000Z");
    other.seal().unwrap();
    let refused = apply(&home, &other).unwrap_err();
    assert!(matches!(&refused, ConsumeError::Refused(r) if matches!(r[..], [Refusal::Expired { .. }])), "{refused}");
    assert_eq!(now(&home), old());
    assert!(!home.receipt_path(&two()).exists());
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn what_the_daemon_has_moved_on_from_is_not_taken_back() {
    let second = steps(&two()).iter().position(|step| *step == Step::Rename { at: 1 }).unwrap();
    let home = Home::new();
    apply_with_fault(&home, &two(), Fault::Kill, second);
    home.tick(CLAUDE, 1495, 1196);
    let refused = apply(&home, &two()).unwrap_err();
    assert!(
        matches!(&refused, ConsumeError::Refused(r)
            if matches!(r[..], [Refusal::Used { state: Some(AttemptState::Partial), .. }])),
        "{refused}"
    );
    let receipt = home.receipt(&two());
    let outcomes: Vec<_> = receipt.attempts[0].swaps.iter().map(|swap| swap.outcome).collect();
    assert_eq!(outcomes, [Outcome::Overtaken, Outcome::Unchanged]);
    assert_eq!(now(&home), [text(1495, 1196, "2026-12-01T10:00:59.000Z"), old()[1].clone()]);
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn a_refusal_of_the_file_system_at_any_step_changes_nothing_or_is_finished_later() {
    for at in 0..steps(&two()).len() - 1 {
        let home = Home::new();
        let before = home.tree();
        let result = apply_with_fault(&home, &two(), Fault::Refuse, at).1.unwrap();
        match result.unwrap_err() {
            ConsumeError::Io { source, .. } => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                let mut after = home.tree();
                after.retain(|name, _| !name.ends_with("/rewind.lock") && !name.ends_with("/rewinds"));
                assert_eq!(after, before, "{at}");
            }
            ConsumeError::Unfinished { .. } => assert_eq!(now(&home), new(), "{at}"),
            other => panic!("{at}: {other}"),
        }
        apply(&home, &two()).unwrap();
        assert_applied(&home, &two());
    }
}

#[test]
fn temporary_files_that_cannot_be_removed_do_not_undo_an_apply() {
    let home = Home::new();
    let last = steps(&two()).len() - 1;
    apply_with_fault(&home, &two(), Fault::Refuse, last).1.unwrap().unwrap();
    assert_eq!(home.leftovers().len(), 2);
    apply(&home, &two()).unwrap_err();
    assert_applied(&home, &two());
}

#[test]
fn a_file_system_that_refuses_for_good_leaves_whole_files_and_a_true_receipt() {
    for at in 0..steps(&two()).len() - 1 {
        let home = Home::new();
        let error = apply_with_fault(&home, &two(), Fault::RefuseAll, at).1.unwrap().unwrap_err();
        assert!(matches!(error, ConsumeError::Io { .. } | ConsumeError::Unfinished { .. }), "{at}: {error}");
        assert_whole(&home);
        if now(&home) != old() {
            assert_eq!(home.receipt(&two()).attempts[0].state, AttemptState::Swapping);
        }
        apply(&home, &two()).unwrap();
        assert_applied(&home, &two());
    }
}

/// Applies with something happening just before a step.
fn apply_while(home: &Home, plan: &Plan, at: Step, happens: impl Fn()) -> Result<Applied, ConsumeError> {
    let hook = |step| {
        if step == at {
            happens();
        }
        Ok(())
    };
    Consumer::new(&home.state_root, &Told::well()).on_step(&hook).apply(plan)
}

#[test]
fn a_watermark_that_changes_between_check_and_swap_is_left_alone() {
    for at in [Step::WriteTemporaries { at: 0 }, Step::WriteTemporaries { at: 1 }, Step::Compare { at: 0 }] {
        let home = Home::new();
        let error = apply_while(&home, &two(), at, || home.tick(CLAUDE, 1500, 670)).map(drop);
        if at == (Step::WriteTemporaries { at: 1 }) {
            // Noticed by the last look, as the first had passed.
            assert!(error.is_err());
        }
        let error = error.unwrap_err();
        assert!(matches!(&error, ConsumeError::Refused(r) if matches!(r[..], [Refusal::Changed { .. }])), "{error}");
        assert_eq!(now(&home), [text(1500, 670, "2026-12-01T10:00:59.000Z"), old()[1].clone()]);
        assert!(!home.receipt_path(&two()).exists());
        assert_eq!(home.leftovers(), [""; 0]);
        // The plan is not used up.
        apply(&home, &two()).unwrap();
    }
}

#[test]
fn the_first_watermark_is_taken_back_when_the_second_changes() {
    let home = Home::new();
    let error = apply_while(&home, &two(), Step::Compare { at: 1 }, || home.tick(CODEX, 1330, 300)).unwrap_err();
    assert!(matches!(&error, ConsumeError::Refused(r) if matches!(r[..], [Refusal::Changed { .. }])), "{error}");
    assert_eq!(now(&home), [old()[0].clone(), text(1330, 300, "2026-12-01T10:00:59.000Z")]);
    assert!(!home.receipt_path(&two()).exists());
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn a_first_watermark_that_the_daemon_took_up_is_reported() {
    let home = Home::new();
    let error = apply_while(&home, &two(), Step::Compare { at: 1 }, || {
        home.tick(CLAUDE, 1495, 1196);
        home.tick(CODEX, 1330, 300);
    });
    let Err(ConsumeError::Partial { receipt, source }) = error else { panic!("{error:?}") };
    assert!(matches!(*source, ConsumeError::Refused(_)));
    assert_eq!(*receipt, home.receipt(&two()));
    assert_eq!(receipt.attempts[0].state, AttemptState::Partial);
    let outcomes: Vec<_> = receipt.attempts[0].swaps.iter().map(|swap| swap.outcome).collect();
    assert_eq!(outcomes, [Outcome::Overtaken, Outcome::Unchanged]);
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn a_first_watermark_that_the_daemon_takes_up_while_it_is_taken_back_is_left_alone() {
    let home = Home::new();
    let hook = |step| {
        match step {
            Step::Compare { at: 1 } => home.tick(CODEX, 1330, 300),
            Step::TakeBack { at: 0 } => home.tick(CLAUDE, 1495, 1196),
            _ => {}
        }
        Ok(())
    };
    let error = Consumer::new(&home.state_root, &Told::well()).on_step(&hook).apply(&two()).unwrap_err();
    assert!(matches!(error, ConsumeError::Partial { .. }), "{error}");
    assert_eq!(home.text(CLAUDE), text(1495, 1196, "2026-12-01T10:00:59.000Z"));
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn a_tick_that_ends_before_the_read_back_is_reported() {
    let home = Home::new();
    let applied = apply_while(&home, &one(), Step::ReadBack { at: 0 }, || home.tick(CLAUDE, 1500, 670)).unwrap();
    assert_eq!(applied.receipt.attempts[0].swaps[0].outcome, Outcome::Overtaken);
    assert_eq!(home.text(CLAUDE), text(1500, 670, "2026-12-01T10:00:59.000Z"));
}

#[cfg(unix)]
#[test]
fn a_folder_that_becomes_a_link_between_check_and_swap_is_refused() {
    let home = Home::new();
    let folder = home.watermark(CLAUDE).parent().unwrap().to_owned();
    let elsewhere = home.state_root.parent().unwrap().join("elsewhere");
    let error = apply_while(&home, &one(), Step::Compare { at: 0 }, || {
        std::fs::rename(&folder, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    })
    .unwrap_err();
    assert!(matches!(&error, ConsumeError::Refused(r) if matches!(r[..], [Refusal::Link { .. }])), "{error}");
    assert_eq!(home.text(CLAUDE), original(CLAUDE));
}

#[test]
fn a_kill_while_swapping_again_leaves_the_first_attempt_standing() {
    let clobber = |home: &Home| {
        apply(home, &one()).unwrap();
        home.tick(CLAUDE, 1502, 672);
        let judgement = hypseq_plan::Judgement {
            at: time(NOW),
            verdict: TickVerdict::Clobbered,
            seq: seq(1502),
            exported_row_count: 672,
            expected: 531,
            arrived: 7,
        };
        let world = Told::well();
        let consumer = Consumer::new(&home.state_root, &world);
        consumer.record(&one().sink, one().id, &[(one().rewinds[0].watermark.clone(), judgement)]).unwrap();
    };
    let again = |home: &Home, hook: &dyn Fn(Step) -> io::Result<()>| {
        Consumer::new(&home.state_root, &Told::well()).on_step(hook).swap_again(&one())
    };
    for at in 0.. {
        let home = Home::new();
        clobber(&home);
        let (reached, _) = with_fault(Fault::Kill, at, |hook| again(&home, hook));
        let _ = again(&home, &|_| Ok(()));
        let receipt = home.receipt(&one());
        assert_eq!(receipt.attempts.iter().map(|a| a.state).collect::<Vec<_>>(), [AttemptState::Applied; 2], "{at}");
        assert_eq!(home.text(CLAUDE), text(722, 672, NOW));
        assert_eq!(home.leftovers(), [""; 0]);
        if !reached {
            assert!(at > 12, "{at}");
            break;
        }
    }
}

#[test]
fn a_kill_at_any_step_of_an_undo_is_made_good_by_the_next() {
    let undo = |home: &Home, inverse: &UndoPlan, hook: &dyn Fn(Step) -> io::Result<()>| {
        Consumer::new(&home.state_root, &Told::well()).on_step(hook).undo(inverse)
    };
    for at in 0.. {
        let home = Home::new();
        apply(&home, &two()).unwrap();
        let tool = Tool { name: "hypseq".into(), version: "0.1.0".into() };
        let world = Told::well();
        let inverse = Consumer::new(&home.state_root, &world).invert(&two(), tool, "wrong day".into()).unwrap();
        let (reached, _) = with_fault(Fault::Kill, at, |hook| undo(&home, &inverse, hook));
        let _ = undo(&home, &inverse, &|_| Ok(()));
        assert_eq!(now(&home), [text(1495, 665, NOW), text(1329, 299, NOW)], "{at}");
        assert_eq!(home.leftovers(), [""; 0]);
        if !reached {
            assert!(at > 12, "{at}");
            break;
        }
    }
}
