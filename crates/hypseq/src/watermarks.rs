//! What a watermark says against the rows of its partition.

use anyhow::{Context, Result};
use hypseq_cache::{Home, PartitionId, SpoolBatch, Watermark, WatermarkFile};
use hypseq_plan::{Outcome, TickVerdict, receipts};

use crate::sentence::{count, grouped};

/// Figures of one sink over one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkFigures {
    /// Rows with a seq at or below the watermark, over all generations, each seq once.
    pub rows_at_or_below: u64,
    /// Of these, the rows that the sink seems to have moved past without sending them; none when the count cannot tell.
    pub suspected_unsent: Option<u64>,
    /// Where the figure can be read in two ways, or does not add up.
    pub note: Option<String>,
}

/// Figures over generations of which not every row could be read.
pub fn incomplete(rows_at_or_below: u64) -> SinkFigures {
    SinkFigures {
        rows_at_or_below,
        suspected_unsent: None,
        note: Some("not every row could be read, so the count cannot tell a gap".to_owned()),
    }
}

/// Compares what a sink says it sent with the rows it moved past, each seq once over all generations. Rows that earlier rewinds sent twice count twice in
/// what it says; where that makes a difference the count cannot tell, and the note gives both figures.
pub fn unsent(watermark: &Watermark, rows: u64, legacy_rows: u64, resent_before: u64) -> SinkFigures {
    let as_counted = reading(watermark.exported_row_count, rows, legacy_rows);
    let once = reading(watermark.exported_row_count.saturating_sub(resent_before), rows, legacy_rows);
    if as_counted.suspected_unsent == once.suspected_unsent {
        return as_counted;
    }
    let figure =
        |f: &SinkFigures| f.suspected_unsent.map_or_else(|| "an unknown number".to_owned(), |n| count(n, "row"));
    let note = format!(
        "{} unsent if none of the {} that earlier rewinds may have sent twice had been sent before, {} if all had",
        figure(&as_counted),
        count(resent_before, "row"),
        figure(&once)
    );
    SinkFigures { rows_at_or_below: rows, suspected_unsent: None, note: Some(note) }
}

/// One reading of the exported count. It counts legacy rows too when the sink's first export came after them, so with
/// legacy rows there are two figures; the greater gap is reported.
fn reading(exported: u64, rows: u64, legacy_rows: u64) -> SinkFigures {
    let without_legacy = rows.checked_sub(exported);
    let with_legacy = (rows + legacy_rows).checked_sub(exported);
    let excess = exported.saturating_sub(rows + legacy_rows);
    let (suspected_unsent, note) = match (without_legacy, with_legacy) {
        (Some(fewer), Some(more)) if fewer != more => (
            Some(more),
            Some(format!(
                "{} rows unsent if the {} without a seq were never sent, {} if they were",
                grouped(fewer),
                count(legacy_rows, "row"),
                grouped(more)
            )),
        ),
        (None, Some(0)) => {
            (Some(0), Some(format!("the exported count includes {} without a seq", count(legacy_rows, "row"))))
        }
        (_, Some(gap)) => (Some(gap), None),
        (_, None) => (
            None,
            Some(format!(
                "{} more exported than there are; resent after an earlier rewind, or gone with a removed generation, so \
                 the count cannot tell a gap",
                count(excess, "row")
            )),
        ),
    };
    SinkFigures { rows_at_or_below: rows, suspected_unsent, note }
}

/// Rows that earlier rewinds of this watermark may have sent twice, as their receipts say: what the plan counted as
/// resent, or all that it replayed where it had no time to count by. Rewinds that the daemon did not honour sent none.
pub fn resent_before(home: &Home, file: &WatermarkFile) -> Result<u64> {
    let Some(state_root) = home.state_root() else { return Ok(0) };
    let mut resent = 0u64;
    for found in receipts(state_root).context("the receipts of earlier rewinds cannot be listed")? {
        let receipt = found.receipt.with_context(|| {
            format!("the receipt `{}` cannot be read, so which rows were sent twice is not known", found.path.display())
        })?;
        let ours = receipt.latest_swaps().into_iter().filter(|s| s.watermark.as_str() == file.relative_path);
        let sent = |verdict: TickVerdict| !matches!(verdict, TickVerdict::Clobbered | TickVerdict::DroppedAgain);
        let counted = ours.filter(|s| {
            receipt.undoes.is_none()
                && s.outcome != Outcome::Unchanged
                && s.judgement.as_ref().is_none_or(|j| sent(j.verdict))
        });
        resent += counted.map(|s| s.resent.unwrap_or(s.replayed)).sum::<u64>();
    }
    Ok(resent)
}

/// Spooled rows that the flush will file under a partition: those of its source.
pub fn spooled(batches: &[SpoolBatch], id: &PartitionId) -> u64 {
    let segments = id.segments();
    let source = segments.iter().find(|(key, _)| matches!(*key, "source" | "client")).map(|(_, value)| *value);
    let rows = batches.iter().filter(|b| b.dataset == id.dataset).flat_map(|b| &b.rows);
    rows.filter(|row| source.is_none_or(|s| row.source() == s)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rows: u64, legacy: u64, exported: u64) -> (Option<u64>, bool) {
        let watermark = Watermark { seq: 8, exported_row_count: exported, updated_at: String::new() };
        let figures = unsent(&watermark, rows, legacy, 0);
        (figures.suspected_unsent, figures.note.is_some())
    }

    #[test]
    fn a_gap_is_what_was_passed_and_not_exported() {
        assert_eq!(figures(8, 0, 8), (Some(0), false));
        assert_eq!(figures(8, 0, 5), (Some(3), false));
    }

    #[test]
    fn legacy_rows_make_two_readings() {
        assert_eq!(figures(8, 4, 12), (Some(0), true));
        assert_eq!(figures(8, 4, 10), (Some(2), false));
        assert_eq!(figures(8, 4, 5), (Some(7), true));
    }

    #[test]
    fn more_exported_than_there_is_tells_nothing() {
        assert_eq!(figures(8, 4, 13), (None, true));
    }

    #[test]
    fn rows_that_a_rewind_may_have_sent_twice_make_the_count_unsure() {
        let watermark = Watermark { seq: 10, exported_row_count: 9, updated_at: String::new() };
        let figures = unsent(&watermark, 10, 0, 4);
        assert_eq!(figures.suspected_unsent, None);
        assert_eq!(
            figures.note.as_deref(),
            Some(
                "1 row unsent if none of the 4 rows that earlier rewinds may have sent twice had been sent before, 5 rows if all \
                 had"
            )
        );
    }
}
