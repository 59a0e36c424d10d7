//! A generation's table: commits of data files and of deletes, each with its manifest, manifest list and metadata file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roaring::RoaringTreemap;

use crate::bounds::{Metrics, as_long};
use crate::error::{Error, io};
use crate::manifest::{self, Contents, Entry, Listed, Status, Tally, Vector};
use crate::metadata::{MetadataLog, Snapshot, Summary, TableMetadata};
use crate::rng::Rng;
use crate::schema::TableSchema;
use crate::spec::{Dataset, DeleteForm};
use crate::{deletes, deletes::BLOB_OFFSET};

/// A data file that is written already.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// Its name in `data/`.
    pub name: String,
    pub partition: Vec<Option<String>>,
    pub rows: i64,
    pub bytes: i64,
    pub metrics: Option<Arc<Metrics>>,
    /// Positions of rows that will be deleted, by loss.
    pub losses: Vec<(usize, u64)>,
}

/// Writes a table.
pub(crate) struct Table {
    dir: PathBuf,
    dataset: Dataset,
    rng: Rng,
    metadata: TableMetadata,
    version: usize,
    manifests: Vec<Manifest>,
    /// Data files that have losses.
    doomed: Vec<DoomedFile>,
    totals: Totals,
}

struct Manifest {
    listed: Listed,
    /// Of a manifest of deletes, which may have to be written anew.
    deletes: Vec<Entry>,
}

struct DoomedFile {
    url: String,
    partition: Vec<Option<String>>,
    losses: Vec<(usize, u64)>,
    deleted: RoaringTreemap,
    has_vector: bool,
}

/// A commit under way.
struct Commit {
    snapshot_id: i64,
    sequence_number: i64,
    now_ms: i64,
    added: Totals,
    /// How many partition values it concerns.
    partitions: i64,
}

/// Running totals of a snapshot's summary.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub data_files: i64,
    pub rows: i64,
    pub bytes: i64,
    pub delete_files: i64,
    /// Those of the delete files that are deletion vectors; of one commit.
    pub vectors: i64,
    pub deleted_rows: i64,
}

impl Table {
    /// Begins a table in a folder that may hold data files already.
    pub(crate) fn create(
        dir: &Path,
        location: String,
        dataset: Dataset,
        schema: TableSchema,
        now_ms: i64,
        mut rng: Rng,
    ) -> Result<Self, Error> {
        for folder in ["data", "metadata"] {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder).map_err(io(&folder))?;
        }
        let metadata = TableMetadata::new(location, rng.uuid(), now_ms, schema, dataset.partition_fields());
        let mut table = Self {
            dir: dir.to_owned(),
            dataset,
            rng,
            metadata,
            version: 0,
            manifests: Vec::new(),
            doomed: Vec::new(),
            totals: Totals::default(),
        };
        table.write_metadata(now_ms)?;
        Ok(table)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn current_snapshot_id(&self) -> Option<i64> {
        self.metadata.current_snapshot_id
    }

    /// Gives the table a new schema version.
    pub(crate) fn replace_schema(&mut self, schema: TableSchema, now_ms: i64) -> Result<(), Error> {
        self.metadata.replace_schema(schema);
        self.write_metadata(now_ms)
    }

    /// Commits data files that lie in `data/`.
    pub(crate) fn append(&mut self, files: Vec<NewFile>, now_ms: i64) -> Result<(), Error> {
        let mut commit = self.begin(now_ms);
        let mut entries = Vec::with_capacity(files.len());
        for file in files {
            let url = self.url("data", &file.name);
            if !file.losses.is_empty() {
                self.doomed.push(DoomedFile {
                    url: url.clone(),
                    partition: file.partition.clone(),
                    losses: file.losses,
                    deleted: RoaringTreemap::new(),
                    has_vector: false,
                });
            }
            let Commit { snapshot_id, .. } = commit;
            commit.added.rows += file.rows;
            entries.push(Entry {
                metrics: file.metrics,
                ..entry(snapshot_id, url, "PARQUET", file.partition, file.rows, file.bytes)
            });
        }
        commit.added.data_files = as_long(entries.len());
        self.add_manifest(&mut commit, Contents::Data, &entries)?;
        self.finish(&commit, "append")
    }

    /// Commits the deletes of a loss; how many rows it deletes. Nothing is written where that is none.
    pub(crate) fn delete(&mut self, loss: usize, form: DeleteForm, now_ms: i64) -> Result<u64, Error> {
        let form = if self.doomed.iter().any(|file| file.has_vector) { DeleteForm::Vectors } else { form };
        let mut files = std::mem::take(&mut self.doomed);
        let concerned: Vec<&mut DoomedFile> =
            files.iter_mut().filter(|file| of_loss(&file.losses, loss).next().is_some()).collect();
        let mut rows = 0;
        if !concerned.is_empty() {
            let mut commit = self.begin(now_ms);
            let superseded: Vec<String> =
                concerned.iter().filter(|file| file.has_vector).map(|file| file.url.clone()).collect();
            let entries = match form {
                DeleteForm::Vectors => self.write_vectors(&commit, concerned, loss)?,
                DeleteForm::Positions => self.write_positions(&commit, concerned, loss)?,
            };
            rows = files.iter().map(|file| of_loss(&file.losses, loss).count() as u64).sum();
            commit.added.delete_files = as_long(entries.len());
            commit.added.vectors = as_long(entries.iter().filter(|entry| entry.vector.is_some()).count());
            commit.added.deleted_rows = rows.cast_signed();
            self.supersede(&commit, &superseded)?;
            self.add_manifest(&mut commit, Contents::Deletes, &entries)?;
            self.totals.delete_files -= as_long(superseded.len());
            self.finish(&commit, "delete")?;
        }
        self.doomed = files;
        Ok(rows)
    }

    /// A deletion vector for each data file, with everything that is deleted in it.
    fn write_vectors(
        &mut self,
        commit: &Commit,
        files: Vec<&mut DoomedFile>,
        loss: usize,
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for file in files {
            file.deleted.extend(of_loss(&file.losses, loss));
            file.has_vector = true;
            let (bytes, length) = deletes::puffin(&file.url, &file.deleted);
            let name = format!("{}-deletes.puffin", self.rng.uuid());
            let (url, size) = self.write("data", &name, &bytes)?;
            let vector = Vector { data_file: file.url.clone(), offset: BLOB_OFFSET, length };
            let rows = file.deleted.len().cast_signed();
            entries.push(Entry {
                vector: Some(vector),
                ..entry(commit.snapshot_id, url, "PUFFIN", file.partition.clone(), rows, size)
            });
        }
        Ok(entries)
    }

    /// A position-delete file for the data files of each partition value, with what is newly deleted.
    fn write_positions(
        &mut self,
        commit: &Commit,
        files: Vec<&mut DoomedFile>,
        loss: usize,
    ) -> Result<Vec<Entry>, Error> {
        let mut by_partition: BTreeMap<Vec<Option<String>>, Vec<(&str, u64)>> = BTreeMap::new();
        for file in files {
            let DoomedFile { url, partition, losses, deleted, .. } = file;
            deleted.extend(of_loss(losses, loss));
            let gone = of_loss(losses, loss).map(|position| (url.as_str(), position));
            by_partition.entry(partition.clone()).or_default().extend(gone);
        }
        let mut entries = Vec::new();
        for (partition, mut rows) in by_partition {
            rows.sort_unstable();
            let name = format!("{}-deletes.parquet", self.rng.uuid());
            let (url, size) = self.write("data", &name, &deletes::positions(&rows)?)?;
            entries.push(entry(commit.snapshot_id, url, "PARQUET", partition, as_long(rows.len()), size));
        }
        Ok(entries)
    }

    /// Writes the manifests anew whose deletion vectors were replaced: a data file may have one only.
    fn supersede(&mut self, commit: &Commit, data_files: &[String]) -> Result<(), Error> {
        let is_replaced = |entry: &Entry| {
            let of = entry.vector.as_ref().map(|vector| &vector.data_file);
            entry.status != Status::Deleted && of.is_some_and(|file| data_files.contains(file))
        };
        for index in 0..self.manifests.len() {
            let old = &self.manifests[index];
            if !old.deletes.iter().any(is_replaced) {
                continue;
            }
            let number = old.listed.sequence_number;
            let mut entries: Vec<Entry> = old.deletes.iter().filter(|e| e.status != Status::Deleted).cloned().collect();
            for entry in &mut entries {
                entry.sequence_number.get_or_insert(number);
                entry.status = Status::Existing;
                if is_replaced(entry) {
                    entry.status = Status::Deleted;
                    entry.snapshot_id = commit.snapshot_id;
                }
            }
            self.manifests[index] = self.write_manifest(commit, Contents::Deletes, &entries)?;
        }
        Ok(())
    }

    fn begin(&mut self, now_ms: i64) -> Commit {
        // As many digits as HypAware's: a JavaScript number must hold it.
        let snapshot_id = self.rng.between(1 << 48, (1 << 53) - 1);
        let sequence_number = self.metadata.last_sequence_number + 1;
        Commit { snapshot_id, sequence_number, now_ms, added: Totals::default(), partitions: 0 }
    }

    fn add_manifest(&mut self, commit: &mut Commit, contents: Contents, entries: &[Entry]) -> Result<(), Error> {
        let partitions: BTreeSet<_> = entries.iter().map(|entry| &entry.partition).collect();
        commit.partitions = as_long(partitions.len());
        commit.added.bytes = entries.iter().map(|entry| entry.file_size).sum();
        let manifest = self.write_manifest(commit, contents, entries)?;
        self.manifests.push(manifest);
        Ok(())
    }

    fn write_manifest(&mut self, commit: &Commit, contents: Contents, entries: &[Entry]) -> Result<Manifest, Error> {
        let schema = self.metadata.schemas.last().expect("a table has a schema");
        let fields = self.dataset.partition_fields();
        let bytes = manifest::encode(contents, entries, schema, fields, self.rng.sync())?;
        let name = format!("{}-m0.avro", self.rng.uuid());
        let (url, length) = self.write("metadata", &name, &bytes)?;
        let numbers = entries.iter().filter(|entry| entry.status != Status::Deleted);
        let listed = Listed {
            url,
            length,
            contents,
            sequence_number: commit.sequence_number,
            min_sequence_number: numbers
                .map(|entry| entry.sequence_number.unwrap_or(commit.sequence_number))
                .min()
                .unwrap_or(commit.sequence_number),
            snapshot_id: commit.snapshot_id,
            entries: entries.iter().map(|entry| Tally { status: entry.status, rows: entry.record_count }).collect(),
            partitions: manifest::summarize(entries, fields.len()),
            first_row_id: (contents == Contents::Data).then_some(self.metadata.next_row_id),
        };
        let deletes = if contents == Contents::Deletes { entries.to_vec() } else { Vec::new() };
        Ok(Manifest { listed, deletes })
    }

    /// Writes the manifest list and the metadata of a commit.
    fn finish(&mut self, commit: &Commit, operation: &'static str) -> Result<(), Error> {
        let Commit { snapshot_id, sequence_number, now_ms, added, partitions } = *commit;
        self.totals.add(&added);
        let listed: Vec<Listed> = self.manifests.iter().map(|manifest| manifest.listed.clone()).collect();
        let list = manifest::encode_list(&listed, snapshot_id, sequence_number, self.rng.sync());
        let name = format!("snap-{snapshot_id}-1-{}.avro", self.rng.uuid());
        let (manifest_list, _) = self.write("metadata", &name, &list)?;
        self.metadata.add_snapshot(Snapshot {
            id: snapshot_id,
            sequence_number,
            timestamp_ms: now_ms,
            manifest_list,
            summary: summary(operation, &added, &self.totals, partitions),
            schema_id: self.metadata.current_schema_id,
            first_row_id: self.metadata.next_row_id,
            added_rows: added.rows,
            parent_snapshot_id: self.metadata.current_snapshot_id,
        });
        self.write_metadata(now_ms)
    }

    fn write_metadata(&mut self, now_ms: i64) -> Result<(), Error> {
        self.metadata.last_updated_ms = now_ms;
        self.version += 1;
        let json = serde_json::to_vec_pretty(&self.metadata)?;
        let name = format!("v{}.metadata.json", self.version);
        let (metadata_file, _) = self.write("metadata", &name, &json)?;
        self.metadata.metadata_log.push(MetadataLog { timestamp_ms: now_ms, metadata_file });
        self.write("metadata", "version-hint.text", self.version.to_string().as_bytes())?;
        Ok(())
    }

    /// Writes a file; its URL and its length.
    fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(String, i64), Error> {
        let path = self.dir.join(folder).join(name);
        fs::write(&path, bytes).map_err(io(&path))?;
        Ok((self.url(folder, name), as_long(bytes.len())))
    }

    fn url(&self, folder: &str, name: &str) -> String {
        format!("{}/{folder}/{name}", self.metadata.location)
    }
}

/// The positions that a loss concerns.
fn of_loss(losses: &[(usize, u64)], loss: usize) -> impl Iterator<Item = u64> {
    losses.iter().filter(move |(other, _)| *other == loss).map(|(_, position)| *position)
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.data_files += other.data_files;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.delete_files += other.delete_files;
        self.vectors += other.vectors;
        self.deleted_rows += other.deleted_rows;
    }
}

/// A file that is added, without metrics and not a deletion vector.
fn entry(
    snapshot_id: i64,
    url: String,
    format: &'static str,
    partition: Vec<Option<String>>,
    record_count: i64,
    file_size: i64,
) -> Entry {
    Entry {
        status: Status::Added,
        snapshot_id,
        sequence_number: None,
        url,
        format,
        partition,
        record_count,
        file_size,
        metrics: None,
        vector: None,
    }
}

fn summary(operation: &'static str, added: &Totals, total: &Totals, partitions: i64) -> Summary {
    let of_kind = if operation == "append" {
        vec![("added-data-files", added.data_files), ("added-records", added.rows)]
    } else {
        let vectors = (added.vectors > 0).then_some(("added-dvs", added.vectors));
        let files = [("added-delete-files", added.delete_files), ("added-position-deletes", added.deleted_rows)];
        files.into_iter().chain(vectors).collect()
    };
    let of_all = [
        ("added-files-size", added.bytes),
        ("changed-partition-count", partitions),
        ("total-records", total.rows),
        ("total-files-size", total.bytes),
        ("total-data-files", total.data_files),
        ("total-delete-files", total.delete_files),
        ("total-position-deletes", total.deleted_rows),
        ("total-equality-deletes", 0),
    ];
    let counts = of_kind.into_iter().chain(of_all).map(|(name, count)| (name, count.to_string())).collect();
    Summary { operation, counts }
}
