//! The rows of a partition as a plan counts them: read one by one, or told by bounds.

use std::convert::Infallible;

use anyhow::{Context, Result, bail};
use hypseq_boundary::{Counted, RowSet, Source, Tally};
use hypseq_scan::{Doubt, LazyScan};

use crate::exported::Union;
use crate::opened::Opened;
use crate::survey::{Survey, Surveyed};

/// Counts over the generations of a partition, and the rows of the live one.
pub trait Census {
    /// What can go wrong with the rows.
    type Error: std::error::Error + Send + Sync + 'static;
    /// The live generation's visible rows that have a seq.
    type Live: Source<Error = Self::Error>;

    fn live(&self) -> &Self::Live;

    /// How many of them have a seq of at most this.
    fn visible_up_to(&self, seq: i64) -> Result<u64>;

    /// Visible rows of the live generation without a seq.
    fn live_legacy_rows(&self) -> Result<u64>;

    /// The same of the newest generation that has any.
    fn legacy_rows(&self) -> Result<u64>;

    fn union(&self) -> &impl Union;

    /// Seqs of the union above one and at or below another that the live generation does not show.
    fn gone(&self, above: i64, up_to: i64) -> Result<u64>;
}

/// Every row of every generation.
pub struct ByRows<'a> {
    survey: &'a Survey<'a>,
    live: &'a Surveyed,
    union: RowSet,
}

impl<'a> ByRows<'a> {
    /// `live` is the place of the live generation.
    pub fn new(survey: &'a Survey<'a>, live: usize) -> Self {
        Self { survey, live: &survey.generations[live], union: survey.union() }
    }
}

impl Census for ByRows<'_> {
    type Error = Infallible;
    type Live = RowSet;

    fn live(&self) -> &RowSet {
        &self.live.scan.visible
    }

    fn visible_up_to(&self, seq: i64) -> Result<u64> {
        Ok(self.live().at_or_below(seq).len() as u64)
    }

    fn live_legacy_rows(&self) -> Result<u64> {
        Ok(self.live.scan.legacy_rows)
    }

    fn legacy_rows(&self) -> Result<u64> {
        Ok(self.survey.legacy_rows())
    }

    fn union(&self) -> &impl Union {
        &self.union
    }

    fn gone(&self, above: i64, up_to: i64) -> Result<u64> {
        let seqs = self.union.between(above, up_to).iter();
        Ok(seqs.filter(|row| self.live().with_seq(row.seq).is_empty()).count() as u64)
    }
}

/// What the manifests of every generation tell, as long as their counts add up.
pub struct ByBounds<'a, 'o> {
    generations: &'a [Result<LazyScan<'o>, &'static str>],
    live: &'a LazyScan<'o>,
    tally: Tally<'a, LazyScan<'o>>,
}

impl<'a, 'o> ByBounds<'a, 'o> {
    /// `live` is the place of the live generation; the rows are those of the opened generations.
    pub fn new(
        opened: &'a [Opened],
        generations: &'a [Result<LazyScan<'o>, &'static str>],
        live: usize,
    ) -> Result<Self> {
        let named = opened.iter().zip(generations);
        let named = named.map(|(o, rows)| (o.generation.name.as_str(), rows.as_ref().map_err(|why| *why)));
        let tally = Tally::new(named)?;
        let live = generations.get(live).and_then(|rows| rows.as_ref().ok()).context("it has no metadata")?;
        Ok(Self { generations, live, tally })
    }

    /// Counts of the union mean something only at seqs where the generations' counts add up.
    fn add_up(&self, seq: i64) -> Result<()> {
        if !self.tally.adds_up(&[seq])? {
            bail!("the generations' counts do not add up");
        }
        Ok(())
    }
}

impl<'o> Census for ByBounds<'_, 'o> {
    type Error = Doubt;
    type Live = LazyScan<'o>;

    fn live(&self) -> &LazyScan<'o> {
        self.live
    }

    fn visible_up_to(&self, seq: i64) -> Result<u64> {
        Ok(self.live.visible_up_to(seq)?)
    }

    fn live_legacy_rows(&self) -> Result<u64> {
        Ok(self.live.legacy_rows()?)
    }

    fn legacy_rows(&self) -> Result<u64> {
        for rows in self.generations.iter().rev().filter_map(|rows| rows.as_ref().ok()) {
            let legacy = rows.legacy_rows()?;
            if legacy > 0 {
                return Ok(legacy);
            }
        }
        Ok(0)
    }

    fn union(&self) -> &impl Union {
        self
    }

    fn gone(&self, above: i64, up_to: i64) -> Result<u64> {
        let union = self.up_to(up_to)?.saturating_sub(self.up_to(above)?);
        let visible = self.visible_up_to(up_to)?.saturating_sub(self.visible_up_to(above)?);
        Ok(union.saturating_sub(visible))
    }
}

impl Union for ByBounds<'_, '_> {
    fn up_to(&self, seq: i64) -> Result<u64> {
        self.add_up(seq)?;
        Ok(self.tally.union_up_to(seq)?)
    }

    fn seq_at(&self, rank: u64) -> Result<Option<i64>> {
        let found = self.tally.seq_at(rank)?;
        self.add_up(found.unwrap_or(i64::MAX))?;
        Ok(found)
    }
}
