//! Small caches of random shape.

use std::collections::BTreeSet;

use hypseq_testkit::{CacheSpec, DeleteForm, Doomed, Origin, Step, small, small_spec};

use crate::support::assert_true;

#[test]
fn a_small_cache_reads_back_as_its_truth_says() {
    for seed in 0..8 {
        let home = tempfile::tempdir().unwrap();
        let truth = small(seed, home.path()).unwrap();
        assert_true(home.path(), &truth);
    }
}

/// What a description has of the things that make reading difficult.
fn features(spec: &CacheSpec) -> BTreeSet<&'static str> {
    let mut features = BTreeSet::new();
    let mut compactions = [0; 3];
    for step in &spec.steps {
        match step {
            Step::Flow(flow) => {
                features.extend((flow.origin == Origin::Legacy).then_some("legacy rows"));
                features.extend((flow.jitter_ms > 0).then_some("inversions"));
                features.extend((flow.grain_ms > 1).then_some("ties"));
                let is_backfill = flow.origin == Origin::OtherTime && flow.rows.iter().sum::<u64>() > 1;
                features.extend(is_backfill.then_some("backfill"));
                features.extend((flow.from_ms > 1_900_000_000_000).then_some("a clock that is ahead"));
                features.extend((flow.from_ms == 0).then_some("a clock that is behind"));
            }
            Step::Replay => features.extend(["rows flushed twice"]),
            Step::LoseSeqs => features.extend(["lost seqs"]),
            Step::Compact { partition, drops, removes_old } => {
                compactions[*partition] += 1;
                features.extend((*drops > 0).then_some("rows that a compaction drops"));
                features.extend(removes_old.then_some("a generation that is gone"));
            }
            Step::Delete { rows, form, .. } => {
                features.extend(matches!(rows, Doomed::Any(_)).then_some("purge"));
                features.extend(matches!(rows, Doomed::Before(_)).then_some("retention"));
                features.extend((*form == DeleteForm::Positions).then_some("position deletes"));
                features.extend((*form == DeleteForm::Vectors).then_some("deletion vectors"));
            }
            Step::Tick { .. } => features.extend(["watermarks"]),
            Step::KilledCompaction { .. } => {}
        }
    }
    features.extend((compactions.iter().max() > Some(&1)).then_some("three generations"));
    features.extend((spec.partitions.len() > 2).then_some("null times"));
    features.extend((spec.missing_bounds_permille > 0).then_some("missing bounds"));
    features.extend(spec.shuffled.then_some("files in no order"));
    features
}

#[test]
fn forty_small_caches_have_everything() {
    let found: BTreeSet<_> = (0..40).flat_map(|seed| features(&small_spec(seed))).collect();
    let all = [
        "a clock that is ahead",
        "a clock that is behind",
        "a generation that is gone",
        "backfill",
        "deletion vectors",
        "files in no order",
        "inversions",
        "legacy rows",
        "lost seqs",
        "missing bounds",
        "null times",
        "position deletes",
        "purge",
        "retention",
        "rows flushed twice",
        "rows that a compaction drops",
        "three generations",
        "ties",
        "watermarks",
    ];
    assert_eq!(found, all.into());
}
