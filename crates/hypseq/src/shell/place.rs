//! Where the shell may write, never below a home or cache that is open, and in which format.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hypseq_cache::Home;

use crate::cli::Format;

/// The history file, its folder made; an error says why there is none.
pub fn history(homes: &[Home]) -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = match state {
        Some(state) => state,
        None => std::env::home_dir().context("there is no home directory")?.join(".local/state"),
    };
    let folder = state.join("hypseq");
    outside(&folder.join("history"), homes)?;
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    Ok(folder.join("history"))
}

/// Makes a file that is not there yet.
pub fn new_file(path: &Path, homes: &[Home]) -> Result<File> {
    outside(path, homes)?;
    match File::create_new(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("`{}` is there already\n  hint: nothing is overwritten; choose another name", path.display())
        }
        Err(error) => Err(error).with_context(|| format!("cannot write `{}`", path.display())),
    }
}

/// The format that a file's name asks for.
pub fn format(path: &Path) -> Result<Format> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        Some("ndjson") => Ok(Format::Ndjson),
        Some("md") => Ok(Format::Markdown),
        Some("txt") => Ok(Format::Table),
        _ => bail!(
            "`{}`: its extension tells no format\n  hint: .csv, .json, .ndjson, .md and .txt do; other formats are written \
             with COPY (…) TO '…'",
            path.display()
        ),
    }
}

/// Refuses a path that leads below a home.
fn outside(path: &Path, homes: &[Home]) -> Result<()> {
    let real = resolved(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    for folder in homes.iter().flat_map(|home| [home.root(), home.cache_root()]) {
        if folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)) {
            bail!(
                "`{}` lies in `{}`, and nothing is ever written there\n  hint: choose a place outside of it",
                path.display(),
                folder.display()
            );
        }
    }
    Ok(())
}

/// A path without links, of which the end need not be there yet.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
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
