//! `cache.generations`: the generations with their counts and ranges, as `hypseq status` has them.

use std::sync::Arc;

use hypseq_scan::{Figures, Scan, scan_files};
use rayon::prelude::*;

use super::micros;
use super::of_generation;
use crate::computed::{Column, Relation, count, long, text, time};
use crate::homes::OpenHome;
use crate::load::Generation;

/// A row per generation.
#[derive(Debug)]
pub(crate) struct Generations;

/// A generation with its figures, or why not all of its rows can be read.
pub(crate) struct Row {
    generation: Arc<Generation>,
    path: String,
    data_files: u64,
    unreferenced_files: u64,
    bytes: u64,
    /// Without them the counts of files are not whole either.
    figures: Result<Figures, String>,
}

impl Row {
    fn figures(&self) -> Option<&Figures> {
        self.figures.as_ref().ok()
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.generation.table()?.metadata.current_snapshot_id
    }
}

impl Relation for Generations {
    const NAME: &'static str = "generations";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        let mut columns = of_generation(|row: &Row| &row.generation);
        columns.extend([
            time("retired_at", |row: &Row| micros(row.generation.retired_at.as_deref()?)),
            count("visible_rows", |row: &Row| Some(row.figures()?.visible_rows)),
            count("raw_rows", |row: &Row| Some(row.figures()?.raw_rows)),
            count("deleted_rows", |row: &Row| Some(row.figures()?.deleted_rows)),
            count("legacy_rows", |row: &Row| Some(row.figures()?.legacy_rows)),
            count("null_time_rows", |row: &Row| Some(row.figures()?.null_time_rows)),
            long("min_seq", |row: &Row| Some(row.figures()?.seqs?.0)),
            long("max_seq", |row: &Row| Some(row.figures()?.seqs?.1)),
            time("min_time", |row: &Row| Some(row.figures()?.times?.0)),
            time("max_time", |row: &Row| Some(row.figures()?.times?.1)),
            count("data_files", |row: &Row| row.figures().map(|_| row.data_files)),
            count("unreferenced_files", |row: &Row| row.figures().map(|_| row.unreferenced_files)),
            count("bytes", |row: &Row| row.figures().map(|_| row.bytes)),
            long("snapshot_id", Row::snapshot_id),
            text("table_uuid", |row: &Row| Some(&row.generation.table()?.metadata.table_uuid)),
            text("path", |row: &Row| Some(&row.path)),
            text("problem", |row: &Row| row.figures.as_ref().err().map(String::as_str)),
        ]);
        columns
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        home.generations.par_iter().map(row).collect()
    }
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "`LazyScan::figures` is not general over its lifetime")]
fn row(generation: &Arc<Generation>) -> Row {
    let files = generation.files();
    let figures = match (generation.table(), generation.snapshot().lost.is_empty()) {
        (None, true) => Ok(leftover(generation)),
        _ => generation.ask(|rows| rows.figures(), Scan::figures),
    };
    Row {
        figures: figures.map_err(|lost| format!("cannot read `{}`: {}", lost.path.display(), lost.message)),
        generation: Arc::clone(generation),
        path: generation.dir.display().to_string(),
        data_files: files.data.len() as u64,
        unreferenced_files: generation.unreferenced().files.len() as u64,
        bytes: files.data.iter().map(|file| file.file_size).sum(),
    }
}

/// A folder that never was a whole generation: no row of its data files is visible.
fn leftover(generation: &Generation) -> Figures {
    let paths: Vec<_> = generation.unreferenced().files.iter().map(|file| file.path.clone()).collect();
    scan_files(&paths).figures()
}
