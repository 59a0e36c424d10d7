//! Caches like HypAware's, of any size, by seed: what tests and benchmarks read, together with the truth about them.
//!
//! A [`CacheSpec`] says which partitions there are and what happened to them, step by step; [`generate`] writes the home
//! and returns a [`Truth`] that comes from the making and not from any reader. [`small()`] describes and writes a random
//! one for property tests, [`incident()`] the one of a sink that dropped what it should have sent.

mod avro;
mod bounds;
mod cache;
mod content;
pub mod daemon;
mod datafile;
mod deletes;
mod error;
mod incident;
mod logs;
mod manifest;
mod messages;
mod metadata;
mod plan;
mod rng;
mod rows;
mod schema;
mod sink;
mod small;
mod spec;
mod state;
mod table;
mod text;
mod truth;
mod variants;
mod writer;

pub use cache::{generate, generate_streaming};
pub use error::Error;
pub use incident::{Incident, incident};
pub use small::{small, small_spec};
pub use spec::{CacheSpec, Dataset, DeleteForm, Doomed, Flow, Origin, PartitionSpec, Step};
pub use truth::{GenerationState, GenerationTruth, PartitionTruth, RowTruth, Truth, WatermarkTruth};
