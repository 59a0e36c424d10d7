//! Random Parquet files with deleted rows, as tables of the engine and as tables in memory.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, StringViewArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use hypseq_iceberg::Bounds;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use roaring::RoaringTreemap;
use tempfile::TempDir;

use super::rows::{COLUMNS, Random, Row, Storage, seen, stored};
use crate::EngineOptions;
use crate::catalog::{CATALOG, Catalog, LIVE, RAW};
use crate::datafile::{DataFile, Deletes};
use crate::footer::Footers;
use crate::scan::{FileTable, Layout, Part, TableColumn};
use crate::scanfile::{ScanFile, Selected};
use crate::session;

/// Tables `live.t` and `raw.t` over generated files, and the rows that they must show.
pub(super) struct Generated {
    /// Holds the files for as long as they are read.
    _dir: TempDir,
    files: Vec<GeneratedFile>,
    pub seqs: i64,
}

/// See [`Generated::edges`]; times are in microseconds.
pub(super) struct Edges {
    pub seqs: Vec<i64>,
    pub times: Vec<i64>,
}

struct GeneratedFile {
    file: Arc<DataFile>,
    deleted: Arc<RoaringTreemap>,
    source: Option<&'static str>,
    rows: Vec<Row>,
    columns: Vec<ArrayRef>,
}

impl Generated {
    pub(super) fn new(seed: u64, files: usize, rows_per_group: u64) -> Self {
        let dir = TempDir::new().unwrap();
        let mut random = Random(seed);
        let mut next_seq = 1;
        let files = (0..files).map(|number| {
            let path = dir.path().join(format!("file {number}.parquet"));
            GeneratedFile::write(&path, number, &mut random, &mut next_seq, rows_per_group)
        });
        Self { files: files.collect(), seqs: next_seq, _dir: dir }
    }

    /// The rows that are not deleted, as they were before they were written.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Row> + Clone {
        self.files.iter().flat_map(|file| {
            (0..).zip(&file.rows).filter(|(position, _)| !file.deleted.contains(*position)).map(|(_, row)| row)
        })
    }

    /// Values on which the decision to open a file turns: least and greatest seqs and times, and those beside them.
    pub(super) fn edges(&self) -> Edges {
        let around = |value: i64, step: i64| [value - step, value, value + step];
        let bounds = |id: i32| self.files.iter().filter_map(move |file| file.file.bounds.get(&id));
        let values = |id: i32, step: i64| {
            let both = bounds(id).flat_map(|bounds| [bounds.lower, bounds.upper]).flatten();
            both.flat_map(|value| around(value, step)).chain([0]).collect()
        };
        Edges { seqs: values(1, 1), times: values(2, 1_000_000) }
    }

    /// Cuts a file to nothing.
    pub(super) fn empty_file(&self, number: usize) {
        std::fs::write(&self.files[number].file.path, []).unwrap();
    }

    /// A session with these files as tables of the engine.
    pub(super) fn engine(&self, options: &EngineOptions, settings: &[(&str, &str)]) -> SessionContext {
        let runtime = session::runtime(options).unwrap();
        let footers = Arc::new(Footers::default());
        let context = session::context(options, runtime).unwrap();
        for (name, value) in settings {
            context.state_ref().write().config_mut().options_mut().set(name, value).unwrap();
        }
        let tables = [(LIVE, false), (RAW, true)].map(|(schema, is_raw)| {
            let files: Vec<_> = self.files.iter().flat_map(|file| file.scan_files(is_raw)).map(Arc::new).collect();
            let part = Part::new(vec![None; 3], move || files.clone());
            let table = FileTable { layout: Layout::new(columns(), Arc::clone(&footers)), parts: vec![part] };
            (schema, BTreeMap::from([("t".to_owned(), Arc::new(table) as Arc<dyn TableProvider>)]))
        });
        context.register_catalog(CATALOG, Arc::new(Catalog::new(tables)));
        context
    }

    /// A session with the same rows in memory, and nothing that could leave any out.
    pub(super) fn oracle(&self) -> SessionContext {
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, LIVE)
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
            .set_bool("datafusion.sql_parser.enable_ident_normalization", false);
        let mut context = SessionContext::new_with_config_rt(config, Arc::new(RuntimeEnv::default()));
        datafusion_functions_json::register_all(&mut context).unwrap();
        let schema = Arc::clone(Layout::new(columns(), Arc::default()).schema());
        let tables = [(LIVE, false), (RAW, true)].map(|(name, is_raw)| {
            let batches = self.files.iter().map(|file| file.batch(&schema, is_raw)).collect();
            let table = MemTable::try_new(Arc::clone(&schema), vec![batches]).unwrap();
            (name, BTreeMap::from([("t".to_owned(), Arc::new(table) as Arc<dyn TableProvider>)]))
        });
        context.register_catalog(CATALOG, Arc::new(Catalog::new(tables)));
        context
    }
}

/// Stored columns, then a constant before, the position, and constants after it.
fn columns() -> Vec<TableColumn> {
    let mut columns: Vec<TableColumn> =
        COLUMNS.iter().map(|(name, field_type, _)| TableColumn::stored(name, *field_type)).collect();
    columns.insert(0, TableColumn::constant("source", DataType::Utf8View, 0));
    columns.push(TableColumn::constant("file", DataType::Utf8View, 1));
    columns.push(TableColumn::position("pos"));
    columns.push(TableColumn::constant("deleted", DataType::Boolean, 2));
    columns
}

impl GeneratedFile {
    fn write(path: &Path, number: usize, random: &mut Random, next_seq: &mut i64, rows_per_group: u64) -> Self {
        let storage =
            Storage { has_late: random.chance(70), is_narrow: random.chance(30), has_old_name: random.chance(30) };
        let group = 1 + random.below(rows_per_group);
        let groups = 1 + random.below(4);
        let mut rows: Vec<Row> = (0..group * groups)
            .map(|_| {
                *next_seq += i64::try_from(1 + random.below(3)).unwrap();
                Row::random(random, *next_seq)
            })
            .collect();
        // A file from before there were seqs, or of rows that have no time.
        match random.below(12) {
            0 => rows.iter_mut().for_each(|row| row.seq = None),
            1 => rows.iter_mut().for_each(|row| row.at = None),
            _ => {}
        }
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_max_row_group_row_count(Some(usize::try_from(group).unwrap()))
            .set_data_page_row_count_limit(7)
            .set_write_batch_size(5)
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let batch = stored(&rows, storage);
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();

        let deleted = Arc::new(deletes(random, group, groups));
        let mut bounds = if random.chance(80) { bounds(&rows) } else { BTreeMap::new() };
        for bounds in bounds.values_mut() {
            match random.below(12) {
                0 => bounds.lower = None,
                1 => bounds.upper = None,
                2 => bounds.nulls = None,
                _ => {}
            }
        }
        let file = DataFile {
            path: path.to_owned(),
            relative: number.to_string(),
            rows: Some(rows.len() as u64),
            referenced: Some(true),
            deletes: Deletes::Known(Arc::clone(&deleted)),
            bounds,
            field_ids: Arc::new(
                COLUMNS.iter().map(|(name, _, id)| ((*name).to_owned(), *id)).collect::<HashMap<_, _>>(),
            ),
            footer: OnceLock::new(),
        };
        let source = random.pick(&[Some("claude"), Some("codex"), None]);
        Self { file: Arc::new(file), deleted, source, columns: seen(&rows, storage), rows }
    }

    fn scan_files(&self, is_raw: bool) -> Vec<ScanFile> {
        let scan = |rows, deleted| {
            let constants = vec![
                ScalarValue::Utf8View(self.source.map(str::to_owned)),
                ScalarValue::Utf8View(Some(self.file.relative.clone())),
                ScalarValue::Boolean(Some(deleted)),
            ];
            ScanFile::new(Arc::clone(&self.file), rows, constants.into_iter().map(Some).collect())
        };
        if self.deleted.is_empty() {
            return vec![scan(Selected::All, false)];
        }
        let mut files = vec![scan(Selected::Except(Arc::clone(&self.deleted)), false)];
        if is_raw {
            files.push(scan(Selected::Only(Arc::clone(&self.deleted)), true));
        }
        files
    }

    fn batch(&self, schema: &SchemaRef, is_raw: bool) -> RecordBatch {
        let rows = self.columns[0].len();
        let positions = Int64Array::from_iter_values(0..i64::try_from(rows).unwrap());
        let deleted: BooleanArray = (0..rows as u64).map(|row| Some(self.deleted.contains(row))).collect();
        let visible: BooleanArray = (0..rows as u64).map(|row| Some(is_raw || !self.deleted.contains(row))).collect();
        let mut columns = self.columns.clone();
        columns.insert(0, Arc::new(StringViewArray::from(vec![self.source; rows])));
        columns.push(Arc::new(StringViewArray::from(vec![self.file.relative.as_str(); rows])));
        columns.push(Arc::new(positions));
        columns.push(Arc::new(deleted));
        filter_record_batch(&RecordBatch::try_new(Arc::clone(schema), columns).unwrap(), &visible).unwrap()
    }
}

/// Deleted rows of every shape: none, a few, runs, a whole row group, all.
fn deletes(random: &mut Random, group: u64, groups: u64) -> RoaringTreemap {
    let rows = group * groups;
    let mut deleted = RoaringTreemap::new();
    match random.below(6) {
        0 => {}
        1 => deleted.extend((0..rows).filter(|_| random.chance(10))),
        2 => deleted.extend((0..rows).filter(|_| random.chance(60))),
        3 => {
            let start = random.below(rows);
            deleted.insert_range(start..(start + group).min(rows));
        }
        4 => {
            let start = random.below(groups) * group;
            deleted.insert_range(start..start + group);
        }
        _ => {
            if random.chance(30) {
                deleted.insert_range(0..rows);
            } else {
                deleted.extend([0, rows - 1]);
            }
        }
    }
    deleted
}

fn bounds(rows: &[Row]) -> BTreeMap<i32, Bounds> {
    let bounds = |values: Vec<Option<i64>>| Bounds {
        lower: values.iter().flatten().min().copied(),
        upper: values.iter().flatten().max().copied(),
        nulls: Some(values.iter().filter(|value| value.is_none()).count() as u64),
    };
    BTreeMap::from([
        (1, bounds(rows.iter().map(|row| row.seq).collect())),
        (2, bounds(rows.iter().map(|row| row.at).collect())),
    ])
}
