//! Schema `spool`: rows captured and not yet flushed. They have no seq and lie in no partition yet.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::datasource::MemTable;
use hypseq_cache::{Problem, SpoolBatch, SpoolRow};
use hypseq_iceberg::FieldType;
use serde_json::{Map, Value};

use crate::functions::Datasets;
use crate::homes::{Homes, OpenHome};
use crate::schema::arrow_field;

/// Keys of a partition path that hold the source of its rows.
const SOURCES: [&str; 2] = ["source", "client"];
const FILE: &str = "_file";
const HOME: &str = "home";

/// The spools of all homes: a table for each dataset that has rows there or in a partition. They are read once, when a
/// query or a list of tables first needs them.
///
/// A table has the columns of its dataset and those that only the spool has; the source that a flush will file a row under
/// in place of the partition's; and `_file`, below the cache root.
#[derive(Debug)]
pub(crate) struct SpoolSchema {
    homes: Arc<Homes>,
    datasets: Arc<Datasets>,
    spool: OnceLock<Spool>,
}

#[derive(Debug)]
struct Spool {
    tables: BTreeMap<String, Result<Arc<MemTable>, String>>,
    problems: Vec<Problem>,
}

impl SpoolSchema {
    pub(crate) fn new(homes: Arc<Homes>, datasets: Arc<Datasets>) -> Self {
        Self { homes, datasets, spool: OnceLock::new() }
    }

    /// What could not be read, once it was tried.
    pub(crate) fn problems(&self) -> &[Problem] {
        self.spool.get().map_or(&[], |spool| &spool.problems)
    }

    fn spool(&self) -> &Spool {
        self.spool.get_or_init(|| self.read())
    }

    fn read(&self) -> Spool {
        let mut problems = Vec::new();
        let mut captured: BTreeMap<String, Vec<Captured<'_>>> = BTreeMap::new();
        for home in self.homes.iter() {
            problems.extend(home.home.visit_spool(|batch| {
                captured.entry(batch.dataset.clone()).or_default().push(Captured { home, batch });
            }));
        }
        for dataset in self.datasets.keys() {
            captured.entry(dataset.clone()).or_default();
        }
        let table = |(name, captured): (String, Vec<Captured<'_>>)| {
            let table = self.table_of(&name, &captured).map_err(|error| error.to_string());
            (name, table.map(Arc::new))
        };
        Spool { tables: captured.into_iter().map(table).collect(), problems }
    }

    fn table_of(&self, dataset: &str, captured: &[Captured<'_>]) -> Result<MemTable> {
        let (mut columns, segments) = match self.datasets.get(dataset) {
            Some(dataset) => (dataset.columns().to_vec(), dataset.segments().to_vec()),
            None => (Vec::new(), vec![SOURCES[0].to_owned()]),
        };
        for (name, kind) in captured.iter().flat_map(|captured| &captured.batch.columns) {
            if columns.iter().all(|(known, _)| known != name) {
                columns.push((name.clone(), field_type(kind)));
            }
        }
        let stored: Vec<Field> = columns.iter().map(|(name, field_type)| arrow_field(name, *field_type)).collect();
        let is_free = |name: &str| stored.iter().all(|field| field.name() != name);
        let added = segments.iter().map(String::as_str).chain([FILE]).filter(|name| is_free(name));
        let added: Vec<&str> = added.collect();
        let home = (self.homes.are_several() && is_free(HOME)).then_some(HOME);
        let text = |name: &str| arrow_field(name, FieldType::String);
        let fields = home.into_iter().map(text).chain(stored.iter().cloned()).chain(added.iter().copied().map(text));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let stored = Arc::new(Schema::new(stored));
        let batches = captured.iter().map(|captured| {
            let rows = captured.decode(&stored)?;
            let home = home.map(|_| captured.constant(&captured.home.label));
            let added = added.iter().map(|name| captured.added(name));
            let arrays = home.into_iter().chain(rows.columns().iter().cloned()).chain(added);
            Ok(RecordBatch::try_new(Arc::clone(&schema), arrays.collect())?)
        });
        MemTable::try_new(Arc::clone(&schema), vec![batches.collect::<Result<_>>()?])
    }
}

/// A batch of rows and the home that it is from.
struct Captured<'a> {
    home: &'a OpenHome,
    batch: SpoolBatch,
}

impl Captured<'_> {
    /// The columns that the rows hold themselves.
    fn decode(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = self.batch.rows.iter().map(|row| readable(row, schema)).collect::<Result<Vec<_>, _>>();
        let decode = |rows: &[Map<String, Value>]| -> Result<RecordBatch, ArrowError> {
            let mut decoder = ReaderBuilder::new(Arc::clone(schema)).with_coerce_primitive(true).build_decoder()?;
            decoder.serialize(rows)?;
            Ok(decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema))))
        };
        let decoded = rows.and_then(|rows| decode(&rows).map_err(|error| error.to_string()));
        decoded.map_err(|found| {
            let path = self.batch.path.display();
            exec_datafusion_err!("cannot read `{path}`: expected values of the columns' types, found: {found}")
        })
    }

    fn constant(&self, value: &str) -> ArrayRef {
        Arc::new(self.batch.rows.iter().map(|_| Some(value)).collect::<StringViewArray>())
    }

    fn added(&self, column: &str) -> ArrayRef {
        if column == FILE {
            let path = &self.batch.path;
            let relative = path.strip_prefix(self.home.home.cache_root()).unwrap_or(path);
            return self.constant(&relative.to_string_lossy());
        }
        let source = |row: &SpoolRow| SOURCES.contains(&column).then(|| row.source().to_owned());
        Arc::new(self.batch.rows.iter().map(source).collect::<StringViewArray>())
    }
}

/// A row as the decoder reads it: JSON columns as text.
fn readable(row: &SpoolRow, schema: &SchemaRef) -> Result<Map<String, Value>, String> {
    let mut values = row.values.clone();
    for field in schema.fields() {
        let Some(value) = values.get_mut(field.name()) else { continue };
        match (field.data_type(), &*value) {
            // A number could be seconds, milliseconds or microseconds; HypAware spools text.
            (DataType::Timestamp(..), Value::Number(number)) => {
                return Err(format!("{number} for the time `{}`", field.name()));
            }
            (DataType::Utf8View, Value::Null) => {}
            (DataType::Utf8View, _) if !field.metadata().is_empty() => *value = Value::String(value.to_string()),
            (DataType::Utf8View, Value::Object(_) | Value::Array(_)) => *value = Value::String(value.to_string()),
            _ => {}
        }
    }
    Ok(values)
}

/// The type of a column, by its name in the spool.
fn field_type(kind: &str) -> FieldType {
    match kind {
        "INT32" => FieldType::Int,
        "INT64" => FieldType::Long,
        "DOUBLE" => FieldType::Double,
        "BOOLEAN" => FieldType::Boolean,
        "TIMESTAMP" => FieldType::Timestamptz,
        "JSON" => FieldType::Variant,
        // Text holds every other value as it is written.
        _ => FieldType::String,
    }
}

#[async_trait]
impl SchemaProvider for SpoolSchema {
    fn table_names(&self) -> Vec<String> {
        self.spool().tables.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.spool().tables.get(name) {
            Some(Ok(table)) => Ok(Some(Arc::clone(table) as Arc<dyn TableProvider>)),
            Some(Err(message)) => Err(exec_datafusion_err!("{message}")),
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.spool().tables.contains_key(name)
    }
}
