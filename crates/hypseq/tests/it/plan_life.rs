//! A plan's life: checked, applied once, listed, taken back.

use std::fs;
use std::path::PathBuf;

use hypseq_plan::Plan;
use serde_json::{Value, json};

use crate::life::{GAP, INSTANCE, Life, OLD, SENT, TARGET, codes, text};
use crate::support::{CLAUDE, T, copy, copy_tree, items, json_of, run};

/// The fields of a rewind's drift, as (place, matters).
fn drift(answer: &Value) -> Vec<(String, bool)> {
    let fields = items(&answer["rewinds"][0]["drift"]).iter();
    fields.map(|f| (f["place"].as_str().unwrap_or_default().to_owned(), f["matters"] == true)).collect()
}

#[test]
fn a_fresh_plan_is_applicable_and_nothing_differs() {
    let life = Life::new();
    let before = life.tree();
    let answer = life.json("check", &[]).exits(0).json();
    assert_eq!(answer["verdict"], "applicable");
    let rewind = &answer["rewinds"][0];
    assert_eq!(
        [&rewind["dataset"], &rewind["partition"], &rewind["verdict"], &rewind["observed_seq"], &rewind["current_seq"]],
        ["ai_gateway_messages", "source=claude", "applicable", "1280", "1280"]
    );
    assert_eq!(rewind["target_seq"], "719");
    assert_eq!(drift(&answer), []);
    let shown = life.text("check", &[]).exits(0).stdout;
    assert!(shown.starts_with("The plan can be applied\n"), "{shown}");
    assert!(shown.contains("nothing differs from the plan") && shown.contains("plan apply"), "{shown}");
    assert_eq!(life.tree(), before);
}

#[test]
fn ordinary_progress_makes_no_plan_stale() {
    let life = Life::new();
    life.tick(1299, 663);
    let answer = life.json("check", &[]).exits(0).json();
    assert_eq!(answer["verdict"], "applicable");
    assert_eq!(answer["rewinds"][0]["current_seq"], "1299");
    let drift = drift(&answer);
    assert!(drift.contains(&("observed.seq".to_owned(), false)), "{drift:?}");
    assert!(drift.iter().all(|(_, matters)| !matters), "{drift:?}");
    let shown = life.text("check", &[]).exits(0).stdout;
    assert!(shown.contains("ordinary progress") && shown.contains("observed.seq: was 1280, is 1299"), "{shown}");
}

#[test]
fn an_opt_out_since_the_plan_is_drift_that_matters() {
    let life = Life::new();
    life.opt_out();
    let answer = life.json("check", &[]).exits(1).json();
    assert_eq!(answer["verdict"], "drifted");
    assert!(drift(&answer).contains(&("counts.withheld".to_owned(), true)), "{answer:#}");
    let shown = life.text("check", &[]).exits(1).stdout;
    assert!(shown.contains("counts.withheld: was 0, is 512") && shown.contains("the guards hold"), "{shown}");
    // The guards decide, and a person is told.
    let applied = life.json("apply", &[]).exits(0);
    assert!(applied.stderr.contains("withholds 512 rows of the gap (source claude is opted out"), "{}", applied.stderr);
}

#[test]
fn a_purge_of_rows_of_the_gap_is_drift_that_matters() {
    // The plan as it would have been made when three more rows were there.
    let life = Life::new();
    let mut plan = Plan::read(&life.plan).expect("a plan");
    plan.rewinds[0].counts.replayed += 3;
    life.reseal(plan);
    let answer = life.json("check", &[]).exits(1).json();
    assert_eq!(drift(&answer), [("counts.replayed".to_owned(), true)]);
}

#[test]
fn applies_once_and_says_that_nothing_was_watched() {
    let life = Life::new();
    let folder = life.watermark().parent().expect("a folder").to_owned();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(life.watermark(), fs::Permissions::from_mode(0o640)).expect("a mode");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("a mode");
    }
    let modes = |life: &Life| {
        [life.watermark(), folder.clone()].map(|path| crate::life::mode(&fs::metadata(path).expect("metadata")))
    };
    let before = modes(&life);
    let answer = life.json("apply", &[]).exits(0).json();
    assert_eq!(
        (&answer["verdict"], &answer["watched"], &answer["attempts"]),
        (&json!("applied"), &json!(false), &json!(1))
    );
    let rewind = &answer["rewinds"][0];
    assert_eq!((&rewind["verdict"], &rewind["current_seq"]), (&json!("applied"), &json!("719")));
    let receipt = life.receipt();
    let swap = &receipt["attempts"][0]["swaps"][0];
    // Byte for byte what the daemon would write, at the time that the receipt says.
    let at = receipt["attempts"][0]["begun_at"].as_str().expect("a time");
    assert_eq!(life.watermark_text(), text(TARGET, SENT, at));
    assert_eq!(swap["written"], json!(life.watermark_text()));
    assert_eq!((swap["judgement"].clone(), modes(&life)), (Value::Null, before));
    assert_eq!(life.leftovers(), [""; 0].map(PathBuf::from));

    let before = life.tree();
    let again = life.json("apply", &[]).exits(1);
    assert_eq!(codes(&again.json()), ["used"]);
    assert!(again.stderr.contains("the plan was used before (applied)"), "{}", again.stderr);
    assert_eq!(life.json("check", &[]).exits(1).json()["verdict"], "stale");
    assert_eq!(life.tree(), before);

    let other = Life::new();
    let shown = other.text("apply", &[]).exits(0).stdout;
    assert!(shown.starts_with("Applied. Nothing was watched") && shown.contains("plan list"), "{shown}");
}

#[test]
fn all_watermarks_of_a_plan_or_none() {
    let both = ["--dataset", "ai_gateway_messages", "--partition", "source=claude", "--partition", "source=codex"];
    let life = Life::of("monotone", &[&both[..], &["--to-seq", "600"]].concat());
    let codex = life.watermark().with_file_name("source=codex.json");
    let before = fs::read_to_string(&codex).expect("a watermark");
    fs::write(&codex, text(870, 107, "x")).expect("written");
    let tree = life.tree();
    let ran = life.json("apply", &[]).exits(1);
    let verdicts: Vec<Value> = items(&ran.json()["rewinds"]).iter().map(|r| r["verdict"].clone()).collect();
    assert_eq!(verdicts, ["not-applied", "stale"]);
    assert_eq!(life.tree(), tree);
    fs::write(&codex, before).expect("written");
    let answer = life.json("apply", &[]).exits(0).json();
    assert_eq!(items(&answer["rewinds"]).len(), 2);
    assert!(fs::read_to_string(&codex).expect("a watermark").contains("\"600\""));
}

#[test]
fn a_later_compaction_is_the_same_home() {
    let life = Life::new();
    let partition = life.home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    let cursor = fs::read_to_string(partition.join("cursor.json")).expect("a cursor");
    let old = serde_json::from_str::<Value>(&cursor).expect("JSON")["tableDir"].as_str().expect("a name").to_owned();
    copy_tree(&partition.join(&old), &partition.join("table-1796099999999"));
    let newest = crate::support::files(&partition.join("table-1796099999999"), ".metadata.json");
    for file in newest {
        let text = fs::read_to_string(&file).expect("metadata");
        let uuid =
            serde_json::from_str::<Value>(&text).expect("JSON")["table-uuid"].as_str().expect("a uuid").to_owned();
        fs::write(&file, text.replace(&uuid, "0b6f0e9c-5d3c-4b8e-9a53-6d7f6f0d2f11")).expect("written");
    }
    fs::write(partition.join(&old).join(".retired"), "2026-12-01T10:00:00.000Z").expect("written");
    fs::write(partition.join("cursor.json"), cursor.replace(&old, "table-1796099999999")).expect("written");
    let answer = life.json("check", &[]).exits(0).json();
    assert_eq!(answer["verdict"], "applicable", "{answer:#}");
    let drift = drift(&answer);
    assert!(drift.contains(&("guard.table_uuid".to_owned(), false)), "{drift:?}");
    // A day later the old generation is gone, and the rows alone say that it is the same.
    fs::remove_dir_all(partition.join(&old)).expect("removed");
    life.json("apply", &[]).exits(0);
}

#[test]
fn takes_a_rewind_back_until_the_daemon_has_passed() {
    let life = Life::new();
    let ran = life.json("undo", &[]).exits(1);
    assert_eq!(codes(&ran.json()), ["no-receipt"]);
    life.json("apply", &[]).exits(0);
    let before = life.tree();
    let dry = life.json("undo", &[]).exits(0).json();
    assert_eq!(
        (&dry["verdict"], &dry["written"], &dry["rewinds"][0]["target_seq"]),
        (&json!("applicable"), &Value::Null, &json!("1280"))
    );
    assert_eq!(life.tree(), before);

    let out = life.folder.path().join("undo.json").to_string_lossy().into_owned();
    let written = life.json("undo", &["--out", &out]).exits(0).json();
    assert_eq!((&written["written"], &written["plan"]["undoes"]), (&json!(out), &written["undoes"]));
    let wrong_verb = json_of(&life.home(), &["plan", "apply", &out]).exits(2);
    assert!(wrong_verb.stderr.contains("plan undo") && wrong_verb.stderr.contains("--apply"), "{}", wrong_verb.stderr);

    let undone = json_of(&life.home(), &["plan", "undo", &out, "--apply"]).exits(0).json();
    assert_eq!((&undone["verdict"], &undone["rewinds"][0]["current_seq"]), (&json!("applied"), &json!("1280")));
    assert_eq!(life.mark(), (OLD, SENT));
    let again = json_of(&life.home(), &["plan", "undo", &out, "--apply"]).exits(1);
    assert_eq!(codes(&again.json()), ["used"]);
    assert_eq!(life.leftovers(), [""; 0].map(PathBuf::from));

    let life = Life::new();
    life.json("apply", &[]).exits(0);
    life.tick(OLD, SENT + GAP);
    let before = life.tree();
    for more in [&[][..], &["--apply"]] {
        let passed = life.json("undo", more).exits(1);
        assert_eq!(codes(&passed.json()), ["passed"]);
        assert!(passed.stderr.contains("the daemon has passed it, nothing to undo"), "{}", passed.stderr);
    }
    assert_eq!(life.tree_but_lock(), {
        let mut before = before;
        before.retain(|p, _| !p.ends_with("rewind.lock") && !p.ends_with("rewinds"));
        before
    });
}

#[test]
fn undoes_at_once() {
    let life = Life::new();
    life.json("apply", &[]).exits(0);
    let shown = life.text("undo", &["--apply"]).exits(0).stdout;
    assert!(shown.starts_with("Undone: the watermarks are where they were before the rewind"), "{shown}");
    assert_eq!(life.mark(), (OLD, SENT));
}

#[test]
fn lists_what_became_of_each_rewind() {
    let life = Life::new();
    let list = || json_of(&life.home(), &["plan", "list"]).exits(0).json();
    assert_eq!(list(), json!([]));
    life.json("apply", &[]).exits(0);
    let pending = &list()[0];
    assert_eq!(
        (&pending["verdict"], &pending["target_seq"], &pending["state"]),
        (&json!("pending"), &json!("719"), &json!("applied"))
    );
    life.tick(OLD, SENT + GAP);
    assert_eq!(list()[0]["verdict"], "honoured", "{:#}", list());
    life.tick(1299, SENT + 2);
    assert_eq!(list()[0]["verdict"], "clobbered", "{:#}", list());

    let second = life.folder.path().join("second.json");
    life.tick(1299, SENT + GAP + 2);
    life.write_plan(&second, &[&CLAUDE[..], &["--since", T]].concat());
    json_of(&life.home(), &["plan", "apply", &second.to_string_lossy()]).exits(0);
    let verdicts: Vec<Value> = items(&list()).iter().map(|e| e["verdict"].clone()).collect();
    assert_eq!(verdicts, ["superseded", "pending"]);
    json_of(&life.home(), &["plan", "undo", &second.to_string_lossy(), "--apply"]).exits(0);
    let verdicts: Vec<Value> = items(&list()).iter().map(|e| e["verdict"].clone()).collect();
    assert_eq!(verdicts, ["superseded", "taken-back", "undone"]);

    let shown = run(["--home", &life.home(), "plan", "list"]).exits(0).stdout;
    assert!(shown.starts_with("3 rewinds\n") && shown.contains("1299 → 719"), "{shown}");
    let broken = life.home.join(INSTANCE).join("rewinds/019af5b1-7c00-7d2e-8a41-ffffffffffff.json");
    fs::write(&broken, "{}").expect("written");
    let ran = json_of(&life.home(), &["plan", "list"]).exits(2);
    assert!(ran.stderr.contains("019af5b1-7c00-7d2e-8a41-ffffffffffff.json: unusable"), "{}", ran.stderr);
    assert_eq!(items(&ran.json()).len(), 3);
}

#[test]
fn a_bare_cache_has_nothing_to_apply_to() {
    let life = Life::new();
    let (_folder, other) = copy("monotone");
    let cache = other.join("hypaware/cache").to_string_lossy().into_owned();
    for verb in ["check", "apply", "undo"] {
        let ran = run(["--cache", &cache, "plan", verb, &life.plan()]).exits(2);
        assert!(ran.stderr.contains("a bare cache root has no watermarks"), "{}", ran.stderr);
    }
}
