//! What a HypAware home holds on disk, Iceberg tables aside: homes, partitions, generations and their
//! states, cursors, the spool, the seq allocator, watermarks and the policy stores.
//!
//! Everything here only reads. What cannot be read is reported as a [`Problem`] beside the rest of the
//! answer; an [`Error`] is returned only where there is no answer at all. What is not certain is said to be
//! unknown, never guessed.

mod allocator;
mod cursor;
mod daemon;
mod discover;
mod folder;
mod generation;
mod home;
mod json;
mod locate;
mod outbox;
mod partition;
mod policy;
mod problem;
mod spool;
mod watermark;

pub use allocator::Allocator;
pub use cursor::{Cursor, Retention};
pub use daemon::Daemon;
pub use generation::{Generation, GenerationState};
pub use home::{Home, labels};
pub use outbox::Outbox;
pub use partition::{Partition, PartitionId};
pub use policy::{Policy, Withheld};
pub use problem::{Error, Found, Problem, Severity};
pub use spool::{SpoolBatch, SpoolRow};
pub use watermark::{Watermark, WatermarkFile};
