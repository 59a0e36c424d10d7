//! SQL over HypAware caches: the datasets of one or more homes as tables of a DataFusion catalog.
//!
//! | schema | rows |
//! | --- | --- |
//! | `live` (default) | live generations, deletes applied |
//! | `raw` | every physical row of every generation, with provenance columns |
//! | `complete` | the union over generations, one row per seq and partition |
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

mod catalog;
mod chunks;
mod complete;
mod datafile;
mod dataset;
mod dialect;
mod engine;
mod error;
mod exec;
mod footer;
mod infer;
mod json;
mod load;
mod prune;
mod request;
mod rows;
mod scan;
mod scanfile;
mod schema;
mod session;
mod shape;
mod statements;
mod variant;

pub use engine::{Engine, EngineOptions, Rows, Statement};
pub use error::{Error, Unreadable};

pub use datafusion::arrow;
pub use datafusion::common::ScalarValue;

#[cfg(test)]
mod tests;
