//! `cache.snapshots`: the commits that a generation's metadata still knows.

use std::sync::Arc;

use hypseq_iceberg::Snapshot;

use super::of_generation;
use crate::computed::{Column, Relation, flag, long, text, time};
use crate::homes::OpenHome;
use crate::load::Generation;

/// A row per snapshot of a generation with readable metadata.
#[derive(Debug)]
pub(crate) struct Snapshots;

/// A snapshot and where it is.
pub(crate) struct Row {
    generation: Arc<Generation>,
    snapshot: Snapshot,
    is_current: bool,
}

impl Relation for Snapshots {
    const NAME: &'static str = "snapshots";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        let mut columns = of_generation(|row: &Row| &row.generation);
        columns.extend([
            long("snapshot_id", |row: &Row| Some(row.snapshot.id)),
            long("parent_id", |row: &Row| row.snapshot.parent_id),
            flag("is_current", |row: &Row| Some(row.is_current)),
            time("committed_at", |row: &Row| row.snapshot.timestamp_ms.checked_mul(1000)),
            text("operation", |row: &Row| row.snapshot.operation.as_deref()),
            long("sequence_number", |row: &Row| Some(row.snapshot.sequence_number)),
        ]);
        columns
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        let mut rows = Vec::new();
        for generation in &home.generations {
            let Some(metadata) = generation.table().map(|table| &table.metadata) else { continue };
            rows.extend(metadata.snapshots.iter().map(|snapshot| Row {
                generation: Arc::clone(generation),
                is_current: metadata.current_snapshot_id == Some(snapshot.id),
                snapshot: snapshot.clone(),
            }));
        }
        rows
    }
}
