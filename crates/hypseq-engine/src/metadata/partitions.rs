//! `cache.partitions`: the partitions and their cursors.

use hypseq_cache::{Partition, Retention};

use super::micros;
use crate::computed::{Column, Relation, count, text, time};
use crate::homes::OpenHome;

/// A row per partition.
#[derive(Debug)]
pub(crate) struct Partitions;

/// A partition with what is below it.
pub(crate) struct Row {
    partition: Partition,
    path: String,
    time_column: Option<String>,
}

impl Row {
    fn retention(&self) -> Option<&Retention> {
        self.partition.cursor.as_ref().ok()?.retention.as_ref()
    }
}

impl Relation for Partitions {
    const NAME: &'static str = "partitions";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        vec![
            text("dataset", |row: &Row| Some(&row.partition.id.dataset)),
            text("partition", |row: &Row| Some(&row.partition.id.path)),
            text("live_generation", |row: &Row| Some(&row.partition.live()?.name)),
            count("generations", |row: &Row| u64::try_from(row.partition.generations.len()).ok()),
            text("time_column", |row: &Row| row.time_column.as_deref()),
            time("retention_cutoff", |row: &Row| row.retention()?.last_cutoff_ms?.checked_mul(1000)),
            time("retention_ran_at", |row: &Row| micros(row.retention()?.last_deleted_at.as_deref()?)),
            count("retention_deleted_rows", |row: &Row| row.retention()?.rows_deleted),
            text("path", |row: &Row| Some(&row.path)),
        ]
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        let row = |partition: &Partition| Row {
            time_column: home.generations_of(partition).find_map(|generation| generation.columns()?.time),
            path: partition.dir.display().to_string(),
            partition: partition.clone(),
        };
        home.partitions.iter().map(row).collect()
    }
}
