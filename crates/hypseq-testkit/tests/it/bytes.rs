//! The same seed gives the same bytes, another one others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hypseq_testkit::{CacheSpec, generate, small};

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn small_files(seed: u64) -> BTreeMap<PathBuf, Vec<u8>> {
    let home = tempfile::tempdir().unwrap();
    small(seed, home.path()).unwrap();
    files(home.path())
}

#[test]
fn the_seed_decides_every_byte() {
    for seed in [3, 4] {
        let first = small_files(seed);
        assert!(first.len() > 20);
        assert!(first == small_files(seed), "seed {seed}");
        assert!(first != small_files(seed + 1), "seed {seed}");
    }
}

#[test]
fn linked_files_are_the_same_as_copies() {
    let generated = |link_same_files| {
        let home = tempfile::tempdir().unwrap();
        generate(&CacheSpec { link_same_files, ..CacheSpec::default() }, home.path()).unwrap();
        files(home.path())
    };
    assert!(generated(false) == generated(true));
}
