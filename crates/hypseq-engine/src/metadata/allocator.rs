//! `cache.allocator`: the seq counter.

use hypseq_cache::Allocator;

use super::micros;
use crate::computed::{Column, Relation, long, time};
use crate::homes::OpenHome;

/// The counter's file, where there is one that can be read.
#[derive(Debug)]
pub(crate) struct Counter;

impl Relation for Counter {
    const NAME: &'static str = "allocator";
    type Row = Allocator;

    fn columns() -> Vec<Column<Allocator>> {
        vec![
            long("next_seq", |row: &Allocator| Some(row.next_seq)),
            time("updated_at", |row: &Allocator| micros(row.updated_at.as_deref()?)),
        ]
    }

    fn rows(home: &OpenHome) -> Vec<Allocator> {
        match home.home.allocator() {
            Ok(allocator) => allocator.into_iter().collect(),
            Err(problem) => {
                home.note([problem]);
                Vec::new()
            }
        }
    }
}
