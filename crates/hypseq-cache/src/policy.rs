//! Which rows today's policy stores would withhold from every sink.

use std::path::Path;

use serde_json::{Map, Value};

use crate::Problem;
use crate::json::{self, Object};

/// Today's policy stores, as far as they can be seen offline: `.hypignore` files cannot, nor spellings of a folder
/// that only its own file system can equate (links, letter case, Unicode forms).
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Sources opted out (`client-sync.json`, class `local-only`).
    pub local_only_sources: Vec<String>,
    /// `(folder, class)` of `local-only.json`; the classes are `full`, `local-only` and `ignore`.
    pub folders: Vec<(String, String)>,
    /// A store that is there and does not parse: the daemon then sends nothing at all.
    pub problems: Vec<Problem>,
}

/// Why a row would not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withheld {
    /// A policy store does not parse: every export stops and no watermark moves.
    StoreUnreadable,
    /// The row's source is opted out.
    Source(String),
    /// The nearest folder entry at or above the row's `cwd` is not `full`; `(folder, class)`.
    Folder(String, String),
}

impl Policy {
    /// Whether a row of this source, captured in this folder, would be withheld, and by which rule.
    pub fn withholds(&self, source: Option<&str>, cwd: Option<&str>) -> Option<Withheld> {
        if !self.problems.is_empty() {
            return Some(Withheld::StoreUnreadable);
        }
        let is_source = |opted_out: &&String| Some(opted_out.as_str()) == source;
        if let Some(source) = self.local_only_sources.iter().find(is_source) {
            return Some(Withheld::Source(source.clone()));
        }
        let (folder, class) = self.governing(cwd?)?;
        (class != "full").then(|| Withheld::Folder(folder.clone(), class.clone()))
    }

    /// The nearest entry at or above a folder; of two for the same folder, the stricter.
    fn governing(&self, cwd: &str) -> Option<&(String, String)> {
        let cwd = components(cwd)?;
        let depth = |folder: &str| {
            let folder = components(folder)?;
            cwd.starts_with(&folder).then_some(folder.len())
        };
        self.folders
            .iter()
            .filter_map(|entry| Some((depth(&entry.0)?, strictness(&entry.1), entry)))
            .max_by_key(|(depth, strictness, _)| (*depth, *strictness))
            .map(|(_, _, entry)| entry)
    }
}

fn strictness(class: &str) -> u8 {
    match class {
        "full" => 0,
        "local-only" => 1,
        _ => 2,
    }
}

/// An absolute path as its parts, `.` and `..` resolved; none for a relative path, whose place is unknown.
/// `/` separates everywhere, `\` only where the path is a Windows one.
fn components(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let rest = if path.starts_with(['/', '\\']) {
        parts.push("/");
        path
    } else if drive {
        let (drive, rest) = path.split_at(2);
        parts.push(drive);
        rest
    } else {
        return None;
    };
    let is_windows = !path.starts_with('/');
    for part in rest.split(|separator| separator == '/' || (is_windows && separator == '\\')) {
        match part {
            "" | "." => {}
            ".." => parts.truncate(parts.len().saturating_sub(1).max(1)),
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// Reads both stores below `<state root>/usage-policy`.
pub(crate) fn read(dir: &Path) -> Policy {
    let mut problems = Vec::new();
    let local_only_sources = store(&dir.join("client-sync.json"), client_sync, &mut problems);
    let folders = store(&dir.join("local-only.json"), local_only, &mut problems);
    Policy { local_only_sources, folders, problems }
}

/// What one store says; nothing when it is absent, and nothing but a problem when it is unreadable.
fn store<T>(
    path: &Path,
    parse: impl FnOnce(&Map<String, Value>) -> Result<Vec<T>, String>,
    problems: &mut Vec<Problem>,
) -> Vec<T> {
    let content = match json::read(path) {
        Ok(None) => return Vec::new(),
        Ok(Some(bytes)) => json::parse(&bytes).and_then(|map| parse(&map)),
        Err(error) => Err(format!("expected to read it, found: {error}")),
    };
    content.unwrap_or_else(|message| {
        problems.push(Problem::error(
            "policy-unreadable",
            path,
            message,
            "HypAware exports nothing while this store is unreadable, and no watermark moves: repair or restore it",
        ));
        Vec::new()
    })
}

fn client_sync(map: &Map<String, Value>) -> Result<Vec<String>, String> {
    let file = Object::new(map);
    file.version("version", 1)?;
    entries(file, "entries", |entry| {
        entry.required("class", "\"local-only\"", |class| (class.as_str() == Some("local-only")).then_some(()))?;
        entry.required("source", "a source's name", |source| json::string(source).filter(|source| !source.is_empty()))
    })
}

fn local_only(map: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let file = Object::new(map);
    let version =
        file.required("version", "1 or 2", |version| version.as_u64().filter(|version| matches!(version, 1 | 2)))?;
    if version == 1 {
        let dirs = file.required("dirs", "an array of strings", |dirs| {
            dirs.as_array()?.iter().map(json::string).collect::<Option<Vec<String>>>()
        })?;
        return Ok(dirs.into_iter().map(|dir| (dir, "local-only".to_owned())).collect());
    }
    entries(file, "entries", |entry| {
        let dir = entry.string("dir")?;
        let class = entry.required("class", "\"full\", \"local-only\" or \"ignore\"", |class| {
            json::string(class).filter(|class| matches!(class.as_str(), "full" | "local-only" | "ignore"))
        })?;
        Ok((dir, class))
    })
}

fn entries<T>(file: Object<'_>, name: &str, read: impl Fn(Object<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    let list = file.required(name, "an array of objects", |list| {
        list.as_array()?.iter().map(Value::as_object).collect::<Option<Vec<_>>>()
    })?;
    list.iter()
        .enumerate()
        .map(|(index, entry)| read(Object::new(entry)).map_err(|message| format!("{name}[{index}]: {message}")))
        .collect()
}
