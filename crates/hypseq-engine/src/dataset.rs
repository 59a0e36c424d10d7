//! A dataset over all homes: its columns, and the files of each of its tables.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use hypseq_cache::{GenerationState, Problem, Severity};
use hypseq_iceberg::FieldType;

use crate::complete::CompleteTable;
use crate::datafile::{DataFile, Deletes};
use crate::footer::Footers;
use crate::homes::HOME;
use crate::infer;
use crate::load::{Generation, Snapshot};
use crate::scan::{FileTable, Layout, Part, TableColumn};
use crate::scanfile::{ScanFile, Selected};
use crate::schema::{Conflict, union};

/// The seq column.
pub(crate) const SEQ: &str = "_hyp_ingest_seq";

/// Columns that say where a row is from. Their order is that of the first constants of a [`ScanFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provenance {
    Home,
    Generation,
    GenerationState,
    Partition,
    File,
    Deleted,
    Referenced,
}

impl Provenance {
    const COUNT: usize = 7;

    fn column(self) -> TableColumn {
        let (name, data_type) = match self {
            Self::Home => (HOME, DataType::Utf8View),
            Self::Generation => ("_generation", DataType::Utf8View),
            Self::GenerationState => ("_generation_state", DataType::Utf8View),
            Self::Partition => ("_partition", DataType::Utf8View),
            Self::File => ("_file", DataType::Utf8View),
            Self::Deleted => ("_deleted", DataType::Boolean),
            Self::Referenced => ("_referenced", DataType::Boolean),
        };
        TableColumn::constant(name, data_type, self as usize)
    }
}

/// A dataset over all homes.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// By home and partition, the live generation first, then from the newest to the oldest.
    generations: Vec<Arc<Generation>>,
    /// Always with [`SEQ`], which is null in a dataset from before there were seqs.
    columns: Vec<(String, FieldType)>,
    /// Keys of the partition path that are not columns already.
    segments: Vec<String>,
    with_home: bool,
}

impl Dataset {
    /// Groups generations by dataset. A dataset whose generations contradict each other is a problem instead.
    pub(crate) fn group(generations: &[Arc<Generation>], with_home: bool) -> BTreeMap<String, Result<Self, Problem>> {
        let mut datasets: BTreeMap<String, Vec<Arc<Generation>>> = BTreeMap::new();
        for generation in generations {
            datasets.entry(generation.partition.dataset.clone()).or_default().push(Arc::clone(generation));
        }
        let dataset = |(name, generations)| (name, Self::new(generations, with_home));
        datasets.into_iter().map(dataset).collect()
    }

    fn new(generations: Vec<Arc<Generation>>, with_home: bool) -> Result<Self, Problem> {
        let newest_first = newest_first(&generations);
        let mut schemas: Vec<_> = newest_first.iter().filter_map(|g| Some((*g, Cow::Borrowed(g.schema()?)))).collect();
        if schemas.is_empty() {
            let inferred =
                |generation: &&Generation| infer::schemas(generation.all_files()).into_iter().map(Cow::Owned);
            schemas = newest_first.iter().flat_map(|g| inferred(g).map(|schema| (*g, schema))).collect();
        }
        let mut columns = union(schemas.iter().map(|(_, schema)| &**schema)).map_err(|conflict| {
            let [one, other] = conflict.schemas.map(|place| schemas.get(place).map(|(generation, _)| *generation));
            problem(&conflict, one, other)
        })?;
        if columns.iter().all(|(name, _)| name != SEQ) {
            columns.push((SEQ.to_owned(), FieldType::Long));
        }
        let mut segments: Vec<String> = Vec::new();
        for (key, _) in generations.iter().flat_map(|generation| generation.partition.segments()) {
            if !columns.iter().any(|(name, _)| name == key) && !segments.iter().any(|known| known == key) {
                segments.push(key.to_owned());
            }
        }
        Ok(Self { generations, columns, segments, with_home })
    }

    /// Rows of the live generations, deletes applied.
    pub(crate) fn live(self: &Arc<Self>, footers: &Arc<Footers>) -> FileTable {
        let live = self.generations.iter().filter(|generation| generation.state == GenerationState::Live);
        self.of_generations(&live.cloned().collect::<Vec<_>>(), footers)
    }

    /// Every physical row of every generation, once, with its provenance.
    pub(crate) fn raw(self: &Arc<Self>, footers: &Arc<Footers>) -> FileTable {
        let provenance = [
            Provenance::Generation,
            Provenance::GenerationState,
            Provenance::Partition,
            Provenance::File,
            Provenance::Deleted,
            Provenance::Referenced,
        ];
        let parts = self.generations.iter().map(|generation| self.part(generation, Self::raw_files));
        FileTable { layout: self.layout(&provenance, true, footers), parts: parts.collect() }
    }

    /// Rows of some generations, deletes applied.
    pub(crate) fn of_generations(self: &Arc<Self>, chosen: &[Arc<Generation>], footers: &Arc<Footers>) -> FileTable {
        let parts = chosen.iter().map(|generation| self.part(generation, Self::newest_files));
        FileTable { layout: self.layout(&[], false, footers), parts: parts.collect() }
    }

    /// Rows of generations as they were at a snapshot, deletes applied.
    pub(crate) fn of_snapshots(
        self: &Arc<Self>,
        chosen: Vec<(Arc<Generation>, hypseq_iceberg::Snapshot)>,
        footers: &Arc<Footers>,
    ) -> FileTable {
        let part = |(generation, snapshot): (Arc<Generation>, hypseq_iceberg::Snapshot)| {
            self.part(&generation, move |dataset, generation| {
                dataset.visible_files(generation, &generation.read_snapshot(&snapshot))
            })
        };
        FileTable { layout: self.layout(&[], false, footers), parts: chosen.into_iter().map(part).collect() }
    }

    fn part(
        self: &Arc<Self>,
        generation: &Arc<Generation>,
        files: impl Fn(&Self, &Generation) -> Vec<ScanFile> + Send + Sync + 'static,
    ) -> Part {
        let constants = self.constants_of(generation);
        let (dataset, generation) = (Arc::clone(self), Arc::clone(generation));
        Part::new(constants, move || files(&dataset, &generation).into_iter().map(Arc::new).collect())
    }

    /// The union over generations, one row per seq and partition.
    pub(crate) fn complete(self: &Arc<Self>, footers: &Arc<Footers>) -> CompleteTable {
        let provenance = [Provenance::Generation, Provenance::Partition, Provenance::Deleted];
        CompleteTable::new(self.layout(&provenance, false, footers), Arc::clone(self), Arc::clone(footers))
    }

    pub(crate) fn generations(&self) -> &[Arc<Generation>] {
        &self.generations
    }

    /// Whether its tables have a `home` column.
    pub(crate) fn has_home(&self) -> bool {
        self.with_home
    }

    /// The column that holds a row's time, where one is known.
    pub(crate) fn time_column(&self) -> Option<String> {
        self.generations.iter().find_map(|generation| generation.columns()?.time)
    }

    /// Whether there is a column of this name, provenance aside.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|(column, _)| column == name) || self.segments.iter().any(|segment| segment == name)
    }

    /// Names and types of the columns that data files hold.
    pub(crate) fn columns(&self) -> &[(String, FieldType)] {
        &self.columns
    }

    /// Keys of the partition path that are not columns already.
    pub(crate) fn segments(&self) -> &[String] {
        &self.segments
    }

    fn layout(&self, provenance: &[Provenance], with_position: bool, footers: &Arc<Footers>) -> Layout {
        let stored = self.columns.iter().map(|(name, field_type)| TableColumn::stored(name, *field_type));
        let segments = (Provenance::COUNT..).zip(&self.segments);
        let segments = segments.map(|(place, key)| TableColumn::constant(key, DataType::Utf8View, place));
        let mut columns: Vec<TableColumn> = stored.chain(segments).collect();

        let mut own = |column: TableColumn, place: Option<usize>| {
            if columns.iter().all(|other| other.field.name() != column.field.name()) {
                columns.insert(place.unwrap_or(columns.len()), column);
            }
        };
        for column in provenance {
            own(column.column(), None);
            if with_position && *column == Provenance::File {
                own(TableColumn::position("_pos"), None);
            }
        }
        if self.with_home {
            own(Provenance::Home.column(), Some(0));
        }
        Layout::new(columns, Arc::clone(footers))
    }

    fn newest_files(&self, generation: &Generation) -> Vec<ScanFile> {
        self.visible_files(generation, generation.snapshot())
    }

    fn visible_files(&self, generation: &Generation, snapshot: &Snapshot) -> Vec<ScanFile> {
        let Snapshot { files, lost } = snapshot;
        let lost = lost.iter().map(|lost| ScanFile::lost(lost.clone(), self.constants_of(generation)));
        let visible = files.iter().filter_map(|file| match &file.deletes {
            Deletes::Known(_) => self.visible(generation, file),
            Deletes::Unknown(unreadable) => Some(ScanFile::lost(unreadable.clone(), self.constants_of(generation))),
        });
        lost.chain(visible).collect()
    }

    fn raw_files(&self, generation: &Generation) -> Vec<ScanFile> {
        let unlisted = generation.unreferenced().unlisted.iter();
        let mut files: Vec<ScanFile> =
            unlisted.map(|lost| ScanFile::lost(lost.clone(), self.constants_of(generation))).collect();
        for file in generation.all_files() {
            files.extend(self.visible(generation, file));
            files.extend(self.deleted(generation, file));
        }
        files
    }

    /// The rows of a file that are not deleted, or not known to be; none when all are.
    fn visible(&self, generation: &Generation, file: &Arc<DataFile>) -> Option<ScanFile> {
        let (rows, deleted) = match &file.deletes {
            Deletes::Unknown(_) => (Selected::All, None),
            Deletes::Known(deleted) if deleted.is_empty() => (Selected::All, Some(false)),
            Deletes::Known(deleted) if Some(deleted.len()) == file.rows => return None,
            Deletes::Known(deleted) => (Selected::Except(Arc::clone(deleted)), Some(false)),
        };
        Some(ScanFile::new(Arc::clone(file), rows, self.constants(generation, file, deleted)))
    }

    /// The rows of a file that are deleted; none when no row is.
    fn deleted(&self, generation: &Generation, file: &Arc<DataFile>) -> Option<ScanFile> {
        let Deletes::Known(deleted) = &file.deletes else { return None };
        let rows = Selected::Only(Arc::clone(deleted));
        let constants = self.constants(generation, file, Some(true));
        (!deleted.is_empty()).then(|| ScanFile::new(Arc::clone(file), rows, constants))
    }

    /// The constants of a file, in the order of [`Provenance`], then the segments.
    pub(crate) fn constants(
        &self,
        generation: &Generation,
        file: &DataFile,
        deleted: Option<bool>,
    ) -> Vec<Option<ScalarValue>> {
        let mut constants = self.constants_of(generation);
        let of_file = [
            (Provenance::File, text(Some(&file.relative))),
            (Provenance::Deleted, ScalarValue::Boolean(deleted)),
            (Provenance::Referenced, ScalarValue::Boolean(file.referenced)),
        ];
        for (place, value) in of_file {
            constants[place as usize] = Some(value);
        }
        constants
    }

    /// What is known of the constants of a file that may be anywhere in a generation.
    pub(crate) fn constants_of(&self, generation: &Generation) -> Vec<Option<ScalarValue>> {
        let of_generation = [
            (Provenance::Home, &*generation.home),
            (Provenance::Generation, &generation.name),
            (Provenance::GenerationState, generation.state.label()),
            (Provenance::Partition, &generation.partition.path),
        ];
        let mut constants = vec![None; Provenance::COUNT];
        for (place, value) in of_generation {
            constants[place as usize] = Some(text(Some(value)));
        }
        let segments = generation.partition.segments();
        let value = |key: &String| segments.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
        constants.extend(self.segments.iter().map(|key| Some(text(value(key)))));
        constants
    }
}

fn text(text: Option<&str>) -> ScalarValue {
    ScalarValue::Utf8View(text.map(str::to_owned))
}

/// All partitions' first generations, then all second ones, and so on: each partition has its newest first.
fn newest_first(generations: &[Arc<Generation>]) -> Vec<&Generation> {
    let mut ranked: Vec<(usize, &Generation)> = Vec::with_capacity(generations.len());
    for generation in generations {
        let rank = match ranked.last() {
            Some((rank, last)) if last.partition == generation.partition && last.home == generation.home => rank + 1,
            _ => 0,
        };
        ranked.push((rank, generation));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, generation)| generation).collect()
}

fn problem(conflict: &Conflict, one: Option<&Generation>, other: Option<&Generation>) -> Problem {
    let name = |generation: Option<&Generation>| {
        generation.map_or_else(String::new, |g| format!("{}/{}", g.partition.path, g.name))
    };
    let [one_type, other_type] = conflict.types;
    Problem {
        severity: Severity::Error,
        code: "schema-conflict",
        path: one.map(|generation| generation.partition.dataset.as_str()).unwrap_or_default().into(),
        message: format!(
            "column `{}` has type {one_type:?} in `{}` and {other_type:?} in `{}`",
            conflict.column,
            name(one),
            name(other)
        ),
        advice: "this dataset has no table; open a copy of the cache without one of these generations".to_owned(),
    }
}
