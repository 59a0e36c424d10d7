//! A generation's table: its newest metadata, and the files that a snapshot reaches.

use std::collections::{BTreeSet, HashMap, HashSet, hash_map};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::deletes::{self, Unreadable};
use crate::manifest::{self, Entry, EntryError};
use crate::manifest_list::{self, Content};
use crate::relocate::Relocation;
use crate::{DataFile, Error, Snapshot, TableMetadata, listing, newest};

/// A table, opened.
#[derive(Debug, Clone)]
pub struct Table {
    /// The generation's folder.
    pub dir: PathBuf,
    /// The metadata file that was read.
    pub metadata_file: PathBuf,
    /// Its bytes, as they are on disk: a SHA-256 of the file is taken over these.
    pub metadata_bytes: Vec<u8>,
    /// What it says.
    pub metadata: TableMetadata,
    /// What was odd on the way and does not stop reading: a version hint that is missing, points nowhere, or is older than
    /// the newest metadata file.
    pub notes: Vec<String>,
    relocation: Relocation,
}

/// The files that a snapshot reaches.
#[derive(Debug, Clone, Default)]
pub struct SnapshotFiles {
    /// Live data files with their deletes, in manifest order.
    pub data: Vec<DataFile>,
    /// Manifests, entries or position-delete files that could not be used; the rest stands. Where it is a delete that
    /// could not be used, [`DataFile::deleted_rows`] fails for every data file that it may concern.
    pub problems: Vec<Error>,
}

impl Table {
    /// Opens the newest metadata of a generation's folder: the file that `version-hint.text` names, else the one with the
    /// highest number.
    ///
    /// # Errors
    /// [`Error::NoMetadata`] where there is none, else what is wrong with that file. An older one is never read instead.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let found = newest::find(dir)?;
        let (metadata_bytes, unpacked) = newest::read(&found.path)?;
        let metadata = TableMetadata::parse(unpacked.as_deref().unwrap_or(&metadata_bytes), &found.path)?;
        let relocation = Relocation::new(&metadata.location, dir, &found.path)?;
        Ok(Self {
            dir: dir.to_owned(),
            metadata_file: found.path,
            metadata_bytes,
            metadata,
            notes: found.notes,
            relocation,
        })
    }

    /// The files of a snapshot. What cannot be read is in `problems`.
    ///
    /// # Errors
    /// The manifest list cannot be read.
    pub fn files(&self, snapshot: &Snapshot) -> Result<SnapshotFiles, Error> {
        let list = self.relocation.resolve(&snapshot.manifest_list, &self.metadata_file)?;
        let manifests = manifest_list::read(&list, &self.relocation)?;
        let fields = self.metadata.schemas.iter().flat_map(|schema| &schema.fields);
        let bounded: BTreeSet<i32> = fields.filter(|f| f.field_type.has_long_bounds()).map(|f| f.id).collect();
        let read: Vec<_> = manifests.par_iter().map(|m| manifest::read(m, &self.relocation, &bounded)).collect();

        let mut files = SnapshotFiles::default();
        let mut delete_files = Vec::new();
        let mut unreadable = Vec::new();
        // By path; hashing a path as a text is much faster than by its components.
        let mut places: HashMap<OsString, usize> = HashMap::new();
        for (manifest, entries) in manifests.iter().zip(read) {
            let entries = entries.unwrap_or_else(|error| vec![Err(EntryError { error, data_file_url: None })]);
            for entry in entries {
                match entry {
                    Ok(Entry::Data(file)) => match places.entry(file.path.clone().into_os_string()) {
                        hash_map::Entry::Vacant(place) => {
                            place.insert(files.data.len());
                            files.data.push(file);
                        }
                        hash_map::Entry::Occupied(_) => files.problems.push(Error::Invalid {
                            path: list.clone(),
                            expected: "each data file once in the snapshot".to_owned(),
                            found: format!("`{}` again", file.url),
                        }),
                    },
                    Ok(Entry::Delete(file)) => delete_files.push(file),
                    Err(EntryError { error, data_file_url }) if manifest.content == Content::Deletes => {
                        unreadable.push(Unreadable { error, sequence_number: manifest.sequence_number, data_file_url });
                    }
                    Err(EntryError { error, .. }) => files.problems.push(error),
                }
            }
        }
        let place = |url: &str| {
            let path = self.relocation.resolve(url, &list).ok()?;
            places.get(path.as_os_str()).copied()
        };
        files.problems.extend(deletes::attach(&mut files.data, place, delete_files, unreadable));
        Ok(files)
    }

    /// Data files in `data/` that the given snapshot does not reach; for a folder without metadata see
    /// [`unreferenced`](crate::unreferenced).
    ///
    /// # Errors
    /// [`Error::Io`] when the folder is there and cannot be listed.
    pub fn unreferenced_files(&self, files: &SnapshotFiles) -> Result<Vec<PathBuf>, Error> {
        let reached: HashSet<&Path> = files.data.iter().map(|file| file.path.as_path()).collect();
        let mut found = listing::unreferenced(&self.dir)?;
        found.retain(|path| !reached.contains(path.as_path()));
        Ok(found)
    }
}
