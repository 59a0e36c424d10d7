//! `cache.deleted_rows`: which row is deleted by which delete file.

use std::sync::Arc;

use hypseq_iceberg::DataFile;
use rayon::prelude::*;

use super::delete_files::kind;
use super::of_generation;
use crate::computed::{Column, Relation, count, text};
use crate::homes::OpenHome;
use crate::load::Generation;

/// A row per deleted row and delete file; `data_file` and `pos` are `_file` and `_pos` of schema `raw`.
#[derive(Debug)]
pub(crate) struct DeletedRows;

/// A deleted row.
pub(crate) struct Row {
    generation: Arc<Generation>,
    data_file: Arc<str>,
    pos: u64,
    file: String,
    kind: &'static str,
}

impl Relation for DeletedRows {
    const NAME: &'static str = "deleted_rows";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        let mut columns = of_generation(|row: &Row| &row.generation);
        columns.extend([
            text("data_file", |row: &Row| Some(&row.data_file)),
            count("pos", |row: &Row| Some(row.pos)),
            text("file", |row: &Row| Some(&row.file)),
            text("kind", |row: &Row| Some(row.kind)),
        ]);
        columns
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        let of_file = |generation: &Arc<Generation>, data: &DataFile| {
            let data_file: Arc<str> = generation.relative(&data.path).into();
            let mut rows = Vec::new();
            for pos in data.deleted_rows().into_iter().flat_map(|deleted| deleted.0) {
                rows.extend(data.deleted_by(pos).into_iter().map(|delete| Row {
                    generation: Arc::clone(generation),
                    data_file: Arc::clone(&data_file),
                    pos,
                    file: generation.relative(&delete.path),
                    kind: kind(&delete.kind),
                }));
            }
            rows
        };
        let of_generation = |generation: &Arc<Generation>| {
            generation.files().data.iter().flat_map(|data| of_file(generation, data)).collect::<Vec<_>>()
        };
        home.generations.par_iter().flat_map_iter(of_generation).collect()
    }
}
