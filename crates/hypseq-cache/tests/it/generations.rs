//! Partitions, cursors and the states of generations, in homes made by hand and copies with one thing broken.

use std::fs;

use hypseq_cache::GenerationState::{Live, Orphan, Retired, Unknown};
use hypseq_cache::{GenerationState, Partition, PartitionId, Problem, Severity};

use crate::support::{Scratch, codes, only, states};

const CLAUDE: &str = "hypaware/cache/datasets/ai_gateway_messages/source=claude";

/// `source=claude` of `neutral` under another cursor, and what is said of the home then.
fn with_cursor(cursor: &str) -> (Partition, Vec<Problem>) {
    let scratch = Scratch::copy("neutral");
    scratch.file(&format!("{CLAUDE}/cursor.json"), cursor);
    let mut found = scratch.home().partitions();
    (found.value.swap_remove(0), found.problems)
}

/// The message of the refusal of a cursor.
fn refused(cursor: &str) -> String {
    let (partition, problems) = with_cursor(cursor);
    let problem = partition.cursor.clone().unwrap_err();
    assert_eq!(problem.code, "cursor-unreadable");
    assert_eq!(problem.severity, Severity::Error);
    assert_eq!(only(&problems), &problem);
    assert!(partition.live().is_none());
    assert_eq!(states(&partition).last(), Some(&("table-1796095174466", Unknown)));
    problem.message
}

fn id(dataset: &str, path: &str) -> PartitionId {
    PartitionId { dataset: dataset.to_owned(), path: path.to_owned() }
}

/// A partition as dataset, path, and generations with their states.
type Shape = (String, String, Vec<(String, GenerationState)>);

fn shape(scratch: &Scratch) -> Vec<Shape> {
    let partitions = scratch.home().partitions().value;
    let owned = |(name, state): (&str, GenerationState)| (name.to_owned(), state);
    partitions
        .into_iter()
        .map(|partition| {
            let generations = states(&partition).into_iter().map(owned).collect();
            (partition.id.dataset, partition.id.path, generations)
        })
        .collect()
}

fn row(dataset: &str, path: &str, generations: &[(&str, GenerationState)]) -> Shape {
    let generations = generations.iter().map(|(name, state)| ((*name).to_owned(), *state)).collect();
    (dataset.to_owned(), path.to_owned(), generations)
}

#[test]
fn an_empty_cursor_file() {
    assert_eq!(refused(""), "expected a JSON object, found an empty file");
}

#[test]
fn every_cut_of_a_cursor_is_refused() {
    let whole = r#"{"epoch":0,"rowCount":900,"layout":"source-table","tableDir":"table"}"#;
    assert!(with_cursor(whole).0.cursor.is_ok());
    let scratch = Scratch::new();
    scratch.generation("logs/source=a/table");
    for length in 0..whole.len() {
        scratch.file("hypaware/cache/datasets/logs/source=a/cursor.json", &whole[..length]);
        let partition = scratch.home().partitions().value.remove(0);
        assert!(partition.cursor.is_err(), "{length}");
        assert_eq!(states(&partition), [("table", Unknown)]);
    }
}

#[test]
fn a_cursor_that_is_no_object() {
    assert_eq!(refused("[]"), "expected a JSON object, found an array");
}

#[test]
fn a_cursor_with_a_fractional_epoch() {
    assert_eq!(refused(r#"{"epoch":1.5}"#), "expected `epoch` to be a non-negative integer, found the number 1.5");
}

#[test]
fn a_cursor_with_a_negative_row_count() {
    assert_eq!(
        refused(r#"{"epoch":0,"rowCount":-1}"#),
        "expected `rowCount` to be a non-negative integer, found the number -1"
    );
}

#[test]
fn a_cursor_with_a_layout_of_the_future() {
    assert_eq!(
        refused(r#"{"epoch":0,"rowCount":900,"layout":"shards"}"#),
        r#"expected `layout` to be "source-table" or "epoch", found the string "shards""#
    );
}

#[test]
fn a_table_dir_outside_the_partition() {
    for (dir, shown) in [
        (r#""../source=codex/table""#, r#"the string "../source=codex/table""#),
        (r#""..""#, r#"the string "..""#),
        (r#"".""#, r#"the string ".""#),
        (r#""""#, r#"the string """#),
        (r#""/tmp/table""#, r#"the string "/tmp/table""#),
        (r#""table/""#, r#"the string "table/""#),
        (r#""a\\b""#, r#"the string "a\\b""#),
        (r#""C:table""#, r#"the string "C:table""#),
        ("7", "the number 7"),
        ("null", "null"),
    ] {
        let cursor = format!(r#"{{"epoch":0,"rowCount":900,"layout":"source-table","tableDir":{dir}}}"#);
        let expected = format!("expected `tableDir` to be the name of a folder in the partition, found {shown}");
        assert_eq!(refused(&cursor), expected);
    }
}

#[test]
fn unknown_fields_of_a_cursor_are_of_no_concern() {
    let (partition, problems) = with_cursor(
        r#"{"epoch":0,"rowCount":900,"layout":"source-table","tableDir":"table-1796095174466","pendingFallbacks":3,"later":{}}"#,
    );
    assert_eq!(problems, []);
    assert_eq!(partition.live().unwrap().name, "table-1796095174466");
}

#[test]
fn a_bad_retention_record_spoils_nothing_else() {
    for (retention, message) in [
        ("3", "expected `retention` to be an object, found the number 3"),
        (r#"{"lastCutoffMs":"x"}"#, r#"expected `lastCutoffMs` to be an integer, found the string "x""#),
        (r#"{"lastDeletedAt":1}"#, "expected `lastDeletedAt` to be a string, found the number 1"),
        (r#"{"rowsDeleted":-1}"#, "expected `rowsDeleted` to be a non-negative integer, found the number -1"),
    ] {
        let (partition, problems) = with_cursor(&format!(
            r#"{{"layout":"source-table","tableDir":"table-1796095174466","retention":{retention}}}"#
        ));
        assert_eq!(only(&problems).code, "cursor-retention-unreadable");
        assert_eq!(only(&problems).message, message);
        assert_eq!(partition.cursor.as_ref().unwrap().retention, None);
        assert_eq!(partition.live().unwrap().name, "table-1796095174466");
    }
}

#[test]
fn a_cursor_that_names_a_missing_folder() {
    let (partition, problems) = with_cursor(r#"{"layout":"source-table","tableDir":"table-1"}"#);
    assert!(partition.cursor.is_ok());
    assert!(partition.live().is_none());
    assert_eq!(states(&partition).last(), Some(&("table-1796095174466", Orphan)));
    let problem = only(&problems);
    assert_eq!((problem.code, problem.severity), ("live-missing", Severity::Error));
    assert!(problem.path.ends_with("source=claude/table-1"));
}

#[test]
fn a_source_table_cursor_without_a_folder_means_table() {
    let (partition, problems) = with_cursor(r#"{"epoch":4,"rowCount":900,"layout":"source-table"}"#);
    assert_eq!(partition.live().unwrap().name, "table");
    assert_eq!(codes(&problems), ["live-retired"]);
}

#[test]
fn a_live_generation_that_is_marked_retired() {
    let scratch = Scratch::copy("neutral");
    scratch.file(&format!("{CLAUDE}/table-1796095174466/.retired"), "2026-12-01T03:20:00.000Z");
    let found = scratch.home().partitions();
    let live = found.value[0].live().unwrap();
    assert_eq!(live.name, "table-1796095174466");
    assert_eq!(live.retired_at.as_deref(), Some("2026-12-01T03:20:00.000Z"));
    let problem = only(&found.problems);
    assert_eq!((problem.code, problem.severity), ("live-retired", Severity::Warning));
}

#[test]
fn a_live_generation_without_metadata() {
    let scratch = Scratch::copy("neutral");
    fs::remove_dir_all(scratch.path(&format!("{CLAUDE}/table-1796095174466/metadata"))).unwrap();
    let found = scratch.home().partitions();
    assert_eq!(found.value[0].live().unwrap().name, "table-1796095174466");
    let problem = only(&found.problems);
    assert_eq!((problem.code, problem.severity), ("live-without-metadata", Severity::Error));
}

#[test]
fn a_retired_generation_without_metadata() {
    let scratch = Scratch::copy("neutral");
    let metadata = scratch.path(&format!("{CLAUDE}/table/metadata"));
    fs::remove_dir_all(&metadata).unwrap();
    fs::create_dir(&metadata).unwrap();
    let found = scratch.home().partitions();
    assert_eq!(states(&found.value[0])[0], ("table", Retired));
    assert!(!found.value[0].generations[0].has_metadata);
    let problem = only(&found.problems);
    assert_eq!((problem.code, problem.severity), ("generation-without-metadata", Severity::Warning));
    assert!(problem.advice.contains("copy the folder again"), "{}", problem.advice);
}

#[test]
fn a_missing_cursor() {
    let scratch = Scratch::copy("neutral");
    fs::remove_file(scratch.path(&format!("{CLAUDE}/cursor.json"))).unwrap();
    let found = scratch.home().partitions();
    let claude = &found.value[0];
    assert_eq!(only(&found.problems), claude.cursor.as_ref().unwrap_err());
    assert_eq!(only(&found.problems).code, "cursor-missing");
    assert_eq!(
        states(claude),
        [
            ("table", Retired),
            ("table-1796095170826", Retired),
            ("table-1796095172778", Retired),
            ("table-1796095174466", Unknown),
        ]
    );
}

#[test]
fn the_oldest_form_is_its_own_table() {
    let scratch = Scratch::new();
    scratch.generation("logs/all").generation("logs/all/data/table");
    assert_eq!(shape(&scratch), [row("logs", "all", &[(".", Live)])]);
    assert_eq!(scratch.home().partitions().problems, []);
}

#[test]
fn a_partition_folder_with_a_table_and_epochs() {
    let scratch = Scratch::new();
    scratch.generation("logs/all").generation("logs/all/epoch=1");
    assert_eq!(shape(&scratch), [row("logs", "all", &[(".", Unknown), ("epoch=1", Unknown)])]);

    scratch.file("hypaware/cache/datasets/logs/all/cursor.json", r#"{"epoch":0,"rowCount":0}"#);
    assert_eq!(shape(&scratch), [row("logs", "all", &[(".", Live), ("epoch=1", Orphan)])]);

    scratch.file("hypaware/cache/datasets/logs/all/cursor.json", r#"{"epoch":1,"rowCount":0}"#);
    assert_eq!(shape(&scratch), [row("logs", "all", &[(".", Orphan), ("epoch=1", Live)])]);
}

#[test]
fn epoch_zero_is_live_once_it_has_rows() {
    let scratch = Scratch::new();
    scratch.generation("logs/all/epoch=0");
    scratch.file("hypaware/cache/datasets/logs/all/cursor.json", r#"{"epoch":0,"rowCount":5,"layout":"epoch"}"#);
    assert_eq!(shape(&scratch), [row("logs", "all", &[("epoch=0", Live)])]);

    // A cursor without rows names the partition folder, which is no table here.
    scratch.file("hypaware/cache/datasets/logs/all/cursor.json", r#"{"epoch":0,"rowCount":0}"#);
    assert_eq!(shape(&scratch), [row("logs", "all", &[("epoch=0", Orphan)])]);
    assert_eq!(codes(&scratch.home().partitions().problems), ["live-missing"]);
}

#[test]
fn a_cursor_without_rows_or_generations_is_a_new_partition() {
    let scratch = Scratch::new();
    scratch.file("hypaware/cache/datasets/logs/source=a/cursor.json", r#"{"epoch":0,"rowCount":0}"#);
    assert_eq!(shape(&scratch), [row("logs", "source=a", &[])]);
    assert_eq!(scratch.home().partitions().problems, []);
}

#[test]
fn generations_stand_in_order_of_age() {
    let scratch = Scratch::new();
    for name in [
        "table-1796095174466",
        "table-999",
        "table",
        "epoch=10",
        "epoch=9",
        "table-1796095174466.bak",
        "table-x",
        "gen-7",
    ] {
        scratch.generation(&format!("logs/source=a/{name}"));
    }
    scratch
        .file("hypaware/cache/datasets/logs/source=a/cursor.json", r#"{"layout":"source-table","tableDir":"gen-7"}"#);
    assert_eq!(
        shape(&scratch),
        [row(
            "logs",
            "source=a",
            &[
                ("table", Orphan),
                ("table-999", Orphan),
                ("table-1796095174466", Orphan),
                ("epoch=9", Orphan),
                ("epoch=10", Orphan),
                ("gen-7", Live),
                ("table-1796095174466.bak", Orphan),
                ("table-x", Orphan),
            ]
        )]
    );
}

#[test]
fn a_dataset_without_segments_is_a_partition() {
    let scratch = Scratch::new();
    scratch.generation("context_graph/table");
    scratch.file("hypaware/cache/datasets/context_graph/cursor.json", r#"{"layout":"source-table"}"#);
    assert_eq!(shape(&scratch), [row("context_graph", "", &[("table", Live)])]);
}

#[test]
fn partitions_come_by_dataset_and_path() {
    let scratch = Scratch::new();
    for partition in [
        "logs/source=b",
        "logs/source=a",
        "logs",
        "agents/client=c/date=2026-07-20",
        "agents/client=c",
        "agents/client=c-d",
    ] {
        scratch.generation(&format!("{partition}/table"));
    }
    let found = scratch.home().partitions();
    let ids: Vec<_> = found.value.iter().map(|partition| partition.id.clone()).collect();
    assert_eq!(
        ids,
        [
            id("agents", "client=c"),
            id("agents", "client=c-d"),
            id("agents", "client=c/date=2026-07-20"),
            id("logs", ""),
            id("logs", "source=a"),
            id("logs", "source=b"),
        ]
    );
}

#[test]
fn names_may_have_spaces_and_other_letters() {
    let scratch = Scratch::new();
    scratch.generation("my logs/source=två ✓/table-5");
    scratch.file(
        "hypaware/cache/datasets/my logs/source=två ✓/cursor.json",
        r#"{"layout":"source-table","tableDir":"table-5"}"#,
    );
    assert_eq!(shape(&scratch), [row("my logs", "source=två ✓", &[("table-5", Live)])]);
}

#[test]
fn a_label_with_a_spool_is_no_partition() {
    let scratch = Scratch::new();
    scratch.file("hypaware/cache/datasets/logs/all/_hypaware_spool/active.jsonl", "");
    scratch.generation("logs/all/_hypaware_spool/table");
    assert_eq!(shape(&scratch), []);
}

#[test]
fn other_files_and_folders_are_no_partitions() {
    let scratch = Scratch::new();
    scratch.file("hypaware/cache/datasets/.DS_Store", "").file("hypaware/cache/datasets/logs/readme/cursor.txt", "");
    let found = scratch.home().partitions();
    assert!(found.value.is_empty());
    assert_eq!(found.problems, []);
}

#[test]
fn nothing_inside_a_generation_is_a_partition() {
    let scratch = Scratch::new();
    scratch.generation("logs/source=a/table").generation("logs/source=a/table/data/session=1/table");
    scratch.file("hypaware/cache/datasets/logs/source=a/cursor.json", r#"{"layout":"source-table"}"#);
    assert_eq!(shape(&scratch), [row("logs", "source=a", &[("table", Live)])]);
}

#[test]
fn a_gzipped_metadata_file_counts() {
    let scratch = Scratch::new();
    scratch.file("hypaware/cache/datasets/logs/a/table/metadata/00001-x.metadata.json.gz", "");
    scratch.file("hypaware/cache/datasets/logs/b/table/metadata/version-hint.text", "1");
    let found = scratch.home().partitions().value;
    assert_eq!(found.iter().map(|partition| partition.generations[0].has_metadata).collect::<Vec<_>>(), [true, false]);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::copy("neutral");
    let datasets = scratch.path("hypaware/cache/datasets");
    symlink(&datasets, datasets.join("ai_gateway_messages/loop")).unwrap();
    symlink("nowhere", datasets.join("broken")).unwrap();
    let live = scratch.path(&format!("{CLAUDE}/table-1796095174466"));
    let elsewhere = scratch.path("moved");
    fs::rename(&live, &elsewhere).unwrap();
    symlink(&elsewhere, &live).unwrap();

    let found = scratch.home().partitions();
    assert_eq!(found.value.len(), 2);
    assert!(found.value[0].live().is_none());
    assert_eq!(codes(&found.problems), ["link-not-followed", "link-not-followed", "link-not-followed", "live-missing"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_is_read() {
    let scratch = Scratch::copy("neutral");
    let cursor = scratch.path(&format!("{CLAUDE}/cursor.json"));
    fs::rename(&cursor, scratch.path("moved")).unwrap();
    std::os::unix::fs::symlink(scratch.path("moved"), &cursor).unwrap();
    let found = scratch.home().partitions();
    assert_eq!(found.value[0].live().unwrap().name, "table-1796095174466");
    assert_eq!(found.problems, []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf8_is_reported() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let name = OsStr::from_bytes(b"source=\xff");
    fs::create_dir_all(scratch.path("hypaware/cache/datasets/logs").join(name).join("table")).unwrap();
    let found = scratch.home().partitions();
    assert!(found.value.is_empty());
    assert_eq!(only(&found.problems).code, "name-not-utf8");
}

#[test]
fn a_folder_that_cannot_be_listed_is_reported() {
    let scratch = Scratch::new();
    scratch.file("hypaware/plugins", "");
    let found = scratch.home().watermarks();
    assert!(found.value.is_empty());
    assert_eq!((only(&found.problems).code, only(&found.problems).severity), ("unreadable", Severity::Error));
    assert_eq!(only(&found.problems).path, scratch.path("hypaware/plugins"));
}

#[test]
fn a_mark_of_retirement_that_is_a_folder_still_marks() {
    let scratch = Scratch::new();
    scratch.generation("logs/source=a/table").folder("hypaware/cache/datasets/logs/source=a/table/.retired");
    scratch.generation("logs/source=a/table-5");
    scratch
        .file("hypaware/cache/datasets/logs/source=a/cursor.json", r#"{"layout":"source-table","tableDir":"table-5"}"#);
    let found = scratch.home().partitions();
    assert_eq!(states(&found.value[0]), [("table", Retired), ("table-5", Live)]);
    assert_eq!(only(&found.problems).code, "unreadable");
}

#[test]
fn segments_are_pairs() {
    assert_eq!(id("d", "client=c/date=2026-07-20").segments(), [("client", "c"), ("date", "2026-07-20")]);
    assert_eq!(id("d", "all/source=a=b").segments(), [("source", "a=b")]);
    assert_eq!(id("d", "=x").segments(), []);
    assert_eq!(id("d", "").segments(), []);
}

#[test]
fn watermark_paths_mirror_partitions() {
    for (dataset, path, expected) in [
        ("ai_gateway_messages", "source=claude", "ai_gateway_messages/source=claude.json"),
        ("legacy_messages", "client=claude/date=2026-07-20", "legacy_messages/client=claude/date=2026-07-20.json"),
        ("context_graph", "", "context_graph/_partition.json"),
        ("my logs", "source=a b,c:d", "my_logs/source=a_b,c_d.json"),
        ("logs", "source=två", "logs/source=tv_.json"),
        ("logs", "source=🦀", "logs/source=__.json"),
        ("logs", "a..b/-._=,Z9", "logs/a..b/-._=,Z9.json"),
    ] {
        assert_eq!(id(dataset, path).watermark_path(), expected);
    }
}
