//! Counts and rows of a generation on both sides of a time and of a watermark.

use hypseq_boundary::{Cost, Order, Row, Run, Side, Sides, Source};

use super::extent::Extent;
use super::order::Considered;
use super::{Doubt, LazyScan, row_seq};
use crate::DeletedRow;

impl Extent {
    /// The side that all its visible rows with a seq lie on; none when it cannot be told, or they have no time.
    pub(super) fn side(&self, at: i64) -> Option<Side> {
        if !self.time.is_full() {
            None
        } else if self.time.hi <= at {
            Some(Side::AtOrBefore)
        } else if self.time.lo > at {
            Some(Side::After)
        } else {
            None
        }
    }

    /// How many rows it has that lie on a side: all or none, or it cannot be told.
    fn on(&self, side: Side, at: i64) -> Option<u64> {
        if !self.may_matter() || self.time.is_empty() {
            return Some(0);
        }
        let impossible = match side {
            Side::AtOrBefore => self.time.lo > at,
            Side::After => self.time.hi <= at,
        };
        if impossible {
            return Some(0);
        }
        self.counted().filter(|_| self.side(at) == Some(side))
    }

    /// How many of its rows with a seq have no time.
    fn untimed(&self) -> Option<u64> {
        if !self.may_matter() || self.time.is_full() {
            Some(0)
        } else if self.time.is_empty() {
            self.counted()
        } else {
            self.visible_nulls(self.time).filter(|_| self.seq.is_full())
        }
    }

    /// Of a number of its rows, how many have a seq of at most the watermark: all or none, or it cannot be told.
    fn below(&self, watermark: i64, rows: Option<u64>) -> Option<u64> {
        if self.seq.lo > watermark {
            Some(0)
        } else if self.seq.hi <= watermark || rows == Some(0) {
            rows
        } else {
            None
        }
    }

    /// As [`Extent::below`], with a seq greater than the watermark.
    fn above(&self, watermark: i64, rows: Option<u64>) -> Option<u64> {
        if self.seq.hi <= watermark {
            Some(0)
        } else if self.seq.lo > watermark || rows == Some(0) {
            rows
        } else {
            None
        }
    }
}

fn count(rows: &[Row], test: impl Fn(&Row) -> bool) -> u64 {
    rows.iter().filter(|row| test(row)).count() as u64
}

fn is_on(row: &Row, side: Side, at: i64) -> bool {
    row.time.is_some_and(|time| Side::of(time, at) == side)
}

impl Source for LazyScan<'_> {
    fn sides(&self, at: i64) -> Result<Sides, Doubt> {
        let on = |side| {
            self.sum(|extent| extent.on(side, at), |loaded| count(loaded.visible.rows(), |row| is_on(row, side, at)))
        };
        Ok(Sides {
            rows_at_or_before: on(Side::AtOrBefore)?,
            rows_after: on(Side::After)?,
            null_time_rows: self
                .sum(Extent::untimed, |loaded| count(loaded.visible.rows(), |row| row.time.is_none()))?,
        })
    }

    fn cost(&self, at: i64, watermark: i64) -> Result<Cost, Doubt> {
        let below = |rows: &dyn Fn(&Extent) -> Option<u64>, test: &dyn Fn(&Row) -> bool| {
            self.sum(
                |extent| extent.below(watermark, rows(extent)),
                |loaded| count(loaded.visible.at_or_below(watermark), test),
            )
        };
        let above = |rows: &dyn Fn(&Extent) -> Option<u64>, test: &dyn Fn(&Row) -> bool| {
            self.sum(
                |extent| extent.above(watermark, rows(extent)),
                |loaded| count(loaded.visible.above(watermark), test),
            )
        };
        let on = |side| move |extent: &Extent| extent.on(side, at);
        Ok(Cost {
            lost: below(&on(Side::After), &|row| is_on(row, Side::After, at))?,
            resent: above(&on(Side::AtOrBefore), &|row| is_on(row, Side::AtOrBefore, at))?,
            null_time_lost: below(&Extent::untimed, &|row| row.time.is_none())?,
            null_time_resent: above(&Extent::untimed, &|row| row.time.is_none())?,
        })
    }

    fn last_at_or_below(&self, seq: i64) -> Result<Option<Row>, Doubt> {
        self.greatest(
            |extent| (extent.may_matter() && extent.seq.lo <= seq).then_some(extent.seq.hi.min(seq)),
            |loaded| loaded.visible.at_or_below(seq).last().cloned(),
            row_seq,
        )
    }

    fn next_above(&self, seq: i64) -> Result<Option<Row>, Doubt> {
        self.least(
            |extent| (extent.may_matter() && extent.seq.hi > seq).then_some(extent.seq.lo.max(seq.saturating_add(1))),
            |loaded| loaded.visible.above(seq).first().cloned(),
            row_seq,
        )
    }

    fn runs(&self, at: i64, after: i64, up_to: i64) -> Result<Vec<Run>, Doubt> {
        self.find_runs(at, after, up_to)
    }

    fn rows_on(&self, side: Side, at: i64, after: i64, up_to: i64) -> Result<Vec<Row>, Doubt> {
        let mut rows = self.rows_where(
            |extent| extent.on(side, at) != Some(0) && extent.seq.lo <= up_to && extent.seq.hi > after,
            |row| (after < row.seq && row.seq <= up_to) && is_on(row, side, at),
        )?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn considering(&self, keeps: impl Fn(&Row) -> bool) -> impl Order<Error = Doubt> {
        Considered::new(self, keeps)
    }

    fn seqs_within(&self, from: i64, to: i64) -> Result<Vec<i64>, Doubt> {
        let rows = self.rows_where(
            |extent| extent.may_matter() && extent.time.lo < to && extent.time.hi >= from,
            |row| row.time.is_some_and(|time| (from..to).contains(&time)),
        )?;
        let mut seqs: Vec<i64> = rows.iter().map(row_seq).collect();
        seqs.sort_unstable();
        Ok(seqs)
    }
}

impl LazyScan<'_> {
    /// The visible rows of a seq, and the deleted ones.
    ///
    /// # Errors
    /// [`Doubt`] about a manifest.
    pub fn with_seq(&self, seq: i64) -> Result<(Vec<Row>, Vec<DeletedRow>), Doubt> {
        let files: Vec<_> = self.files.iter().filter(|f| (f.extent.seq.lo..=f.extent.seq.hi).contains(&seq)).collect();
        self.load(&files)?;
        let (mut visible, mut deleted) = (Vec::new(), Vec::new());
        for file in files {
            let rows = self.rows(file)?;
            visible.extend(rows.visible.with_seq(seq).iter().cloned());
            deleted.extend(rows.deleted.iter().filter(|deleted| deleted.row.seq == seq).cloned());
        }
        Ok((visible, deleted))
    }

    /// The visible rows with a seq from one to the other, both included, in no order.
    ///
    /// # Errors
    /// [`Doubt`] about a manifest.
    pub fn between(&self, from: i64, to: i64) -> Result<Vec<Row>, Doubt> {
        self.rows_where(
            |extent| extent.may_matter() && extent.seq.lo <= to && extent.seq.hi >= from,
            |row| (from..=to).contains(&row.seq),
        )
    }

    /// The rows that fulfil a predicate, in no order, from the files that may hold any.
    fn rows_where(&self, may: impl Fn(&Extent) -> bool, test: impl Fn(&Row) -> bool) -> Result<Vec<Row>, Doubt> {
        let files: Vec<_> = self.files.iter().filter(|file| may(&file.extent)).collect();
        self.load(&files)?;
        let mut rows = Vec::new();
        for file in files {
            rows.extend(self.rows(file)?.visible.rows().iter().filter(|row| test(row)).cloned());
        }
        Ok(rows)
    }
}
