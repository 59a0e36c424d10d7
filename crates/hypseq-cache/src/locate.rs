//! Whether a path is a home or a cache root, and if not, what it is and which flag and path would be right.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;

const IN_HOME: &str = "hypaware/cache/datasets";

/// Refuses a path below which there is no folder `below`.
pub(crate) fn expect_datasets(path: &Path, below: &str, expected: &'static str) -> Result<(), Error> {
    if path.join(below).is_dir() {
        return Ok(());
    }
    let kind = kind(path)?;
    Err(Error::NotThat { path: path.to_owned(), expected, found: kind.found().to_owned(), hint: hint(path, kind)? })
}

/// The folder's own name.
pub(crate) fn name(path: &Path) -> Result<String, Error> {
    let absolute = fs::canonicalize(path).map_err(|source| io(path, source))?;
    // Only the root of a file system has no name.
    let name = absolute.file_name().unwrap_or(absolute.as_os_str());
    Ok(name.to_string_lossy().into_owned())
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// What a path that is not what it should be is instead.
#[derive(Clone, Copy)]
enum Kind {
    Nothing,
    File,
    Empty,
    Home,
    StateRoot,
    CacheRoot,
    Datasets,
    HomeWithoutDatasets,
    Other,
}

impl Kind {
    fn found(self) -> &'static str {
        match self {
            Self::Nothing => "there is nothing at that path",
            Self::File => "it is a file",
            Self::Empty => "it is an empty folder",
            Self::Home => "it is a home (it holds `hypaware/cache/datasets`)",
            Self::StateRoot => "it is a state root (it holds `cache/datasets`)",
            Self::CacheRoot => "it is a cache root (it holds `datasets`)",
            Self::Datasets => "it is the `datasets` folder of a cache root",
            Self::HomeWithoutDatasets => "it holds `hypaware`, without `cache/datasets` in it",
            Self::Other => "it is a folder of something else",
        }
    }
}

fn kind(path: &Path) -> Result<Kind, Error> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Kind::Nothing);
        }
        Err(error) => return Err(io(path, error)),
    };
    if !metadata.is_dir() {
        return Ok(Kind::File);
    }
    let is_empty = fs::read_dir(path).map_err(|error| io(path, error))?.next().is_none();
    let holds = |below: &str| path.join(below).is_dir();
    Ok(if is_empty {
        Kind::Empty
    } else if holds(IN_HOME) {
        Kind::Home
    } else if holds("cache/datasets") {
        Kind::StateRoot
    } else if holds("datasets") {
        Kind::CacheRoot
    } else if name(path)? == "datasets" {
        Kind::Datasets
    } else if holds("hypaware") {
        Kind::HomeWithoutDatasets
    } else {
        Kind::Other
    })
}

fn hint(path: &Path, kind: Kind) -> Result<String, Error> {
    let home = enclosing(path, "hypaware", IN_HOME);
    let cache = match kind {
        Kind::Home => Some(path.join("hypaware/cache")),
        Kind::StateRoot => Some(path.join("cache")),
        _ => enclosing(path, "datasets", "datasets"),
    };
    Ok(match (home, cache) {
        (Some(home), Some(cache)) => {
            format!("use `--home {}`, or `--cache {}` for the cache alone", home.display(), cache.display())
        }
        (Some(home), None) => format!("use `--home {}`", home.display()),
        (None, Some(cache)) => format!("use `--cache {}`", cache.display()),
        (None, None) => match (kind, homes_inside(path)?.as_slice()) {
            (_, [home]) => format!("use `--home {}`", home.display()),
            (_, [home, ..]) => {
                format!("use `--home {}`, or `--home '{}/*'` for all the homes in it", home.display(), path.display())
            }
            (Kind::File, []) => "if it is an archive of a home, unpack it and give `--home` the folder".to_owned(),
            (Kind::HomeWithoutDatasets, []) => "nothing was captured there yet, or the copy is not complete".to_owned(),
            (_, []) => "a home is `$HYP_HOME`, else `~/.hyp`: give `--home` that folder, or a copy of it".to_owned(),
        },
    })
}

/// The folder that `path` is, or is in the `inner` of, and that has `below` in it.
fn enclosing(path: &Path, inner: &str, below: &str) -> Option<PathBuf> {
    if path.join(below).is_dir() {
        return Some(path.to_owned());
    }
    let absolute = fs::canonicalize(path).ok()?;
    absolute
        .ancestors()
        .find(|outer| absolute.starts_with(outer.join(inner)) && outer.join(below).is_dir())
        .map(Path::to_owned)
}

/// The homes directly in a folder, by name.
fn homes_inside(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut homes = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| io(path, error))? {
        let entry = entry.map_err(|error| io(path, error))?.path();
        if entry.join(IN_HOME).is_dir() {
            homes.push(entry);
        }
    }
    homes.sort();
    Ok(homes)
}
