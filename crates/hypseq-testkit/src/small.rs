//! Small caches of random shape, for property tests.

use std::path::Path;

use crate::cache::generate;
use crate::error::Error;
use crate::rng::Rng;
use crate::spec::{CacheSpec, DeleteForm, Doomed, Flow, Origin, PartitionSpec, Step};
use crate::truth::Truth;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 2026-07-20T06:00:00Z.
const FROM_MS: i64 = 1_784_527_200_000;

/// Writes a small home of random shape into a folder: some hundred rows in several generations, several row groups per
/// file, deletes in either form, ties, inversions, legacy rows, null times (in `logs`), rows flushed twice, rows far off
/// in time, lost seqs, and missing bounds.
///
/// # Errors
/// Something cannot be written.
pub fn small(seed: u64, home: &Path) -> Result<Truth, Error> {
    generate(&small_spec(seed), home)
}

/// The description that [`small()`] writes, for a test that wants to change something in it.
pub fn small_spec(seed: u64) -> CacheSpec {
    let mut rng = Rng::keyed(&[seed, 0x0073_6d61_6c6c]);
    let mut partitions = vec![messages("claude", &mut rng), messages("codex", &mut rng)];
    if rng.permille(300) {
        partitions.push(PartitionSpec { null_times_permille: 150, ..PartitionSpec::logs("unknown") });
    }
    let steps = Script { clock_ms: FROM_MS, partitions: partitions.len(), rng: &mut rng, steps: Vec::new() }.write();
    CacheSpec {
        seed,
        partitions,
        steps,
        text_bytes: rng.index(60) + 10,
        row_group_rows: Some(rng.index(12) + 2),
        shuffled: rng.permille(300),
        missing_bounds_permille: [0, 150, 500][rng.index(3)],
        link_same_files: false,
        spooled: rng.index(8),
        opted_out: rng.permille(500).then(|| if rng.permille(500) { vec!["claude".to_owned()] } else { Vec::new() }),
        folders: rng.permille(300).then(|| vec![("/home/op/private".to_owned(), "local-only".to_owned())]),
    }
}

fn messages(source: &str, rng: &mut Rng) -> PartitionSpec {
    let least = rng.between(10, 40);
    PartitionSpec {
        sessions: rng.index(3) + 1,
        session_rows: least..=least + rng.between(0, 80),
        ..PartitionSpec::messages(source)
    }
}

/// Makes the steps up.
struct Script<'a> {
    clock_ms: i64,
    partitions: usize,
    rng: &'a mut Rng,
    steps: Vec<Step>,
}

impl Script<'_> {
    fn write(mut self) -> Vec<Step> {
        if self.rng.permille(300) {
            self.onward(Origin::Legacy);
        }
        self.onward(Origin::Live);
        for _ in 0..self.rng.between(4, 10) {
            match self.rng.below(12) {
                0..=3 => self.compact(),
                4..=7 => self.delete(),
                8 => self.backfill(),
                9 => self.outlier(),
                10 => self.steps.push(Step::Replay),
                _ => self.steps.push(Step::LoseSeqs),
            }
            if self.rng.permille(600) {
                self.onward(Origin::Live);
            }
            if self.rng.permille(400) {
                let withheld = (0..self.partitions).filter(|_| self.rng.permille(300)).collect();
                self.steps.push(Step::Tick { withheld });
            }
        }
        self.steps
    }

    /// Rows of all partitions, later than those before.
    fn onward(&mut self, origin: Origin) {
        let span = self.rng.between(HOUR_MS, 2 * DAY_MS);
        // Windows may overlap a little, so that not every flow begins where the last one ended.
        let from_ms = self.clock_ms - if self.rng.permille(200) { HOUR_MS / 2 } else { 0 };
        self.clock_ms += span;
        let rows = (0..self.partitions).map(|_| self.rng.below(90) + 20).collect();
        self.flow(rows, from_ms, self.clock_ms, origin);
    }

    /// Old rows that come late.
    fn backfill(&mut self) {
        let from_ms = self.rng.between(FROM_MS - 5 * DAY_MS, self.clock_ms - 2 * HOUR_MS);
        let rows = (0..self.partitions).map(|_| self.rng.below(20) + 1).collect();
        self.flow(rows, from_ms, from_ms + HOUR_MS, Origin::OtherTime);
    }

    /// One row of a client whose clock is wrong.
    fn outlier(&mut self) {
        let time_ms = if self.rng.permille(500) { self.clock_ms + 1600 * DAY_MS } else { 0 };
        let mut rows = vec![0; self.partitions];
        let partition = self.rng.index(self.partitions);
        rows[partition] = 1;
        self.flow(rows, time_ms, time_ms, Origin::OtherTime);
    }

    fn flow(&mut self, rows: Vec<u64>, from_ms: i64, to_ms: i64, origin: Origin) {
        let rng = &mut *self.rng;
        self.steps.push(Step::Flow(Flow {
            rows,
            from_ms,
            to_ms,
            jitter_ms: [0, 120_000, HOUR_MS][rng.index(3)],
            grain_ms: [1, 60_000, HOUR_MS][rng.index(3)],
            flush_rows: rng.below(80) + 20,
            origin,
        }));
    }

    /// Mostly the first: one with a long history is worth more than several with short ones.
    fn partition(&mut self) -> usize {
        if self.rng.permille(500) { 0 } else { self.rng.index(self.partitions) }
    }

    fn compact(&mut self) {
        let partition = self.partition();
        let drops = if self.rng.permille(200) { self.rng.below(4) } else { 0 };
        self.steps.push(Step::Compact { partition, drops, removes_old: self.rng.permille(150) });
    }

    fn delete(&mut self) {
        let partition = self.partition();
        let rows = if self.rng.permille(600) {
            Doomed::Any(self.rng.below(25) + 1)
        } else {
            Doomed::Before(self.rng.between(FROM_MS, FROM_MS + (self.clock_ms - FROM_MS) / 2))
        };
        let form = if self.rng.permille(650) { DeleteForm::Vectors } else { DeleteForm::Positions };
        self.steps.push(Step::Delete { partition, rows, form });
    }
}
