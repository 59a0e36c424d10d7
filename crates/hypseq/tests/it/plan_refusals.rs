//! Everything for which a plan is refused, with nothing changed.

use std::fs;
use std::path::PathBuf;

use hypseq_plan::{Plan, Seq};
use serde_json::json;

use crate::life::{INSTANCE, Life, OLD, SENT, TARGET, codes};
use crate::support::{CLAUDE, T, run};

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
    life.reseal(plan);
    failed(&life, "target.last_exported_seq: expected a seq below observed.seq, 1280, found 1281");
}

#[test]
fn refuses_an_expired_plan() {
    let life = Life::new();
    let mut plan = Plan::read(&life.plan).expect("a plan");
    plan.created_at = "2026-01-01T00:00:00.000Z".parse().expect("a time");
    plan.expires_at = "2026-01-02T00:00:00.000Z".parse().expect("a time");
    life.reseal(plan);
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
    life.reseal(plan);
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
