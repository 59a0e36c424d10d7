//! `cache.watermarks`: how far each sink believes it has sent.

use hypseq_cache::{Watermark, WatermarkFile};

use super::micros;
use crate::computed::{Column, Relation, count, long, text, time};
use crate::homes::OpenHome;

/// A row per watermark file, with nulls where it cannot be read.
#[derive(Debug)]
pub(crate) struct Watermarks;

/// A watermark file, and the partition that it is for.
pub(crate) struct Row {
    file: WatermarkFile,
    dataset: String,
    partition: String,
    path: String,
}

impl Row {
    fn watermark(&self) -> Option<&Watermark> {
        self.file.state.as_ref().ok()
    }
}

impl Relation for Watermarks {
    const NAME: &'static str = "watermarks";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        vec![
            text("plugin", |row: &Row| Some(&row.file.plugin)),
            text("instance", |row: &Row| Some(&row.file.instance)),
            text("dataset", |row: &Row| Some(&row.dataset)),
            text("partition", |row: &Row| Some(&row.partition)),
            long("seq", |row: &Row| Some(row.watermark()?.seq)),
            count("exported_row_count", |row: &Row| Some(row.watermark()?.exported_row_count)),
            time("updated_at", |row: &Row| micros(&row.watermark()?.updated_at)),
            text("path", |row: &Row| Some(&row.path)),
        ]
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        let row = |file: WatermarkFile| {
            // A watermark's file name has the partition's path with some characters replaced.
            let partition = home.partitions.iter().find(|partition| file.is_for(&partition.id));
            let (dataset, partition) = match partition {
                Some(partition) => (partition.id.dataset.clone(), partition.id.path.clone()),
                None => (file.dataset.clone(), file.partition.clone()),
            };
            Row { dataset, partition, path: file.path.display().to_string(), file }
        };
        let found = home.home.watermarks();
        home.note(found.problems);
        found.value.into_iter().map(row).collect()
    }
}
