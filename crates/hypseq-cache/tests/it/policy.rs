//! The policy stores: which rows they withhold, and which stores are refused.

use hypseq_cache::{Policy, Severity, Withheld};
use proptest::prelude::*;

use crate::support::{Scratch, codes, only};

const CLIENT_SYNC: &str = "hypaware/usage-policy/client-sync.json";
const LOCAL_ONLY: &str = "hypaware/usage-policy/local-only.json";

fn folders(entries: &[(&str, &str)]) -> Policy {
    Policy {
        folders: entries.iter().map(|(dir, class)| ((*dir).to_owned(), (*class).to_owned())).collect(),
        ..Policy::default()
    }
}

/// The folder and class by which a row captured in `cwd` is withheld.
fn withheld(entries: &[(&str, &str)], cwd: &str) -> Option<(String, String)> {
    match folders(entries).withholds(Some("claude"), Some(cwd)) {
        Some(Withheld::Folder(dir, class)) => Some((dir, class)),
        None => None,
        other => panic!("{other:?}"),
    }
}

fn is_withheld(entries: &[(&str, &str)], cwd: &str) -> bool {
    withheld(entries, cwd).is_some()
}

#[test]
fn no_store_withholds_nothing() {
    let policy = Scratch::new().home().policy();
    assert_eq!(policy.withholds(Some("claude"), Some("/home/op")), None);
}

#[test]
fn version_one_is_local_only() {
    let scratch = Scratch::new();
    scratch.file(LOCAL_ONLY, r#"{"version":1,"dirs":["/home/op/private"]}"#);
    let policy = scratch.home().policy();
    assert_eq!(policy.problems, []);
    assert_eq!(
        policy.withholds(None, Some("/home/op/private/x")),
        Some(Withheld::Folder("/home/op/private".to_owned(), "local-only".to_owned()))
    );
}

#[test]
fn version_two_has_classes() {
    let scratch = Scratch::new();
    scratch.file(
        LOCAL_ONLY,
        r#"{"version":2,"entries":[{"dir":"/a","class":"ignore"},{"dir":"/a/b","class":"full"},{"dir":"/a/b/c","class":"local-only"}]}"#,
    );
    let policy = scratch.home().policy();
    assert_eq!(policy.problems, []);
    let class = |cwd| match policy.withholds(None, Some(cwd)) {
        Some(Withheld::Folder(_, class)) => class,
        None => "sent".to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ["/a", "/a/x", "/a/b", "/a/b/x", "/a/b/c", "/"].map(class),
        ["ignore", "ignore", "sent", "sent", "local-only", "sent"]
    );
}

#[test]
fn of_two_for_one_folder_the_stricter_wins() {
    let mut entries = [("/a", "local-only"), ("/a", "ignore"), ("/a/.", "full")];
    for _ in 0..entries.len() {
        entries.rotate_left(1);
        assert_eq!(withheld(&entries, "/a/b"), Some(("/a".to_owned(), "ignore".to_owned())));
    }
}

#[test]
fn folders_are_compared_by_component() {
    let entry = [("/home/op/priv", "local-only")];
    assert!(is_withheld(&entry, "/home/op/priv"));
    assert!(is_withheld(&entry, "/home/op/priv/"));
    assert!(is_withheld(&entry, "/home//op/./priv/x/../y"));
    assert!(!is_withheld(&entry, "/home/op/private"));
    assert!(!is_withheld(&entry, "/home/op"));
    assert!(!is_withheld(&entry, "/home/op/priv/../x"));
    assert!(!is_withheld(&entry, "home/op/priv"));
    assert!(is_withheld(&[("/home/op/priv/", "local-only")], "/home/op/priv"));
    assert!(is_withheld(&[("/", "local-only")], "/anywhere"));
    assert!(!is_withheld(&[("", "local-only")], "/anywhere"));
    assert!(is_withheld(&[("/a", "local-only")], "/../../a"));
}

#[test]
fn windows_folders_have_both_separators() {
    let entry = [(r"C:\Users\op\private", "local-only")];
    assert!(is_withheld(&entry, r"C:\Users\op\private\x"));
    assert!(is_withheld(&entry, "C:/Users/op/private/x"));
    assert!(!is_withheld(&entry, r"C:\Users\op\privately"));
    assert!(!is_withheld(&entry, r"D:\Users\op\private"));
    assert!(is_withheld(&[(r"\\server\share\private", "local-only")], r"\\server\share\private\x"));
    // Elsewhere a backslash is part of a name.
    assert!(!is_withheld(&[("/home/op/a", "local-only")], r"/home/op/a\b"));
}

#[test]
fn a_row_without_a_source_or_folder_is_sent() {
    let policy = Policy { local_only_sources: vec!["claude".to_owned()], ..folders(&[("/", "ignore")]) };
    assert_eq!(policy.withholds(None, None), None);
    assert_eq!(policy.withholds(Some("codex"), None), None);
    assert_eq!(policy.withholds(Some("claude"), None), Some(Withheld::Source("claude".to_owned())));
}

/// A store that is refused stops everything.
fn refused(file: &str, content: &str) -> String {
    let scratch = Scratch::new();
    scratch.file(file, content);
    let policy = scratch.home().policy();
    let problem = only(&policy.problems);
    assert_eq!((problem.code, problem.severity), ("policy-unreadable", Severity::Error));
    assert_eq!(problem.path, scratch.path(file));
    assert_eq!(policy.withholds(Some("codex"), Some("/tmp")), Some(Withheld::StoreUnreadable));
    assert_eq!(policy.withholds(None, None), Some(Withheld::StoreUnreadable));
    problem.message.clone()
}

#[test]
fn a_cut_store() {
    assert!(refused(CLIENT_SYNC, r#"{"version":1,"entr"#).contains("which does not parse"));
    assert!(refused(LOCAL_ONLY, "").contains("an empty file"));
}

#[test]
fn a_client_sync_store_of_another_version() {
    assert_eq!(refused(CLIENT_SYNC, r#"{"version":2,"entries":[]}"#), "expected `version` to be 1, found the number 2");
}

#[test]
fn a_client_sync_store_without_entries() {
    assert_eq!(refused(CLIENT_SYNC, r#"{"version":1}"#), "expected `entries` to be an array of objects, found nothing");
    assert_eq!(
        refused(CLIENT_SYNC, r#"{"version":1,"entries":["claude"]}"#),
        "expected `entries` to be an array of objects, found an array"
    );
}

#[test]
fn a_client_sync_entry_of_another_class() {
    assert_eq!(
        refused(
            CLIENT_SYNC,
            r#"{"version":1,"entries":[{"source":"a","class":"local-only"},{"source":"b","class":"full"}]}"#
        ),
        "entries[1]: expected `class` to be \"local-only\", found the string \"full\""
    );
}

#[test]
fn a_client_sync_entry_without_a_source() {
    assert_eq!(
        refused(CLIENT_SYNC, r#"{"version":1,"entries":[{"source":"","class":"local-only"}]}"#),
        "entries[0]: expected `source` to be a source's name, found the string \"\""
    );
}

#[test]
fn a_local_only_store_of_another_version() {
    assert_eq!(
        refused(LOCAL_ONLY, r#"{"version":3,"entries":[]}"#),
        "expected `version` to be 1 or 2, found the number 3"
    );
}

#[test]
fn a_local_only_store_with_bad_folders() {
    assert_eq!(
        refused(LOCAL_ONLY, r#"{"version":1,"dirs":["/a",5]}"#),
        "expected `dirs` to be an array of strings, found an array"
    );
    assert_eq!(
        refused(LOCAL_ONLY, r#"{"version":2,"entries":[{"class":"full"}]}"#),
        "entries[0]: expected `dir` to be a string, found nothing"
    );
}

#[test]
fn a_local_only_entry_of_another_class() {
    assert_eq!(
        refused(LOCAL_ONLY, r#"{"version":2,"entries":[{"dir":"/a","class":"secret"}]}"#),
        "entries[0]: expected `class` to be \"full\", \"local-only\" or \"ignore\", found the string \"secret\""
    );
}

#[test]
fn both_stores_may_be_bad() {
    let scratch = Scratch::new();
    scratch.file(CLIENT_SYNC, "").folder(LOCAL_ONLY);
    assert_eq!(codes(&scratch.home().policy().problems), ["policy-unreadable", "policy-unreadable"]);
}

/// Walks up from `cwd`, level by level; the first level with an entry decides, by its strictest class.
fn by_walking_up(entries: &[(String, String)], cwd: &str) -> bool {
    let mut at = cwd;
    loop {
        let here: Vec<&str> = entries.iter().filter(|(dir, _)| dir == at).map(|(_, class)| class.as_str()).collect();
        if !here.is_empty() {
            return here.iter().any(|class| *class != "full");
        }
        match at.rfind('/') {
            Some(0) if at.len() > 1 => at = "/",
            Some(0) | None => return false,
            Some(cut) => at = &at[..cut],
        }
    }
}

proptest! {
    #[test]
    fn the_nearest_entry_decides(
        entries in prop::collection::vec(("(/[ab]){1,4}|/", "full|local-only|ignore"), 0..6),
        cwd in "(/[ab]){1,4}|/",
    ) {
        let policy = Policy { folders: entries.clone(), ..Policy::default() };
        prop_assert_eq!(policy.withholds(None, Some(&cwd)).is_some(), by_walking_up(&entries, &cwd));
    }
}
