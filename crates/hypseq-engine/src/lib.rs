//! SQL over HypAware caches: the datasets of one or more homes as tables of a DataFusion catalog.
//!
//! | schema | rows |
//! | --- | --- |
//! | `live` (default) | live generations, deletes applied |
//! | `raw` | every physical row of every generation, with provenance columns |
//! | `complete` | the union over generations, one row per seq and partition |
//! | `spool` | rows captured and not yet flushed |
//! | `cache` | the metadata: `partitions`, `generations`, `snapshots`, `data_files`, `delete_files`, `deleted_rows`, `watermarks`, `allocator`, `problems`, and `seqs`: who has which |
//!
//! Columns come in the order of the dataset's schema, then the segments of the partition path that are not columns
//! already. With several homes, `home` comes first. Variant columns are JSON text, times are UTC, and the seq is there
//! as a BIGINT even in a dataset that never had one.
//!
//! Schema `raw` adds where each row is from: `_generation`, `_generation_state` (`live`, `retired`, `orphan`,
//! `unknown`), `_partition`, `_file` (below the cache root), `_pos` (from 0), `_deleted`, and `_referenced` (whether the
//! generation's newest snapshot reaches the file). The last two are null where a damaged file leaves them unknown.
//!
//! Schema `complete` adds `_generation`, `_partition` and `_deleted` of the row that it takes: from the live generation
//! if that has the seq, else from the newest that has. `_deleted` says that the row is deleted *there*.
//!
//! Schema `spool` has the columns of `live`, with the source that a flush will file the row under, and `_file`.
//!
//! `generation('<dataset>', '<partition>', '<name>')` and `snapshot('<dataset>', '<partition>', <id>)` have the columns of
//! `live`: the rows of that generation, or of its generation at that snapshot, deletes applied.
//! `seq_at('<dataset>', '<partition>', <time>)` has the answers to a time in the live generation, as `hypseq resolve` gives
//! them, and `time_of_seq('<dataset>', '<partition>', <seq>)` the rows on both sides of a seq. `known(x)` is `x`, and an
//! error where that is null: `NOT known(_deleted)` in schema `raw` does not leave a row out of which it cannot be told.

mod catalog;
mod chunks;
mod complete;
mod computed;
mod datafile;
mod dataset;
mod dialect;
mod engine;
mod error;
mod exec;
mod footer;
mod formats;
mod functions;
mod homes;
mod infer;
mod known;
mod load;
mod metadata;
mod output;
mod prune;
mod request;
mod rows;
mod scan;
mod scanfile;
mod schema;
mod session;
mod shape;
mod spool;
mod statements;
mod stopping;
mod target;
mod variant;

pub use engine::{Engine, EngineOptions, Rows, Statement};
pub use error::{Error, Unreadable};
pub use functions::TABLE_FUNCTIONS;
pub use output::is_text_in_json;
pub use target::Protected;

pub use datafusion::arrow;
pub use datafusion::common::ScalarValue;

#[cfg(test)]
mod tests;
