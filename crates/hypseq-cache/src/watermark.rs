//! Sink watermarks: how far each sink believes it has sent.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::folder::{self, Entry};
use crate::json::{self, Object};
use crate::{Found, PartitionId, Problem};

/// A watermark that parsed and makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    /// The sink sends rows with a greater seq than this. Never negative.
    pub seq: i64,
    /// Rows really sent so far, resent ones included.
    pub exported_row_count: u64,
    /// As written in the file.
    pub updated_at: String,
}

/// One watermark file, readable or not.
#[derive(Debug, Clone)]
pub struct WatermarkFile {
    /// The plugin, such as `@hypaware/central`.
    pub plugin: String,
    /// The sink instance: the path of its state below `sink-instances/`. Where a sink keeps apart several servers
    /// under one instance name, it is `<instance>/destinations/<digest>`.
    pub instance: String,
    /// The dataset, sanitised as on disk.
    pub dataset: String,
    /// Path below the dataset's watermarks without `.json` (`source=claude`), sanitised as on disk.
    pub partition: String,
    /// Its path relative to the state root, `/`-separated.
    pub relative_path: String,
    /// Its path.
    pub path: PathBuf,
    /// The bytes as found; empty when the file could not be read.
    pub bytes: Vec<u8>,
    /// What it says.
    pub state: Result<Watermark, Problem>,
}

impl WatermarkFile {
    /// Whether this is the watermark of that partition.
    pub fn is_for(&self, partition: &PartitionId) -> bool {
        format!("{}/{}.json", self.dataset, self.partition) == partition.watermark_path()
    }
}

/// Every watermark file below `<state root>/plugins`, by plugin, instance, dataset and partition.
pub(crate) fn read(state_root: &Path) -> Found<Vec<WatermarkFile>> {
    let mut walk = Walk::default();
    for plugin in walk.folders(&state_root.join("plugins")) {
        if plugin.name.starts_with('@') {
            for package in walk.folders(&plugin.path) {
                walk.plugin(&package.path, &format!("{}/{}", plugin.name, package.name));
            }
        } else {
            walk.plugin(&plugin.path, &plugin.name);
        }
    }
    walk.files.sort_by(|a, b| key(a).cmp(&key(b)));
    Found { value: walk.files, problems: walk.problems }
}

fn key(file: &WatermarkFile) -> [&str; 4] {
    [&file.plugin, &file.instance, &file.dataset, &file.partition]
}

#[derive(Default)]
struct Walk {
    files: Vec<WatermarkFile>,
    problems: Vec<Problem>,
}

impl Walk {
    fn folders(&mut self, dir: &Path) -> Vec<Entry> {
        folder::folders(dir, &mut self.problems)
    }

    fn plugin(&mut self, dir: &Path, plugin: &str) {
        for instance in self.folders(&dir.join("sink-instances")) {
            self.instance(&instance.path, plugin, &instance.name);
            // Later versions of the central sink keep one state per server and organisation.
            for destination in self.folders(&instance.path.join("destinations")) {
                let name = format!("{}/destinations/{}", instance.name, destination.name);
                self.instance(&destination.path, plugin, &name);
            }
        }
    }

    fn instance(&mut self, dir: &Path, plugin: &str, instance: &str) {
        for dataset in self.folders(&dir.join("watermarks")) {
            self.dataset(&dataset.path, "", [plugin, instance, &dataset.name]);
        }
    }

    fn dataset(&mut self, dir: &Path, parent: &str, place @ [plugin, instance, dataset]: [&str; 3]) {
        for entry in folder::list(dir, &mut self.problems) {
            if entry.is_dir {
                self.dataset(&entry.path, &format!("{parent}{}/", entry.name), place);
            } else if let Some(stem) = entry.name.strip_suffix(".json") {
                let partition = format!("{parent}{stem}");
                let (bytes, state) = read_file(&entry.path);
                self.problems.extend(state.as_ref().err().cloned());
                self.files.push(WatermarkFile {
                    plugin: plugin.to_owned(),
                    instance: instance.to_owned(),
                    dataset: dataset.to_owned(),
                    relative_path: format!(
                        "plugins/{plugin}/sink-instances/{instance}/watermarks/{dataset}/{partition}.json"
                    ),
                    partition,
                    path: entry.path,
                    bytes,
                    state,
                });
            }
        }
    }
}

fn read_file(path: &Path) -> (Vec<u8>, Result<Watermark, Problem>) {
    let unreadable = |message, advice| Problem::error("watermark-unreadable", path, message, advice);
    match json::read(path) {
        Ok(bytes) => {
            let bytes = bytes.unwrap_or_default();
            let state = Watermark::parse(&bytes).map_err(|message| unreadable(message, advice(daemon_reads(&bytes))));
            (bytes, state)
        }
        Err(error) => {
            let message = format!("expected to read it, found: {error}");
            (Vec::new(), Err(unreadable(message, advice(None))))
        }
    }
}

impl Watermark {
    /// Reads a watermark's bytes. Fields of other HypAware versions are ignored.
    ///
    /// # Errors
    /// What was expected and what was found, in one sentence: it does not parse, `v` or `continuation.v` is not 1,
    /// the seq is not a non-negative 64-bit integer in decimal digits, or a field is missing or of another type.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let map = json::parse(bytes)?;
        let file = Object::new(&map);
        file.version("v", 1)?;
        let continuation = file.object("continuation", "continuation.")?;
        continuation.version("v", 1)?;
        Ok(Self {
            seq: continuation.seq("seq")?,
            exported_row_count: file.count("exportedRowCount")?,
            updated_at: file.string("updatedAt")?,
        })
    }
}

/// The seq that HypAware itself takes from these bytes: it looks at `continuation` only, and at no upper limit.
fn daemon_reads(bytes: &[u8]) -> Option<String> {
    let file: Value = serde_json::from_slice(bytes).ok()?;
    let continuation = file.get("continuation")?;
    let seq = continuation.get("seq")?.as_str()?;
    let is_digits = !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit());
    (continuation.get("v")?.as_f64() == Some(1.0) && is_digits).then(|| seq.to_owned())
}

fn advice(daemon_reads: Option<String>) -> String {
    match daemon_reads {
        Some(seq) => format!(
            "HypAware looks at `continuation` only and goes on from seq {seq}; no rewind is planned from this file \
             until the sink has written it anew"
        ),
        None => "the daemon takes an unparseable watermark as \"export everything\", legacy rows included: stop it \
                 before its next tick if that is not wanted, and put back the last good watermark"
            .to_owned(),
    }
}
