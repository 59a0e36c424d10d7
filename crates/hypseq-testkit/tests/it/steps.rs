//! Steps one by one, where the random caches could hide that one does nothing.

use hypseq_cache::Home;
use hypseq_iceberg::{DataFile, DeleteKind, Table};
use hypseq_testkit::{
    CacheSpec, DeleteForm, Doomed, Error, Flow, Origin, PartitionSpec, Step, Truth, WatermarkTruth, generate,
};
use tempfile::TempDir;

use crate::support::assert_true;

const HOUR_MS: i64 = 3_600_000;

fn flow(rows: &[u64], hours: std::ops::RangeInclusive<i64>) -> Step {
    Step::Flow(Flow::hours(rows, hours))
}

fn compact() -> Step {
    Step::Compact { partition: 0, drops: 0, removes_old: false }
}

fn delete(rows: Doomed, form: DeleteForm) -> Step {
    Step::Delete { partition: 0, rows, form }
}

/// A cache of one partition.
fn one(steps: Vec<Step>) -> CacheSpec {
    CacheSpec { partitions: vec![PartitionSpec::messages("claude")], steps, ..CacheSpec::default() }
}

fn generated(spec: &CacheSpec) -> (TempDir, Truth) {
    let home = tempfile::tempdir().unwrap();
    let truth = generate(spec, home.path()).unwrap();
    assert_true(home.path(), &truth);
    (home, truth)
}

fn live_files(home: &TempDir) -> (Table, Vec<DataFile>) {
    let partitions = Home::open(home.path()).unwrap().partitions().value;
    let table = Table::open(&partitions[0].live().unwrap().dir).unwrap();
    let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap().data;
    (table, files)
}

#[test]
fn seqs_have_no_holes_but_those_of_other_partitions() {
    let (_home, truth) = generated(&CacheSpec::default());
    let mut seqs: Vec<i64> = truth.partitions.iter().flat_map(|p| p.rows.iter().map(|row| row.seq.unwrap())).collect();
    let first: Vec<i64> = truth.partitions[0].rows.iter().map(|row| row.seq.unwrap()).collect();
    assert!(first.is_sorted() && first.windows(2).any(|pair| pair[1] > pair[0] + 1));
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=500).collect::<Vec<_>>());
    assert_eq!(truth.next_seq, 1025);
}

#[test]
fn a_tick_sends_and_a_withheld_one_only_moves_on() {
    let sent = Step::Tick { withheld: vec![] };
    let (_home, truth) = generated(&one(vec![flow(&[30], 0..=3), sent.clone()]));
    assert_eq!(truth.partitions[0].watermark, Some(WatermarkTruth { seq: 30, exported: 30 }));
    let dropped = Step::Tick { withheld: vec![0] };
    let (_home, truth) = generated(&one(vec![flow(&[30], 0..=3), sent, flow(&[12], 3..=4), dropped]));
    assert_eq!(truth.partitions[0].watermark, Some(WatermarkTruth { seq: 42, exported: 30 }));
}

#[test]
fn a_row_that_was_deleted_before_the_tick_is_not_sent() {
    let purge = delete(Doomed::Any(5), DeleteForm::Vectors);
    let (_home, truth) = generated(&one(vec![flow(&[30], 0..=3), purge, Step::Tick { withheld: vec![] }]));
    assert_eq!(truth.partitions[0].watermark.unwrap().exported, 25);
}

#[test]
fn lost_seqs_are_a_hole_up_to_the_next_block() {
    let (_home, truth) = generated(&one(vec![flow(&[10], 0..=1), Step::LoseSeqs, flow(&[10], 1..=2)]));
    let seqs: Vec<i64> = truth.partitions[0].rows.iter().map(|row| row.seq.unwrap()).collect();
    assert_eq!(seqs, (1..=10).chain(1025..=1034).collect::<Vec<_>>());
    assert_eq!(truth.next_seq, 2049);
}

#[test]
fn a_replay_flushes_the_last_flush_again() {
    let (_home, truth) = generated(&one(vec![flow(&[15], 0..=1), Step::Replay]));
    let rows = &truth.partitions[0].rows;
    let ids = |from: usize, to: usize| rows[from..to].iter().map(|row| (row.time_ms, &row.id)).collect::<Vec<_>>();
    assert_eq!(rows.len(), 20);
    assert_eq!(ids(10, 15), ids(15, 20));
    assert_eq!(rows[19].seq, Some(20));
}

#[test]
fn a_legacy_table_is_given_the_seq_in_place() {
    let legacy = Step::Flow(Flow { origin: Origin::Legacy, ..Flow::hours(&[20], 0..=2) });
    let (home, truth) = generated(&one(vec![legacy.clone(), flow(&[20], 2..=4)]));
    let (table, files) = live_files(&home);
    assert_eq!(table.metadata.schemas.iter().map(|schema| schema.fields.len()).collect::<Vec<_>>(), [56, 57]);
    assert_eq!(
        files.iter().filter(|file| !file.bounds.contains_key(&57)).map(|file| file.record_count).sum::<u64>(),
        20
    );
    assert_eq!(truth.partitions[0].rows.iter().filter(|row| row.seq.is_none()).count(), 20);

    let (home, _truth) = generated(&one(vec![legacy, flow(&[20], 2..=4), compact()]));
    let (table, files) = live_files(&home);
    assert_eq!(table.metadata.schemas.len(), 1);
    assert_eq!(files.iter().map(|file| file.bounds[&57].nulls.unwrap()).sum::<u64>(), 20);
}

#[test]
fn a_second_purge_replaces_the_vectors_of_the_first() {
    let purge = delete(Doomed::Any(12), DeleteForm::Vectors);
    let (home, truth) = generated(&one(vec![flow(&[60], 0..=3), compact(), purge.clone(), purge]));
    assert_eq!(
        (truth.partitions[0].generations[1].raw_rows, truth.partitions[0].generations[1].visible_rows),
        (60, 36)
    );
    let (_, files) = live_files(&home);
    assert!(files.iter().all(|file| file.deletes().len() <= 1));
    assert!(files.iter().any(|file| file.deleted_count() > Some(1)));
}

#[test]
fn position_deletes_come_first_and_vectors_include_them() {
    let purge = |form| delete(Doomed::Any(12), form);
    let spec = one(vec![flow(&[60], 0..=3), compact(), purge(DeleteForm::Positions)]);
    let (home, _truth) = generated(&spec);
    let (_, files) = live_files(&home);
    let kinds: Vec<_> = files.iter().flat_map(DataFile::deletes).map(|delete| delete.kind.clone()).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == DeleteKind::Positions));

    let mut both = spec;
    both.steps.extend([purge(DeleteForm::Vectors), purge(DeleteForm::Positions)]);
    let (_home, truth) = generated(&both);
    assert_eq!(truth.partitions[0].generations[1].visible_rows, 24);
}

#[test]
fn retention_deletes_what_is_older() {
    let Step::Flow(first) = flow(&[50], 0..=10) else { unreachable!() };
    let cutoff_ms = first.from_ms + 4 * HOUR_MS;
    let steps = vec![Step::Flow(first), delete(Doomed::Before(cutoff_ms), DeleteForm::Vectors)];
    let (home, truth) = generated(&one(steps));
    let rows = &truth.partitions[0].rows;
    assert!(rows.iter().all(|row| row.is_deleted(0) == (row.time_ms < Some(cutoff_ms))));
    let deleted = rows.iter().filter(|row| row.is_deleted(0)).count() as u64;
    assert!((10..30).contains(&deleted));
    let partitions = Home::open(home.path()).unwrap().partitions().value;
    let retention = partitions[0].cursor.as_ref().unwrap().retention.clone().unwrap();
    assert_eq!((retention.last_cutoff_ms, retention.rows_deleted), (Some(cutoff_ms), Some(deleted)));
}

#[test]
fn what_a_generation_deleted_is_not_copied_on() {
    let steps = vec![flow(&[60], 0..=3), delete(Doomed::Any(9), DeleteForm::Vectors), compact(), flow(&[10], 3..=4)];
    let (_home, truth) = generated(&one(steps));
    let counts: Vec<_> = truth.partitions[0].generations.iter().map(|g| (g.raw_rows, g.visible_rows)).collect();
    assert_eq!(counts, [(60, 51), (61, 61)]);
}

#[test]
fn rows_that_a_compaction_drops_are_visible_until_then() {
    let drops = Step::Compact { partition: 0, drops: 4, removes_old: false };
    let (_home, truth) = generated(&one(vec![flow(&[60], 0..=3), drops]));
    let counts: Vec<_> = truth.partitions[0].generations.iter().map(|g| (g.raw_rows, g.visible_rows)).collect();
    assert_eq!(counts, [(60, 60), (56, 56)]);
}

#[test]
fn a_removed_generation_is_gone() {
    let removes = Step::Compact { partition: 0, drops: 0, removes_old: true };
    let (home, truth) = generated(&one(vec![flow(&[20], 0..=3), removes, flow(&[10], 3..=4), compact()]));
    assert_eq!(truth.partitions[0].generations.len(), 2);
    let partition = home.path().join("hypaware/cache/datasets/ai_gateway_messages/source=claude");
    assert!(!partition.join("table").exists());
}

#[test]
fn a_killed_compaction_leaves_an_orphan() {
    let steps = vec![flow(&[20], 0..=3), Step::KilledCompaction { partition: 0 }, flow(&[5], 3..=4)];
    let home = tempfile::tempdir().unwrap();
    generate(&one(steps), home.path()).unwrap();
    let found = Home::open(home.path()).unwrap().partitions();
    assert_eq!(found.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["generation-without-metadata"]);
    let orphan = &found.value[0].generations[1];
    assert_eq!(orphan.state, hypseq_cache::GenerationState::Orphan);
    assert_eq!(hypseq_iceberg::unreferenced(&orphan.dir).unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(orphan.dir.join("data")).unwrap().count(), 2);
}

#[test]
fn logs_have_null_times_and_no_partition_columns() {
    let partitions = vec![PartitionSpec { null_times_permille: 300, ..PartitionSpec::logs("unknown") }];
    let (home, truth) =
        generated(&CacheSpec { partitions, steps: vec![flow(&[40], 0..=3), compact()], ..CacheSpec::default() });
    let nulls = truth.partitions[0].rows.iter().filter(|row| row.time_ms.is_none()).count() as u64;
    let (_, files) = live_files(&home);
    assert!(nulls > 0);
    assert_eq!(files.iter().map(|file| file.bounds[&2].nulls).collect::<Vec<_>>(), [Some(nulls)]);
}

#[test]
fn the_policy_stores_say_what_was_asked_for() {
    let spec = CacheSpec {
        opted_out: Some(vec!["claude".to_owned()]),
        folders: Some(vec![("/home/op/private".to_owned(), "ignore".to_owned())]),
        spooled: 7,
        ..CacheSpec::default()
    };
    let (home, truth) = generated(&spec);
    assert_eq!(truth.spooled, 7);
    let policy = Home::open(home.path()).unwrap().policy();
    assert_eq!(policy.local_only_sources, ["claude"]);
    assert_eq!(policy.folders, [("/home/op/private".to_owned(), "ignore".to_owned())]);
    let spool = Home::open(home.path()).unwrap().spool().value;
    assert!(spool[0].rows.iter().all(|row| row.source() == "claude"));
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let refused = |spec: &CacheSpec| {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(generate(spec, home.path()), Err(Error::Spec { .. })), "{:?}", spec.steps);
    };
    refused(&one(vec![compact()]));
    refused(&one(vec![flow(&[1, 2], 0..=1)]));
    refused(&one(vec![flow(&[0], 0..=1)]));
    refused(&one(vec![flow(&[1], 0..=1), Step::Compact { partition: 1, drops: 0, removes_old: false }]));
    refused(&one(vec![Step::Flow(Flow { flush_rows: 0, ..Flow::hours(&[1], 0..=1) })]));
}
