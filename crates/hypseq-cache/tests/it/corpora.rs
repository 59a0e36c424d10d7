//! What the real caches hold, against what HypAware's own reader said of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hypseq_cache::{GenerationState, Home, Severity, Withheld};
use serde_json::Value;

use crate::support::{codes, only, open, states, testdata};

const NAMES: [&str; 6] = ["crashed", "legacy", "monotone", "neutral", "sinks", "skew"];

fn expected(name: &str) -> Vec<Value> {
    let file = fs::read(testdata("expected").join(format!("{name}.expected.json"))).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    file["partitions"].as_array().unwrap().clone()
}

#[test]
fn every_partition_and_generation_is_found() {
    for name in NAMES {
        let partitions = open(name).partitions().value;
        let mut expected = expected(name);
        expected.sort_by_key(|partition| (partition["dataset"].to_string(), partition["partition"].to_string()));
        assert_eq!(partitions.len(), expected.len(), "{name}");
        for (partition, expected) in partitions.iter().zip(&expected) {
            assert_eq!(partition.id.dataset, expected["dataset"].as_str().unwrap());
            assert_eq!(partition.id.path, expected["partition"].as_str().unwrap());
            let generations = expected["generations"].as_array().unwrap();
            assert_eq!(partition.generations.len(), generations.len(), "{name} {:?}", partition.id);
            for expected in generations {
                let found = partition
                    .generations
                    .iter()
                    .find(|generation| generation.name == expected["generation"].as_str().unwrap())
                    .unwrap();
                assert_eq!(found.retired_at.is_some(), expected["retired"].as_bool().unwrap());
                assert_eq!(found.has_metadata, expected["has_metadata"].as_bool().unwrap());
            }
        }
    }
}

#[test]
fn the_live_generation_is_the_one_that_hypaware_reads() {
    for name in NAMES {
        let partitions = open(name).partitions().value;
        for expected in expected(name) {
            let partition = partitions
                .iter()
                .find(|partition| {
                    partition.id.dataset == expected["dataset"].as_str().unwrap()
                        && partition.id.path == expected["partition"].as_str().unwrap()
                })
                .unwrap();
            match &partition.cursor {
                Ok(cursor) => {
                    let live = partition.live().unwrap();
                    assert_eq!(live.name, expected["live_generation"].as_str().unwrap());
                    assert_eq!(cursor.row_count, expected["cursor_row_count"].as_u64().unwrap());
                }
                // HypAware's fallback is not to be believed there.
                Err(problem) => {
                    assert_eq!((name, partition.id.path.as_str()), ("crashed", "source=codex"));
                    assert_eq!(problem.code, "cursor-unreadable");
                    assert!(partition.live().is_none());
                }
            }
        }
    }
}

#[test]
fn neutral_has_four_generations_and_a_retention_pass() {
    use GenerationState::{Live, Retired};
    let partitions = open("neutral").partitions();
    assert_eq!(codes(&partitions.problems), Vec::<&str>::new());
    let claude = &partitions.value[0];
    assert_eq!(
        states(claude),
        [
            ("table", Retired),
            ("table-1796095170826", Retired),
            ("table-1796095172778", Retired),
            ("table-1796095174466", Live),
        ]
    );
    assert_eq!(claude.generations[0].retired_at.as_deref(), Some("2026-12-01T03:19:31.153Z"));
    let cursor = claude.cursor.as_ref().unwrap();
    assert_eq!(cursor.layout.as_deref(), Some("source-table"));
    assert_eq!(cursor.table_dir.as_deref(), Some("table-1796095174466"));
    let retention = cursor.retention.as_ref().unwrap();
    assert_eq!(retention.last_cutoff_ms, Some(1_784_678_400_000));
    assert_eq!(retention.last_deleted_at.as_deref(), Some("2026-08-05T00:00:00.000Z"));
    assert_eq!(retention.rows_deleted, Some(105));
}

#[test]
fn legacy_has_epochs_under_nested_segments() {
    use GenerationState::{Live, Retired};
    let partitions = open("legacy").partitions();
    assert_eq!(codes(&partitions.problems), Vec::<&str>::new());
    let nested = &partitions.value[2];
    assert_eq!(nested.id.dataset, "legacy_messages");
    assert_eq!(nested.id.segments(), [("client", "claude"), ("date", "2026-07-20")]);
    assert_eq!(nested.cursor.as_ref().unwrap().epoch, 2);
    assert_eq!(states(nested), [("epoch=0", Retired), ("epoch=1", Retired), ("epoch=2", Live)]);
}

#[test]
fn a_cut_cursor_leaves_the_live_generation_unknown() {
    use GenerationState::{Live, Orphan, Retired, Unknown};
    let partitions = open("crashed").partitions();
    let [claude, codex] = &partitions.value[..] else { panic!("{partitions:#?}") };
    assert_eq!(
        states(claude),
        [
            ("table", Retired),
            ("table-1796095577120", Retired),
            ("table-1796095577882", Live),
            ("table-1796099999999", Orphan),
        ]
    );
    assert_eq!(
        states(codex),
        [
            ("table", Retired),
            ("table-1796095577360", Retired),
            ("table-1796095578086", Unknown),
            ("table-1796099999999", Orphan),
        ]
    );
    assert_eq!(
        codes(&partitions.problems),
        ["generation-without-metadata", "cursor-unreadable", "generation-without-metadata"]
    );
    let cut = codex.cursor.as_ref().unwrap_err();
    assert_eq!(&partitions.problems[1], cut);
    assert_eq!(cut.severity, Severity::Error);
    assert!(cut.path.ends_with("source=codex/cursor.json"));
    assert!(cut.message.contains(r#"found "{\"epoch\": 0, \"rowCount\": 4""#), "{}", cut.message);
}

#[test]
fn watermarks_of_every_corpus() {
    let mut found = BTreeMap::new();
    for name in NAMES {
        for file in open(name).watermarks().value {
            let place = format!("{name} {}/{} {}/{}", file.plugin, file.instance, file.dataset, file.partition);
            found.insert(place, file.state.ok().map(|state| (state.seq, state.exported_row_count)));
        }
    }
    let expected = [
        ("crashed @hypaware/central/central ai_gateway_messages/source=claude", Some((480, 364))),
        ("crashed @hypaware/central/central ai_gateway_messages/source=codex", Some((475, 116))),
        ("legacy @hypaware/central/central ai_gateway_messages/source=claude", Some((240, 286))),
        ("legacy @hypaware/central/central ai_gateway_messages/source=codex", Some((78, 53))),
        ("monotone @hypaware/central/central ai_gateway_messages/source=claude", Some((1280, 661))),
        ("monotone @hypaware/central/central ai_gateway_messages/source=codex", Some((877, 107))),
        ("neutral @hypaware/central/central ai_gateway_messages/source=claude", Some((1495, 665))),
        ("neutral @hypaware/central/central ai_gateway_messages/source=codex", Some((1329, 299))),
        ("sinks @hypaware/central/central ai_gateway_messages/source=claude", Some((580, 275))),
        ("sinks @hypaware/central/central ai_gateway_messages/source=codex", Some((579, 125))),
        ("sinks @hypaware/central/central logs/source=unknown", Some((600, 200))),
        ("sinks @hypaware/local-fs/nas ai_gateway_messages/source=claude", Some((100, 66))),
        ("sinks @hypaware/local-fs/nas ai_gateway_messages/source=codex", None),
        ("sinks @hypaware/s3/archive ai_gateway_messages/source=claude", Some((280, 146))),
        ("sinks @hypaware/s3/archive ai_gateway_messages/source=codex", Some((279, 54))),
        ("skew @hypaware/central/central ai_gateway_messages/source=claude", Some((599, 466))),
        ("skew @hypaware/central/central ai_gateway_messages/source=codex", Some((600, 134))),
    ];
    assert_eq!(found, BTreeMap::from(expected.map(|(place, state)| (place.to_owned(), state))));
}

#[test]
fn the_nonsensical_watermark_of_sinks_is_the_only_problem() {
    let watermarks = open("sinks").watermarks();
    let bad = watermarks.value.iter().find(|file| file.state.is_err()).unwrap();
    assert_eq!((bad.instance.as_str(), bad.partition.as_str()), ("nas", "source=codex"));
    assert_eq!(
        bad.relative_path,
        "plugins/@hypaware/local-fs/sink-instances/nas/watermarks/ai_gateway_messages/source=codex.json"
    );
    assert_eq!(bad.bytes, br#"{"v":1,"continuation":{"v":1,"seq":"-5"},"exportedRowCount":3"#);
    let problem = bad.state.as_ref().unwrap_err();
    assert_eq!(only(&watermarks.problems), problem);
    assert_eq!(problem.code, "watermark-unreadable");
    assert!(problem.message.starts_with("expected a JSON object, found "), "{}", problem.message);
    assert!(problem.message.contains(r#"\"seq\":\"-5\""#), "{}", problem.message);
    assert!(problem.advice.contains("export everything"), "{}", problem.advice);
}

#[test]
fn watermarks_are_for_their_partitions() {
    for name in NAMES {
        let partitions = open(name).partitions().value;
        for file in open(name).watermarks().value {
            let own: Vec<_> = partitions.iter().filter(|partition| file.is_for(&partition.id)).collect();
            let [own] = own[..] else { panic!("{name} {file:?}") };
            assert_eq!(own.id.dataset, file.dataset);
            assert_eq!(own.id.path, file.partition);
        }
    }
}

#[test]
fn only_neutral_has_rows_in_the_spool_and_a_policy() {
    for name in NAMES {
        let home = open(name);
        let spool = home.spool();
        assert_eq!(codes(&spool.problems), Vec::<&str>::new());
        let rows: usize = spool.value.iter().map(|batch| batch.rows.len()).sum();
        assert_eq!(rows, if name == "neutral" { 7 } else { 0 }, "{name}");
        let policy = home.policy();
        assert_eq!(policy.problems, []);
        assert_eq!(policy.local_only_sources.len(), usize::from(name == "neutral"), "{name}");
        assert_eq!(policy.folders, []);
    }
}

#[test]
fn the_spool_of_neutral() {
    let spool = open("neutral").spool().value;
    let [batch] = &spool[..] else { panic!("{spool:#?}") };
    assert_eq!(batch.dataset, "ai_gateway_messages");
    assert_eq!(batch.label, "proxy_messages_v5");
    assert!(batch.path.ends_with("_hypaware_spool/active.jsonl"));
    assert_eq!(batch.columns.len(), 56);
    assert_eq!(batch.columns[1], ("schema_version".to_owned(), "INT32".to_owned()));
    assert!(batch.rows.iter().all(|row| row.source() == "claude"));
    assert_eq!(batch.rows[0].values["message_created_at"], "2026-08-07T01:00:50.983Z");
}

#[test]
fn neutral_withholds_claude_only() {
    let policy = open("neutral").policy();
    assert_eq!(policy.local_only_sources, ["claude"]);
    let cwd = Some("/home/op/src/alpha");
    assert_eq!(policy.withholds(Some("claude"), cwd), Some(Withheld::Source("claude".to_owned())));
    assert_eq!(policy.withholds(Some("codex"), cwd), None);
    assert_eq!(policy.withholds(None, None), None);
}

#[test]
fn allocators_stand_at_the_next_block() {
    let next = NAMES.map(|name| open(name).allocator().unwrap().unwrap().next_seq);
    assert_eq!(next, [1025, 1025, 2049, 2049, 1025, 1025]);
    let neutral = open("neutral").allocator().unwrap().unwrap();
    assert_eq!(neutral.updated_at.as_deref(), Some("2026-12-01T03:19:33.797Z"));
}

#[test]
fn no_daemon_runs_and_no_batch_failed() {
    for name in NAMES {
        assert_eq!(open(name).daemon(), Ok(None));
        let outbox = open(name).outbox();
        assert_eq!((outbox.value, outbox.problems), (Vec::new(), Vec::new()));
    }
}

/// Every path below a home, with size and time of the last change.
fn inventory(dir: &Path, into: &mut BTreeMap<PathBuf, (u64, SystemTime)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        into.insert(entry.path(), (metadata.len(), metadata.modified().unwrap()));
        if metadata.is_dir() {
            inventory(&entry.path(), into);
        }
    }
}

#[test]
fn reading_changes_nothing() {
    for name in NAMES {
        let mut before = BTreeMap::new();
        inventory(&testdata(name), &mut before);
        read_everything(&open(name));
        let mut after = BTreeMap::new();
        inventory(&testdata(name), &mut after);
        assert_eq!(before, after, "{name}");
    }
}

fn read_everything(home: &Home) {
    home.partitions();
    home.watermarks();
    home.spool();
    home.policy();
    home.outbox();
    home.allocator().unwrap();
    home.daemon().unwrap();
}

#[test]
fn a_bare_cache_root_has_partitions_and_no_state() {
    let home = Home::open_cache(&testdata("neutral/hypaware/cache")).unwrap();
    assert_eq!(home.name(), "cache");
    assert_eq!(home.state_root(), None);
    assert_eq!(home.partitions().value.len(), 2);
    assert_eq!(home.spool().value.len(), 1);
    assert_eq!(home.allocator().unwrap().unwrap().next_seq, 2049);
    assert!(home.watermarks().value.is_empty());
    assert!(home.outbox().value.is_empty());
    assert_eq!(home.daemon(), Ok(None));
    assert_eq!(home.policy().withholds(Some("claude"), None), None);
}
