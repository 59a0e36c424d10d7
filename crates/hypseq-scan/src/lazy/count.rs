//! Counts of a generation's rows, deleted and legacy ones included.

use std::collections::BTreeMap;

use hypseq_boundary::{Counted, Row};
use hypseq_iceberg::{DataFile, DeleteKind};

use super::extent::{Extent, Span};
use super::{Doubt, LazyFile, LazyScan, row_seq};
use crate::scan::file_names;

/// Figures of a generation, as [`Scan`](crate::Scan) has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Visible rows, legacy ones included.
    pub visible_rows: u64,
    /// Rows, deleted ones included.
    pub raw_rows: u64,
    /// Deleted rows.
    pub deleted_rows: u64,
    /// Visible rows without a seq.
    pub legacy_rows: u64,
    /// Visible rows without a time.
    pub null_time_rows: u64,
    /// Least and greatest seq of visible rows.
    pub seqs: Option<(i64, i64)>,
    /// Least and greatest time of visible rows, legacy ones included, in microseconds since 1970, UTC.
    pub times: Option<(i64, i64)>,
}

impl Extent {
    /// A bound of a column's visible values, where there may be any.
    fn end(&self, span: Span, end: fn(Span) -> i64) -> Option<i64> {
        (self.visible() > 0 && !span.is_empty()).then(|| end(span))
    }
}

fn lo(span: Span) -> i64 {
    span.lo
}

fn hi(span: Span) -> i64 {
    span.hi
}

impl LazyScan<'_> {
    /// Rows without a seq among the visible ones.
    ///
    /// # Errors
    /// [`Doubt`] about a manifest.
    pub fn legacy_rows(&self) -> Result<u64, Doubt> {
        self.sum(|extent| extent.visible_nulls(extent.seq), |loaded| loaded.legacy_rows)
    }

    /// Visible rows, legacy ones included.
    pub fn visible_rows(&self) -> u64 {
        self.files.iter().map(|file| file.extent.visible()).sum()
    }

    /// All figures.
    ///
    /// # Errors
    /// [`Doubt`] about a manifest.
    pub fn figures(&self) -> Result<Figures, Doubt> {
        let first = |row: Option<&Row>| row.map(|row| row.seq);
        let min_seq = self.least(|e| e.end(e.seq, lo), |l| first(l.visible.rows().first()), |seq| *seq)?;
        let min_time = self.least(|e| e.end(e.time, lo), |l| l.times.map(|(least, _)| least), |time| *time)?;
        let max_time = self.greatest(|e| e.end(e.time, hi), |l| l.times.map(|(_, most)| most), |time| *time)?;
        Ok(Figures {
            visible_rows: self.visible_rows(),
            raw_rows: self.files.iter().map(|file| file.extent.rows).sum(),
            deleted_rows: self.files.iter().map(|file| file.extent.deleted).sum(),
            legacy_rows: self.legacy_rows()?,
            null_time_rows: self.sum(|e| e.visible_nulls(e.time), |l| l.null_time_rows)?,
            seqs: min_seq.zip(self.max_seq()?),
            times: min_time.zip(max_time),
        })
    }
}

impl Counted for LazyScan<'_> {
    fn max_seq(&self) -> Result<Option<i64>, Doubt> {
        let last = self.greatest(|e| e.end(e.seq, hi), |l| l.visible.rows().last().cloned(), row_seq)?;
        Ok(last.map(|row| row.seq))
    }

    fn max_physical_seq(&self) -> Result<Option<i64>, Doubt> {
        self.greatest(
            |extent| (extent.rows > 0 && !extent.seq.is_empty()).then_some(extent.seq.hi),
            |loaded| loaded.visible.max_seq().max(loaded.deleted.iter().map(|deleted| deleted.row.seq).max()),
            |seq| *seq,
        )
    }

    fn visible_up_to(&self, seq: i64) -> Result<u64, Doubt> {
        let known = |extent: &Extent| {
            if !extent.may_matter() || extent.seq.lo > seq {
                Some(0)
            } else {
                extent.counted().filter(|_| extent.seq.hi <= seq)
            }
        };
        self.sum(known, |loaded| loaded.visible.at_or_below(seq).len() as u64)
    }

    fn deleted_up_to(&self, seq: i64) -> Result<BTreeMap<String, u64>, Doubt> {
        let mut by_file: BTreeMap<String, u64> = BTreeMap::new();
        let mut open = Vec::new();
        for file in self.files.iter().filter(|file| file.extent.deleted > 0 && file.extent.seq.lo <= seq) {
            match vector(file, seq) {
                Some((name, deleted)) => *by_file.entry(name).or_default() += deleted,
                None => open.push(file),
            }
        }
        self.load(&open)?;
        for file in open {
            for deleted in self.rows(file)?.deleted.iter().filter(|deleted| deleted.row.seq <= seq) {
                *by_file.entry(deleted.by_names()).or_default() += 1;
            }
        }
        Ok(by_file)
    }

    fn physical_seq_at(&self, rank: u64) -> Result<Option<i64>, Doubt> {
        let held: Vec<_> = self.files.iter().filter(|f| f.extent.rows > 0 && !f.extent.seq.is_empty()).collect();
        // Below `from` there cannot be as many rows, and at or below `to` there must be.
        let from = reached(held.iter().map(|file| (file.extent.seq.lo, file.extent.rows)), rank);
        let Some(from) = from else { return Ok(None) };
        let to = reached(held.iter().map(|file| (file.extent.seq.hi, file.extent.physical().unwrap_or(0))), rank);
        let to = to.unwrap_or(i64::MAX);
        let (mut below, mut open) = (0, Vec::new());
        for file in held {
            match file.extent.physical() {
                Some(rows) if file.extent.seq.hi < from => below += rows,
                _ if file.extent.seq.lo <= to => open.push(file),
                _ => {}
            }
        }
        self.load(&open)?;
        let mut seqs = Vec::new();
        for file in open {
            let loaded = self.rows(file)?;
            seqs.extend(loaded.visible.rows().iter().map(row_seq));
            seqs.extend(loaded.deleted.iter().map(|deleted| deleted.row.seq));
        }
        seqs.sort_unstable();
        let place = rank.checked_sub(below + 1).and_then(|place| usize::try_from(place).ok());
        Ok(place.and_then(|place| seqs.get(place).copied()))
    }
}

/// The least of the seqs, each with a number of rows, up to which there are so many rows; none where there are fewer.
fn reached(rows: impl Iterator<Item = (i64, u64)>, wanted: u64) -> Option<i64> {
    let mut rows: Vec<(i64, u64)> = rows.collect();
    rows.sort_unstable();
    let mut sum = 0;
    let reached = rows.into_iter().find(|(_, rows)| {
        sum += rows;
        sum >= wanted
    });
    reached.map(|(seq, _)| seq)
}

/// The one deletion vector of a file all of whose rows have a seq of at most this, and how many rows it deletes.
fn vector(file: &LazyFile, seq: i64) -> Option<(String, u64)> {
    let LazyFile { file, extent, .. } = file;
    let whole = extent.seq.is_full() && extent.seq.hi <= seq;
    let name = only_vector(file).filter(|_| whole)?;
    Some((name, extent.deleted))
}

fn only_vector(file: &DataFile) -> Option<String> {
    match file.deletes().as_slice() {
        [one] if matches!(one.kind, DeleteKind::DeletionVector { .. }) => Some(file_names([one.path.as_path()])),
        _ => None,
    }
}
