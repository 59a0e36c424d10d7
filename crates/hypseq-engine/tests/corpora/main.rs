//! The engine on the caches of `testdata/`, against what HypAware's own reader saw.

mod answers;
mod complete;
mod copy;
mod damage;
mod fleet;
mod functions;
mod generations;
mod metadata;
mod refusals;
mod rows;
mod spool;
mod statements;

/// Homes under `testdata/`.
const CORPORA: [&str; 6] = ["neutral", "monotone", "legacy", "skew", "crashed", "sinks"];
