//! `resolve` against its definitions, by brute force.

use hypseq_boundary::{CauseKind, Cost, CurvePoint, Row, RowSet, resolve};
use proptest::prelude::*;

fn rows(pairs: &[(i64, Option<i64>)]) -> RowSet {
    RowSet::new(pairs.iter().map(|&(seq, time)| Row { seq, time, id: Some(format!("p{seq}").into()) }).collect())
}

fn timed(pairs: &[(i64, i64)]) -> RowSet {
    rows(&pairs.iter().map(|&(seq, time)| (seq, Some(time))).collect::<Vec<_>>())
}

fn answers(set: &RowSet, at: i64) -> (Option<i64>, Option<i64>, Option<i64>) {
    let Ok(boundary) = resolve(set, set, at);
    (boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after)
}

#[test]
fn in_order_there_is_one_answer() {
    let set = timed(&[(1, 10), (2, 20), (5, 30), (6, 40)]);
    let Ok(boundary) = resolve(&set, &set, 30);
    assert_eq!((boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after), (Some(5), Some(5), Some(6)));
    assert!(!boundary.inversion());
    assert_eq!(boundary.curve, [CurvePoint { seq: 5, lost: 0, resent: 0 }]);
    assert_eq!(boundary.cause, None);
    assert_eq!(boundary.last_row.map(|r| r.seq), Some(5));
    assert_eq!(boundary.next_row.map(|r| r.seq), Some(6));
}

#[test]
fn a_backfill_after_the_gap_moves_tight_past_it() {
    let set = timed(&[(1, 10), (2, 20), (3, 40), (4, 50), (5, 5), (6, 60)]);
    let Ok(boundary) = resolve(&set, &set, 30);
    assert_eq!((boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after), (Some(5), Some(2), Some(3)));
    assert!(boundary.inversion());
    assert_eq!(boundary.cost_at_tight, Cost { lost: 2, ..Cost::default() });
    assert_eq!(boundary.cost_at_safe, Cost { resent: 1, ..Cost::default() });
    assert_eq!(
        boundary.curve,
        [
            CurvePoint { seq: 2, lost: 0, resent: 1 },
            CurvePoint { seq: 4, lost: 2, resent: 1 },
            CurvePoint { seq: 5, lost: 2, resent: 0 },
        ]
    );
    let cause = boundary.cause.expect("the answers differ");
    assert_eq!(cause.kind, CauseKind::FlushedLate);
    assert_eq!(cause.seq_range(), Some((5, 5)));
    assert_eq!(cause.time_range(), Some((5, 5)));
}

#[test]
fn one_clock_in_the_future_moves_safe_to_the_beginning() {
    let set = timed(&[(1, 10), (2, 9_999), (3, 20), (4, 25), (5, 40)]);
    let Ok(boundary) = resolve(&set, &set, 30);
    assert_eq!((boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after), (Some(4), Some(1), Some(2)));
    let cause = boundary.cause.expect("the answers differ");
    assert_eq!((cause.kind, cause.rows.len(), cause.other_rows), (CauseKind::TimeAhead, 1, 2));
}

#[test]
fn rows_left_out_of_the_resolution_are_still_counted() {
    let all = timed(&[(1, 10), (2, 9_999), (3, 20), (4, 25), (5, 40)]);
    let considered = all.filtered(|r| r.time < Some(1_000));
    let Ok(boundary) = resolve(&all, &considered, 30);
    assert_eq!((boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after), (Some(4), Some(4), Some(5)));
    assert_eq!(boundary.cost_at_safe, Cost { lost: 1, ..Cost::default() });
    assert_eq!((boundary.sides.rows_at_or_before, boundary.sides.rows_after), (3, 2));
}

#[test]
fn ties_with_the_time_count_as_before_all_together() {
    let set = timed(&[(1, 30), (2, 30), (3, 30), (4, 31)]);
    assert_eq!(answers(&set, 30), (Some(3), Some(3), Some(4)));
    assert_eq!(answers(&set, 29), (None, None, Some(1)));
}

#[test]
fn nothing_after_the_time_leaves_the_last_row() {
    assert_eq!(answers(&timed(&[(1, 10), (7, 20)]), 30), (Some(7), Some(7), None));
}

#[test]
fn before_the_first_row_there_is_no_watermark() {
    let set = timed(&[(4, 10), (7, 20)]);
    let Ok(boundary) = resolve(&set, &set, 5);
    assert_eq!((boundary.tight_seq, boundary.safe_seq), (None, None));
    assert_eq!(boundary.last_row, None);
    assert_eq!(boundary.next_row.map(|r| r.seq), Some(4));
    assert!(boundary.curve.is_empty());
}

#[test]
fn rows_without_a_time_are_on_neither_side_and_counted_apart() {
    let set = rows(&[(1, Some(10)), (2, None), (3, Some(40)), (4, None)]);
    let Ok(boundary) = resolve(&set, &set, 30);
    assert_eq!((boundary.tight_seq, boundary.safe_seq, boundary.first_seq_after), (Some(1), Some(1), Some(3)));
    assert_eq!(boundary.sides.null_time_rows, 2);
    assert_eq!(boundary.cost_at_safe, Cost { null_time_resent: 2, ..Cost::default() });
}

#[test]
fn no_rows_have_no_answer() {
    assert_eq!(answers(&RowSet::default(), 30), (None, None, None));
}

/// `lost(W)` and `resent(W)` as seq-resolution.md defines them.
fn brute(rows: &RowSet, at: i64, watermark: i64) -> (u64, u64) {
    let count = |test: &dyn Fn(&Row) -> bool| rows.rows().iter().filter(|r| test(r)).count() as u64;
    (
        count(&|r| r.seq <= watermark && r.time.is_some_and(|t| t > at)),
        count(&|r| r.seq > watermark && r.time.is_some_and(|t| t <= at)),
    )
}

proptest! {
    #[test]
    fn holds_its_definitions(
        pairs in prop::collection::btree_map(1i64..60, prop::option::weighted(0.9, 0i64..12), 0..40),
        at in -1i64..13,
    ) {
        let set = rows(&pairs.into_iter().collect::<Vec<_>>());
        let Ok(boundary) = resolve(&set, &set, at);
        let timed: Vec<(i64, i64)> = set.rows().iter().filter_map(|r| r.time.map(|t| (r.seq, t))).collect();
        let tight = timed.iter().filter(|(_, t)| *t <= at).map(|(s, _)| *s).max();
        let first = timed.iter().filter(|(_, t)| *t > at).map(|(s, _)| *s).min();
        let safe = timed.iter().map(|(s, _)| *s).filter(|s| first.is_none_or(|f| *s < f)).max();
        prop_assert_eq!((boundary.tight_seq, boundary.first_seq_after, boundary.safe_seq), (tight, first, safe));

        let lossless = timed.iter().map(|(s, _)| *s).filter(|s| brute(&set, at, *s).0 == 0).max();
        prop_assert_eq!(boundary.safe_seq, lossless);
        let no_repeat = timed.iter().map(|(s, _)| *s).filter(|s| brute(&set, at, *s).1 == 0).min();
        if let Some(tight) = tight {
            prop_assert_eq!(Some(tight), no_repeat);
            prop_assert_eq!((boundary.cost_at_tight.lost, boundary.cost_at_tight.resent), brute(&set, at, tight));
        }
        let start = safe.unwrap_or(0);
        prop_assert_eq!((boundary.cost_at_safe.lost, boundary.cost_at_safe.resent), brute(&set, at, start));

        for point in &boundary.curve {
            prop_assert_eq!((point.lost, point.resent), brute(&set, at, point.seq));
        }
        for pair in boundary.curve.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            prop_assert!(from.seq < to.seq);
            prop_assert!((from.lost == to.lost) != (from.resent == to.resent), "one figure moves between corners");
        }
        if boundary.inversion() {
            prop_assert_eq!(boundary.curve.last().map(|p| Some(p.seq)), Some(tight));
            let cause = boundary.cause.as_ref().expect("an inversion has a cause");
            let kept = set.filtered(|r| !cause.rows.contains(r));
            let Ok(without) = resolve(&kept, &kept, at);
            prop_assert!(!without.inversion(), "without the cause there is one answer");
        } else {
            prop_assert!(boundary.cause.is_none());
        }
    }
}
