//! Taking a rewind back.

use std::fs;

use hypseq_plan::{ConsumeError, Consumer, Plan, Refusal, Tool, UndoPlan};

use crate::home::{CLAUDE, CODEX, Home, NOW, Told, one, original, text, two};
use crate::sample::{seq, time};

fn tool() -> Tool {
    Tool { name: "hypseq".into(), version: "0.1.0".into() }
}

fn invert(home: &Home, plan: &Plan) -> Result<UndoPlan, ConsumeError> {
    Consumer::new(&home.state_root, &Told::well()).invert(plan, tool(), "wrong day".into())
}

fn undo(home: &Home, undo: &UndoPlan) -> Result<hypseq_plan::Applied, ConsumeError> {
    Consumer::new(&home.state_root, &Told::well()).undo(undo)
}

fn apply(home: &Home, plan: &Plan) {
    Consumer::new(&home.state_root, &Told::well()).apply(plan).unwrap();
}

/// The only refusal.
fn refused<T: std::fmt::Debug>(result: Result<T, ConsumeError>) -> Refusal {
    match result.unwrap_err() {
        ConsumeError::Refused(mut refusals) if refusals.len() == 1 => refusals.remove(0),
        other => panic!("{other}"),
    }
}

#[test]
fn puts_every_watermark_where_it_stood() {
    let home = Home::new();
    home.tick(CLAUDE, 1600, 700);
    apply(&home, &two());
    let inverse = invert(&home, &two()).unwrap();
    assert_eq!((inverse.undoes, inverse.restores.len()), (two().id, 2));
    // Where it stood at the swap, not where it stood when the plan was made.
    assert_eq!((inverse.restores[0].from, inverse.restores[0].to), (seq(722), seq(1600)));

    let receipt = undo(&home, &inverse).unwrap().receipt;
    assert_eq!(home.text(CLAUDE), text(1600, 700, NOW));
    assert_eq!(home.text(CODEX), text(1329, 299, NOW));
    assert_eq!((receipt.id, receipt.undoes), (inverse.id, Some(two().id)));
    assert!(receipt.is_applied());
    assert_eq!(home.leftovers(), [""; 0]);

    assert!(matches!(refused(undo(&home, &inverse)), Refusal::Used { .. }));
}

#[test]
fn the_inverse_plan_survives_a_round_trip() {
    let home = Home::new();
    apply(&home, &one());
    let inverse = invert(&home, &one()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("undo.json");
    inverse.write(&path, &home.state_root).unwrap();
    assert_eq!(UndoPlan::read(&path).unwrap(), inverse);
    assert!(inverse.write(&path, &home.state_root).is_err());

    let edited = fs::read_to_string(&path).unwrap().replace("wrong day", "other day");
    fs::write(&path, edited).unwrap();
    let error = std::error::Error::source(&UndoPlan::read(&path).unwrap_err()).unwrap().to_string();
    assert!(error.starts_with("edited after it was sealed"), "{error}");
    assert!(Plan::read(&path).is_err());
}

#[test]
fn refuses_without_a_receipt() {
    let home = Home::new();
    assert!(matches!(refused(invert(&home, &one())), Refusal::NoReceipt { .. }));
    apply(&home, &one());
    let inverse = invert(&home, &one()).unwrap();
    fs::remove_file(home.receipt_path(&one())).unwrap();
    assert!(matches!(refused(undo(&home, &inverse)), Refusal::NoReceipt { .. }));
    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
}

#[test]
fn refuses_when_the_daemon_has_passed_the_old_position() {
    let home = Home::new();
    apply(&home, &two());
    let inverse = invert(&home, &two()).unwrap();
    home.tick(CLAUDE, 1494, 1190);
    assert_eq!(invert(&home, &two()).unwrap().restores, inverse.restores);
    for passed in [1495, 1600] {
        home.tick(CLAUDE, passed, 1196);
        let before = home.text(CODEX);
        assert!(matches!(refused(invert(&home, &two())), Refusal::Passed { old, found, .. }
            if (old, found) == (seq(1495), seq(passed))));
        assert!(matches!(refused(undo(&home, &inverse)), Refusal::Passed { .. }));
        assert_eq!(home.text(CODEX), before, "all or none");
    }
}

#[test]
fn refuses_a_watermark_that_somebody_else_moved() {
    let home = Home::new();
    apply(&home, &one());
    let inverse = invert(&home, &one()).unwrap();
    home.tick(CLAUDE, 700, 665);
    assert!(matches!(refused(undo(&home, &inverse)), Refusal::SeqFell { .. }));
    home.tick(CLAUDE, 722, 600);
    assert!(matches!(refused(undo(&home, &inverse)), Refusal::CountFell { at_least: 665, found: 600, .. }));
}

#[test]
fn refuses_an_inverse_plan_that_is_expired_or_was_changed() {
    let home = Home::new();
    apply(&home, &one());
    let inverse = invert(&home, &one()).unwrap();
    let world = Told::well();
    world.now.set(time("2026-12-02T10:00:00.001Z"));
    assert!(matches!(refused(Consumer::new(&home.state_root, &world).undo(&inverse)), Refusal::Expired { .. }));

    let mut changed = inverse;
    changed.restores[0].to = seq(9999);
    assert!(matches!(refused(undo(&home, &changed)), Refusal::Plan(_)));
}

#[test]
fn refuses_an_inverse_plan_of_another_state_of_the_receipt() {
    let home = Home::new();
    apply(&home, &one());
    let inverse = invert(&home, &one()).unwrap();
    let path = home.receipt_path(&one());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"to\": \"722\"", "\"to\": \"721\"")).unwrap();
    assert!(matches!(refused(undo(&home, &inverse)), Refusal::NotTheInverse { .. }));

    let mut other = one();
    other.reason = "another".into();
    other.seal().unwrap();
    assert!(matches!(refused(invert(&home, &other)), Refusal::AnotherPlan { .. }));
}

#[test]
fn refuses_what_was_applied_in_part() {
    let home = Home::new();
    apply(&home, &one());
    let path = home.receipt_path(&one());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"applied\"", "\"partial\"")).unwrap();
    assert!(matches!(refused(invert(&home, &one())), Refusal::NotApplied { .. }));
    assert_eq!(original(CODEX), home.text(CODEX));
}
