//! Where statements may write: outside of every home and every cache, whether it was named or not.

use std::io;
use std::path::{Path, PathBuf};

use hypseq_cache::Home;

/// The folders into which nothing may be written, besides every other folder that looks like a home or a cache.
#[derive(Debug, Clone)]
pub struct Protected(Vec<PathBuf>);

impl Protected {
    /// The folders of these homes.
    pub fn new(homes: &[Home]) -> Self {
        let folders = homes.iter().flat_map(|home| [home.root(), home.cache_root()]);
        Self(folders.filter_map(|folder| folder.canonicalize().ok()).collect())
    }

    /// Checks a path, of which the end need not be there yet.
    ///
    /// # Errors
    /// Why nothing may be written there, in words.
    pub fn check(&self, path: &Path) -> Result<(), String> {
        let real = resolved(path).map_err(|error| format!("the path cannot be resolved: {error}"))?;
        let named = self.0.iter().find(|folder| real.starts_with(folder)).map(PathBuf::as_path);
        match named.or_else(|| real.ancestors().skip(1).find(|folder| is_home(folder) || is_cache(folder))) {
            Some(folder) => Err(format!("it lies in `{}`, and nothing is ever written there", folder.display())),
            None => Ok(()),
        }
    }
}

fn is_home(folder: &Path) -> bool {
    folder.join("hypaware/cache/datasets").is_dir()
}

fn is_cache(folder: &Path) -> bool {
    let has_partitions = || Home::open_cache(folder).is_ok_and(|cache| !cache.partitions().value.is_empty());
    folder.join("datasets").is_dir() && (folder.join("_hyp_ingest_seq.json").is_file() || has_partitions())
}

/// The path without links.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    for existing in path.ancestors() {
        match (existing.canonicalize(), existing.file_name()) {
            (Ok(found), _) => return Ok(missing.iter().rev().fold(found, |path, name| path.join(name))),
            // A link that leads nowhere yet would be followed by the write.
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound && !existing.is_symlink() => {
                missing.push(name);
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_and_dots_lead_where_they_lead() {
        let temporary = tempfile::TempDir::new().expect("a folder");
        let folder = temporary.path();
        std::fs::create_dir(folder.join("real")).expect("a folder");
        let real = folder.join("real").canonicalize().expect("a folder");
        std::os::unix::fs::symlink(&real, folder.join("link")).expect("a link");
        std::os::unix::fs::symlink("nowhere", folder.join("dangling")).expect("a link");
        assert_eq!(resolved(&folder.join("link/a/b")).expect("resolved"), real.join("a/b"));
        assert_eq!(resolved(&folder.join("link/../real/a")).expect("resolved"), real.join("a"));
        assert!(resolved(&folder.join("dangling")).is_err());
        assert!(resolved(&folder.join("a/../real/b")).is_err(), "what is missing may be made a link before the write");
    }
}
