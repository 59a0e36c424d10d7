//! A plan's life: checked, applied once, listed, taken back; and everything for which it is refused.

use std::fs;
use std::path::PathBuf;

use hypseq_plan::{Plan, Seq};
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
    reseal(&life, plan);
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

/// Applies, which must be refused with these codes, this message, and nothing changed; check agrees.
fn refused(life: &Life, expected: &[&str], message: &str) {
    let before = life.tree_but_lock();
    let ran = life.json("apply", &[]).exits(1);
    assert_eq!(codes(&ran.json()), expected);
    assert_eq!(ran.json()["verdict"], "refused");
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    assert_eq!(life.tree_but_lock(), before);
    if expected != ["locked"] {
        let checked = life.json("check", &[]).exits(1);
        assert_eq!((codes(&checked.json()), &checked.json()["verdict"]), (codes(&ran.json()), &json!("stale")));
    }
    assert_eq!(life.tree_but_lock(), before);
}

/// Applies, which must fail as unreadable or not doable, with nothing changed.
fn failed(life: &Life, message: &str) {
    let before = life.tree_but_lock();
    let ran = life.json("apply", &[]).exits(2);
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let checked = life.json("check", &[]).exits(2);
    assert!(checked.stderr.contains(message), "{}", checked.stderr);
    assert_eq!(life.tree_but_lock(), before);
}

fn reseal(life: &Life, mut plan: Plan) {
    plan.seal().expect("sealed");
    fs::write(&life.plan, serde_json::to_string_pretty(&plan).expect("JSON")).expect("written");
}

fn edit(life: &Life, from: &str, to: &str) {
    let text = fs::read_to_string(&life.plan).expect("a plan");
    assert!(text.contains(from), "{from}");
    fs::write(&life.plan, text.replacen(from, to, 1)).expect("edited");
}

#[test]
fn refuses_a_watermark_that_somebody_else_moved() {
    let life = Life::new();
    life.tick(1279, SENT);
    refused(&life, &["seq-fell"], "expected a seq of at least 1280, found 1279: somebody else rewound or reset it");
    life.tick(OLD, SENT - 1);
    refused(&life, &["count-fell"], "expected an exportedRowCount of at least 661, found 660");
}

#[test]
fn refuses_a_target_that_is_not_below_the_watermark() {
    let life = Life::new();
    life.tick(TARGET, SENT);
    refused(&life, &["seq-fell", "nothing-to-rewind"], "expected a seq above the target 719, found 719");
    let mut plan = Plan::read(&life.plan).expect("a plan");
    let beyond = Seq::new(OLD + 1).expect("a seq");
    plan.rewinds[0].target.last_exported_seq = beyond;
    plan.rewinds[0].guard.above_seq = beyond;
    reseal(&life, plan);
    failed(&life, "target.last_exported_seq: expected a seq below observed.seq, 1280, found 1281");
}

#[test]
fn refuses_an_expired_plan() {
    let life = Life::new();
    let mut plan = Plan::read(&life.plan).expect("a plan");
    plan.created_at = "2026-01-01T00:00:00.000Z".parse().expect("a time");
    plan.expires_at = "2026-01-02T00:00:00.000Z".parse().expect("a time");
    reseal(&life, plan);
    refused(&life, &["expired"], "the plan expired at 2026-01-02T00:00:00.000Z");
}

#[test]
fn refuses_a_plan_for_another_home() {
    let life = Life::new();
    let other = Life::of("neutral", &[&CLAUDE[..], &["--since", T, "--accept-withheld"]].concat());
    let moved = Life { plan: other.plan.clone(), ..life };
    // The watermark of this home lies lower, too.
    let before = moved.tree();
    let ran = moved.json("apply", &[]).exits(1);
    assert!(codes(&ran.json()).contains(&"another-home".to_owned()), "{}", ran.stdout);
    assert!(ran.stderr.contains("is the plan for another home?"), "{}", ran.stderr);
    assert_eq!(moved.tree(), before);

    let life = Life::new();
    fs::remove_file(life.watermark()).expect("removed");
    refused(&life, &["no-watermark"], "no such watermark; is the plan for another home?");
    fs::remove_dir_all(life.home.join(INSTANCE)).expect("removed");
    refused(&life, &["no-sink"], "no such sink instance in this home");
}

#[test]
fn refuses_a_plan_that_was_edited_by_hand() {
    let life = Life::new();
    edit(&life, "\"opt-out of 28 July\"", "\"another reason\"");
    failed(&life, "edited after it was sealed: its checksum is sha256:");
}

#[test]
fn refuses_a_plan_with_a_field_that_it_does_not_know() {
    let life = Life::new();
    edit(&life, "\"reason\":", "\"urgent\": true,\n  \"reason\":");
    failed(&life, "unknown field `urgent`");
}

#[test]
fn refuses_paths_that_lead_elsewhere() {
    let life = Life::new();
    edit(&life, "watermarks/ai_gateway_messages/source=claude.json", "watermarks/../../../source=claude.json");
    failed(&life, "has the component \"..\"; expected names only");
    let life = Life::new();
    edit(&life, "\"plugins/@hypaware", "\"/plugins/@hypaware");
    failed(&life, "is absolute; expected a path relative to the state root");
}

#[test]
fn seqs_keep_every_digit_up_to_the_limit_and_not_beyond() {
    let life = Life::new();
    life.tick(i128::from(i64::MAX) + 1, SENT);
    refused(&life, &["watermark-unreadable"], "expected a seq as a decimal string from 0 to 9223372036854775807");
    life.tick(OLD, 1 << 53);
    refused(&life, &["watermark-unreadable"], "exportedRowCount: expected at most 9007199254740991");
    life.tick(i64::MAX, (1 << 53) - 1);
    let answer = life.json("apply", &[]).exits(0).json();
    assert_eq!(answer["rewinds"][0]["current_seq"], "719");
    let swap = &life.receipt()["attempts"][0]["swaps"][0];
    assert_eq!(swap["before"]["seq"], "9223372036854775807");
    assert_eq!(life.mark(), (TARGET, (1 << 53) - 1));

    let life = Life::new();
    edit(&life, "\"seq\": \"1280\"", "\"seq\": \"9223372036854775808\"");
    failed(&life, "expected a seq as a decimal string from 0 to 9223372036854775807");
    let life = Life::new();
    edit(&life, "\"seq\": \"1280\"", "\"seq\": 9007199254740993");
    failed(&life, "expected a seq as a decimal string");
}

#[test]
fn refuses_a_watermark_that_does_not_parse() {
    let life = Life::new();
    fs::write(life.watermark(), &life.watermark_text()[..40]).expect("cut");
    refused(&life, &["watermark-unreadable"], "not understood");
    assert!(life.text("apply", &[]).exits(1).stdout.starts_with("Refused: nothing was changed\n"));
}

#[test]
fn refuses_while_another_apply_is_under_way() {
    let life = Life::new();
    let lock = fs::File::create(life.home.join(INSTANCE).join("rewind.lock")).expect("a lock");
    lock.lock().expect("locked");
    refused(&life, &["locked"], "another rewind of this sink is under way");
    // A process that another test starts right now may hold a copy of the handle, which closing ours would not unlock.
    lock.unlock().expect("unlocked");
    life.json("apply", &[]).exits(0);
}

#[test]
fn a_cache_that_cannot_be_read_is_no_answer() {
    let life = Life::new();
    let partition = life.home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    fs::write(partition.join("cursor.json"), "{").expect("cut");
    let before = life.tree();
    for verb in ["check", "apply"] {
        let ran = life.json(verb, &[]).exits(2);
        assert_eq!((codes(&ran.json()), &ran.json()["verdict"]), (vec!["unknown".to_owned()], &json!("unknown")));
    }
    assert_eq!(life.tree(), before);
}

#[test]
fn a_boundary_that_moved_is_refused_and_named() {
    let life = Life::new();
    let mut plan = Plan::read(&life.plan).expect("a plan");
    let rewind = &mut plan.rewinds[0];
    let id = Some("msg_of_another_world#0".to_owned());
    for row in [&mut rewind.guard.last_row, &mut rewind.boundary.last_row] {
        row.as_mut().expect("a row").id.clone_from(&id);
    }
    reseal(&life, plan);
    refused(&life, &["boundary-moved"], "the rows around it have changed: seq 719");
}

#[cfg(unix)]
mod files {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::support::command;

    #[test]
    fn refuses_links_in_place_of_the_watermark_or_its_folder() {
        for place in ["watermarks/ai_gateway_messages/source=claude.json", "watermarks/ai_gateway_messages", ""] {
            let life = Life::new();
            let place = life.home.join(INSTANCE).join(place);
            let place = PathBuf::from(place.to_string_lossy().trim_end_matches('/'));
            let elsewhere = life.folder.path().join("elsewhere");
            fs::rename(&place, &elsewhere).expect("moved");
            symlink(&elsewhere, &place).expect("a link");
            refused(&life, &["link"], "is a symbolic link; nothing is written through links");
        }
    }

    #[test]
    fn a_file_system_that_takes_no_more_bytes_changes_nothing() {
        let life = Life::new();
        let before = life.tree_but_lock();
        let limited = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_hypseq")])
            .args(["--home", &life.home(), "plan", "apply", &life.plan()])
            .output()
            .expect("a process");
        let stderr = String::from_utf8_lossy(&limited.stderr).into_owned();
        assert_eq!(limited.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("cannot write") && stderr.contains("File too large"), "{stderr}");
        assert!(stderr.contains("nothing was changed"), "{stderr}");
        assert_eq!(life.tree_but_lock(), before);
    }

    const NOBODY: u32 = 65534;

    fn is_root() -> bool {
        use std::os::unix::fs::MetadataExt;
        tempfile::tempfile().expect("a file").metadata().expect("metadata").uid() == 0
    }

    /// Gives the whole home to `nobody`, and makes the way to it passable.
    fn give_away(life: &Life) {
        fs::set_permissions(life.folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::set_permissions(&life.plan, fs::Permissions::from_mode(0o644)).expect("a mode");
        chown(&life.home, Some(NOBODY), Some(NOBODY)).expect("an owner");
        for path in life.tree().into_keys() {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
    }

    /// Applies as `nobody`; exit status and stderr.
    fn apply_as_nobody(life: &Life) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let program = folder.path().join("hypseq");
        if fs::hard_link(env!("CARGO_BIN_EXE_hypseq"), &program).is_err() {
            fs::copy(env!("CARGO_BIN_EXE_hypseq"), &program).expect("a copy");
        }
        let mut command = Command::new(program);
        command.args(["--home", &life.home(), "plan", "apply", &life.plan()]).current_dir("/");
        let ran = command.uid(NOBODY).gid(NOBODY).output().expect("a process");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    }

    #[test]
    fn what_may_not_be_written_changes_nothing() {
        if !is_root() {
            return;
        }
        let life = Life::new();
        give_away(&life);
        chown(life.watermark(), Some(0), Some(0)).expect("an owner");
        let before = life.tree_but_lock();
        let (status, stderr) = apply_as_nobody(&life);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains("it belongs to user 0 and group 0, and would not any more"), "{stderr}");
        assert_eq!(life.tree_but_lock(), before);

        chown(life.watermark(), Some(NOBODY), Some(NOBODY)).expect("an owner");
        let folder = life.watermark().parent().expect("a folder").to_owned();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("a mode");
        let before = life.tree_but_lock();
        let (status, stderr) = apply_as_nobody(&life);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains("Permission denied") && stderr.contains("nothing was changed"), "{stderr}");
        assert_eq!(life.tree_but_lock(), before);

        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        assert_eq!(apply_as_nobody(&life).0, Some(0));
        assert_eq!(life.mark(), (TARGET, SENT));
    }

    #[test]
    fn root_leaves_the_owner_as_it_was() {
        use std::os::unix::fs::MetadataExt;
        if !is_root() {
            return;
        }
        let life = Life::new();
        give_away(&life);
        life.json("apply", &[]).exits(0);
        for path in life.tree().into_keys() {
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY), "{}", path.display());
        }
    }

    #[test]
    fn nothing_is_written_by_what_only_reads() {
        let life = Life::new();
        life.json("apply", &[]).exits(0);
        let before = life.tree();
        for verb in ["check", "show", "undo"] {
            let ran = command().args(["--home", &life.home(), "plan", verb, &life.plan()]).output().expect("a process");
            assert!(ran.status.code().is_some_and(|code| code < 2));
        }
        run(["--home", &life.home(), "plan", "list"]).exits(0);
        assert_eq!(life.tree(), before);
    }
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
