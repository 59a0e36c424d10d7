//! The spool: rows captured and not yet flushed, which have no seq yet.
//!
//! `datasets/<dataset>/<label>/_hypaware_spool/` holds `active.jsonl`, which is appended to, and `flush-*.jsonl`,
//! rotated files that a flush works through; its `<file>.progress.json` says up to which byte the rows are in
//! the table already.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Map, Value};

use crate::discover::SPOOL;
use crate::json::{self, Object};
use crate::{Found, Problem, folder, generation};

/// One line of a spool file: a batch of rows with its columns.
#[derive(Debug, Clone)]
pub struct SpoolBatch {
    /// The dataset.
    pub dataset: String,
    /// The label folder (`proxy_messages_v5`).
    pub label: String,
    /// The file.
    pub path: PathBuf,
    /// Column names and types as the spool names them (`STRING`, `INT32`, `JSON`, `TIMESTAMP`, `BOOLEAN`).
    pub columns: Vec<(String, String)>,
    /// The rows.
    pub rows: Vec<SpoolRow>,
}

/// One row of the spool.
#[derive(Debug, Clone)]
pub struct SpoolRow {
    /// The values as captured.
    pub values: Map<String, Value>,
}

impl SpoolRow {
    /// The source that the flush will file the row under: the first of `source`, `client_name`,
    /// `conversation_source` and `provider` that is a text and not empty, else `unknown`.
    pub fn source(&self) -> &str {
        ["source", "client_name", "conversation_source", "provider"]
            .iter()
            .filter_map(|column| self.values.get(*column)?.as_str())
            .find(|source| !source.is_empty())
            .unwrap_or("unknown")
    }
}

/// Every batch, by dataset and label, rotated files before the active one, in the order of capture.
pub(crate) fn read(datasets: &Path) -> Found<Vec<SpoolBatch>> {
    let mut batches = Vec::new();
    let problems = visit(datasets, &mut |batch| batches.push(batch));
    Found { value: batches, problems }
}

/// As [`read`], holding one batch at a time.
pub(crate) fn visit(datasets: &Path, visit: &mut dyn FnMut(SpoolBatch)) -> Vec<Problem> {
    let mut walk = Walk { problems: Vec::new(), visit };
    for dataset in folders(datasets) {
        walk.folder(&dataset.path, &dataset.name, "");
    }
    walk.problems
}

/// What cannot be listed here is among the problems of the partitions, whose walk is the same.
fn folders(dir: &Path) -> Vec<folder::Entry> {
    folder::folders(dir, &mut Vec::new())
}

struct Walk<'a> {
    problems: Vec<Problem>,
    visit: &'a mut dyn FnMut(SpoolBatch),
}

impl Walk<'_> {
    fn folder(&mut self, dir: &Path, dataset: &str, label: &str) {
        for folder in folders(dir) {
            if folder.name == SPOOL {
                self.spool(&folder.path, dataset, label);
            } else if !generation::is_generation_name(&folder.name) {
                let label = match label {
                    "" => folder.name,
                    parent => format!("{parent}/{}", folder.name),
                };
                self.folder(&folder.path, dataset, &label);
            }
        }
    }

    fn spool(&mut self, dir: &Path, dataset: &str, label: &str) {
        let mut files = folder::list(dir, &mut self.problems);
        files.retain(|file| file.is_file_with("jsonl"));
        files.sort_by_key(|file| file.name == "active.jsonl");
        for file in files {
            match self.file(&file.path, dataset, label) {
                // A flush that ended just now removes the file: its rows are in the table.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.problems.push(Problem::io(&file.path, &error)),
                Ok(()) => {}
            }
        }
    }

    fn file(&mut self, path: &Path, dataset: &str, label: &str) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut at = self.flushed_bytes(path, file.metadata()?.len());
        file.seek(SeekFrom::Start(at))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(());
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                match parse(&line) {
                    Ok(line) => (self.visit)(SpoolBatch {
                        dataset: dataset.to_owned(),
                        label: label.to_owned(),
                        path: path.to_owned(),
                        columns: line.columns.into_iter().map(|column| (column.name, column.kind)).collect(),
                        rows: line.rows.into_iter().map(|values| SpoolRow { values }).collect(),
                    }),
                    Err(found) => self.problems.push(bad_line(path, at, &line, &found)),
                }
            }
            at = at.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        }
    }

    /// How many bytes at the beginning of a rotated file are in the table already.
    fn flushed_bytes(&mut self, file: &Path, length: u64) -> u64 {
        let mut name = file.as_os_str().to_owned();
        name.push(".progress.json");
        let path = PathBuf::from(name);
        match progress(&path, length) {
            Ok(flushed) => flushed,
            Err(message) => {
                self.problems.push(Problem::warning(
                    "spool-progress-unreadable",
                    &path,
                    message,
                    "every row of the spool file is taken as not yet flushed; HypAware would flush them all again",
                ));
                0
            }
        }
    }
}

fn progress(path: &Path, length: u64) -> Result<u64, String> {
    let bytes = json::read(path).map_err(|error| format!("expected to read it, found: {error}"))?;
    let Some(bytes) = bytes else { return Ok(0) };
    let map = json::parse(&bytes)?;
    Object::new(&map).required("byteOffset", &format!("a place in the spool file of {length} bytes"), |value| {
        value.as_u64().filter(|offset| *offset <= length)
    })
}

#[derive(Deserialize)]
struct Line {
    version: u64,
    columns: Vec<Column>,
    rows: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A batch, or in a few words what the line is instead: never with what was captured in it.
fn parse(line: &[u8]) -> Result<Line, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| match error.classify() {
        Category::Data => format!("JSON of another shape at column {}", error.column()),
        _ => format!("JSON that breaks off or is damaged at column {}", error.column()),
    })?;
    match line.version {
        1 => Ok(line),
        other => Err(format!("version {other}")),
    }
}

fn bad_line(path: &Path, at: u64, line: &[u8], found: &str) -> Problem {
    let message = format!("expected a batch {{version: 1, columns, rows}} in the line at byte {at}, found {found}");
    if line.ends_with(b"\n") {
        Problem::error(
            "spool-line-unreadable",
            path,
            message,
            "its rows are not counted; HypAware keeps the file and flushes the rest of it",
        )
    } else {
        Problem::warning(
            "spool-cut",
            path,
            message,
            "the writer may be in the middle of this line: read again; when no daemon runs, its rows are lost",
        )
    }
}
