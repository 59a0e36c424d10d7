//! Generations, the table folders of a partition: how they are named and ordered, and which is what.

use std::path::{Path, PathBuf};

use crate::{Cursor, Partition, Problem, folder, json};

/// What a generation is to its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerationState {
    /// The cursor points at it.
    Live,
    /// A compaction replaced it (`.retired`); complete.
    Retired,
    /// Not referenced and not retired: often a compaction that was killed.
    Orphan,
    /// The cursor is unreadable and the folder has metadata and no `.retired`: it may be the live one.
    Unknown,
}

impl GenerationState {
    /// Its name in lower case.
    pub fn label(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Retired => "retired",
            Self::Orphan => "orphan",
            Self::Unknown => "unknown",
        }
    }
}

/// One table folder of a partition.
#[derive(Debug, Clone)]
pub struct Generation {
    /// The folder's name (`table-1796095174466`, `epoch=2`); `.` where the partition folder is the table itself.
    pub name: String,
    /// Its folder.
    pub dir: PathBuf,
    /// What it is to the partition.
    pub state: GenerationState,
    /// Contents of `.retired`, an ISO time, as written.
    pub retired_at: Option<String>,
    /// Whether there is an Iceberg `metadata/` folder with at least one metadata file.
    pub has_metadata: bool,
}

impl Generation {
    /// A generation whose state is still to be settled.
    pub(crate) fn read(name: &str, dir: &Path, problems: &mut Vec<Problem>) -> Self {
        let retired = dir.join(".retired");
        let retired_at = match json::read(&retired) {
            Ok(text) => text.map(|text| String::from_utf8_lossy(&text).trim_end().to_owned()),
            Err(error) => {
                problems.push(Problem::io(&retired, &error));
                // The mark is there, whatever it says.
                Some(String::new())
            }
        };
        let has_metadata = folder::list(&dir.join("metadata"), problems)
            .iter()
            .any(|entry| entry.name.ends_with(".metadata.json") || entry.name.ends_with(".metadata.json.gz"));
        Self { name: name.to_owned(), dir: dir.to_owned(), state: GenerationState::Orphan, retired_at, has_metadata }
    }
}

/// Whether a compaction or the first flush gives a folder this name: `table`, `table-<ms>`, `epoch=<n>`.
pub(crate) fn is_generation_name(name: &str) -> bool {
    !matches!(age(name).0, Form::Other)
}

/// Decides the state of each generation, and reports what does not fit the cursor.
pub(crate) fn settle(partition: &mut Partition, problems: &mut Vec<Problem>) {
    let live_name = partition.cursor.as_ref().ok().map(Cursor::live_name);
    for generation in &mut partition.generations {
        generation.state = if live_name.as_ref() == Some(&generation.name) {
            GenerationState::Live
        } else if generation.retired_at.is_some() {
            GenerationState::Retired
        } else if live_name.is_none() && generation.has_metadata {
            GenerationState::Unknown
        } else {
            GenerationState::Orphan
        };
        problems.extend(misfit(generation));
    }
    let Some(live_name) = live_name else { return };
    // A cursor that counts no rows and names no folder, in a folder with nothing in it: nothing was flushed yet.
    let is_new = live_name == "." && partition.generations.is_empty();
    if partition.live().is_none() && !is_new {
        problems.push(Problem::error(
            "live-missing",
            &partition.dir.join(&live_name),
            format!("expected the generation `{live_name}`, which the cursor names, found no such folder"),
            "no generation is live: copy the missing folder again, or compare those that are there",
        ));
    }
}

fn misfit(generation: &Generation) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_live = generation.state == GenerationState::Live;
    if is_live && generation.retired_at.is_some() {
        problems.push(Problem::warning(
            "live-retired",
            &generation.dir.join(".retired"),
            "expected the generation that the cursor names to be in use, found it marked as retired",
            "it is taken as live; make a copy of the cache before HypAware removes retired folders (after 24 hours)",
        ));
    }
    if !generation.has_metadata && is_live {
        problems.push(Problem::error(
            "live-without-metadata",
            &generation.dir,
            "expected an Iceberg metadata file in the live generation, found none",
            "its rows cannot be told from leftovers: copy the folder again, or use an older generation",
        ));
    } else if !generation.has_metadata {
        let advice = if generation.state == GenerationState::Retired {
            "a retired generation is complete: copy the folder again, or leave it out"
        } else {
            "a compaction was killed here, or is at work; what the folder holds is in the generation that it compacted \
             as well"
        };
        problems.push(Problem::warning(
            "generation-without-metadata",
            &generation.dir,
            "expected an Iceberg metadata file, found none",
            advice,
        ));
    }
    problems
}

/// Inside a partition: names that the daemon gives, the one that the cursor names, and copies that somebody made
/// of such folders (HypAware's own walk skips every name that begins like this).
pub(crate) fn is_generation(name: &str, live_name: Option<&str>) -> bool {
    name.starts_with("table") || name.starts_with("epoch=") || live_name == Some(name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Itself,
    Table,
    Epoch,
    Other,
}

/// Oldest first: the partition folder itself, `table`, `table-<ms>` by number, epochs by number, other names.
pub(crate) fn sort_by_age(generations: &mut [Generation]) {
    generations.sort_by(|a, b| age(&a.name).cmp(&age(&b.name)));
}

fn age(name: &str) -> (Form, u64, &str) {
    let number = |digits: &str| -> Option<u64> {
        (digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
    };
    if name == "." {
        (Form::Itself, 0, name)
    } else if name == "table" {
        (Form::Table, 0, name)
    } else if let Some(ms) = name.strip_prefix("table-").and_then(number) {
        (Form::Table, ms, name)
    } else if let Some(epoch) = name.strip_prefix("epoch=").and_then(number) {
        (Form::Epoch, epoch, name)
    } else {
        (Form::Other, 0, name)
    }
}
