//! From a description to a HypAware home on disk.

use std::path::Path;

use crate::error::Error;
use crate::messages;
use crate::plan::{PartitionPlan, plan};
use crate::rows::{Flush, Row, RowSource};
use crate::sink::Sink;
use crate::spec::{CacheSpec, Dataset, Step};
use crate::state::{self, Allocator, Cursor, Watermark};
use crate::truth::{GenerationState, GenerationTruth, PartitionTruth, RowTruth, Truth};
use crate::writer::{Layouts, PartitionWriter};

const WATERMARKS: &str = "hypaware/plugins/@hypaware/central/sink-instances/central/watermarks";
const SPOOL: &str = "hypaware/cache/datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool";

/// Writes a HypAware home into a folder, and returns what is in it, row by row.
///
/// # Errors
/// The steps do not fit the partitions, or something cannot be written.
pub fn generate(spec: &CacheSpec, home: &Path) -> Result<Truth, Error> {
    let mut rows: Vec<Vec<RowTruth>> = spec.partitions.iter().map(|_| Vec::new()).collect();
    let mut truth = generate_streaming(spec, home, &mut |partition, row| rows[partition].push(row))?;
    for (partition, rows) in truth.partitions.iter_mut().zip(rows) {
        partition.rows = rows;
    }
    Ok(truth)
}

/// As [`generate`] for caches that do not fit into memory: hands over the rows one by one, with the partition's place.
///
/// # Errors
/// As [`generate`].
pub fn generate_streaming(
    spec: &CacheSpec,
    home: &Path,
    on_row: &mut dyn FnMut(usize, RowTruth),
) -> Result<Truth, Error> {
    let plans = plan(spec)?;
    let layouts = [Layouts::new(Dataset::Messages)?, Layouts::new(Dataset::Logs)?];
    let writers = plans.iter().enumerate().map(|(index, plan)| {
        let [messages, logs] = &layouts;
        let of_dataset = if spec.partitions[index].dataset == Dataset::Messages { messages } else { logs };
        PartitionWriter::new(spec, index, plan, of_dataset, home)
    });
    let mut cache = Cache {
        spec,
        home,
        plans: &plans,
        source: RowSource::new(spec, &plans),
        writers: writers.collect(),
        sinks: plans.iter().map(|_| Sink::default()).collect(),
        losses: vec![0; plans.len()],
        tallies: plans.iter().map(|plan| vec![Tally::default(); plan.generations.len()]).collect(),
        on_row,
    };
    for step in &spec.steps {
        cache.step(step)?;
    }
    cache.finish()
}

struct Cache<'a> {
    spec: &'a CacheSpec,
    home: &'a Path,
    plans: &'a [PartitionPlan],
    source: RowSource<'a>,
    writers: Vec<PartitionWriter<'a>>,
    sinks: Vec<Sink>,
    /// How many losses have happened, by partition.
    losses: Vec<usize>,
    /// By partition and generation.
    tallies: Vec<Vec<Tally>>,
    on_row: &'a mut dyn FnMut(usize, RowTruth),
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    raw: u64,
    visible: u64,
}

impl Cache<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Flow(flow) => {
                let mut progress = self.source.begin(flow);
                while let Some(flush) = self.source.next_flush(&mut progress) {
                    self.flush(&flush)?;
                }
            }
            Step::Replay => {
                if let Some(flush) = self.source.replay() {
                    self.flush(&flush)?;
                }
            }
            Step::LoseSeqs => {
                self.source.clock.pass();
                self.source.lose_seqs();
            }
            Step::Compact { partition, drops, .. } => {
                if *drops > 0 {
                    let loss = self.next_loss(*partition);
                    self.sinks[*partition].lose(loss);
                }
                self.source.clock.pass();
                let now_ms = self.source.clock.now_ms();
                self.writers[*partition].compact(self.source.sessions(*partition), now_ms)?;
            }
            Step::Delete { partition, .. } => {
                let loss = self.next_loss(*partition);
                self.source.clock.pass();
                self.writers[*partition].delete(loss, self.source.clock.now_ms())?;
                self.sinks[*partition].lose(loss);
            }
            Step::KilledCompaction { partition } => {
                self.source.clock.pass();
                self.writers[*partition].kill_compaction(self.source.clock.now_ms())?;
            }
            Step::Tick { withheld } => {
                self.source.clock.pass();
                for (partition, sink) in self.sinks.iter_mut().enumerate() {
                    sink.tick(withheld.contains(&partition), self.source.clock.now_ms());
                }
            }
        }
        Ok(())
    }

    fn next_loss(&mut self, partition: usize) -> usize {
        self.losses[partition] += 1;
        self.losses[partition] - 1
    }

    fn flush(&mut self, flush: &Flush) -> Result<(), Error> {
        for (partition, rows) in flush.rows.iter().enumerate() {
            for row in rows {
                self.sinks[partition].see(row);
                self.tell(partition, row);
            }
            let sessions = self.source.sessions(partition);
            self.writers[partition].flush(rows, &flush.ended[partition], sessions, flush.at_ms)?;
        }
        Ok(())
    }

    /// Tells the truth about a row.
    fn tell(&mut self, partition: usize, row: &Row) {
        let plan = &self.plans[partition];
        let loss = row.loss.map(|loss| &plan.losses[loss]);
        let (mut visible, mut deleted) = (0, 0);
        for (index, generation) in plan.generations.iter().enumerate() {
            let is_there = row.flush < generation.end_flush && loss.is_none_or(|loss| loss.generation >= index);
            let Some(kept) = generation.kept.filter(|_| is_there) else { continue };
            let is_deleted = loss.is_some_and(|loss| loss.generation == index && loss.form.is_some());
            let tally = &mut self.tallies[partition][index];
            tally.raw += 1;
            if is_deleted {
                deleted |= 1 << kept;
            } else {
                visible |= 1 << kept;
                tally.visible += 1;
            }
        }
        if visible | deleted != 0 {
            let id = self.writers[partition].content(self.source.sessions(partition)).id(row);
            (self.on_row)(partition, RowTruth { seq: row.seq, time_ms: row.time_ms, id, visible, deleted });
        }
    }

    fn finish(self) -> Result<Truth, Error> {
        let now_ms = self.source.clock.now_ms();
        let root = self.home.join("hypaware");
        let next_seq = self.source.next_seq();
        state::write(&root.join("cache/_hyp_ingest_seq.json"), &Allocator::new(next_seq, now_ms))?;
        let policy = root.join("usage-policy");
        if let Some(sources) = &self.spec.opted_out {
            state::write(&policy.join("client-sync.json"), &state::client_sync(sources))?;
        }
        if let Some(folders) = &self.spec.folders {
            state::write(&policy.join("local-only.json"), &state::local_only(folders))?;
        }
        let spooled = self.write_spool(now_ms)?;
        let mut partitions = Vec::new();
        for index in 0..self.writers.len() {
            partitions.push(self.finish_partition(index)?);
        }
        Ok(Truth { partitions, next_seq, spooled })
    }

    fn finish_partition(&self, index: usize) -> Result<PartitionTruth, Error> {
        let (writer, plan, spec) = (&self.writers[index], &self.plans[index], &self.spec.partitions[index]);
        let tallies = &self.tallies[index];
        let cursor = Cursor {
            epoch: 0,
            row_count: tallies.last().map_or(0, |tally| tally.visible),
            compaction: writer.compaction.as_ref(),
            layout: "source-table",
            table_dir: writer.live_name(),
            retention: writer.retention.as_ref(),
        };
        state::write(&writer.dir.join("cursor.json"), &cursor)?;
        let dataset = spec.dataset;
        let path = format!("source={}", spec.source);
        let watermark = self.sinks[index].watermark;
        if let Some((watermark, at_ms)) = watermark {
            let file = self.home.join(WATERMARKS).join(dataset.name()).join(format!("{path}.json"));
            state::write(&file, &Watermark::new(watermark, at_ms))?;
        }
        let generation = |(place, state): (usize, GenerationState)| {
            let generation = &plan.generations[place];
            GenerationTruth {
                name: generation.name.clone(),
                state,
                data_files: writer.data_files[place],
                raw_rows: tallies[place].raw,
                visible_rows: tallies[place].visible,
            }
        };
        Ok(PartitionTruth {
            dataset: dataset.name(),
            path,
            time_column: dataset.time_column(),
            id_column: dataset.id_column(),
            generations: plan.states().map(generation).collect(),
            rows: Vec::new(),
            watermark: watermark.map(|(watermark, _)| watermark),
        })
    }

    /// Writes the spool of the first partition of messages: rows like those of its last session.
    fn write_spool(&self, now_ms: i64) -> Result<usize, Error> {
        let of_messages = |(index, _): &(usize, _)| self.spec.partitions[*index].dataset == Dataset::Messages;
        let Some((index, writer)) = self.writers.iter().enumerate().find(of_messages) else { return Ok(0) };
        let sessions = self.source.sessions(index);
        let (Some(session), true) = (sessions.len().checked_sub(1), self.spec.spooled > 0) else { return Ok(0) };
        let content = writer.content(sessions);
        let row = |number: i32| Row {
            place: u64::MAX - u64::from(number.unsigned_abs()),
            seq: None,
            time_ms: Some(now_ms + i64::from(number) * 1000),
            session,
            index: number,
            flush: u64::MAX,
            loss: None,
        };
        let count = i32::try_from(self.spec.spooled).unwrap_or(i32::MAX);
        let rows: Vec<_> = (0..count).map(|number| messages::spooled(&content, &row(number))).collect();
        state::write_spool(&self.home.join(SPOOL), &rows, now_ms)?;
        Ok(rows.len())
    }
}
