//! The comparison of generations by counts: what [`verify`](crate::verify) finds row by row, without reading the rows.
//!
//! A compaction copies the visible rows of one generation into the next, and every row that is flushed later has a
//! greater seq. So as long as each generation holds as many rows up to the end of the one before as that one shows, what
//! tells two generations apart is deletes and later flushes alone, and both are counted. Where the counts do not add up,
//! rows must be compared: there is no answer from here.

use std::collections::BTreeMap;

use crate::verify::{Sight, unreadable};
use crate::{Comparison, Reason, Source, Verification};

/// The rows of a generation, counted. Only rows with a seq exist here.
pub trait Counted: Source {
    /// Greatest seq of a visible row.
    fn max_seq(&self) -> Result<Option<i64>, Self::Error>;

    /// Greatest seq of a row, deleted or not.
    fn max_physical_seq(&self) -> Result<Option<i64>, Self::Error>;

    /// Visible rows with a seq of at most this.
    fn visible_up_to(&self, seq: i64) -> Result<u64, Self::Error>;

    /// Deleted rows with a seq of at most this, by the delete files that name them.
    fn deleted_up_to(&self, seq: i64) -> Result<BTreeMap<String, u64>, Self::Error>;

    /// Rows with a seq of at most this, deleted or not.
    fn physical_up_to(&self, seq: i64) -> Result<u64, Self::Error> {
        Ok(self.visible_up_to(seq)? + self.deleted_up_to(seq)?.values().sum::<u64>())
    }

    /// Seq of the row of that rank among all rows, deleted or not, in seq order and counted from 1.
    fn physical_seq_at(&self, rank: u64) -> Result<Option<i64>, Self::Error>;
}

/// The generations of a partition, counted.
#[derive(Debug)]
pub struct Tally<'a, C> {
    generations: Vec<Tallied<'a, C>>,
}

#[derive(Debug)]
struct Tallied<'a, C> {
    name: &'a str,
    /// The rows, or why the generation has none: it never was whole.
    rows: Result<&'a C, &'a str>,
    /// Greatest seq of any row in the generations before this one.
    before: Option<i64>,
}

impl<'a, C: Counted> Tally<'a, C> {
    /// Takes a partition's generations, oldest first; of those that never were whole, why.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn new(generations: impl IntoIterator<Item = (&'a str, Result<&'a C, &'a str>)>) -> Result<Self, C::Error> {
        let mut before = None;
        let mut tallied = Vec::new();
        for (name, rows) in generations {
            tallied.push(Tallied { name, rows, before });
            if let Ok(rows) = rows {
                before = before.max(rows.max_physical_seq()?);
            }
        }
        Ok(Self { generations: tallied })
    }

    fn whole(&self) -> impl Iterator<Item = (&Tallied<'a, C>, &'a C)> {
        self.generations.iter().filter_map(|g| Some((g, g.rows.ok()?)))
    }

    /// Whether each generation holds as many rows as the one before it shows: up to that one's end, and up to each of
    /// `marks` that lies below it. Only then do [`Tally::union_up_to`], [`Tally::seq_at`] and [`Tally::verify`] mean anything.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn adds_up(&self, marks: &[i64]) -> Result<bool, C::Error> {
        for ((_, older), (_, newer)) in self.whole().zip(self.whole().skip(1)) {
            let Some(end) = older.max_physical_seq()? else { continue };
            for mark in marks.iter().copied().filter(|mark| *mark < end).chain([end]) {
                if older.visible_up_to(mark)? != newer.physical_up_to(mark)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Seqs of at most this that any generation has, in a visible row or a deleted one.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn union_up_to(&self, seq: i64) -> Result<u64, C::Error> {
        let mut union = 0;
        for (generation, rows) in self.whole() {
            let known = generation.before.map_or(0, |before| before.min(seq));
            union += rows.physical_up_to(seq)?.saturating_sub(rows.physical_up_to(known)?);
        }
        Ok(union)
    }

    /// The seq of that rank among those that [`Tally::union_up_to`] counts, from 1; none where there are fewer.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn seq_at(&self, rank: u64) -> Result<Option<i64>, C::Error> {
        let mut left = rank;
        for (generation, rows) in self.whole() {
            let known = rows.physical_up_to(generation.before.unwrap_or(0))?;
            let own = rows.physical_up_to(i64::MAX)?.saturating_sub(known);
            if left <= own {
                return rows.physical_seq_at(known + left);
            }
            left -= own;
        }
        Ok(None)
    }

    /// Greatest seq of any row, deleted or not.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn max_seq(&self) -> Result<Option<i64>, C::Error> {
        let mut max = None;
        for (_, rows) in self.whole() {
            max = max.max(rows.max_physical_seq()?);
        }
        Ok(max)
    }

    /// Rows with a seq up to a generation's own greatest that some generation has and this one does not show.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn missing_rows(&self, rows: &C) -> Result<u64, C::Error> {
        let max = rows.max_seq()?.unwrap_or(0);
        Ok(self.union_up_to(max)?.saturating_sub(rows.visible_up_to(max)?))
    }

    /// Compares every generation with the `reference` (an index into them) at a boundary, as
    /// [`verify`](crate::verify) does. None where the rows must be compared: the counts do not add up, or the reference is
    /// not the newest of the whole generations.
    ///
    /// # Errors
    /// Whatever the rows fail with.
    pub fn verify(&self, reference: usize, watermark: i64) -> Result<Option<Verification>, C::Error> {
        let newest = self.generations.iter().rposition(|g| g.rows.is_ok());
        let Some((_, live)) = self.whole().last().filter(|_| newest == Some(reference)) else { return Ok(None) };
        if !self.adds_up(&[watermark])? {
            return Ok(None);
        }
        let boundary = Sight::of(live, watermark, live.max_seq()?)?;
        let mut comparisons: Vec<Comparison> = Vec::new();
        for (index, generation) in self.generations.iter().enumerate() {
            comparisons.push(match generation.rows {
                Ok(rows) => {
                    let sight = Sight::of(rows, watermark, rows.max_seq()?)?;
                    sight.compare(generation.name, &boundary, self.reasons(index, rows, live)?)
                }
                Err(why) => unreadable(generation.name, why.to_owned()),
            });
        }
        let proven = comparisons.iter().any(|c| c.covers);
        Ok(Some(Verification { proven, generations: comparisons }))
    }

    /// Why rows of a generation and of the newest differ: deletes in the generations after it, and later flushes.
    fn reasons(&self, index: usize, rows: &C, live: &C) -> Result<BTreeMap<Reason, u64>, C::Error> {
        let end = rows.max_physical_seq()?.unwrap_or(0);
        let mut reasons = BTreeMap::new();
        for later in self.generations.iter().skip(index + 1) {
            let Ok(later_rows) = later.rows else { continue };
            for (file, deleted) in later_rows.deleted_up_to(end)? {
                reasons.insert(Reason::DeletedBy { generation: later.name.to_owned(), file }, deleted);
            }
        }
        let flushed_later = live.visible_up_to(i64::MAX)? - live.visible_up_to(end)?;
        reasons.insert(Reason::FlushedLater, flushed_later);
        reasons.retain(|_, rows| *rows > 0);
        Ok(reasons)
    }
}
