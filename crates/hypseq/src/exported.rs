//! What a sink's exported count says about where its sent rows end.
//!
//! The count is of rows really sent. Legacy rows may be among them, and rows that an earlier rewind sent a second time
//! count twice, so there may be several readings; none is chosen over another.

use anyhow::Result;
use hypseq_boundary::RowSet;
use hypseq_plan as plan;

use crate::sentence::count;

/// The exported count with what may be in it beside distinct rows that have a seq.
#[derive(Debug, Clone, Copy)]
pub struct Exported {
    pub count: u64,
    /// Legacy rows of the partition.
    pub legacy: u64,
    /// Rows that earlier rewinds may have sent twice.
    pub resent: u64,
}

/// The seqs that any generation of a partition has, in a visible row or a deleted one; each once.
pub trait Union {
    /// How many of them are at most this.
    fn up_to(&self, seq: i64) -> Result<u64>;

    /// The one of that rank, counted from 1.
    fn seq_at(&self, rank: u64) -> Result<Option<i64>>;
}

impl Union for RowSet {
    fn up_to(&self, seq: i64) -> Result<u64> {
        Ok(self.at_or_below(seq).len() as u64)
    }

    fn seq_at(&self, rank: u64) -> Result<Option<i64>> {
        let place = rank.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        Ok(place.and_then(|place| self.rows().get(place)).map(|row| row.seq))
    }
}

/// Where the exported rows end, by one reading of the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    what: &'static str,
    /// Seq of the last one; 0 where none was sent, none where the count exceeds the rows that are left.
    found: Option<i64>,
    /// Rows between there and the target.
    rows: u64,
}

impl Exported {
    /// Every reading against a target.
    pub fn readings(self, union: &impl Union, target: i64) -> Result<Vec<Reading>> {
        let Self { count, legacy, resent } = self;
        let both = legacy.saturating_add(resent);
        let readings = [
            ("the exported rows", 0, true),
            ("the exported rows less the legacy ones", legacy, legacy > 0),
            ("the exported rows less those that earlier rewinds may have sent twice", resent, resent > 0),
            ("the exported rows less the legacy and the resent ones", both, legacy > 0 && resent > 0),
        ];
        let passed = union.up_to(target)?;
        let possible = readings.into_iter().filter(|(.., possible)| *possible);
        possible
            .map(|(what, less, _)| {
                let rank = count.saturating_sub(less);
                let found = if rank == 0 { Some(0) } else { union.seq_at(rank)? };
                Ok(Reading { what, found, rows: found.map_or(0, |_| rank.abs_diff(passed)) })
            })
            .collect()
    }

    /// The readings as a plan records them.
    pub fn witness(self, readings: &[Reading], target: i64) -> plan::Witness {
        let says: Vec<String> = readings.iter().map(|r| r.says(target)).collect();
        plan::Witness {
            kind: plan::WitnessKind::ExportedRowCount,
            value: self.count.to_string(),
            says: says.join("; "),
        }
    }
}

impl Reading {
    /// Rows that a target would leave unsent, by this reading.
    pub fn unsent_below(&self, target: i64) -> u64 {
        if self.found.is_some_and(|found| found < target) { self.rows } else { 0 }
    }

    pub fn says(&self, target: i64) -> String {
        let Self { what, found, rows } = self;
        let rows = count(*rows, "row");
        match found {
            Some(found) if *found == target => format!("{what} end at seq {found}, the target itself"),
            Some(0) => format!("{what} end before the first row: {rows} from there to the target would stay unsent"),
            Some(found) if *found < target => {
                format!("{what} end at seq {found}: {rows} from there to the target would stay unsent")
            }
            Some(found) => format!("{what} end at seq {found}: {rows} from the target to there would be sent twice"),
            None => format!("{what} end beyond the rows that are left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hypseq_boundary::Row;

    /// Seqs 10, 20, …, 100.
    fn says(count: u64, legacy: u64, resent: u64, target: i64) -> Vec<String> {
        let union = RowSet::new((1..=10).map(|n| Row { seq: n * 10, time: None, id: None }).collect());
        let readings = Exported { count, legacy, resent }.readings(&union, target);
        readings.expect("counts").iter().map(|r| r.says(target)).collect()
    }

    #[test]
    fn the_rank_is_compared_with_the_target() {
        assert_eq!(says(5, 0, 0, 50), ["the exported rows end at seq 50, the target itself"]);
        assert_eq!(
            says(5, 0, 0, 80),
            ["the exported rows end at seq 50: 3 rows from there to the target would stay unsent"]
        );
        assert_eq!(
            says(5, 0, 0, 20),
            ["the exported rows end at seq 50: 3 rows from the target to there would be sent twice"]
        );
        assert_eq!(
            says(0, 0, 0, 20),
            ["the exported rows end before the first row: 2 rows from there to the target would stay unsent"]
        );
        assert_eq!(says(11, 0, 0, 20), ["the exported rows end beyond the rows that are left"]);
    }

    #[test]
    fn every_reading_is_given() {
        assert_eq!(
            says(9, 2, 3, 40),
            [
                "the exported rows end at seq 90: 5 rows from the target to there would be sent twice",
                "the exported rows less the legacy ones end at seq 70: 3 rows from the target to there would be sent twice",
                "the exported rows less those that earlier rewinds may have sent twice end at seq 60: 2 rows from the \
                 target to there would be sent twice",
                "the exported rows less the legacy and the resent ones end at seq 40, the target itself",
            ]
        );
    }
}
