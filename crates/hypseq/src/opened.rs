//! A generation, opened: its table, its files and its columns, and no row of it read.

use anyhow::{Result, anyhow, bail};
use hypseq_cache::{Generation, Partition, Problem, Severity};
use hypseq_iceberg::{Schema, SnapshotFiles, Table};
use hypseq_scan::{Columns, Doubt, LazyScan};
use rayon::prelude::*;

use crate::select;

/// Why a folder without metadata shows no rows.
pub const LEFTOVER: &str = "it has no metadata: a compaction that was killed, or is at work";

/// A generation with what its metadata says.
#[derive(Clone)]
pub struct Opened {
    pub generation: Generation,
    /// Its table, where its metadata can be read.
    pub table: Option<Table>,
    /// The files of the newest snapshot, where it can be read.
    pub files: SnapshotFiles,
    /// The columns that questions need, where there is a schema.
    pub columns: Option<Columns>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

impl Opened {
    /// Opens one generation. `time_column` is the operator's word for it.
    pub fn of(partition: &Partition, generation: &Generation, time_column: Option<&str>) -> Result<Self> {
        let (table, files, problems) =
            if generation.has_metadata { open(generation) } else { (None, SnapshotFiles::default(), Vec::new()) };
        let columns = match &table {
            Some(table) => Some(columns(partition, table.metadata.current_schema(), time_column)?),
            None => None,
        };
        Ok(Self { generation: generation.clone(), table, files, columns, problems })
    }

    /// Opens every generation of a partition, oldest first.
    pub fn all(partition: &Partition, time_column: Option<&str>) -> Result<Vec<Self>> {
        let opened = partition.generations.par_iter().map(|g| Self::of(partition, g, time_column));
        opened.collect()
    }

    /// Id of the newest snapshot.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.table.as_ref()?.metadata.current_snapshot_id
    }

    /// Whether all its metadata could be read.
    pub fn complete(&self) -> bool {
        self.generation.has_metadata && self.problems.iter().all(|p| p.severity < Severity::Error)
    }

    /// Its rows as its manifests tell them; none where they cannot be told without a whole scan, which then says why.
    pub fn lazy(&self) -> Option<Result<LazyScan<'_>, Doubt>> {
        let (table, columns) = self.table.as_ref().zip(self.columns.as_ref()).filter(|_| self.complete())?;
        Some(LazyScan::new(table, &self.files, columns))
    }
}

/// The rows of every generation as manifests tell them, or why one has none: it never was whole.
///
/// # Errors
/// Why the manifests of all cannot tell, in words.
pub fn lazy_rows(opened: &[Opened]) -> Result<Vec<Result<LazyScan<'_>, &'static str>>, String> {
    let rows = opened.iter().map(|opened| match opened.lazy() {
        Some(lazy) => lazy.map(Ok).map_err(|doubt| doubt.to_string()),
        None if opened.generation.has_metadata => {
            Err(format!("`{}` cannot be read whole", opened.generation.dir.display()))
        }
        None => Ok(Err(LEFTOVER)),
    });
    rows.collect()
}

/// The generation that a boundary is resolved in: the one named, else the live one.
pub fn reference<'p>(partition: &'p Partition, named: Option<&str>) -> Result<&'p Generation> {
    let all = || partition.generations.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
    match named {
        Some(name) => {
            let found = partition.generations.iter().find(|g| g.name == name);
            found.ok_or_else(|| anyhow!("there is no generation `{name}`\n  hint: there are {}", all()))
        }
        None => partition.live().ok_or_else(|| {
            let why = match &partition.cursor {
                Err(problem) => problem.message.clone(),
                Ok(_) => format!("the cursor of `{}` names a folder that is not there", partition.dir.display()),
            };
            anyhow!(
                "{}: the live generation is unknown: {why}\n  hint: the daemon repairs the cursor when it next runs; to look \
                 at one generation name it with --generation: {}",
                select::name(&partition.id),
                all()
            )
        }),
    }
}

/// The place of that generation among the opened ones.
pub fn place(partition: &Partition, named: Option<&str>, opened: &[Opened]) -> Result<usize> {
    let wanted = reference(partition, named)?;
    let place = opened.iter().position(|o| o.generation.name == wanted.name);
    place.ok_or_else(|| anyhow!("generation `{}` was not opened", wanted.name))
}

/// The columns that questions need, the operator's time column first checked.
pub fn columns(partition: &Partition, schema: &Schema, time_column: Option<&str>) -> Result<Columns> {
    let mut columns = Columns::of(&partition.id.dataset, schema);
    if let Some(name) = time_column {
        match schema.field(name) {
            Some(field) if field.field_type == hypseq_iceberg::FieldType::Timestamptz => {
                columns.time = Some(name.to_owned());
            }
            found => bail!(
                "`{name}` is not a timestamp column of {}: {}\n  hint: {}",
                partition.id.dataset,
                if found.is_some() { "it has another type" } else { "there is no such column" },
                timestamp_columns(schema)
            ),
        }
    }
    Ok(columns)
}

/// The columns that could hold a row's time, in words.
pub fn timestamp_columns(schema: &Schema) -> String {
    let timestamps = schema.fields.iter().filter(|f| f.field_type == hypseq_iceberg::FieldType::Timestamptz);
    let names: Vec<&str> = timestamps.map(|f| f.name.as_str()).collect();
    if names.is_empty() {
        "the dataset has no timestamp column".to_owned()
    } else {
        format!("its timestamp columns are {}", names.join(", "))
    }
}

fn open(generation: &Generation) -> (Option<Table>, SnapshotFiles, Vec<Problem>) {
    let mut problems = Vec::new();
    let table = match Table::open(&generation.dir) {
        Ok(table) => table,
        Err(error) => return (None, SnapshotFiles::default(), vec![unreadable(generation, &error)]),
    };
    problems.extend(table.notes.iter().map(|note| Problem {
        severity: Severity::Info,
        code: "metadata-note",
        path: table.metadata_file.clone(),
        message: note.clone(),
        advice: "nothing to do".to_owned(),
    }));
    let files = match table.metadata.current_snapshot().map(|s| table.files(s)) {
        Some(Ok(files)) => files,
        Some(Err(error)) => {
            problems.push(unreadable(generation, &error));
            SnapshotFiles::default()
        }
        None => SnapshotFiles::default(),
    };
    problems.extend(files.problems.iter().map(|error| unreadable(generation, error)));
    (Some(table), files, problems)
}

pub fn unreadable(generation: &Generation, error: &hypseq_iceberg::Error) -> Problem {
    Problem {
        severity: Severity::Error,
        code: "metadata-unreadable",
        path: generation.dir.clone(),
        message: error.to_string(),
        advice: "its rows are left out of every figure; look at the file, or copy the cache again".to_owned(),
    }
}
