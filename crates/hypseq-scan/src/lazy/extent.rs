//! What a manifest says of the rows of a data file.

use hypseq_iceberg::{DataFile, Schema};

use crate::Columns;
use crate::lazy::Doubt;
use crate::rows::FileRows;

/// Bounds of a column's values. Absent bounds are the widest; where there is no value there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub lo: i64,
    pub hi: i64,
    /// Nulls, deleted rows included; none when the manifest does not say.
    pub nulls: Option<u64>,
}

impl Span {
    /// Bounds and counts that contradict each other say nothing.
    fn of(file: &DataFile, schema: &Schema, column: Option<&str>) -> Result<Self, Doubt> {
        let none = Self { lo: i64::MAX, hi: i64::MIN, nulls: Some(file.record_count) };
        let Some(field) = column.and_then(|name| schema.field(name)) else { return Ok(none) };
        let bounds = file.bounds.get(&field.id).copied().unwrap_or_default();
        if let Some(nulls) = bounds.nulls.filter(|nulls| *nulls > file.record_count) {
            let expected = format!("{nulls} nulls in `{}`", field.name);
            return Err(Doubt::new(file, expected, format!("{} rows", file.record_count)));
        }
        if bounds.nulls == Some(file.record_count) && bounds.lower.or(bounds.upper).is_none() {
            return Ok(none);
        }
        let (lo, hi) = (bounds.lower.unwrap_or(i64::MIN), bounds.upper.unwrap_or(i64::MAX));
        if lo > hi || bounds.nulls == Some(file.record_count) {
            let expected = format!("values from {lo} to {hi} in `{}`", field.name);
            return Err(Doubt::new(file, expected, "no such values"));
        }
        Ok(Self { lo, hi, nulls: bounds.nulls })
    }

    /// Whether no row has a value.
    pub(super) fn is_empty(self) -> bool {
        self.lo == i64::MAX && self.hi == i64::MIN
    }

    /// Whether every row has one.
    pub(super) fn is_full(self) -> bool {
        self.nulls == Some(0)
    }

    fn contains(self, value: i64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }
}

/// A data file's rows as its manifest describes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Rows, deleted ones included.
    pub rows: u64,
    /// How many of them are deleted.
    pub deleted: u64,
    pub seq: Span,
    pub time: Span,
}

impl Extent {
    /// # Errors
    /// [`Doubt`] about a manifest that contradicts itself, or has seqs below 1.
    pub(super) fn of(file: &DataFile, deleted: u64, schema: &Schema, columns: &Columns) -> Result<Self, Doubt> {
        let seq = Span::of(file, schema, Some(columns.seq))?;
        if seq.lo < 1 && seq.lo > i64::MIN {
            return Err(Doubt::new(file, format!("seqs from {}", seq.lo), "that they begin at 1"));
        }
        let time = Span::of(file, schema, columns.time.as_deref())?;
        Ok(Self { rows: file.record_count, deleted, seq, time })
    }

    pub(super) fn visible(&self) -> u64 {
        self.rows.saturating_sub(self.deleted)
    }

    /// Rows with a seq, deleted ones included; none when the manifest cannot tell.
    pub(super) fn physical(&self) -> Option<u64> {
        self.seq.nulls.map(|nulls| self.rows.saturating_sub(nulls))
    }

    /// Whether it may have a visible row with a seq.
    pub(super) fn may_matter(&self) -> bool {
        self.visible() > 0 && !self.seq.is_empty()
    }

    /// Visible rows without a value in a column; none when the manifest cannot tell.
    pub(super) fn visible_nulls(&self, span: Span) -> Option<u64> {
        if span.is_full() || self.visible() == 0 {
            Some(0)
        } else if span.is_empty() {
            Some(self.visible())
        } else {
            span.nulls.filter(|_| self.deleted == 0)
        }
    }

    /// Visible rows with a seq; none when the manifest cannot tell.
    pub(super) fn counted(&self) -> Option<u64> {
        self.visible_nulls(self.seq).map(|nulls| self.visible().saturating_sub(nulls))
    }

    /// What was read must be what the manifest says, or nothing that was concluded from it holds.
    pub(super) fn verify(&self, file: &DataFile, read: &FileRows) -> Result<(), Doubt> {
        let rows = || read.visible.iter().chain(read.deleted.iter().map(|d| &d.row));
        if let Some(row) = rows().find(|row| !self.seq.contains(row.seq)) {
            return Err(Doubt::new(file, format!("seqs from {} to {}", self.seq.lo, self.seq.hi), row.seq));
        }
        let times =
            rows().filter_map(|row| row.time).chain(read.times.iter().flat_map(|(least, most)| [*least, *most]));
        if let Some(time) = { times }.find(|time| !self.time.contains(*time)) {
            let expected = format!("times from {} to {} microseconds", self.time.lo, self.time.hi);
            return Err(Doubt::new(file, expected, time));
        }
        let without_seq = self.rows.saturating_sub(rows().count() as u64);
        verify_nulls(file, "seq", self.seq.nulls, without_seq)?;
        if self.deleted == 0 {
            verify_nulls(file, "time", self.time.nulls, read.null_time_rows)?;
        }
        Ok(())
    }
}

fn verify_nulls(file: &DataFile, what: &str, expected: Option<u64>, found: u64) -> Result<(), Doubt> {
    match expected {
        Some(expected) if expected != found => {
            Err(Doubt::new(file, format!("{expected} rows without a {what}"), found))
        }
        _ => Ok(()),
    }
}
