//! Schema `cache`: what the metadata says, as tables. No data file is opened for them but those that decide the seq and
//! time ranges of `generations`.
//!
//! What cannot be read has no row, or nulls in it, and is in `problems`.

mod allocator;
mod data_files;
mod delete_files;
mod deleted_rows;
mod generations;
mod partitions;
mod problems;
pub(crate) mod seqs;
mod snapshots;
mod watermarks;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::catalog::TableProvider;

use crate::computed::{Column, Computed, Relation, text};
use crate::homes::Homes;
use crate::load::Generation;

/// Every table of the schema, by name.
pub(crate) fn tables(homes: &Arc<Homes>) -> BTreeMap<String, Arc<dyn TableProvider>> {
    fn table<R: Relation>(homes: &Arc<Homes>) -> (String, Arc<dyn TableProvider>) {
        (R::NAME.to_owned(), Arc::new(Computed::relation::<R>(homes)))
    }
    BTreeMap::from([
        table::<allocator::Counter>(homes),
        table::<data_files::DataFiles>(homes),
        table::<delete_files::DeleteFiles>(homes),
        table::<deleted_rows::DeletedRows>(homes),
        table::<generations::Generations>(homes),
        table::<partitions::Partitions>(homes),
        table::<problems::Problems>(homes),
        table::<snapshots::Snapshots>(homes),
        table::<watermarks::Watermarks>(homes),
    ])
}

/// The columns that say which generation a row belongs to.
fn of_generation<R: 'static>(generation: fn(&R) -> &Generation) -> Vec<Column<R>> {
    vec![
        text("dataset", move |row| Some(&generation(row).partition.dataset)),
        text("partition", move |row| Some(&generation(row).partition.path)),
        text("generation", move |row| Some(&generation(row).name)),
        text("state", move |row| Some(generation(row).state.label())),
    ]
}

/// A time as HypAware writes them, in microseconds since 1970.
fn micros(iso: &str) -> Option<i64> {
    string_to_timestamp_nanos(iso).ok().map(|nanos| nanos.div_euclid(1000))
}
