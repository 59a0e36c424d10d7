//! Generated homes, read back: by the crates that read HypAware's, and with the Parquet crate alone.

mod bytes;
mod incident;
mod layout;
mod small;
mod steps;
mod support;
