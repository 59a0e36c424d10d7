//! Owners, folders that may not be written to, and file systems that are full, which only another process can
//! try. The tests may run as root, whom no permission stops, so a copy of this program is run as `nobody`. Where
//! the tests do not run as root, nobody else's files can be made, and those that need them end at once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hypseq_plan::{ConsumeError, Consumer};

use crate::home::{CLAUDE, Home, NOW, Told, Tree, one, original, text};

const NOBODY: u32 = 65534;
const STATE_ROOT: &str = "HYPSEQ_TEST_STATE_ROOT";

fn is_root() -> bool {
    let file = tempfile::tempfile().unwrap();
    file.metadata().unwrap().uid() == 0
}

/// Applies as `nobody` and returns what that came to; only root can.
fn apply_as_nobody(state_root: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    came_to(Command::new(program).uid(NOBODY).gid(NOBODY).current_dir("/"), state_root)
}

fn came_to(child: &mut Command, state_root: &Path) -> String {
    child.args(["foreign::the_child_applies", "--exact", "--nocapture", "--ignored"]).env(STATE_ROOT, state_root);
    let stdout = String::from_utf8(child.output().unwrap().stdout).unwrap();
    stdout.split_once("came to: ").unwrap_or_else(|| panic!("{stdout}")).1.lines().next().unwrap().to_owned()
}

#[test]
#[ignore = "is what the other tests run as another user"]
#[allow(clippy::print_stdout)]
fn the_child_applies() {
    let state_root = PathBuf::from(std::env::var_os(STATE_ROOT).unwrap());
    let result = Consumer::new(&state_root, &Told::well()).apply(&one());
    println!(
        "came to: {}",
        match result {
            Ok(_) => "applied".to_owned(),
            Err(ConsumeError::Io { path, doing, source }) => {
                format!("cannot {doing} {}: {source}", path.file_name().unwrap().to_str().unwrap())
            }
            Err(other) => other.to_string(),
        }
    );
}

/// A home that `nobody` owns, below folders that `nobody` can pass.
fn home_of_nobody() -> Home {
    let home = Home::new();
    let root = home.state_root.parent().unwrap();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&home.state_root, Some(NOBODY), Some(NOBODY)).unwrap();
    for name in home.tree().into_keys() {
        chown(home.state_root.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    home
}

#[test]
fn root_keeps_the_owner_of_a_watermark_and_does_not_lock_the_daemon_out() {
    if !is_root() {
        return;
    }
    let home = home_of_nobody();
    Consumer::new(&home.state_root, &Told::well()).apply(&one()).unwrap();
    assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
    for name in home.tree().into_keys() {
        let metadata = fs::metadata(home.state_root.join(&name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY), "{name}");
    }
}

#[test]
fn the_owner_applies() {
    if is_root() {
        let home = home_of_nobody();
        assert_eq!(apply_as_nobody(&home.state_root), "applied");
        assert_eq!(home.text(CLAUDE), text(722, 665, NOW));
    }
}

#[test]
fn a_watermark_of_somebody_else_is_refused() {
    if is_root() {
        let home = home_of_nobody();
        chown(home.watermark(CLAUDE), Some(0), Some(0)).unwrap();
        let before = home.tree();
        let result = apply_as_nobody(&home.state_root);
        assert!(
            result.starts_with("cannot write source=claude.json.rewind-")
                && result.contains("it belongs to user 0 and group 0, and would not any more"),
            "{result}"
        );
        assert_unchanged(&home, &before);
    }
}

#[test]
fn a_folder_that_is_read_only_is_refused() {
    if is_root() {
        for (place, found) in [
            (PathBuf::new(), "cannot open rewind.lock: Permission denied"),
            (PathBuf::from("watermarks/ai_gateway_messages"), "cannot write source=claude.json.rewind-"),
        ] {
            let home = home_of_nobody();
            let folder = home.instance().join(place);
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
            let before = home.tree();
            let result = apply_as_nobody(&home.state_root);
            assert!(result.starts_with(found) && result.contains("Permission denied"), "{result}");
            assert_unchanged(&home, &before);
        }
    }
}

#[test]
fn a_folder_that_is_read_only_though_its_lock_is_not_is_refused() {
    if is_root() {
        let home = home_of_nobody();
        let lock = home.instance().join("rewind.lock");
        fs::write(&lock, "").unwrap();
        chown(&lock, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(home.instance(), fs::Permissions::from_mode(0o555)).unwrap();
        let before = home.tree();
        let result = apply_as_nobody(&home.state_root);
        assert!(result.starts_with("cannot create rewinds: Permission denied"), "{result}");
        assert_eq!(home.tree(), before);
    }
}

#[test]
fn a_file_system_that_takes_no_more_bytes_is_refused() {
    let home = Home::new();
    let before = home.tree();
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let result = came_to(&mut child, &home.state_root);
    assert!(result.starts_with("cannot write ") && result.contains("File too large"), "{result}");
    assert_unchanged(&home, &before);
}

fn assert_unchanged(home: &Home, before: &Tree) {
    let mut after = home.tree();
    after.retain(|name, _| !name.ends_with("/rewind.lock") && !name.ends_with("/rewinds"));
    assert_eq!(after, *before);
    assert_eq!(home.text(CLAUDE), original(CLAUDE));
}
