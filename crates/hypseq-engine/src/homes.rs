//! The homes of a session, opened.

use std::sync::{Arc, Mutex, PoisonError};

use hypseq_cache::{Home, Partition, Problem};

use crate::load::Generation;

/// The column that says which home a row is from, where there are several.
pub(crate) const HOME: &str = "home";

/// A home with what was found in it when the session opened.
#[derive(Debug)]
pub(crate) struct OpenHome {
    /// What the `home` column shows.
    pub label: Arc<str>,
    pub home: Home,
    pub partitions: Vec<Partition>,
    /// By partition, the live one first, then from the newest to the oldest.
    pub generations: Vec<Arc<Generation>>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// What queries found to be unreadable, the generations aside.
    pub noted: Mutex<Vec<Problem>>,
}

impl OpenHome {
    /// Notes what a query found, once.
    pub(crate) fn note(&self, problems: impl IntoIterator<Item = Problem>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for problem in problems {
            if !noted.contains(&problem) {
                noted.push(problem);
            }
        }
    }

    /// What [`OpenHome::note`] was told.
    pub(crate) fn noted(&self) -> Vec<Problem> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The generations of one partition.
    pub(crate) fn generations_of(&self, partition: &Partition) -> impl Iterator<Item = &Arc<Generation>> {
        self.generations.iter().filter(|generation| generation.partition == partition.id)
    }
}

/// All homes of a session.
#[derive(Debug)]
pub(crate) struct Homes(pub Vec<OpenHome>);

impl Homes {
    /// Whether tables have a `home` column.
    pub(crate) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenHome> {
        self.0.iter()
    }

    /// Adds a problem of a dataset to those of every home that has it.
    pub(crate) fn blame(&mut self, dataset: &str, problem: &Problem) {
        let has = |home: &&mut OpenHome| home.generations.iter().any(|g| g.partition.dataset == dataset);
        self.0.iter_mut().filter(has).for_each(|home| home.problems.push(problem.clone()));
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.0.iter().flat_map(|home| &home.partitions)
    }

    pub(crate) fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.0.iter().flat_map(|home| &home.generations)
    }
}
