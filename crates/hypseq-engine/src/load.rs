//! Opening a home: its generations, and what their metadata says.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use hypseq_cache::{GenerationState, Home, Partition, PartitionId, Problem, Severity};
use hypseq_iceberg::{DeletedRows, Error, Schema, SnapshotFiles, Table};
use hypseq_scan::{Columns, Doubt, LazyScan, Scan, scan_generation};
use rayon::prelude::*;

use crate::Unreadable;
use crate::datafile::{DataFile, Deletes};
use crate::homes::OpenHome;

/// A generation. Its table metadata is read when a session opens, all else once a query needs it.
#[derive(Debug)]
pub(crate) struct Generation {
    /// What the `home` column shows.
    pub home: Arc<str>,
    pub partition: PartitionId,
    pub name: String,
    pub state: GenerationState,
    /// Contents of `.retired`.
    pub retired_at: Option<String>,
    pub dir: PathBuf,
    cache_root: Arc<Path>,
    table: Result<Table, Error>,
    snapshot: OnceLock<Snapshot>,
    unreferenced: OnceLock<Unreferenced>,
}

/// What the newest snapshot of a generation says.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The data files that it reaches.
    pub files: Vec<Arc<DataFile>>,
    /// What could not be read: which data files the generation has is then not known for sure.
    pub lost: Vec<Unreadable>,
}

/// Data files of a generation that its newest snapshot does not reach.
#[derive(Debug, Default)]
pub(crate) struct Unreferenced {
    pub files: Vec<Arc<DataFile>>,
    /// Why its folder could not be searched for them.
    pub unlisted: Option<Unreadable>,
}

/// Finds every partition and generation of a home, and reads the generations' table metadata.
pub(crate) fn load(home: Home, label: Arc<str>) -> OpenHome {
    let found = home.partitions();
    let (partitions, mut problems) = (found.value, found.problems);
    let is_shown = |partition: &&Partition| partition.live().is_some() || partition.generations.is_empty();
    problems.extend(partitions.iter().filter(|partition| !is_shown(partition)).map(no_live_generation));
    let of_partition = |partition: &Partition| {
        let mut generations: Vec<_> = partition.generations.iter().rev().cloned().collect();
        generations.sort_by_key(|generation| generation.state != GenerationState::Live);
        generations.into_iter().map(|generation| (partition.id.clone(), generation)).collect::<Vec<_>>()
    };
    let unread: Vec<_> = partitions.iter().flat_map(of_partition).collect();
    let cache_root: Arc<Path> = home.cache_root().into();
    let open = |(partition, generation): (_, hypseq_cache::Generation)| Generation {
        home: Arc::clone(&label),
        partition,
        name: generation.name,
        state: generation.state,
        retired_at: generation.retired_at,
        table: Table::open(&generation.dir),
        dir: generation.dir,
        cache_root: Arc::clone(&cache_root),
        snapshot: OnceLock::new(),
        unreferenced: OnceLock::new(),
    };
    let generations: Vec<Arc<Generation>> = unread.into_par_iter().map(open).map(Arc::new).collect();
    problems.extend(generations.iter().filter_map(|generation| generation.problem_of_table()));
    OpenHome { label, home, partitions, generations, problems, noted: Mutex::default() }
}

fn no_live_generation(partition: &Partition) -> Problem {
    let why = match &partition.cursor {
        Ok(_) => "the cursor names a folder that is not there",
        Err(_) => "the cursor is unreadable",
    };
    Problem {
        severity: Severity::Error,
        code: "live-generation-unknown",
        path: partition.dir.clone(),
        message: format!("schema live has no rows of this partition: {why}, and the live generation is not guessed"),
        advice: "look at its generations in schema raw, or at their union in schema complete".to_owned(),
    }
}

impl Generation {
    /// Its table, where its metadata can be read.
    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.as_ref().ok()
    }

    /// Its current schema; none without readable metadata.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.table().map(|table| table.metadata.current_schema())
    }

    /// The columns that hold seq, time and id; none without readable metadata.
    pub(crate) fn columns(&self) -> Option<Columns> {
        self.schema().map(|schema| Columns::of(&self.partition.dataset, schema))
    }

    /// The files of its newest snapshot as the manifests have them, read anew; what cannot be read is among its problems.
    pub(crate) fn files(&self) -> SnapshotFiles {
        let newest = self.table().and_then(|table| Some(table.files(table.metadata.current_snapshot()?)));
        if let Some(Ok(files)) = &newest {
            made_once(&self.snapshot, || self.snapshot_of(files.clone()));
        } else {
            self.snapshot();
        }
        newest.and_then(Result::ok).unwrap_or_default()
    }

    /// What its visible rows tell: by bounds, where these can tell it, else by a scan of every row.
    ///
    /// # Errors
    /// Not all of its rows can be read.
    pub(crate) fn ask<T>(
        &self,
        by_bounds: impl FnOnce(&LazyScan<'_>) -> Result<T, Doubt>,
        by_rows: impl FnOnce(&Scan) -> T,
    ) -> Result<T, Unreadable> {
        let files = self.files();
        if let Some(lost) = self.snapshot().lost.first() {
            return Err(lost.clone());
        }
        let (Some(table), Some(columns)) = (self.table(), self.columns()) else {
            let message = "there is no Iceberg metadata".to_owned();
            return Err(Unreadable { path: self.dir.clone(), message, hint: HINT.to_owned() });
        };
        if let Ok(answer) = LazyScan::new(table, &files, &columns).and_then(|rows| by_bounds(&rows)) {
            return Ok(answer);
        }
        let scan = scan_generation(table, &files, &columns);
        match scan.problems.first() {
            Some(Problem { path, message, advice, .. }) => {
                Err(Unreadable { path: path.clone(), message: message.clone(), hint: advice.clone() })
            }
            None => Ok(by_rows(&scan)),
        }
    }

    /// A path below the cache root, `/`-separated.
    pub(crate) fn relative(&self, path: &Path) -> String {
        relative(path, &self.cache_root)
    }

    /// What its newest snapshot says.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        made_once(&self.snapshot, || self.read_newest())
    }

    /// The data files that its newest snapshot does not reach.
    pub(crate) fn unreferenced(&self) -> &Unreferenced {
        made_once(&self.unreferenced, || self.list_unreferenced())
    }

    /// Data files, those that the newest snapshot does not reach included.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.snapshot().files.iter().chain(&self.unreferenced().files)
    }

    /// Why its table cannot be read; a folder without metadata that was never live is no table.
    fn lost_table(&self) -> Option<Unreadable> {
        let error = self.table.as_ref().err()?;
        let is_lost = !matches!(error, Error::NoMetadata { .. }) || self.state == GenerationState::Live;
        is_lost.then(|| unreadable(error))
    }

    fn read_newest(&self) -> Snapshot {
        match self.table().and_then(|table| table.metadata.current_snapshot()) {
            Some(newest) => self.read_snapshot(newest),
            None => Snapshot { files: Vec::new(), lost: self.lost_table().into_iter().collect() },
        }
    }

    /// What any of its snapshots says.
    pub(crate) fn read_snapshot(&self, wanted: &hypseq_iceberg::Snapshot) -> Snapshot {
        match self.table.as_ref().map(|table| table.files(wanted)) {
            Ok(Ok(files)) => self.snapshot_of(files),
            Ok(Err(error)) => Snapshot { files: Vec::new(), lost: vec![unreadable(&error)] },
            Err(_) => Snapshot { files: Vec::new(), lost: self.lost_table().into_iter().collect() },
        }
    }

    /// The files of a snapshot as scans need them.
    fn snapshot_of(&self, files: SnapshotFiles) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let deletes: Vec<_> = files.data.par_iter().map(hypseq_iceberg::DataFile::deleted_rows).collect();
        let is_about_deletes = |problem: &&Error| deletes.iter().any(|rows| rows.as_ref().err() == Some(*problem));
        snapshot.lost.extend(files.problems.iter().filter(|problem| !is_about_deletes(problem)).map(unreadable));
        let fields = self.schema().into_iter().flat_map(|schema| &schema.fields);
        let ids: HashMap<_, _> = fields.map(|field| (field.name.clone(), field.id)).collect();
        let ids = Arc::new(ids);
        let data_file = |(file, deletes): (hypseq_iceberg::DataFile, Result<DeletedRows, Error>)| {
            Arc::new(DataFile {
                relative: self.relative(&file.path),
                rows: Some(file.record_count),
                referenced: Some(true),
                deletes: match deletes {
                    Ok(rows) => Deletes::Known(Arc::new(rows.0)),
                    Err(error) => Deletes::Unknown(unreadable(&error)),
                },
                path: file.path,
                bounds: file.bounds,
                field_ids: Arc::clone(&ids),
                footer: OnceLock::new(),
            })
        };
        snapshot.files = files.data.into_iter().zip(deletes).map(data_file).collect();
        snapshot
    }

    fn list_unreferenced(&self) -> Unreferenced {
        let paths = match hypseq_iceberg::unreferenced(&self.dir) {
            Ok(paths) => paths,
            Err(error) => return Unreferenced { files: Vec::new(), unlisted: Some(unreadable(&error)) },
        };
        let snapshot = self.snapshot();
        let reached: HashSet<&OsStr> = snapshot.files.iter().map(|file| file.path.as_os_str()).collect();
        // Where a manifest is unreadable, the files that it lists look as if nothing referred to them.
        let referenced = if snapshot.lost.is_empty() { Some(false) } else { None };
        let no_ids = Arc::default();
        let data_file = |path: PathBuf| {
            Arc::new(DataFile {
                relative: self.relative(&path),
                path,
                rows: None,
                referenced,
                deletes: Deletes::Known(Arc::default()),
                bounds: BTreeMap::new(),
                field_ids: Arc::clone(&no_ids),
                footer: OnceLock::new(),
            })
        };
        let files = paths.into_iter().filter(|path| !reached.contains(path.as_os_str()));
        Unreferenced { files: files.map(data_file).collect(), unlisted: None }
    }

    fn problem_of_table(&self) -> Option<Problem> {
        self.lost_table().map(|lost| problem("metadata-unreadable", &lost))
    }

    /// What queries have found to be unreadable, the table's metadata aside.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let snapshot = self.snapshot.get();
        let lost_table = self.lost_table();
        let lost =
            snapshot.iter().flat_map(|snapshot| &snapshot.lost).filter(|lost| lost_table.as_ref() != Some(*lost));
        let unlisted = self.unreferenced.get().and_then(|unreferenced| unreferenced.unlisted.as_ref());
        let mut problems: Vec<Problem> = lost
            .map(|lost| problem("metadata-unreadable", lost))
            .chain(unlisted.map(|unlisted| problem("folder-unreadable", unlisted)))
            .collect();
        for file in snapshot.iter().flat_map(|snapshot| &snapshot.files) {
            if let Deletes::Unknown(unreadable) = &file.deletes {
                let problem = problem("deletes-unreadable", unreadable);
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        problems
    }
}

/// The value of a cell, which is made outside of the cell's lock: a thread that works for rayon while it holds a lock may be
/// given a job that waits for the same lock, and never goes on.
pub(crate) fn made_once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(value) = cell.get() {
        return value;
    }
    let value = make();
    cell.get_or_init(|| value)
}

/// What is unreadable, as a problem.
pub(crate) fn problem(code: &'static str, unreadable: &Unreadable) -> Problem {
    Problem {
        severity: Severity::Error,
        code,
        path: unreadable.path.clone(),
        message: unreadable.message.clone(),
        advice: unreadable.hint.clone(),
    }
}

const HINT: &str =
    "schema raw shows what can be read, with null in `_deleted` and `_referenced` where they are unknown";

fn unreadable(error: &Error) -> Unreadable {
    let message = match error {
        Error::NoMetadata { found, .. } => format!("there is no Iceberg metadata: {found}"),
        Error::Io { message, .. } => message.clone(),
        Error::Invalid { expected, found, .. } => format!("expected {expected}, found {found}"),
        Error::Outside { .. } => error.to_string(),
    };
    Unreadable { path: error.path().to_owned(), message, hint: HINT.to_owned() }
}

fn relative(path: &Path, cache_root: &Path) -> String {
    let relative = path.strip_prefix(cache_root).unwrap_or(path);
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
