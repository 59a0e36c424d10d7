//! Folder listings: sorted by name, and never through a symbolic link to another folder, so that a walk
//! ends and stays below the home. HypAware's own walk does not follow them either.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Problem;

/// An entry of a folder whose name is UTF-8.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
}

impl Entry {
    pub(crate) fn is_file_with(&self, extension: &str) -> bool {
        !self.is_dir && self.path.extension().is_some_and(|found| found == extension)
    }
}

/// The folders and files in `dir`, sorted by name; none when there is no such folder.
pub(crate) fn list(dir: &Path, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let listing = match fs::read_dir(dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(Problem::io(dir, &error));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for entry in listing {
        match entry {
            Ok(entry) => found.push(entry),
            Err(error) => problems.push(Problem::io(dir, &error)),
        }
    }
    found.sort_by_key(fs::DirEntry::file_name);
    let mut entries = Vec::new();
    for entry in &found {
        match inspect(entry) {
            Ok(entry) => entries.push(entry),
            Err(problem) => problems.push(problem),
        }
    }
    entries
}

/// The folders in `dir`, sorted by name.
pub(crate) fn folders(dir: &Path, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = list(dir, problems);
    entries.retain(|entry| entry.is_dir);
    entries
}

fn inspect(entry: &fs::DirEntry) -> Result<Entry, Problem> {
    let path = entry.path();
    let Ok(name) = entry.file_name().into_string() else {
        return Err(Problem::warning(
            "name-not-utf8",
            &path,
            "expected a UTF-8 name, found other bytes; it was skipped",
            "rename it in a copy if it belongs to the cache; HypAware writes UTF-8 names only",
        ));
    };
    let kind = entry.file_type().map_err(|error| Problem::io(&path, &error))?;
    let is_dir = if kind.is_symlink() {
        // A link to a file is read like the file: only links to folders can lead out or in circles.
        if !path.is_file() {
            return Err(Problem::warning(
                "link-not-followed",
                &path,
                "expected a folder or a file, found a symbolic link to another folder or to nothing; it was skipped",
                "replace the link by the folder itself in a copy, if what it points at belongs to the cache",
            ));
        }
        false
    } else {
        kind.is_dir()
    };
    Ok(Entry { name, path, is_dir })
}
