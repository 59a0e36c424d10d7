//! The order of a generation's rows, all of them or those that are considered.

use hypseq_boundary::{Order, Row};

use super::{Doubt, LazyScan, Loaded, row_seq};

/// A generation's rows less those that the operator leaves out of a resolution.
pub(super) struct Considered<'s, 'a, K> {
    scan: &'s LazyScan<'a>,
    keeps: K,
}

impl<'s, 'a, K: Fn(&Row) -> bool> Considered<'s, 'a, K> {
    pub(super) fn new(scan: &'s LazyScan<'a>, keeps: K) -> Self {
        Self { scan, keeps }
    }

    fn first(&self, loaded: &Loaded, test: impl Fn(&Row) -> bool) -> Option<Row> {
        loaded.visible.rows().iter().find(|row| test(row) && (self.keeps)(row)).cloned()
    }

    fn last(&self, loaded: &Loaded, test: impl Fn(&Row) -> bool) -> Option<Row> {
        loaded.visible.rows().iter().rev().find(|row| test(row) && (self.keeps)(row)).cloned()
    }
}

impl<K: Fn(&Row) -> bool> Order for Considered<'_, '_, K> {
    type Error = Doubt;

    fn last_at_or_before(&self, at: i64) -> Result<Option<i64>, Doubt> {
        let found = self.scan.greatest(
            |extent| (extent.may_matter() && extent.time.lo <= at).then_some(extent.seq.hi),
            |loaded| self.last(loaded, |row| row.time.is_some_and(|time| time <= at)),
            row_seq,
        )?;
        Ok(found.map(|row| row.seq))
    }

    fn first_after(&self, at: i64) -> Result<Option<i64>, Doubt> {
        let found = self.scan.least(
            |extent| (extent.may_matter() && extent.time.hi > at).then_some(extent.seq.lo),
            |loaded| self.first(loaded, |row| row.time.is_some_and(|time| time > at)),
            row_seq,
        )?;
        Ok(found.map(|row| row.seq))
    }

    fn last_timed(&self, seq: i64) -> Result<Option<i64>, Doubt> {
        let found = self.scan.greatest(
            |extent| {
                let may = extent.may_matter() && !extent.time.is_empty() && extent.seq.lo <= seq;
                may.then_some(extent.seq.hi.min(seq))
            },
            |loaded| self.last(loaded, |row| row.seq <= seq && row.time.is_some()),
            row_seq,
        )?;
        Ok(found.map(|row| row.seq))
    }
}

impl Order for LazyScan<'_> {
    type Error = Doubt;

    fn last_at_or_before(&self, at: i64) -> Result<Option<i64>, Doubt> {
        Considered::new(self, |_| true).last_at_or_before(at)
    }

    fn first_after(&self, at: i64) -> Result<Option<i64>, Doubt> {
        Considered::new(self, |_| true).first_after(at)
    }

    fn last_timed(&self, seq: i64) -> Result<Option<i64>, Doubt> {
        Considered::new(self, |_| true).last_timed(seq)
    }
}
