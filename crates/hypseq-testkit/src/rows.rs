//! The rows of a cache, flush by flush and without their content: which partition, session, seq and time each has.

use std::ops::RangeInclusive;

use crate::plan::{Clock, PartitionPlan};
use crate::rng::Rng;
use crate::spec::{CacheSpec, Flow, Origin, PartitionSpec};

/// So many of a thousand rows are off their place in time.
const JITTERED_PERMILLE: u32 = 250;

/// Seqs are reserved in blocks of so many.
const BLOCK: i64 = 1024;

/// A row, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its place in its partition: what its content follows from. A row that was flushed again has the first one's.
    pub place: u64,
    pub seq: Option<i64>,
    pub time_ms: Option<i64>,
    /// Its place among the partition's sessions.
    pub session: usize,
    /// Its place in its session.
    pub index: i32,
    pub flush: u64,
    /// Its loss, by its place in the partition's plan.
    pub loss: Option<usize>,
}

/// A session of one partition.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub id: String,
    pub cwd: &'static str,
    pub started_ms: i64,
}

/// What one flush brought.
#[derive(Debug)]
pub(crate) struct Flush {
    pub number: u64,
    pub at_ms: i64,
    /// By partition, in the order of seqs.
    pub rows: Vec<Vec<Row>>,
    /// Sessions that ended, by partition: no more rows of theirs come, unless by a replay.
    pub ended: Vec<Vec<usize>>,
}

/// Draws the rows.
pub(crate) struct RowSource<'a> {
    spec: &'a CacheSpec,
    plans: &'a [PartitionPlan],
    rng: Rng,
    next_seq: i64,
    flushes: u64,
    pub clock: Clock,
    partitions: Vec<PartitionRows>,
    last: Option<Vec<Vec<Row>>>,
}

/// The state of a partition.
struct PartitionRows {
    places: u64,
    sessions: Vec<Session>,
    rows_of: Vec<i32>,
    at_work: Pool,
}

/// Sessions at work, with how many rows each has still to come.
#[derive(Default)]
struct Pool(Vec<(usize, i64)>);

/// How far a flow is.
pub(crate) struct Progress<'a> {
    flow: &'a Flow,
    left: Vec<u64>,
    place: u64,
    flush: u64,
    /// Sessions of its own, of rows that are of another time.
    own: Option<Vec<Pool>>,
}

impl<'a> RowSource<'a> {
    pub(crate) fn new(spec: &'a CacheSpec, plans: &'a [PartitionPlan]) -> Self {
        let partition =
            || PartitionRows { places: 0, sessions: Vec::new(), rows_of: Vec::new(), at_work: Pool::default() };
        Self {
            spec,
            plans,
            rng: Rng::keyed(&[spec.seed, 0x0072_6f77]),
            next_seq: 1,
            flushes: 0,
            clock: Clock::new(),
            partitions: spec.partitions.iter().map(|_| partition()).collect(),
            last: None,
        }
    }

    pub(crate) fn sessions(&self, partition: usize) -> &[Session] {
        self.partitions.get(partition).map_or(&[], |partition| &partition.sessions)
    }

    /// The allocator's next seq: the end of the block that was reserved last.
    pub(crate) fn next_seq(&self) -> i64 {
        (self.next_seq - 1 + BLOCK - 1) / BLOCK * BLOCK + 1
    }

    pub(crate) fn lose_seqs(&mut self) {
        self.next_seq = self.next_seq();
    }

    pub(crate) fn begin<'f>(&self, flow: &'f Flow) -> Progress<'f> {
        let is_apart = flow.origin == Origin::OtherTime;
        let own = is_apart.then(|| self.partitions.iter().map(|_| Pool::default()).collect());
        Progress { flow, left: flow.rows.clone(), place: 0, flush: 0, own }
    }

    /// The next flush of a flow; none at its end.
    pub(crate) fn next_flush(&mut self, progress: &mut Progress<'_>) -> Option<Flush> {
        let left: u64 = progress.left.iter().sum();
        if left == 0 {
            return None;
        }
        self.clock.flush(progress.flow, progress.flush);
        progress.flush += 1;
        let mut flush = self.empty_flush();
        for drawn in 0..left.min(progress.flow.flush_rows) {
            let partition = self.draw_partition(&mut progress.left, left - drawn);
            let row = self.draw_row(partition, progress, &mut flush);
            flush.rows[partition].push(row);
            progress.place += 1;
        }
        if left <= progress.flow.flush_rows {
            for (ended, pool) in flush.ended.iter_mut().zip(progress.own.iter().flatten()) {
                ended.extend(pool.0.iter().map(|(session, _)| session));
            }
        }
        self.last = Some(flush.rows.clone());
        Some(flush)
    }

    /// The last flush once more, under new seqs; none when there was none.
    pub(crate) fn replay(&mut self) -> Option<Flush> {
        let again = self.last.clone()?;
        self.clock.pass();
        let mut flush = self.empty_flush();
        let mut rows: Vec<(usize, Row)> = again
            .into_iter()
            .enumerate()
            .flat_map(|(partition, rows)| rows.into_iter().map(move |row| (partition, row)))
            .collect();
        rows.sort_by_key(|(_, row)| row.seq);
        for (partition, row) in rows {
            let loss = self.plans[partition].loss_of(None, flush.number, row.time_ms);
            let seq = row.seq.map(|_| self.take_seq());
            flush.rows[partition].push(Row { seq, loss, flush: flush.number, ..row });
        }
        Some(flush)
    }

    fn empty_flush(&mut self) -> Flush {
        let number = self.flushes;
        self.flushes += 1;
        let count = self.partitions.len();
        Flush { number, at_ms: self.clock.now_ms(), rows: vec![Vec::new(); count], ended: vec![Vec::new(); count] }
    }

    fn take_seq(&mut self) -> i64 {
        self.next_seq += 1;
        self.next_seq - 1
    }

    /// Each partition as likely as its part of the rows that are left.
    fn draw_partition(&mut self, left: &mut [u64], total: u64) -> usize {
        let mut ticket = self.rng.below(total);
        for (partition, left) in left.iter_mut().enumerate() {
            if ticket < *left {
                *left -= 1;
                return partition;
            }
            ticket -= *left;
        }
        0
    }

    fn draw_row(&mut self, partition: usize, progress: &mut Progress<'_>, flush: &mut Flush) -> Row {
        let flow = progress.flow;
        let spec = &self.spec.partitions[partition];
        let base_ms = flow.base_ms(progress.place);
        let off =
            if self.rng.permille(JITTERED_PERMILLE) { self.rng.between(-flow.jitter_ms, flow.jitter_ms) } else { 0 };
        let grained = (base_ms + off).div_euclid(flow.grain_ms) * flow.grain_ms;
        // What falls outside is mirrored: clamped alone, rows would pile up at both ends.
        let mirrored =
            if grained > flow.to_ms { 2 * flow.to_ms - grained } else { grained.max(2 * flow.from_ms - grained) };
        let time_ms = (!self.rng.permille(spec.null_times_permille)).then(|| mirrored.clamp(flow.from_ms, flow.to_ms));
        let seq = (flow.origin != Origin::Legacy).then(|| self.take_seq());
        let state = &mut self.partitions[partition];
        let place = state.places;
        state.places += 1;
        let pool = progress.own.as_mut().map_or(&mut state.at_work, |own| &mut own[partition]);
        let session = pool.draw(spec, &mut self.rng, &mut flush.ended[partition], state.sessions.len());
        if session == state.sessions.len() {
            let mut rng = Rng::keyed(&[self.spec.seed, partition as u64, session as u64]);
            let cwd = FOLDERS[rng.index(FOLDERS.len())];
            state.sessions.push(Session { id: rng.uuid(), cwd, started_ms: base_ms - rng.between(0, 3_600_000) });
            state.rows_of.push(0);
        }
        let index = state.rows_of[session];
        state.rows_of[session] += 1;
        let loss = self.plans[partition].loss_of(Some(place), flush.number, time_ms);
        Row { place, seq, time_ms, session, index, flush: flush.number, loss }
    }
}

const FOLDERS: [&str; 4] = ["/home/op/src/alpha", "/home/op/src/beta", "/home/op/src/gamma", "/home/op/private"];

impl Pool {
    /// The session of the next row; `next` for a new one, which takes the place of one that has come to its end.
    fn draw(&mut self, spec: &PartitionSpec, rng: &mut Rng, ended: &mut Vec<usize>, next: usize) -> usize {
        if self.0.len() < spec.sessions.max(1) {
            self.0.push((next, quota(&spec.session_rows, rng)));
            return next;
        }
        let slot = rng.index(self.0.len());
        let (session, left) = &mut self.0[slot];
        if *left == 0 {
            ended.push(*session);
            (*session, *left) = (next, quota(&spec.session_rows, rng));
            return next;
        }
        *left -= 1;
        *session
    }
}

fn quota(rows: &RangeInclusive<i64>, rng: &mut Rng) -> i64 {
    rng.between(*rows.start(), *rows.end()).max(1) - 1
}
