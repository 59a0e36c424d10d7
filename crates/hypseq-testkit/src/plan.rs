//! What a description's steps come to before any row exists: the generations of each partition, and which rows it loses
//! when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::Error;
use crate::rng::Rng;
use crate::spec::{CacheSpec, DeleteForm, Doomed, Flow, Origin, Step};
use crate::truth::GenerationState;

/// How a partition loses rows at one time.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The generation that was live, by its place in [`PartitionPlan::generations`].
    pub generation: usize,
    /// Rows of this flush and later ones did not exist yet.
    pub before_flush: u64,
    /// Rows that are older are lost; none when rows were chosen one by one.
    pub cutoff_ms: Option<i64>,
    /// How it was written; none for rows that a compaction dropped at the end of that generation.
    pub form: Option<DeleteForm>,
}

#[derive(Debug)]
pub(crate) struct GenerationPlan {
    pub name: String,
    /// The flush at which the next generation took over.
    pub end_flush: u64,
    /// Its place among those that are still there; none when its folder is gone.
    pub kept: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct PartitionPlan {
    pub generations: Vec<GenerationPlan>,
    pub losses: Vec<Loss>,
    /// Rows that were chosen one by one, by their place in the partition, with their loss.
    chosen: BTreeMap<u64, usize>,
}

impl PartitionPlan {
    /// The first loss that concerns a row.
    pub(crate) fn loss_of(&self, place: Option<u64>, flush: u64, time_ms: Option<i64>) -> Option<usize> {
        let chosen = place.and_then(|place| self.chosen.get(&place).copied());
        let aged = self.losses.iter().position(|loss| {
            flush < loss.before_flush && time_ms.zip(loss.cutoff_ms).is_some_and(|(time, cutoff)| time < cutoff)
        });
        chosen.into_iter().chain(aged).min()
    }

    /// The places and states of those generations that are still there.
    pub(crate) fn states(&self) -> impl Iterator<Item = (usize, GenerationState)> {
        let live = self.generations.len().saturating_sub(1);
        let kept = self.generations.iter().enumerate().filter(|(_, generation)| generation.kept.is_some());
        kept.map(move |(place, _)| {
            (place, if place == live { GenerationState::Live } else { GenerationState::Retired })
        })
    }
}

/// The time of day, as flushes and commits see it.
#[derive(Debug)]
pub(crate) struct Clock(i64);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(i64::MIN)
    }

    /// Moves on to the flush of that number in a flow: some time after its last row was captured, where that says
    /// anything about the time of day.
    pub(crate) fn flush(&mut self, flow: &Flow, number: u64) {
        self.pass();
        if flow.origin == Origin::OtherTime {
            return;
        }
        let last = ((number + 1) * flow.flush_rows.max(1)).min(flow.total()).saturating_sub(1);
        self.0 = self.0.max(flow.base_ms(last) + 20_000);
    }

    /// Moves on by the time that anything else takes.
    pub(crate) fn pass(&mut self) {
        *self = self.passed();
    }

    /// What it shows after such a time: a compaction's folder is named by it.
    pub(crate) fn passed(&self) -> Self {
        Self(self.0.saturating_add(1000))
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.0
    }
}

/// Plans every partition.
///
/// # Errors
/// [`Error::Spec`] when the steps do not fit the partitions.
pub(crate) fn plan(spec: &CacheSpec) -> Result<Vec<PartitionPlan>, Error> {
    let partitions = spec.partitions.iter().map(|_| Partition::new()).collect();
    let mut planner = Planner { spec, partitions, clock: Clock::new(), flushes: 0 };
    for (number, step) in spec.steps.iter().enumerate() {
        planner.step(number as u64, step)?;
    }
    Ok(planner.partitions.into_iter().map(|partition| partition.finish(planner.flushes)).collect())
}

struct Planner<'a> {
    spec: &'a CacheSpec,
    partitions: Vec<Partition>,
    clock: Clock,
    flushes: u64,
}

struct Partition {
    plan: PartitionPlan,
    /// Rows so far, those that were flushed again not counted.
    rows: u64,
}

impl Planner<'_> {
    fn step(&mut self, number: u64, step: &Step) -> Result<(), Error> {
        let flushes = self.flushes;
        match step {
            Step::Flow(flow) => {
                self.verify(flow)?;
                for flush in 0..flow.flushes() {
                    self.clock.flush(flow, flush);
                }
                self.flushes += flow.flushes();
                for (partition, rows) in self.partitions.iter_mut().zip(&flow.rows) {
                    partition.rows += rows;
                }
                return Ok(());
            }
            Step::Replay => self.flushes += 1,
            Step::Compact { partition, drops, removes_old } => {
                let name = format!("table-{}", self.clock.passed().now_ms());
                let seed = self.spec.seed;
                let partition = self.partition(*partition)?;
                partition.lose(flushes, *drops, &mut Rng::keyed(&[seed, number]));
                partition.compact(flushes, name, *removes_old);
            }
            Step::Delete { partition, rows, form } => {
                let seed = self.spec.seed;
                self.partition(*partition)?.delete(flushes, rows, *form, &mut Rng::keyed(&[seed, number]));
            }
            Step::KilledCompaction { partition } => {
                self.partition(*partition)?;
            }
            Step::Tick { withheld } => {
                withheld.iter().try_for_each(|partition| self.partition(*partition).map(drop))?;
            }
            Step::LoseSeqs => {}
        }
        if flushes == 0 {
            return Err(Error::Spec { expected: "rows before anything else", found: format!("{step:?}") });
        }
        self.clock.pass();
        Ok(())
    }

    fn partition(&mut self, index: usize) -> Result<&mut Partition, Error> {
        let count = self.partitions.len();
        let expected = "a step of a partition that there is";
        self.partitions
            .get_mut(index)
            .ok_or_else(|| Error::Spec { expected, found: format!("partition {index} of {count}") })
    }

    fn verify(&self, flow: &Flow) -> Result<(), Error> {
        let fits = flow.rows.len() == self.partitions.len()
            && flow.total() > 0
            && flow.from_ms <= flow.to_ms
            && flow.jitter_ms >= 0
            && flow.grain_ms > 0
            && flow.flush_rows > 0;
        if fits {
            return Ok(());
        }
        Err(Error::Spec { expected: "a flow of at least one row over some time", found: format!("{flow:?}") })
    }
}

impl Partition {
    fn new() -> Self {
        let first = GenerationPlan { name: "table".to_owned(), end_flush: 0, kept: Some(0) };
        Self { plan: PartitionPlan { generations: vec![first], ..PartitionPlan::default() }, rows: 0 }
    }

    fn live(&self) -> usize {
        self.plan.generations.len() - 1
    }

    fn delete(&mut self, flushes: u64, rows: &Doomed, form: DeleteForm, rng: &mut Rng) {
        let cutoff_ms = match rows {
            Doomed::Before(cutoff) => Some(*cutoff),
            Doomed::Any(_) => None,
        };
        let loss = Loss { generation: self.live(), before_flush: flushes, cutoff_ms, form: Some(form) };
        self.plan.losses.push(loss);
        if let Doomed::Any(count) = rows {
            self.choose(*count, rng);
        }
    }

    fn lose(&mut self, flushes: u64, drops: u64, rng: &mut Rng) {
        if drops > 0 {
            let generation = self.live();
            self.plan.losses.push(Loss { generation, before_flush: flushes, cutoff_ms: None, form: None });
            self.choose(drops, rng);
        }
    }

    /// Chooses rows for the last loss.
    fn choose(&mut self, count: u64, rng: &mut Rng) {
        let loss = self.plan.losses.len() - 1;
        let free = self.rows - self.plan.chosen.len() as u64;
        for _ in 0..count.min(free) {
            loop {
                let place = rng.below(self.rows);
                if let Entry::Vacant(free) = self.plan.chosen.entry(place) {
                    free.insert(loss);
                    break;
                }
            }
        }
    }

    fn compact(&mut self, flushes: u64, name: String, removes_old: bool) {
        if let Some(old) = self.plan.generations.last_mut() {
            old.end_flush = flushes;
            if removes_old {
                old.kept = None;
            }
        }
        self.plan.generations.push(GenerationPlan { name, end_flush: 0, kept: Some(0) });
    }

    fn finish(mut self, flushes: u64) -> PartitionPlan {
        if let Some(last) = self.plan.generations.last_mut() {
            last.end_flush = flushes;
        }
        let kept = self.plan.generations.iter_mut().filter_map(|generation| generation.kept.as_mut());
        for (number, kept) in kept.enumerate() {
            *kept = number;
        }
        self.plan
    }
}
