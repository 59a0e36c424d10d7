//! What became of a swap: the verdict over what the daemon wrote after it.
//!
//! A tick reads the watermark when it starts and writes it when it ends, so a swap that falls into a running
//! tick is lost without a word. `exportedRowCount` was kept at the swap, and that is the tell-tale: it rises
//! by the rows that were really sent.

use serde::{Deserialize, Serialize};

use crate::model::Observed;
use crate::scalar::{Seq, Time};

/// What became of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TickVerdict {
    /// The daemon went back and sent the rows again.
    Honoured,
    /// A tick was in flight and wrote over the swap: nothing was replayed.
    Clobbered,
    /// The daemon went back and dropped the rows once more: policy still withholds them.
    DroppedAgain,
    /// No tick has ended since: none has run yet, or the sink fails.
    Pending,
    /// None of these: somebody else changed the watermark, say.
    Unexplained,
}

/// A verdict with the numbers that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// When the watermark was looked at.
    pub at: Time,
    /// What became of the swap.
    pub verdict: TickVerdict,
    /// The watermark's seq then.
    pub seq: Seq,
    /// Its `exportedRowCount` then.
    pub exported_row_count: u64,
    /// Rows that should have been replayed.
    pub expected: u64,
    /// Rows that arrived above the old position and should have been sent.
    pub arrived: u64,
}

/// Judges what the daemon wrote after a swap.
///
/// - `before`: the watermark that was swapped out; `target`: the seq that was swapped in.
/// - `now`: the watermark as it is.
/// - `expected`: rows above `target` and at or below `before.seq` that today's policy lets the sink send.
/// - `arrived`: rows above `before.seq` and at or below `now.seq` that today's policy lets the sink send.
///
/// The counts are the caller's best knowledge; rows may be deleted or withheld for reasons that are not to be
/// seen from outside. So between honoured and clobbered the nearer number of rows sent decides, and a tie
/// is [`TickVerdict::Unexplained`].
pub fn judge(before: &Observed, target: Seq, now: &Observed, expected: u64, arrived: u64) -> TickVerdict {
    let Some(sent) = now.exported_row_count.checked_sub(before.exported_row_count) else {
        return TickVerdict::Unexplained;
    };
    if now.seq <= target {
        return if now.seq == target && sent == 0 { TickVerdict::Pending } else { TickVerdict::Unexplained };
    }
    // A tick that had read the old position writes only when there were rows above it, and so above `before.seq`.
    if now.seq <= before.seq {
        return if sent == 0 { TickVerdict::DroppedAgain } else { TickVerdict::Honoured };
    }
    if (expected == 0 && sent <= arrived) || (sent == 0 && arrived > 0) {
        return TickVerdict::DroppedAgain;
    }
    let if_clobbered = sent.abs_diff(arrived);
    let if_honoured = sent.abs_diff(arrived.saturating_add(expected));
    match if_honoured.cmp(&if_clobbered) {
        std::cmp::Ordering::Less => TickVerdict::Honoured,
        std::cmp::Ordering::Equal => TickVerdict::Unexplained,
        std::cmp::Ordering::Greater => TickVerdict::Clobbered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TickVerdict::{Clobbered, DroppedAgain, Honoured, Pending, Unexplained};

    fn mark(seq: i64, exported_row_count: u64) -> Observed {
        Observed { seq: Seq::new(seq).unwrap(), exported_row_count, updated_at: String::new() }
    }

    /// The incident: 1495 with 665 rows sent, swapped to 722; 531 rows lie between.
    fn incident(now: &Observed, expected: u64, arrived: u64) -> TickVerdict {
        judge(&mark(1495, 665), Seq::new(722).unwrap(), now, expected, arrived)
    }

    #[test]
    fn what_hypaware_itself_wrote() {
        assert_eq!(incident(&mark(1495, 1196), 531, 0), Honoured);
        assert_eq!(incident(&mark(1495, 665), 0, 0), DroppedAgain);
        assert_eq!(incident(&mark(1495, 665), 531, 0), DroppedAgain, "a policy that is not to be seen from outside");
        assert_eq!(incident(&mark(1502, 672), 531, 7), Clobbered);
    }

    #[test]
    fn no_tick_yet() {
        assert_eq!(incident(&mark(722, 665), 531, 0), Pending);
    }

    #[test]
    fn rows_that_arrived_are_told_apart_from_rows_replayed() {
        assert_eq!(incident(&mark(1600, 1266), 531, 70), Honoured);
        assert_eq!(incident(&mark(9000, 5665), 531, 5000), Clobbered, "more new rows than were to be replayed");
        assert_eq!(incident(&mark(9000, 6196), 531, 5000), Honoured);
        assert_eq!(incident(&mark(1500, 671), 2, 5), Unexplained, "one of the two rows, or one too many");
    }

    #[test]
    fn counts_that_are_a_little_off() {
        assert_eq!(incident(&mark(1600, 1266 - 40), 531, 70), Honoured);
        assert_eq!(incident(&mark(1600, 1266 + 9), 531, 70), Honoured);
        assert_eq!(incident(&mark(1600, 665 + 72), 531, 70), Clobbered);
    }

    #[test]
    fn a_clobbering_tick_that_only_dropped() {
        assert_eq!(incident(&mark(1502, 665), 531, 0), Clobbered);
        assert_eq!(incident(&mark(1502, 665), 531, 7), DroppedAgain, "even the new rows were withheld");
        assert_eq!(incident(&mark(1502, 665), 0, 0), DroppedAgain);
        assert_eq!(incident(&mark(1502, 672), 0, 7), DroppedAgain);
        assert_eq!(incident(&mark(1502, 1203), 0, 7), Unexplained, "rows were sent that policy withholds");
    }

    #[test]
    fn a_tick_that_ends_below_the_old_position() {
        assert_eq!(incident(&mark(1490, 1100), 440, 0), Honoured, "the newest rows were deleted meanwhile");
        assert_eq!(incident(&mark(1490, 665), 440, 0), DroppedAgain);
    }

    #[test]
    fn somebody_else() {
        assert_eq!(incident(&mark(1495, 664), 531, 0), Unexplained);
        assert_eq!(incident(&mark(700, 665), 531, 0), Unexplained);
        assert_eq!(incident(&mark(722, 700), 531, 0), Unexplained);
        assert_eq!(incident(&mark(0, 0), 531, 0), Unexplained);
    }

    proptest::proptest! {
        /// A daemon that is modelled exactly is judged exactly, whatever the numbers.
        #[test]
        fn an_exact_daemon_is_judged_exactly(
            target in 0i64..1000, gap in 1i64..1000, sent in 0u64..1000,
            replayed in 1u64..1000, arrived in 1u64..1000,
        ) {
            let before = mark(target + gap, sent);
            let target = Seq::new(target).unwrap();
            let after = |rows| mark(before.seq.get() + 10, sent + rows);
            let verdict = |now: &Observed| judge(&before, target, now, replayed, arrived);
            proptest::prop_assert_eq!(verdict(&after(replayed + arrived)), Honoured);
            proptest::prop_assert_eq!(verdict(&after(arrived)), Clobbered);
            proptest::prop_assert_eq!(verdict(&after(0)), DroppedAgain);
            proptest::prop_assert_eq!(verdict(&mark(target.get(), sent)), Pending);
        }
    }
}
