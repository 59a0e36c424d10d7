//! Applying plans: what is written, what is refused, and what becomes of a swap that was clobbered.

use std::fs;

use hypseq_plan::{
    AttemptState, BoundaryRefusal, ConsumeError, Consumer, FormatError, Judgement, Outcome, Plan, Receipt, Refusal,
    Sha256, TickVerdict, WatermarkError, receipts,
};

use crate::home::{
    CLAUDE, CODEX, Home, INSTANCE, NOW, Told, observed, one, original, refusal, refusals, sealed, text, two,
};
use crate::sample::{plan_of, rewind, seq, time};

fn apply(home: &Home, plan: &Plan) -> Receipt {
    let applied = Consumer::new(&home.state_root, &Told::well()).apply(plan).unwrap();
    assert!(!applied.finished_earlier_run);
    applied.receipt
}

#[test]
fn writes_what_the_daemon_would_write() {
    let home = Home::new();
    let receipt = apply(&home, &one());

    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
    assert_eq!(home.text(CODEX), original(CODEX));
    assert_eq!(home.leftovers(), [""; 0]);

    let [attempt] = receipt.attempts.as_slice() else { panic!("{receipt:?}") };
    let [swap] = attempt.swaps.as_slice() else { panic!("{attempt:?}") };
    assert_eq!((attempt.state, swap.outcome), (AttemptState::Applied, Outcome::Set));
    assert_eq!((attempt.begun_at, attempt.ended_at), (time(NOW), Some(time(NOW))));
    assert_eq!((swap.before.seq, swap.before.exported_row_count, swap.to), (seq(1495), 665, seq(722)));
    assert_eq!((swap.replayed, swap.resent), (531, Some(50)));
    assert_eq!((&swap.backup, &swap.written), (&original(CLAUDE), &home.text(CLAUDE)));
    assert_eq!((receipt.id, receipt.plan_checksum), (one().id, one().checksum));
    assert_eq!(home.receipt(&one()), receipt);
}

#[test]
fn sets_every_watermark_of_a_plan() {
    let home = Home::new();
    let receipt = apply(&home, &two());
    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
    assert_eq!(home.text(CODEX), text(500, 299, NOW));
    assert_eq!(receipt.attempts[0].swaps.len(), 2);
    assert_eq!(home.leftovers(), [""; 0]);
}

#[test]
fn keeps_the_count_as_it_is_found_and_not_as_it_was_planned() {
    let home = Home::new();
    home.tick(CLAUDE, 1600, 700);
    let receipt = apply(&home, &one());
    assert_eq!(home.text(CLAUDE), text(722, 700, NOW));
    assert_eq!(receipt.attempts[0].swaps[0].before.seq, seq(1600));
}

#[test]
fn keeps_every_digit() {
    let home = Home::new();
    home.tick(CLAUDE, i64::MAX, 9_007_199_254_740_991);
    let mut plan = plan_of(vec![rewind("ai_gateway_messages", CLAUDE, i64::MAX, 665, i64::MAX - 2)]);
    plan.rewinds[0].target.first_replayed_seq = Some(seq(i64::MAX));
    plan.rewinds[0].guard.next_row.as_mut().unwrap().seq = seq(i64::MAX);
    plan.seal().unwrap();
    apply(&home, &plan);
    assert_eq!(home.text(CLAUDE), text(9_223_372_036_854_775_805, 9_007_199_254_740_991, NOW));
}

#[cfg(unix)]
#[test]
fn keeps_the_modes() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let folder = home.watermark(CLAUDE).parent().unwrap().to_owned();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(home.watermark(CLAUDE), fs::Permissions::from_mode(0o606)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).unwrap();
    apply(&home, &one());
    assert_eq!((mode(home.watermark(CLAUDE)), mode(folder)), (0o606, 0o711));
    assert_eq!(mode(home.receipt_path(&one())), 0o600);
    assert_eq!(mode(home.instance().join("rewinds")), 0o700);
}

#[test]
fn check_changes_nothing_at_all() {
    let home = Home::new();
    let before = home.tree();
    let world = Told::well();
    let check = Consumer::new(&home.state_root, &world).check(&two()).unwrap();
    assert!(check.holds());
    assert_eq!(check.rewinds[1].current.as_ref().unwrap().seq, seq(1329));
    assert_eq!(home.tree(), before);
}

#[test]
fn check_names_everything_that_stands_against_a_plan() {
    let home = Home::new();
    apply(&home, &two());
    home.tick(CLAUDE, 700, 600);
    fs::write(home.watermark(CODEX), "{").unwrap();
    let world = Told::well();
    world.now.set(time("2026-12-02T09:00:00.001Z"));
    *world.boundary.borrow_mut() = Err(BoundaryRefusal::Moved("724 is gone".into()));
    let check = Consumer::new(&home.state_root, &world).check(&two()).unwrap();
    assert!(matches!(check.plan[..], [Refusal::Expired { .. }, Refusal::Used { .. }]), "{check:?}");
    assert!(
        matches!(
            check.rewinds[0].refusals[..],
            [Refusal::SeqFell { .. }, Refusal::CountFell { .. }, Refusal::NotAbove { .. }, Refusal::Boundary { .. }]
        ),
        "{check:?}"
    );
    assert!(
        matches!(check.rewinds[1].refusals[..], [Refusal::Watermark { .. }, Refusal::Boundary { .. }]),
        "{check:?}"
    );
    assert_eq!(check.rewinds[1].current, None);
}

#[test]
fn refuses_a_plan_that_was_used() {
    let home = Home::new();
    apply(&home, &one());
    home.tick(CLAUDE, 1495, 1196);
    let refusal = refusal(&home, &Told::well(), &one());
    assert!(matches!(refusal, Refusal::Used { state: Some(AttemptState::Applied), .. }));
    assert!(
        refusal.to_string().ends_with("the plan was used before (applied); a plan is applied once, make a new one")
    );
}

#[test]
fn refuses_an_expired_plan() {
    let home = Home::new();
    let world = Told::well();
    world.now.set(time("2026-12-02T09:00:00.001Z"));
    assert!(matches!(refusal(&home, &world, &one()), Refusal::Expired { .. }));
    world.now.set(time("2026-12-02T09:00:00.000Z"));
    Consumer::new(&home.state_root, &world).apply(&one()).unwrap();
}

#[test]
fn refuses_a_plan_that_was_changed_in_memory() {
    let home = Home::new();
    let mut plan = one();
    plan.reason = "another".into();
    assert!(matches!(refusal(&home, &Told::well(), &plan), Refusal::Plan(FormatError::Edited { .. })));
    plan.rewinds[0].guard.min_seq = seq(0);
    plan.seal().unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &plan), Refusal::Plan(FormatError::Invalid(_))));
    assert!(!home.instance().join("rewind.lock").exists());
}

#[test]
fn refuses_a_plan_for_another_home() {
    let home = Home::new();
    let world = Told::well();
    let (expected, found) = ("0b6f0e9c".to_owned(), "5d3c4b8e".to_owned());
    *world.boundary.borrow_mut() = Err(BoundaryRefusal::AnotherTable { expected, found });
    assert!(matches!(refusal(&home, &world, &one()), Refusal::Boundary { .. }));

    fs::remove_file(home.watermark(CLAUDE)).unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::NoWatermark { .. }));
    fs::remove_dir_all(home.instance()).unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::NoInstance { .. }));
    assert!(!home.instance().exists());
}

#[test]
fn refuses_a_watermark_that_somebody_else_moved() {
    let home = Home::new();
    home.tick(CLAUDE, 1494, 665);
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::SeqFell { at_least, found, .. }
        if (at_least, found) == (seq(1495), seq(1494))));
    home.tick(CLAUDE, 1495, 664);
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::CountFell { at_least: 665, found: 664, .. }));
}

#[test]
fn refuses_a_target_that_is_not_below_the_watermark() {
    let home = Home::new();
    for at in [722, 700] {
        home.tick(CLAUDE, at, 665);
        let refusals = refusals(&home, &Told::well(), &one());
        assert!(refusals.iter().any(|r| matches!(r, Refusal::NotAbove { target, found, .. }
            if (*target, *found) == (seq(722), seq(at)))));
    }
}

#[test]
fn refuses_a_watermark_that_it_does_not_understand() {
    let home = Home::new();
    let good = text(1495, 665, NOW);
    for (bad, version) in [
        (String::new(), false),
        (good[..80].to_owned(), false),
        (good.replace("\"1495\"", "1495"), false),
        (good.replace("\"1495\"", "\"9223372036854775808\""), false),
        (good.replace("\"updatedAt\"", "\"newField\": 1,\n  \"updatedAt\""), false),
        (good.replacen("\"v\": 1", "\"v\": 2", 1), true),
        (good.replace("    \"v\": 1", "    \"v\": 2"), true),
    ] {
        fs::write(home.watermark(CLAUDE), &bad).unwrap();
        match refusal(&home, &Told::well(), &one()) {
            Refusal::Watermark { source: WatermarkError::Version { .. }, .. } => assert!(version, "{bad}"),
            Refusal::Watermark { source: WatermarkError::Shape(_), .. } => assert!(!version, "{bad}"),
            other => panic!("{bad}: {other}"),
        }
    }
    fs::write(home.watermark(CLAUDE), b"{\"v\": \"\xff\"}").unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Watermark { .. }));
}

#[test]
fn refuses_all_rewinds_when_one_guard_fails() {
    let home = Home::new();
    home.tick(CODEX, 1328, 299);
    assert!(matches!(refusal(&home, &Told::well(), &two()), Refusal::SeqFell { .. }));
    assert_eq!(home.text(CLAUDE), original(CLAUDE));
}

#[cfg(unix)]
#[test]
fn refuses_links_wherever_they_stand() {
    use std::os::unix::fs::symlink;
    let plugin = "plugins/@hypaware";
    for place in [
        "plugins",
        plugin,
        INSTANCE,
        &format!("{INSTANCE}/watermarks"),
        &format!("{INSTANCE}/watermarks/ai_gateway_messages"),
        &format!("{INSTANCE}/watermarks/ai_gateway_messages/{CLAUDE}.json"),
    ] {
        let home = Home::new();
        let place = home.state_root.join(place);
        let elsewhere = home.state_root.parent().unwrap().join("elsewhere");
        fs::rename(&place, &elsewhere).unwrap();
        symlink(&elsewhere, &place).unwrap();
        match refusal(&home, &Told::well(), &one()) {
            Refusal::Link { path } => assert_eq!(path, place),
            other => panic!("{other}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn refuses_links_in_place_of_its_own_files() {
    use std::os::unix::fs::symlink;
    for name in ["rewind.lock", "rewinds"] {
        let home = Home::new();
        let elsewhere = home.state_root.parent().unwrap().join("elsewhere");
        symlink(&elsewhere, home.instance().join(name)).unwrap();
        assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Link { .. }), "{name}");
        assert!(!elsewhere.exists());
    }
}

#[test]
fn accepts_a_state_root_that_is_a_link() {
    let home = Home::new();
    let link = home.state_root.parent().unwrap().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&home.state_root, &link).unwrap();
    #[cfg(not(unix))]
    fs::rename(&home.state_root, &link).unwrap();
    Consumer::new(&link, &Told::well()).apply(&one()).unwrap();
}

#[test]
fn refuses_what_is_no_file_or_folder() {
    let home = Home::new();
    fs::remove_file(home.watermark(CLAUDE)).unwrap();
    fs::create_dir(home.watermark(CLAUDE)).unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Kind { expected: "a regular file", .. }));

    let home = Home::new();
    fs::write(home.instance().join("rewinds"), "").unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Kind { expected: "a folder", .. }));

    let home = Home::new();
    let folder = home.watermark(CLAUDE).parent().unwrap().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Kind { expected: "a folder", .. }));

    let home = Home::new();
    fs::create_dir(home.instance().join("rewind.lock")).unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Kind { expected: "a regular file", .. }));
}

#[test]
fn refuses_while_another_consumer_is_at_work() {
    let home = Home::new();
    let lock = fs::File::create(home.instance().join("rewind.lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(refusal(&home, &Told::well(), &one()), Refusal::Locked { .. }));
    lock.unlock().unwrap();
    apply(&home, &one());
}

#[test]
fn two_consumers_at_the_same_time_apply_once() {
    let home = Home::new();
    let won = std::thread::scope(|scope| {
        let run = || Consumer::new(&home.state_root, &Told::well()).apply(&one());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.filter_map(Result::ok).count()
    });
    assert_eq!(won, 1);
    assert_eq!(home.receipt(&one()).attempts.len(), 1);
    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
}

#[test]
fn refuses_where_a_receipt_cannot_be_relied_on() {
    let home = Home::new();
    apply(&home, &one());
    fs::write(home.receipt_path(&one()), "{}").unwrap();
    let mut other = one();
    other.id = "019af5b1-7c00-7d2e-8a41-000000000000".parse().unwrap();
    other.seal().unwrap();
    let result = Consumer::new(&home.state_root, &Told::well()).apply(&other);
    assert!(matches!(result, Err(ConsumeError::Receipt(_))), "{result:?}");
    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
}

fn judgement(verdict: TickVerdict) -> Judgement {
    let (seq, exported_row_count) = (seq(1502), 672);
    Judgement { at: time(NOW), verdict, seq, exported_row_count, expected: 531, arrived: 7 }
}

#[test]
fn swaps_again_what_a_tick_in_flight_wrote_over() {
    let home = Home::new();
    let world = Told::well();
    let consumer = Consumer::new(&home.state_root, &world);
    let [claude, codex] = [0, 1].map(|at| two().rewinds[at].watermark.clone());
    apply(&home, &two());

    let unjudged = consumer.swap_again(&two()).unwrap_err();
    assert!(matches!(&unjudged, ConsumeError::Refused(r) if matches!(r[..], [Refusal::NotClobbered { .. }])));

    home.tick(CLAUDE, 1502, 672);
    home.tick(CODEX, 1329, 600);
    let judged = [(claude.clone(), judgement(TickVerdict::Clobbered)), (codex, judgement(TickVerdict::Honoured))];
    consumer.record(&two().sink, two().id, &judged).unwrap();
    world.now.set(time("2026-12-01T10:02:00.000Z"));
    let receipt = consumer.swap_again(&two()).unwrap().receipt;

    assert_eq!(home.text(CLAUDE), text(722, 672, "2026-12-01T10:02:00.000Z"));
    assert_eq!(home.text(CODEX), text(1329, 600, "2026-12-01T10:00:59.000Z"));
    assert_eq!(home.receipt(&two()), receipt);
    assert_eq!(receipt.attempts.iter().map(|a| a.swaps.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(receipt.latest_swaps()[0].before.seq, seq(1502));
    assert_eq!(receipt.latest_swaps()[1].judgement, Some(judgement(TickVerdict::Honoured)));

    let again = consumer.swap_again(&two()).unwrap_err();
    assert!(matches!(&again, ConsumeError::Refused(r) if matches!(r[..], [Refusal::NotClobbered { .. }])));
    let honoured = [(claude, judgement(TickVerdict::Honoured))];
    let receipt = consumer.record(&two().sink, two().id, &honoured).unwrap();
    assert_eq!(receipt.attempts[1].swaps[0].judgement, Some(judgement(TickVerdict::Honoured)));
    assert_eq!(receipt.attempts[0].swaps[0].judgement, Some(judgement(TickVerdict::Clobbered)));
}

#[test]
fn swaps_again_only_by_the_plan_that_was_applied() {
    let home = Home::new();
    let world = Told::well();
    let consumer = Consumer::new(&home.state_root, &world);
    let refused = |plan: &Plan| match consumer.swap_again(plan).unwrap_err() {
        ConsumeError::Refused(mut refusals) => refusals.remove(0),
        other => panic!("{other}"),
    };
    assert!(matches!(refused(&one()), Refusal::NoReceipt { .. }));
    apply(&home, &one());
    home.tick(CLAUDE, 1502, 672);
    let judged = [(one().rewinds[0].watermark.clone(), judgement(TickVerdict::Clobbered))];
    consumer.record(&one().sink, one().id, &judged).unwrap();
    let mut other = one();
    other.reason = "another".into();
    other.seal().unwrap();
    assert!(matches!(refused(&other), Refusal::AnotherPlan { .. }));
    world.now.set(time("2026-12-02T09:00:00.001Z"));
    assert!(matches!(refused(&one()), Refusal::Expired { .. }));
    assert_eq!(home.text(CLAUDE), text(1502, 672, "2026-12-01T10:00:59.000Z"));
}

#[test]
fn lists_the_receipts_of_a_home() {
    let home = Home::new();
    assert!(receipts(&home.state_root).unwrap().is_empty());
    apply(&home, &one());
    let unreadable = home.instance().join("rewinds/019af5b1-7c00-7d2e-8a41-ffffffffffff.json");
    fs::write(&unreadable, "{}").unwrap();
    let plain = home.state_root.join("plugins/plain/sink-instances/x/rewinds");
    fs::create_dir_all(&plain).unwrap();
    fs::copy(home.receipt_path(&one()), plain.join("copy.json")).unwrap();

    let found = receipts(&home.state_root).unwrap();
    let paths: Vec<_> = found.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths, [home.receipt_path(&one()), unreadable, plain.join("copy.json")]);
    assert_eq!(found[0].receipt.as_ref().unwrap(), &home.receipt(&one()));
    assert!(found[1].receipt.is_err());
}

#[test]
fn a_receipt_says_everything_that_it_must() {
    let home = Home::new();
    apply(&home, &one());
    let text = fs::read_to_string(home.receipt_path(&one())).unwrap();
    assert!(text.ends_with("}\n"));
    for line in [
        "  \"kind\": \"hypaware.sink.rewind-receipt\",",
        "      \"state\": \"applied\",",
        "          \"partition\": \"source=claude\",",
        "            \"seq\": \"1495\",",
        "          \"to\": \"722\",",
        "          \"outcome\": \"set\",",
        "          \"judgement\": null",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(text.contains(&Sha256::of(&one().canonical().unwrap()).to_string()));
}

#[test]
fn observes_a_watermark() {
    let home = Home::new();
    home.tick(CLAUDE, 1500, 670);
    let world = Told::well();
    let plan = sealed(two().rewinds);
    let seen = Consumer::new(&home.state_root, &world).observe(&plan.sink, &plan.rewinds[0].watermark).unwrap();
    assert_eq!((seen.seq, seen.exported_row_count), (observed(1500, 670).seq, 670));
}
