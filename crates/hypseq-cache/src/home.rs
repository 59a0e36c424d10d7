//! A HypAware home, or a bare copy of its cache root: the way to everything in it.

use std::path::{Path, PathBuf};

use crate::{
    Allocator, Daemon, Error, Found, Outbox, Partition, Policy, Problem, SpoolBatch, WatermarkFile, allocator, daemon,
    discover, locate, outbox, policy, spool, watermark,
};

/// A HypAware home (`--home`), or a cache root copied from one (`--cache`).
#[derive(Debug, Clone)]
pub struct Home {
    name: String,
    root: PathBuf,
    state_root: Option<PathBuf>,
    cache_root: PathBuf,
}

impl Home {
    /// Opens a `HYP_HOME`: the folder that holds `hypaware/cache/datasets`.
    ///
    /// # Errors
    /// When there is no such folder, it is a file, or there is no `hypaware/cache/datasets` below it; the hint
    /// says which of `--home` and `--cache` would fit, and with which path, when the path looks like another part of
    /// a home (a state root, a cache root, a folder further in) or like a folder of homes.
    pub fn open(home: &Path) -> Result<Self, Error> {
        locate::expect_datasets(
            home,
            "hypaware/cache/datasets",
            "a HypAware home (a folder that holds `hypaware/cache/datasets`)",
        )?;
        let state_root = home.join("hypaware");
        Ok(Self {
            name: locate::name(home)?,
            root: home.to_owned(),
            cache_root: state_root.join("cache"),
            state_root: Some(state_root),
        })
    }

    /// Opens a bare cache root: the folder that holds `datasets/`. There are no watermarks and no policy stores.
    ///
    /// # Errors
    /// As [`Home::open`].
    pub fn open_cache(cache_root: &Path) -> Result<Self, Error> {
        locate::expect_datasets(cache_root, "datasets", "a HypAware cache root (a folder that holds `datasets`)")?;
        Ok(Self {
            name: locate::name(cache_root)?,
            root: cache_root.to_owned(),
            state_root: None,
            cache_root: cache_root.to_owned(),
        })
    }

    /// The folder's own name, also when it was given as `.`: what the `home` column of a fleet shows.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path that was opened.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `<home>/hypaware`; none for a bare cache root.
    pub fn state_root(&self) -> Option<&Path> {
        self.state_root.as_deref()
    }

    /// The folder that holds `datasets/`.
    pub fn cache_root(&self) -> &Path {
        &self.cache_root
    }

    /// The seq allocator; none when its file does not exist.
    ///
    /// # Errors
    /// The file is there and does not parse.
    pub fn allocator(&self) -> Result<Option<Allocator>, Problem> {
        allocator::read(&self.cache_root.join("_hyp_ingest_seq.json"))
    }

    /// Every partition of every dataset, by dataset and path.
    pub fn partitions(&self) -> Found<Vec<Partition>> {
        discover::partitions(&self.datasets())
    }

    /// Every watermark file of every sink instance, by plugin, instance, dataset and partition.
    pub fn watermarks(&self) -> Found<Vec<WatermarkFile>> {
        self.in_state(watermark::read)
    }

    /// The rows captured and not yet flushed, of every dataset, in the order of capture within a label.
    pub fn spool(&self) -> Found<Vec<SpoolBatch>> {
        spool::read(&self.datasets())
    }

    /// As [`Home::spool`] for spools that are large: hands over one batch at a time, and returns the problems.
    pub fn visit_spool(&self, mut visit: impl FnMut(SpoolBatch)) -> Vec<Problem> {
        spool::visit(&self.datasets(), &mut visit)
    }

    /// Today's policy stores; empty ones for a bare cache root, which says nothing about them.
    pub fn policy(&self) -> Policy {
        self.state_root.as_deref().map(|root| policy::read(&root.join("usage-policy"))).unwrap_or_default()
    }

    /// The daemon that last claimed the home; none when none did, or for a bare cache root. It may be stale.
    ///
    /// # Errors
    /// The file is there and does not name a process.
    pub fn daemon(&self) -> Result<Option<Daemon>, Problem> {
        self.state_root.as_deref().map_or(Ok(None), |root| daemon::read(&root.join("run/hypaware.pid")))
    }

    /// The batches that failed and will be retried, by sink instance.
    pub fn outbox(&self) -> Found<Vec<Outbox>> {
        self.in_state(|root| outbox::read(&root.join("sinks")))
    }

    fn datasets(&self) -> PathBuf {
        self.cache_root.join("datasets")
    }

    fn in_state<T>(&self, read: impl FnOnce(&Path) -> Found<Vec<T>>) -> Found<Vec<T>> {
        self.state_root.as_deref().map_or_else(|| Found { value: Vec::new(), problems: Vec::new() }, read)
    }
}

/// What tells several homes apart: the folder's name, or its path where several have that name.
pub fn labels<'a>(homes: impl IntoIterator<Item = &'a Home>) -> Vec<String> {
    let homes: Vec<&Home> = homes.into_iter().collect();
    let is_unique = |name: &str| homes.iter().filter(|home| home.name() == name).count() == 1;
    let label = |home: &&Home| match home.name() {
        name if is_unique(name) => name.to_owned(),
        _ => home.root().display().to_string(),
    };
    homes.iter().map(label).collect()
}
