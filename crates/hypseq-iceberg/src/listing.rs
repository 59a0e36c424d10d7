//! Data files found by listing, without metadata.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, io_error};

/// Every data file below a generation's `data` folder, sorted: `*.parquet`, position-delete files and temporary files
/// aside. For a folder without metadata, such as the orphan of a compaction that was killed. Symbolic links are not
/// followed.
///
/// # Errors
/// [`Error::Io`] when a folder is there and cannot be listed.
pub fn unreferenced(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![dir.join("data")];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|e| io_error(&folder, &e))?,
        };
        for entry in entries {
            let entry = entry.map_err(|e| io_error(&folder, &e))?;
            let kind = entry.file_type().map_err(|e| io_error(&folder, &e))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && is_data_file(&entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Temporary files are named `<uuid>.parquet.tmp.<pid>.<ms>.<rand>`.
fn is_data_file(name: &str) -> bool {
    name.ends_with(".parquet") && !name.ends_with("-deletes.parquet") && !name.contains(".tmp.")
}
