//! The incident in proportion has the incident's figures, in its truth and in its files.

use std::collections::BTreeMap;

use hypseq_testkit::{GenerationState, Incident, PartitionTruth, generate, incident};

use crate::support::assert_true;

/// The figures of a generation, by looking at every row.
fn boundary(partition: &PartitionTruth, generation: usize, time_ms: i64) -> (Option<i64>, Option<i64>) {
    let rows = || partition.rows.iter().filter(|row| row.is_visible(generation));
    let seqs = |after: bool| rows().filter(move |row| row.time_ms.is_some_and(|t| (t > time_ms) == after));
    (seqs(false).filter_map(|row| row.seq).max(), seqs(true).filter_map(|row| row.seq).min())
}

fn assert_figures(incident: &Incident, partition: &PartitionTruth) {
    use GenerationState::{Live, Retired};
    let states: Vec<_> = partition.generations.iter().map(|generation| generation.state).collect();
    assert_eq!(states, [Retired, Retired, Retired, Live]);
    for generation in 0..4 {
        // The second that the time names holds one row: as a moment and as a whole it means the same.
        for time_ms in [incident.time_ms, incident.time_ms + 999] {
            let boundary = boundary(partition, generation, time_ms);
            assert_eq!(boundary, (Some(incident.last_seq), Some(incident.next_seq)), "generation {generation}");
        }
    }
    let union: BTreeMap<i64, _> =
        partition.rows.iter().filter(|row| row.visible > 0).map(|r| (r.seq.unwrap(), r)).collect();
    assert_eq!(union.len() as u64, incident.rows);
    assert_eq!(union.range(..=incident.last_seq).count() as u64, incident.exported);
    assert_eq!(partition.generations[3].visible_rows, incident.visible);
    let watermark = partition.watermark.unwrap();
    assert_eq!((Some(watermark.seq), watermark.exported), (union.keys().max().copied(), incident.exported));
}

#[test]
fn a_small_one_has_the_figures_in_proportion() {
    let incident = incident(1_000, 7);
    let home = tempfile::tempdir().unwrap();
    let truth = generate(&incident.spec, home.path()).unwrap();
    assert_eq!((incident.exported, incident.last_seq, incident.visible), (523, 728, 998));
    assert_figures(&incident, &truth.partitions[0]);
    assert_true(home.path(), &truth);
}

#[test]
fn the_one_that_was_reported_has_the_figures_that_were_reported() {
    let Incident { time_ms, last_seq, next_seq, exported, rows, visible, .. } = incident(488_088, 1);
    assert_eq!((last_seq, next_seq), (355_254, 355_257));
    assert_eq!((exported, rows, visible), (255_086, 488_088, 488_016));
    assert_eq!(time_ms, 1_786_495_847_000);
}

#[test]
fn any_size_can_be_described() {
    for rows in [0, 500, 501, 777, 10_000, 50_000_000] {
        let incident = incident(rows, 1);
        assert_eq!(incident.rows, rows.max(500));
        assert!(incident.exported < incident.rows && incident.visible < incident.rows);
    }
}
