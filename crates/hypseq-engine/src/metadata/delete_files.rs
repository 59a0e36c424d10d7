//! `cache.delete_files`: which delete file deletes how many rows of which data file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hypseq_iceberg::{DataFile, DeleteFile, DeleteKind};
use rayon::prelude::*;

use super::of_generation;
use crate::computed::{Column, Relation, count, long, text};
use crate::homes::OpenHome;
use crate::load::Generation;

/// A row per delete file and data file of which it deletes rows.
#[derive(Debug)]
pub(crate) struct DeleteFiles;

/// A delete file's part in one data file.
pub(crate) struct Row {
    generation: Arc<Generation>,
    file: String,
    data_file: String,
    deleted_rows: u64,
    delete: DeleteFile,
}

impl Relation for DeleteFiles {
    const NAME: &'static str = "delete_files";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        let mut columns = of_generation(|row: &Row| &row.generation);
        columns.extend([
            text("file", |row: &Row| Some(&row.file)),
            text("kind", |row: &Row| Some(kind(&row.delete.kind))),
            text("data_file", |row: &Row| Some(&row.data_file)),
            count("deleted_rows", |row: &Row| Some(row.deleted_rows)),
            long("snapshot_id", |row: &Row| row.delete.snapshot_id),
            long("sequence_number", |row: &Row| Some(row.delete.sequence_number)),
        ]);
        columns
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        home.generations.par_iter().flat_map_iter(rows_of).collect()
    }
}

/// What a delete file is.
pub(super) fn kind(kind: &DeleteKind) -> &'static str {
    match kind {
        DeleteKind::DeletionVector { .. } => "deletion vector",
        DeleteKind::Positions => "position deletes",
    }
}

fn rows_of(generation: &Arc<Generation>) -> Vec<Row> {
    let files = generation.files().data;
    let row = |(data, (delete, deleted_rows)): (&DataFile, (DeleteFile, u64))| Row {
        generation: Arc::clone(generation),
        file: generation.relative(&delete.path),
        data_file: generation.relative(&data.path),
        deleted_rows,
        delete,
    };
    files.iter().flat_map(|data| deletes(data).into_iter().map(move |delete| (data, delete))).map(row).collect()
}

/// The delete files that apply to a data file, with the rows that each deletes. Where they cannot be read there are none,
/// and the generation has a problem.
fn deletes(data: &DataFile) -> Vec<(DeleteFile, u64)> {
    let Ok(deleted) = data.deleted_rows() else { return Vec::new() };
    let mut by_file: BTreeMap<PathBuf, (DeleteFile, u64)> = BTreeMap::new();
    for position in deleted.0 {
        for delete in data.deleted_by(position) {
            let (_, rows) = by_file.entry(delete.path.clone()).or_insert_with(|| (delete.clone(), 0));
            *rows += 1;
        }
    }
    by_file.into_values().collect()
}
