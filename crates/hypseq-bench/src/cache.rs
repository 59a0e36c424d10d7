//! The caches: generated once, kept in the work folder with what is known of them, and found there again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use hypseq_testkit::{RowTruth, Step, generate_streaming, incident};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::progress;

/// From so many rows on a file that several generations hold is one file with several names.
const LINKED_FROM_ROWS: u64 = 5_000_000;

/// Which cache is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The incident, with its deletion vectors.
    Incident,
    /// The incident without any delete: everybody sees the same rows.
    Undeleted,
}

/// A generated home.
#[derive(Debug)]
pub struct Cache {
    /// Its folder.
    pub home: PathBuf,
    /// What is known of it from its making.
    pub facts: Facts,
}

/// What is known of a cache from its making.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// The time that is asked about, in milliseconds since 1970, UTC.
    pub time_ms: i64,
    /// The last seq at or before that time.
    pub last_seq: i64,
    /// The first seq after it.
    pub next_seq: i64,
    /// The `part_id` of the row with the last seq.
    pub id: String,
    /// The partitions; the first is the one that is asked about.
    pub partitions: Vec<Partition>,
}

/// A partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Partition {
    /// Its dataset.
    pub dataset: String,
    /// Its path below the dataset.
    pub path: String,
    /// Its generations, oldest first; the last is the live one.
    pub generations: Vec<Generation>,
}

/// A generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Generation {
    /// The folder's name.
    pub name: String,
    /// Data files.
    pub data_files: u64,
    /// Rows in them, deleted ones included.
    pub raw_rows: u64,
    /// Rows that are not deleted.
    pub visible_rows: u64,
}

/// How many rows and files there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Data files.
    pub files: u64,
    /// Rows in them, deleted ones included.
    pub rows: u64,
    /// Rows of them that are deleted.
    pub deleted: u64,
}

impl Cache {
    /// Finds a cache in the work folder, or writes it there.
    pub fn obtain(work: &Path, kind: Kind, rows: u64, seed: u64) -> Result<Self> {
        let name = match kind {
            Kind::Incident => format!("incident-{rows}-{seed}"),
            Kind::Undeleted => format!("undeleted-{rows}-{seed}"),
        };
        let home = work.join(&name);
        let facts_file = work.join(format!("{name}.json"));
        if !home.exists() {
            progress(&format!("writing {}", home.display()));
            // Under another name until it is whole: what was cut off is never taken for a cache.
            let begun = work.join(format!("{name}.begun"));
            if begun.exists() {
                fs::remove_dir_all(&begun)?;
            }
            fs::create_dir_all(&begun)?;
            let facts = write(&begun, kind, rows, seed)?;
            fs::write(&facts_file, serde_json::to_vec_pretty(&facts)?)?;
            fs::rename(&begun, &home)?;
        }
        let facts = fs::read(&facts_file).with_context(|| {
            format!(
                "cannot read `{}`\n  hint: remove `{}`, and both are made anew",
                facts_file.display(),
                home.display()
            )
        })?;
        let facts: Facts = serde_json::from_slice(&facts)?;
        let is_whole = !facts.partitions.is_empty() && facts.partitions.iter().all(|p| !p.generations.is_empty());
        ensure!(is_whole, "`{}` names no partition, or one without generations", facts_file.display());
        Ok(Self { home, facts })
    }

    /// The partition that is asked about.
    pub fn partition(&self) -> &Partition {
        &self.facts.partitions[0]
    }

    /// The folder that holds a generation's data files.
    pub fn data_folder(&self, partition: &Partition, generation: &Generation) -> PathBuf {
        let datasets = self.home.join("hypaware/cache/datasets");
        datasets.join(&partition.dataset).join(&partition.path).join(&generation.name).join("data")
    }

    /// The folders with the data files of all live generations.
    pub fn live_folders(&self) -> Vec<PathBuf> {
        let live = |partition: &Partition| self.data_folder(partition, partition.live());
        self.facts.partitions.iter().map(live).collect()
    }

    /// The size of all live generations.
    pub fn live_size(&self) -> Size {
        Size::of(self.facts.partitions.iter().map(Partition::live))
    }

    /// The size of everything.
    pub fn size(&self) -> Size {
        Size::of(self.facts.partitions.iter().flat_map(|partition| &partition.generations))
    }
}

impl Partition {
    /// The generation that the daemon reads.
    pub fn live(&self) -> &Generation {
        &self.generations[self.generations.len() - 1]
    }
}

impl Size {
    /// The sum over generations.
    pub fn of<'a>(generations: impl IntoIterator<Item = &'a Generation>) -> Self {
        generations.into_iter().fold(Self::default(), |sum, generation| Self {
            files: sum.files + generation.data_files,
            rows: sum.rows + generation.raw_rows,
            deleted: sum.deleted + generation.raw_rows - generation.visible_rows,
        })
    }
}

fn write(home: &Path, kind: Kind, rows: u64, seed: u64) -> Result<Facts> {
    let mut incident = incident(rows, seed);
    incident.spec.link_same_files = rows >= LINKED_FROM_ROWS;
    if kind == Kind::Undeleted {
        incident.spec.steps.retain(|step| !matches!(step, Step::Delete { .. }));
    }
    let mut id = None;
    let mut find = |partition: usize, row: RowTruth| {
        if partition == 0 && row.seq == Some(incident.last_seq) {
            id = Some(row.id);
        }
    };
    let truth = generate_streaming(&incident.spec, home, &mut find)?;
    let facts = json!({
        "time_ms": incident.time_ms,
        "last_seq": incident.last_seq,
        "next_seq": incident.next_seq,
        "id": id,
        "partitions": truth.partitions,
    });
    serde_json::from_value(facts).context("the generator tells another truth than expected")
}
