//! Homes for the tests: the real ones, copies of them, and ones made by hand.

use std::fs;
use std::path::{Path, PathBuf};

use hypseq_cache::{Generation, GenerationState, Home, Partition, Problem};
use tempfile::TempDir;

/// A cache written by HypAware itself; never written to.
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

pub fn open(name: &str) -> Home {
    Home::open(&testdata(name)).unwrap()
}

/// A home that the test may break.
pub struct Scratch(TempDir);

impl Scratch {
    /// A copy of a real home, without the data files, which this crate does not read.
    pub fn copy(name: &str) -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        copy(&testdata(name), &scratch.root());
        scratch
    }

    /// A home without anything in it.
    pub fn new() -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        scratch.folder("hypaware/cache/datasets");
        scratch
    }

    pub fn root(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    pub fn home(&self) -> Home {
        Home::open(&self.root()).unwrap()
    }

    pub fn folder(&self, below: &str) -> &Self {
        fs::create_dir_all(self.path(below)).unwrap();
        self
    }

    pub fn file(&self, below: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A generation with a metadata file, below `hypaware/cache/datasets`.
    pub fn generation(&self, below: &str) -> &Self {
        self.file(&format!("hypaware/cache/datasets/{below}/metadata/v1.metadata.json"), "{}")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if entry.file_name() == "data" {
                fs::create_dir(target).unwrap();
            } else {
                copy(&entry.path(), &target);
            }
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub fn codes(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code).collect()
}

/// The only problem there is.
pub fn only(problems: &[Problem]) -> &Problem {
    assert_eq!(problems.len(), 1, "{problems:#?}");
    &problems[0]
}

pub fn states(partition: &Partition) -> Vec<(&str, GenerationState)> {
    partition.generations.iter().map(|Generation { name, state, .. }| (name.as_str(), *state)).collect()
}
