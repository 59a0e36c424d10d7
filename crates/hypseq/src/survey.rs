//! A partition's generations, opened and scanned.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use hypseq_boundary::{Deleted, GenerationView, Row, RowSet};
use hypseq_cache::{Generation, Partition, Problem, Severity};
use hypseq_iceberg::{Schema, SnapshotFiles, Table};
use hypseq_scan::{Columns, Scan, scan_files, scan_generation};

use crate::select;

/// A generation with all that was read of it.
pub struct Surveyed {
    pub generation: Generation,
    /// Its table, where its metadata can be read.
    pub table: Option<Table>,
    /// The files of the newest snapshot, where it can be read.
    pub files: SnapshotFiles,
    /// The columns that were scanned, where there is a schema.
    pub columns: Option<Columns>,
    pub scan: Scan,
    /// What could not be read; empty when the scan is whole.
    pub problems: Vec<Problem>,
    deleted: Vec<Deleted>,
}

/// All generations of a partition, oldest first.
pub struct Survey<'a> {
    pub partition: &'a Partition,
    pub generations: Vec<Surveyed>,
}

impl<'a> Survey<'a> {
    /// Opens and scans every generation.
    pub fn of(partition: &'a Partition, time_column: Option<&str>) -> Result<Self> {
        let generations =
            partition.generations.iter().map(|g| survey(partition, g, time_column)).collect::<Result<_>>()?;
        Ok(Self { partition, generations })
    }

    /// Whether every generation that is whole could be read whole.
    pub fn complete(&self) -> bool {
        self.generations.iter().all(|s| s.complete() || !s.generation.has_metadata)
    }

    /// Every row with a seq that any generation has, deleted ones included; one row per seq, from the newest
    /// generation that has it.
    pub fn union(&self) -> RowSet {
        let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
        for surveyed in &self.generations {
            let deleted = surveyed.scan.deleted.iter().map(|d| &d.row);
            rows.extend(deleted.chain(surveyed.scan.visible.rows()).map(|r| (r.seq, r.clone())));
        }
        RowSet::new(rows.into_values().collect())
    }

    /// Legacy rows (without a seq) of the newest generation that has any.
    pub fn legacy_rows(&self) -> u64 {
        self.generations.iter().rev().map(|s| s.scan.legacy_rows).find(|n| *n > 0).unwrap_or(0)
    }

    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.generations.iter().flat_map(|s| &s.problems)
    }

    /// The generation that a boundary is resolved in: the one named, else the live one.
    pub fn reference(&self, named: Option<&str>) -> Result<usize> {
        let wanted = reference(self.partition, named)?;
        self.generations
            .iter()
            .position(|s| s.generation.name == wanted.name)
            .ok_or_else(|| anyhow!("generation `{}` was not surveyed", wanted.name))
    }

    /// What the analysis needs of each generation.
    pub fn views(&self) -> Vec<GenerationView<'_>> {
        self.generations.iter().map(Surveyed::view).collect()
    }
}

impl Surveyed {
    /// Id of the snapshot that was read.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.table.as_ref()?.metadata.current_snapshot_id
    }

    /// Its rows with a seq that are physically there and deleted.
    pub fn deleted(&self) -> &[Deleted] {
        &self.deleted
    }

    /// Whether every row of it is known.
    pub fn complete(&self) -> bool {
        self.generation.has_metadata && self.problems.iter().all(|p| p.severity < Severity::Error)
    }

    fn view(&self) -> GenerationView<'_> {
        let why = || {
            if self.generation.has_metadata {
                let errors = self.problems.iter().filter(|p| p.severity == Severity::Error);
                errors.map(|p| format!("`{}`: {}", p.path.display(), p.message)).collect::<Vec<_>>().join("; ")
            } else {
                "it has no metadata: a compaction that was killed, or is at work".to_owned()
            }
        };
        GenerationView {
            name: &self.generation.name,
            rows: if self.complete() { Ok(&self.scan.visible) } else { Err(why()) },
            leftover: !self.generation.has_metadata,
            deleted: &self.deleted,
        }
    }
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

/// Opens and scans one generation. `time_column` is the operator's word for it.
pub fn survey(partition: &Partition, generation: &Generation, time_column: Option<&str>) -> Result<Surveyed> {
    if !generation.has_metadata {
        return Ok(leftover(generation));
    }
    let (table, files, mut problems) = open(generation);
    let columns = match &table {
        Some(table) => Some(columns(partition, table.metadata.current_schema(), time_column)?),
        None => None,
    };
    let scan = match (&table, &columns) {
        (Some(table), Some(columns)) => scan_generation(table, &files, columns),
        _ => Scan::default(),
    };
    problems.extend(scan.problems.iter().cloned());
    problems.extend(scan.visible.repeated_seqs().iter().take(3).map(|seq| Problem {
        severity: Severity::Warning,
        code: "seq-twice",
        path: generation.dir.clone(),
        message: format!("seq {seq} is stamped on {} rows; expected one", scan.visible.with_seq(*seq).len()),
        advice: "report it: a seq must be unique within a partition".to_owned(),
    }));
    let deleted = scan.deleted.iter().map(|d| Deleted { row: d.row.clone(), by: names(&d.by) }).collect();
    Ok(Surveyed { generation: generation.clone(), table, files, columns, scan, problems, deleted })
}

fn names(paths: &[std::path::PathBuf]) -> String {
    let name = |p: &std::path::PathBuf| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The columns to scan, the operator's time column first checked.
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

/// A folder that never was a whole generation: its data files are counted, and none of their rows is visible.
fn leftover(generation: &Generation) -> Surveyed {
    let mut problems = Vec::new();
    let scan = match hypseq_iceberg::unreferenced(&generation.dir) {
        Ok(paths) => scan_files(&paths),
        Err(error) => {
            problems.push(unreadable(generation, &error));
            Scan::default()
        }
    };
    problems.extend(scan.problems.iter().cloned());
    Surveyed {
        generation: generation.clone(),
        table: None,
        files: SnapshotFiles::default(),
        columns: None,
        scan,
        problems,
        deleted: Vec::new(),
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

fn unreadable(generation: &Generation, error: &hypseq_iceberg::Error) -> Problem {
    Problem {
        severity: Severity::Error,
        code: "metadata-unreadable",
        path: generation.dir.clone(),
        message: error.to_string(),
        advice: "its rows are left out of every figure; look at the file, or copy the cache again".to_owned(),
    }
}
