//! What a watermark says against the rows of its partition.

use hypseq_boundary::RowSet;
use hypseq_cache::{PartitionId, SpoolBatch, Watermark};

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
pub fn incomplete(watermark: &Watermark, union: &RowSet) -> SinkFigures {
    SinkFigures {
        rows_at_or_below: union.at_or_below(watermark.seq).len() as u64,
        suspected_unsent: None,
        note: Some("not every row could be read, so the count cannot tell a gap".to_owned()),
    }
}

/// Compares what a sink says it sent with the rows it moved past. `exportedRowCount` counts legacy rows too when the
/// sink's first export came after them, so with legacy rows there are two readings; the greater gap is reported.
pub fn unsent(watermark: &Watermark, union: &RowSet, legacy_rows: u64) -> SinkFigures {
    let rows = union.at_or_below(watermark.seq).len() as u64;
    let exported = watermark.exported_row_count;
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
    use hypseq_boundary::Row;

    fn figures(rows: i64, legacy: u64, seq: i64, exported: u64) -> (u64, Option<u64>, bool) {
        let union = RowSet::new((1..=rows).map(|seq| Row { seq, time: None, id: None }).collect());
        let watermark = Watermark { seq, exported_row_count: exported, updated_at: String::new() };
        let figures = unsent(&watermark, &union, legacy);
        (figures.rows_at_or_below, figures.suspected_unsent, figures.note.is_some())
    }

    #[test]
    fn a_gap_is_what_was_passed_and_not_exported() {
        assert_eq!(figures(10, 0, 8, 8), (8, Some(0), false));
        assert_eq!(figures(10, 0, 8, 5), (8, Some(3), false));
    }

    #[test]
    fn legacy_rows_make_two_readings() {
        assert_eq!(figures(10, 4, 8, 12), (8, Some(0), true));
        assert_eq!(figures(10, 4, 8, 10), (8, Some(2), false));
        assert_eq!(figures(10, 4, 8, 5), (8, Some(7), true));
    }

    #[test]
    fn more_exported_than_there_is_tells_nothing() {
        assert_eq!(figures(10, 4, 8, 13), (8, None, true));
    }
}
