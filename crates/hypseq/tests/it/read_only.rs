//! Nothing below a home changes, whatever is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::support::{CLAUDE, T, copy, run};

/// Every file and folder with its length, time of change and content.
fn picture(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = fs::metadata(&path).expect("metadata");
            let content = if metadata.is_dir() { Vec::new() } else { fs::read(&path).expect("content") };
            let modified = metadata.modified().expect("a time");
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (metadata.len(), modified, content));
        }
    }
    found
}

fn lock(folder: &Path, read_only: bool) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            lock(&path, read_only);
        }
        set_read_only(&path, read_only);
    }
    set_read_only(folder, read_only);
}

fn set_read_only(path: &Path, read_only: bool) {
    let mut permissions = fs::metadata(path).expect("metadata").permissions();
    permissions.set_readonly(read_only);
    fs::set_permissions(path, permissions).expect("permissions");
}

#[test]
fn nothing_below_a_home_changes() {
    for name in ["neutral", "crashed"] {
        let (folder, home) = copy(name);
        lock(&home, true);
        let before = picture(&home);
        let out = folder.path().join("plan.json").to_string_lossy().into_owned();
        let home_arg = home.to_string_lossy().into_owned();
        let plan =
            ["plan", "rewind", "--sink", "central", "--since", T, "--reason", "x", "--accept-withheld", "--out", &out];
        for command in [
            vec!["status"],
            [&["resolve", "--at", T][..], &CLAUDE].concat(),
            [&["verify", "--at", T, "--deep"][..], &CLAUDE].concat(),
            [&plan[..], &CLAUDE].concat(),
            vec![
                "sql",
                "-c",
                "SELECT count(*) FROM raw.ai_gateway_messages; SELECT count(*) FROM complete.ai_gateway_messages",
            ],
            vec!["sql", "-c", "SELECT count(*) FROM cache.data_files; SELECT count(*) FROM spool.ai_gateway_messages"],
            vec!["query", "duplicate-ids"],
        ] {
            let ran = run([&["--home", &home_arg][..], &command].concat());
            assert!(ran.status <= 1, "{name} {command:?}: {}", ran.stderr);
        }
        let after = picture(&home);
        lock(&home, false);
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        assert!(before == after, "{name}: a file changed");
    }
}
