//! The crate's public API, on the corpora and on tables made by hand.

mod corpora;
mod deletes;
mod manifests;
mod support;
