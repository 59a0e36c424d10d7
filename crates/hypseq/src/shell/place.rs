//! Where the shell may write, never below a home or a cache, and in which format.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use hypseq_cache::Home;
use hypseq_engine::Protected;

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
    Protected::new(homes).check(path).map_err(|why| {
        anyhow!("cannot write `{}`: {why}\n  hint: choose a place outside of every home and cache", path.display())
    })
}
