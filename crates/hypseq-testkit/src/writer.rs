//! A partition on its way from rows to files: what each flush appends to the live generation, and what each compaction
//! copies into the next.
//!
//! Rows of a session wait until the session has ended, and are then written for every compaction to come: what is held in
//! memory are sessions, not partitions.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::bounds::{Metrics, as_long};
use crate::content::{Content, date, day, iso};
use crate::datafile::Layout;
use crate::error::{Error, io};
use crate::plan::{Loss, PartitionPlan};
use crate::rng::Rng;
use crate::rows::{Row, Session};
use crate::schema::SEQ;
use crate::spec::{CacheSpec, Dataset, PartitionSpec};
use crate::state::{Compaction, Retention};
use crate::table::{NewFile, Table};

/// Rows that wait to be written are written when there are so many.
const BATCH_ROWS: usize = 100_000;

/// A dataset's layouts.
pub(crate) struct Layouts {
    /// Before seqs existed.
    legacy: Layout,
    /// Of a table that began with seqs.
    fresh: Layout,
    /// Of a table that was given them.
    evolved: Layout,
}

impl Layouts {
    pub(crate) fn new(dataset: Dataset) -> Result<Self, Error> {
        Ok(Self {
            legacy: Layout::new(dataset, 0, false)?,
            fresh: Layout::new(dataset, 0, true)?,
            evolved: Layout::new(dataset, 1, true)?,
        })
    }
}

/// Writes a partition.
pub(crate) struct PartitionWriter<'a> {
    spec: &'a CacheSpec,
    partition: &'a PartitionSpec,
    plan: &'a PartitionPlan,
    layouts: &'a Layouts,
    key: u64,
    pub dir: PathBuf,
    url: String,
    names: Rng,
    /// The live generation.
    generation: usize,
    /// Its table; none before its first rows, and for one whose folder is gone.
    table: Option<Table>,
    layout: &'a Layout,
    /// A data file of it.
    some_file: Option<PathBuf>,
    /// Files that are written for later generations.
    copied: Vec<Vec<NewFile>>,
    /// Rows whose session may have more, by session and day.
    open: BTreeMap<(usize, i64), Vec<Row>>,
    jobs: Vec<Job>,
    pub data_files: Vec<u64>,
    pub compaction: Option<Compaction>,
    pub retention: Option<Retention>,
}

/// A data file to be written, for one or more generations.
struct Job {
    rows: Vec<Row>,
    /// With the file's name there.
    generations: Vec<(usize, String)>,
}

impl<'a> PartitionWriter<'a> {
    pub(crate) fn new(
        spec: &'a CacheSpec,
        index: usize,
        plan: &'a PartitionPlan,
        layouts: &'a Layouts,
        home: &Path,
    ) -> Self {
        let partition = &spec.partitions[index];
        let path = format!("hypaware/cache/datasets/{}/source={}", partition.dataset.name(), partition.source);
        let key = Rng::keyed(&[spec.seed, index as u64]).next();
        Self {
            spec,
            partition,
            plan,
            layouts,
            key,
            dir: home.join(&path),
            url: format!("file:///home/op/.hyp/{path}"),
            names: Rng::keyed(&[key, 1]),
            generation: 0,
            table: None,
            layout: &layouts.fresh,
            some_file: None,
            copied: plan.generations.iter().map(|_| Vec::new()).collect(),
            open: BTreeMap::new(),
            jobs: Vec::new(),
            data_files: vec![0; plan.generations.len()],
            compaction: None,
            retention: None,
        }
    }

    pub(crate) fn content<'s>(&self, sessions: &'s [Session]) -> Content<'s>
    where
        'a: 's,
    {
        Content { partition: self.partition, key: self.key, text_bytes: self.spec.text_bytes, sessions }
    }

    /// Takes the rows of a flush, and the sessions that ended with it.
    pub(crate) fn flush(
        &mut self,
        rows: &[Row],
        ended: &[usize],
        sessions: &[Session],
        now_ms: i64,
    ) -> Result<(), Error> {
        if self.is_kept(self.generation) && !rows.is_empty() {
            self.append(rows, sessions, now_ms)?;
        }
        if self.generation + 1 < self.plan.generations.len() {
            for row in rows {
                self.open.entry(self.group(row)).or_default().push(row.clone());
            }
            for session in ended {
                let days: Vec<_> =
                    self.open.range((*session, i64::MIN)..=(*session, i64::MAX)).map(|(k, _)| *k).collect();
                for rows in days.iter().filter_map(|day| self.open.remove(day)).collect::<Vec<_>>() {
                    self.copy(&rows, self.generation + 1..self.plan.generations.len());
                }
            }
            if self.jobs.iter().map(|job| job.rows.len()).sum::<usize>() >= BATCH_ROWS {
                self.write_copies(sessions)?;
            }
        }
        Ok(())
    }

    /// Moves to the next generation.
    pub(crate) fn compact(&mut self, sessions: &[Session], now_ms: i64) -> Result<(), Error> {
        let next = self.generation + 1;
        let open: Vec<Vec<Row>> = self.open.values().cloned().collect();
        for rows in open {
            self.copy(&rows, next..next + 1);
        }
        self.write_copies(sessions)?;
        let files = std::mem::take(&mut self.copied[next]);
        let old = &self.plan.generations[self.generation];
        let files_before = self.table.as_ref().map_or(0, |table| table.totals().data_files);
        self.compaction = Some(Compaction::new(old.name.clone(), now_ms, files.len(), files_before));
        if let Some(table) = self.table.take() {
            let retired = table.dir().join(".retired");
            fs::write(&retired, iso(now_ms)).map_err(io(&retired))?;
        }
        self.generation = next;
        self.layout = &self.layouts.fresh;
        if self.is_kept(next) {
            self.commit(files, now_ms)?;
        }
        Ok(())
    }

    /// Deletes the rows of a loss; how many.
    pub(crate) fn delete(&mut self, loss: usize, now_ms: i64) -> Result<(), Error> {
        let Loss { cutoff_ms, form, .. } = self.plan.losses[loss];
        let Some((table, form)) = self.table.as_mut().zip(form) else { return Ok(()) };
        let rows = table.delete(loss, form, now_ms)?;
        if let Some(cutoff_ms) = cutoff_ms {
            self.retention = Some(Retention::new(cutoff_ms, now_ms, rows, table.current_snapshot_id()));
        }
        Ok(())
    }

    /// Leaves what a compaction leaves that is killed.
    pub(crate) fn kill_compaction(&self, now_ms: i64) -> Result<(), Error> {
        let Some(file) = &self.some_file else { return Ok(()) };
        let data = self.dir.join(format!("table-{now_ms}")).join("data");
        fs::create_dir_all(&data).map_err(io(&data))?;
        let bytes = fs::read(file).map_err(io(file))?;
        let mut names = self.names.clone();
        let whole = data.join(format!("{}.parquet", names.uuid()));
        fs::write(&whole, &bytes).map_err(io(&whole))?;
        let cut = data.join(format!("{}.parquet.tmp.4242.{now_ms}.ab12cd", names.uuid()));
        fs::write(&cut, &bytes[..bytes.len() / 2]).map_err(io(&cut))
    }

    /// The name of the live generation.
    pub(crate) fn live_name(&self) -> &str {
        &self.plan.generations[self.generation].name
    }

    fn is_kept(&self, generation: usize) -> bool {
        self.plan.generations[generation].kept.is_some()
    }

    /// Rows with the same key go into one file: those of a session and day.
    fn group(&self, row: &Row) -> (usize, i64) {
        match self.partition.dataset {
            Dataset::Messages => (row.session, day(row.time_ms.unwrap_or_default())),
            Dataset::Logs => (usize::MAX, 0),
        }
    }

    fn append(&mut self, rows: &[Row], sessions: &[Session], now_ms: i64) -> Result<(), Error> {
        let has_seqs = rows.iter().all(|row| row.seq.is_some());
        match &mut self.table {
            None if !has_seqs => self.layout = &self.layouts.legacy,
            Some(table) if has_seqs && std::ptr::eq(self.layout, &raw const self.layouts.legacy) => {
                self.layout = &self.layouts.evolved;
                table.replace_schema(self.layout.schema.clone(), now_ms)?;
            }
            _ => {}
        }
        let mut groups: BTreeMap<(usize, i64), Vec<Row>> = BTreeMap::new();
        for row in rows {
            groups.entry(self.group(row)).or_default().push(row.clone());
        }
        let name = |names: &mut Rng| vec![(self.generation, file_name(names))];
        let jobs: Vec<Job> =
            groups.into_values().map(|rows| Job { rows, generations: name(&mut self.names) }).collect();
        let files = self.run(&jobs, self.layout, sessions)?;
        self.commit(files.into_iter().map(|(_, file)| file).collect(), now_ms)
    }

    fn commit(&mut self, files: Vec<NewFile>, now_ms: i64) -> Result<(), Error> {
        if let Some(file) = files.first() {
            self.some_file = Some(self.folder(self.generation).join("data").join(&file.name));
        }
        let table = match &mut self.table {
            Some(table) => table,
            none => none.insert(Table::create(
                &self.dir.join(&self.plan.generations[self.generation].name),
                format!("{}/{}", self.url, self.plan.generations[self.generation].name),
                self.partition.dataset,
                self.layout.schema.clone(),
                now_ms,
                Rng::keyed(&[self.key, 2, self.generation as u64]),
            )?),
        };
        table.append(files, now_ms)?;
        self.data_files[self.generation] = u64::try_from(table.totals().data_files).unwrap_or_default();
        Ok(())
    }

    /// Plans files for later generations, in which rows may be missing that were lost before.
    fn copy(&mut self, rows: &[Row], generations: Range<usize>) {
        let mut last: Option<Job> = None;
        let plan = self.plan;
        for generation in generations.filter(|generation| plan.generations[*generation].kept.is_some()) {
            let has = |row: &&Row| row.loss.is_none_or(|loss| plan.losses[loss].generation >= generation);
            let rows: Vec<Row> = rows.iter().filter(has).cloned().collect();
            let name = (generation, file_name(&mut self.names));
            match &mut last {
                // What a later generation has is part of what an earlier one has.
                Some(job) if job.rows.len() == rows.len() => job.generations.push(name),
                _ => self.jobs.extend(last.replace(Job { rows, generations: vec![name] })),
            }
        }
        self.jobs.extend(last);
    }

    /// Writes the files that are planned for later generations.
    fn write_copies(&mut self, sessions: &[Session]) -> Result<(), Error> {
        let mut jobs = std::mem::take(&mut self.jobs);
        jobs.retain(|job| !job.rows.is_empty());
        if self.spec.shuffled {
            for job in &mut jobs {
                shuffle(&mut job.rows, &mut self.names);
            }
        }
        for (generation, file) in self.run(&jobs, &self.layouts.fresh, sessions)? {
            self.copied[generation].push(file);
        }
        Ok(())
    }

    /// Writes files, several at once; each with its generation, in the order of the jobs.
    fn run(&self, jobs: &[Job], layout: &Layout, sessions: &[Session]) -> Result<Vec<(usize, NewFile)>, Error> {
        let files: Result<Vec<_>, Error> = jobs.par_iter().map(|job| self.write(job, layout, sessions)).collect();
        Ok(files?.into_iter().flatten().collect())
    }

    fn write(&self, job: &Job, layout: &Layout, sessions: &[Session]) -> Result<Vec<(usize, NewFile)>, Error> {
        let content = self.content(sessions);
        let encoded = layout.write(&content, &job.rows, self.spec.row_group_rows)?;
        let mut written: Option<PathBuf> = None;
        let mut files = Vec::with_capacity(job.generations.len());
        for (generation, name) in &job.generations {
            let data = self.folder(*generation).join("data");
            fs::create_dir_all(&data).map_err(io(&data))?;
            let path = data.join(name);
            match &written {
                Some(first) if self.spec.link_same_files => fs::hard_link(first, &path),
                _ => fs::write(&path, &encoded.bytes),
            }
            .map_err(io(&path))?;
            written.get_or_insert(path);
            let is_lost_here = |row: &Row| {
                row.loss.filter(|loss| {
                    let loss = &self.plan.losses[*loss];
                    loss.generation == *generation && loss.form.is_some()
                })
            };
            let losses = job.rows.iter().zip(0..).filter_map(|(row, place)| Some((is_lost_here(row)?, place)));
            let file = NewFile {
                name: name.clone(),
                partition: self.partition_values(&job.rows, sessions),
                rows: as_long(job.rows.len()),
                bytes: as_long(encoded.bytes.len()),
                metrics: self.stated(&encoded.metrics, layout, name),
                losses: losses.collect(),
            };
            files.push((*generation, file));
        }
        Ok(files)
    }

    fn partition_values(&self, rows: &[Row], sessions: &[Session]) -> Vec<Option<String>> {
        match (self.partition.dataset, rows.first()) {
            (Dataset::Messages, Some(row)) => {
                let session = &sessions[row.session];
                let date = date(day(row.time_ms.unwrap_or_default()));
                vec![Some(session.id.clone()), None, Some(session.cwd.to_owned()), Some(date)]
            }
            _ => Vec::new(),
        }
    }

    /// What the manifest says of a file's columns: sometimes less than there is to say.
    fn stated(&self, metrics: &Arc<Metrics>, layout: &Layout, name: &str) -> Option<Arc<Metrics>> {
        let mut rng = Rng::keyed(&name.bytes().map(u64::from).collect::<Vec<_>>());
        if !rng.permille(self.spec.missing_bounds_permille) {
            return Some(Arc::clone(metrics));
        }
        let id = |name: &str| layout.schema.fields.iter().find(|column| column.name == name).map(|column| column.id);
        let (seq, time) = (id(SEQ), id(self.partition.dataset.time_column()));
        let mut metrics = Metrics::clone(metrics);
        match rng.below(6) {
            0 => return None,
            1 => metrics.nulls.clear(),
            2 => metrics.lower.retain(|(id, _)| Some(*id) != seq),
            3 => metrics.upper.retain(|(id, _)| Some(*id) != seq),
            4 => metrics.lower.retain(|(id, _)| Some(*id) != time),
            _ => metrics.upper.retain(|(id, _)| Some(*id) != time),
        }
        Some(Arc::new(metrics))
    }

    fn folder(&self, generation: usize) -> PathBuf {
        self.dir.join(&self.plan.generations[generation].name)
    }
}

fn file_name(names: &mut Rng) -> String {
    format!("{}.parquet", names.uuid())
}

fn shuffle(rows: &mut [Row], rng: &mut Rng) {
    for end in (1..rows.len()).rev() {
        rows.swap(end, rng.index(end + 1));
    }
}
