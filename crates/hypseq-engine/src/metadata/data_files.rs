//! `cache.data_files`: the data files with what the manifests say of them.

use std::sync::Arc;

use hypseq_iceberg::{Bounds, DataFile};
use rayon::prelude::*;

use super::of_generation;
use crate::computed::{Column, Relation, count, flag, long, text, time};
use crate::homes::OpenHome;
use crate::load::Generation;

/// A row per data file that a newest snapshot reaches, and per one that it does not reach.
#[derive(Debug)]
pub(crate) struct DataFiles;

/// A data file. Bounds are those of all its rows, deleted ones included; they are exact.
pub(crate) struct Row {
    generation: Arc<Generation>,
    file: String,
    listed: Option<DataFile>,
    referenced: Option<bool>,
    seqs: Bounds,
    times: Bounds,
}

impl Row {
    fn deleted_rows(&self) -> Option<u64> {
        Some(self.listed.as_ref()?.deleted_rows().ok()?.len())
    }
}

impl Relation for DataFiles {
    const NAME: &'static str = "data_files";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        let mut columns = of_generation(|row: &Row| &row.generation);
        columns.extend([
            text("file", |row: &Row| Some(&row.file)),
            flag("referenced", |row: &Row| row.referenced),
            count("raw_rows", |row: &Row| Some(row.listed.as_ref()?.record_count)),
            count("deleted_rows", Row::deleted_rows),
            long("min_seq", |row: &Row| row.seqs.lower),
            long("max_seq", |row: &Row| row.seqs.upper),
            count("legacy_rows", |row: &Row| row.seqs.nulls),
            time("min_time", |row: &Row| row.times.lower),
            time("max_time", |row: &Row| row.times.upper),
            count("null_time_rows", |row: &Row| row.times.nulls),
            count("bytes", |row: &Row| Some(row.listed.as_ref()?.file_size)),
            long("snapshot_id", |row: &Row| row.listed.as_ref()?.snapshot_id),
            long("sequence_number", |row: &Row| Some(row.listed.as_ref()?.sequence_number)),
        ]);
        columns
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        home.generations.par_iter().flat_map_iter(rows_of).collect()
    }
}

fn rows_of(generation: &Arc<Generation>) -> Vec<Row> {
    let (schema, columns) = (generation.schema(), generation.columns());
    let id = |name: &str| schema.and_then(|schema| schema.field(name)).map(|field| field.id);
    let seq = columns.as_ref().and_then(|columns| id(columns.seq));
    let time = columns.as_ref().and_then(|columns| id(columns.time.as_deref()?));
    let bounds = |file: &DataFile, id: Option<i32>| id.and_then(|id| file.bounds.get(&id)).copied().unwrap_or_default();
    let listed = generation.files().data.into_iter().map(|file| Row {
        generation: Arc::clone(generation),
        file: generation.relative(&file.path),
        referenced: Some(true),
        seqs: bounds(&file, seq),
        times: bounds(&file, time),
        listed: Some(file),
    });
    let unlisted = generation.unreferenced().files.iter().map(|file| Row {
        generation: Arc::clone(generation),
        file: file.relative.clone(),
        referenced: file.referenced,
        seqs: Bounds::default(),
        times: Bounds::default(),
        listed: None,
    });
    listed.chain(unlisted).collect()
}
