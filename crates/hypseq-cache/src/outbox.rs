//! `sinks/<instance>/outbox/`: batches that failed and will be retried.

use std::path::{Path, PathBuf};

use crate::{Found, folder};

/// The failed batches of one sink instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    /// The sink instance.
    pub instance: String,
    /// Its outbox folder.
    pub dir: PathBuf,
    /// How many batch files (`*.json`) wait there.
    pub batches: usize,
}

/// Every outbox below `sinks/`, empty ones included, by instance.
pub(crate) fn read(sinks: &Path) -> Found<Vec<Outbox>> {
    let mut problems = Vec::new();
    let mut outboxes = Vec::new();
    for instance in folder::folders(sinks, &mut problems) {
        let dir = instance.path.join("outbox");
        if !dir.is_dir() {
            continue;
        }
        let batches = folder::list(&dir, &mut problems).iter().filter(|entry| entry.is_file_with("json")).count();
        outboxes.push(Outbox { instance: instance.name, dir, batches });
    }
    Found { value: outboxes, problems }
}
