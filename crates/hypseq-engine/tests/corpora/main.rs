//! The engine on the caches of `testdata/`, against what HypAware's own reader saw.

mod answers;
mod complete;
mod damage;
mod fleet;
mod generations;
mod refusals;
mod rows;
mod statements;

/// Homes under `testdata/`.
const CORPORA: [&str; 6] = ["neutral", "monotone", "legacy", "skew", "crashed", "sinks"];
