//! Reads the metadata of every generation of a home, once, when a session opens.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hypseq_cache::{GenerationState, Home, Partition, PartitionId, Problem, Severity};
use hypseq_iceberg::{Error, Schema, SnapshotFiles, Table};
use rayon::prelude::*;

use crate::Unreadable;
use crate::datafile::{DataFile, Deletes};

/// A generation, with all that its metadata says.
#[derive(Debug)]
pub(crate) struct Generation {
    /// What the `home` column shows.
    pub home: Arc<str>,
    pub partition: PartitionId,
    pub name: String,
    pub state: GenerationState,
    /// Its current schema; none without readable metadata.
    pub schema: Option<Schema>,
    /// Data files, those that the newest snapshot does not reach included.
    pub files: Vec<Arc<DataFile>>,
    /// What could not be read: which data files the generation has is then not known for sure.
    pub lost: Vec<Unreadable>,
    /// Why its folder could not be searched for data files that no snapshot reaches.
    pub unlisted: Option<Unreadable>,
}

/// Reads every generation of a home: by partition, the live one first, then from the newest to the oldest.
pub(crate) fn load(home: &Home, label: &Arc<str>) -> (Vec<Generation>, Vec<Problem>) {
    let found = home.partitions();
    let mut problems = found.problems;
    let is_shown = |partition: &&Partition| partition.live().is_some() || partition.generations.is_empty();
    problems.extend(found.value.iter().filter(|partition| !is_shown(partition)).map(no_live_generation));
    let of_partition = |partition: &Partition| {
        let mut generations: Vec<_> = partition.generations.iter().rev().cloned().collect();
        generations.sort_by_key(|generation| generation.state != GenerationState::Live);
        generations.into_iter().map(|generation| (partition.id.clone(), generation)).collect::<Vec<_>>()
    };
    let unread: Vec<_> = found.value.iter().flat_map(of_partition).collect();
    let read = |(partition, generation)| Generation::read(partition, &generation, home.cache_root(), label);
    let generations: Vec<Generation> = unread.into_par_iter().map(read).collect();
    problems.extend(generations.iter().flat_map(Generation::problems));
    (generations, problems)
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
    fn read(partition: PartitionId, found: &hypseq_cache::Generation, cache_root: &Path, home: &Arc<str>) -> Self {
        let mut generation = Self {
            home: Arc::clone(home),
            partition,
            name: found.name.clone(),
            state: found.state,
            schema: None,
            files: Vec::new(),
            lost: Vec::new(),
            unlisted: None,
        };
        generation.read_table(&found.dir, cache_root);
        generation
    }

    fn read_table(&mut self, dir: &Path, cache_root: &Path) {
        let table = match Table::open(dir) {
            Ok(table) => table,
            Err(error) => {
                if !matches!(error, Error::NoMetadata { .. }) || self.state == GenerationState::Live {
                    self.lost.push(unreadable(&error));
                }
                return self.add_unreferenced(hypseq_iceberg::unreferenced(dir), cache_root);
            }
        };
        let schema = table.metadata.current_schema();
        let names: HashMap<i32, &str> = schema.fields.iter().map(|field| (field.id, field.name.as_str())).collect();
        let ids = Arc::new(schema.fields.iter().map(|field| (field.name.clone(), field.id)).collect());
        let files = match table.metadata.current_snapshot().map(|snapshot| table.files(snapshot)) {
            Some(Ok(files)) => files,
            Some(Err(error)) => {
                self.lost.push(unreadable(&error));
                SnapshotFiles::default()
            }
            None => SnapshotFiles::default(),
        };
        let deletes: Vec<_> = files.data.iter().map(hypseq_iceberg::DataFile::deleted_rows).collect();
        let is_about_deletes = |problem: &&Error| deletes.iter().any(|rows| rows.as_ref().err() == Some(*problem));
        self.lost.extend(files.problems.iter().filter(|problem| !is_about_deletes(problem)).map(unreadable));
        for (file, deletes) in files.data.iter().zip(deletes) {
            let bounds = file.bounds.iter().filter_map(|(id, bounds)| Some(((*names.get(id)?).to_owned(), *bounds)));
            self.files.push(Arc::new(DataFile {
                path: file.path.clone(),
                relative: relative(&file.path, cache_root),
                size: size(&file.path).unwrap_or(file.file_size),
                rows: Some(file.record_count),
                referenced: Some(true),
                deletes: match deletes {
                    Ok(rows) => Deletes::Known(Arc::new(rows.0)),
                    Err(error) => Deletes::Unknown(unreadable(&error)),
                },
                bounds: bounds.collect(),
                field_ids: Arc::clone(&ids),
            }));
        }
        self.schema = Some(schema.clone());
        self.add_unreferenced(table.unreferenced_files(&files), cache_root);
    }

    fn add_unreferenced(&mut self, listed: Result<Vec<PathBuf>, Error>, cache_root: &Path) {
        let paths = match listed {
            Ok(paths) => paths,
            Err(error) => {
                self.unlisted = Some(unreadable(&error));
                return;
            }
        };
        // Where a manifest is unreadable, the files that it lists look as if nothing referred to them.
        let referenced = if self.lost.is_empty() { Some(false) } else { None };
        for path in paths {
            self.files.push(Arc::new(DataFile {
                relative: relative(&path, cache_root),
                size: size(&path).unwrap_or_default(),
                path,
                rows: None,
                referenced,
                deletes: Deletes::Known(Arc::default()),
                bounds: BTreeMap::new(),
                field_ids: Arc::default(),
            }));
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let problem = |code, unreadable: &Unreadable| Problem {
            severity: Severity::Error,
            code,
            path: unreadable.path.clone(),
            message: unreadable.message.clone(),
            advice: unreadable.hint.clone(),
        };
        let lost = self.lost.iter().map(|lost| problem("metadata-unreadable", lost));
        let unlisted = self.unlisted.iter().map(|unlisted| problem("folder-unreadable", unlisted));
        let mut problems: Vec<Problem> = lost.chain(unlisted).collect();
        for file in &self.files {
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

fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|metadata| metadata.len())
}
