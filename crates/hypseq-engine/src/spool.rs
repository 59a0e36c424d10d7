//! Schema `spool`: rows captured and not yet flushed. They have no seq and lie in no partition yet.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use hypseq_cache::{SpoolBatch, SpoolRow};
use hypseq_iceberg::FieldType;
use serde_json::{Map, Value};

use crate::Unreadable;
use crate::computed::Computed;
use crate::functions::Datasets;
use crate::homes::{HOME, Homes, OpenHome};
use crate::load::problem;
use crate::schema::arrow_field;

/// The column of the source that a flush will file a row under.
const SOURCE: &str = "source";
/// What it is called in partition paths of older caches.
const CLIENT: &str = "client";
const FILE: &str = "_file";

/// Columns by dataset.
type Columns = BTreeMap<String, Vec<(String, String)>>;

/// The spools of all homes: a table for each dataset that has rows there or in a partition. Which columns they have is found
/// out once, when a query or a list of tables first needs it; rows are read by each query.
///
/// A table has the columns of its dataset and those that only the spool has; the source that a flush will file a row under
/// in place of the partition's; and `_file`, below the cache root.
#[derive(Debug)]
pub(crate) struct SpoolSchema {
    homes: Arc<Homes>,
    datasets: Arc<Datasets>,
    tables: OnceLock<BTreeMap<String, Arc<Computed>>>,
}

impl SpoolSchema {
    pub(crate) fn new(homes: Arc<Homes>, datasets: Arc<Datasets>) -> Self {
        Self { homes, datasets, tables: OnceLock::new() }
    }

    /// Whether any table has a column of this name.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.tables().values().any(|table| table.schema().field_with_name(name).is_ok())
    }

    fn tables(&self) -> &BTreeMap<String, Arc<Computed>> {
        self.tables.get_or_init(|| {
            let mut columns = Columns::new();
            for dataset in self.datasets.keys() {
                columns.entry(dataset.clone()).or_default();
            }
            for home in self.homes.iter() {
                home.note(home.home.visit_spool(|batch| {
                    let columns = columns.entry(batch.dataset).or_default();
                    for (name, kind) in batch.columns {
                        if columns.iter().all(|(known, _)| *known != name) {
                            columns.push((name, kind));
                        }
                    }
                }));
            }
            let table = |(name, columns): (String, Vec<(String, String)>)| {
                let table = self.table_of(&name, &columns).computed();
                (name, Arc::new(table))
            };
            columns.into_iter().map(table).collect()
        })
    }

    fn table_of(&self, dataset: &str, captured: &[(String, String)]) -> SpoolTable {
        let known = self.datasets.get(dataset);
        let mut columns = known.map(|dataset| dataset.columns().to_vec()).unwrap_or_default();
        for (name, kind) in captured {
            if columns.iter().all(|(known, _)| known != name) {
                columns.push((name.clone(), field_type(kind)));
            }
        }
        let stored: Vec<Field> = columns.iter().map(|(name, field_type)| arrow_field(name, *field_type)).collect();
        let is_free = |name: &&str| stored.iter().all(|field| field.name() != name);
        let segments = known.map(|dataset| dataset.segments().to_vec()).unwrap_or_default();
        let segments = segments.iter().map(String::as_str).filter(|segment| *segment != SOURCE);
        let added = segments.chain([SOURCE, FILE]).filter(is_free).map(str::to_owned).collect();
        SpoolTable {
            homes: Arc::clone(&self.homes),
            dataset: dataset.to_owned(),
            has_home: self.homes.are_several() && is_free(&HOME),
            added,
            stored: Arc::new(Schema::new(stored)),
        }
    }
}

#[async_trait]
impl SchemaProvider for SpoolSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables().keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.tables().get(name).map(|table| Arc::clone(table) as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables().contains_key(name)
    }
}

/// The spooled rows of one dataset.
struct SpoolTable {
    homes: Arc<Homes>,
    dataset: String,
    /// The columns that the rows hold themselves.
    stored: SchemaRef,
    /// The others that are not `home`.
    added: Vec<String>,
    has_home: bool,
}

impl SpoolTable {
    fn computed(self) -> Computed {
        let text = |name: &str| Arc::new(arrow_field(name, FieldType::String));
        let home = self.has_home.then(|| text(HOME));
        let stored = self.stored.fields().iter().cloned();
        let fields = home.into_iter().chain(stored).chain(self.added.iter().map(|name| text(name)));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Computed::of_batches(schema, move |schema| self.read(schema))
    }

    fn read(&self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for home in self.homes.iter() {
            home.note(home.home.visit_spool(|batch| {
                if batch.dataset == self.dataset {
                    batches.push(self.decode(home, &batch, schema));
                }
            }));
        }
        batches.into_iter().collect()
    }

    fn decode(&self, home: &OpenHome, batch: &SpoolBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = stored(batch, &self.stored).map_err(|expected| {
            let message = format!("expected {expected} in every row, found something else");
            let hint = "its rows cannot be read as a table; HypAware keeps the file".to_owned();
            let unreadable = Unreadable { path: batch.path.clone(), message, hint };
            home.note([problem("spool-value-unreadable", &unreadable)]);
            DataFusionError::External(Box::new(unreadable))
        })?;
        let home_label = self.has_home.then(|| constant(batch, &home.label));
        let added = self.added.iter().map(|name| added(home, batch, name));
        let arrays = home_label.into_iter().chain(rows.columns().iter().cloned()).chain(added);
        Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect())?)
    }
}

/// The columns that the rows of a batch hold themselves, or what was expected of them.
fn stored(batch: &SpoolBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let rows = batch.rows.iter().map(|row| readable(row, schema)).collect::<Result<Vec<_>, _>>()?;
    let decode = |schema: SchemaRef, rows: &[Map<String, Value>]| -> Result<RecordBatch, ArrowError> {
        let mut decoder = ReaderBuilder::new(Arc::clone(&schema)).with_coerce_primitive(true).build_decoder()?;
        decoder.serialize(rows)?;
        Ok(decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(schema)))
    };
    decode(Arc::clone(schema), &rows).map_err(|_| {
        // What was captured is nobody's business in a message: the column is named, and its value is not.
        let is_at_fault = |field: &&Arc<Field>| {
            let alone = Arc::new(Schema::new(vec![Arc::clone(field)]));
            decode(alone, &rows).is_err()
        };
        let field = schema.fields().iter().find(is_at_fault);
        field.map_or_else(|| "rows".to_owned(), |field| format!("`{}` of type {}", field.name(), field.data_type()))
    })
}

/// A row as the decoder reads it: JSON columns as text.
fn readable(row: &SpoolRow, schema: &SchemaRef) -> Result<Map<String, Value>, String> {
    let mut values = row.values.clone();
    for field in schema.fields() {
        let Some(value) = values.get_mut(field.name()) else { continue };
        let is_json = !field.metadata().is_empty() || value.is_object() || value.is_array();
        match field.data_type() {
            // A number could be seconds, milliseconds or microseconds; HypAware spools text.
            DataType::Timestamp(..) if value.is_number() => {
                return Err(format!("`{}` as a text with a time", field.name()));
            }
            DataType::Utf8View if is_json && !value.is_null() => *value = Value::String(value.to_string()),
            _ => {}
        }
    }
    Ok(values)
}

fn constant(batch: &SpoolBatch, value: &str) -> ArrayRef {
    Arc::new(batch.rows.iter().map(|_| Some(value)).collect::<StringViewArray>())
}

fn added(home: &OpenHome, batch: &SpoolBatch, column: &str) -> ArrayRef {
    if column == FILE {
        let relative = batch.path.strip_prefix(home.home.cache_root()).unwrap_or(&batch.path);
        return constant(batch, &relative.to_string_lossy());
    }
    let source = |row: &SpoolRow| matches!(column, SOURCE | CLIENT).then(|| row.source().to_owned());
    Arc::new(batch.rows.iter().map(source).collect::<StringViewArray>())
}

/// The type of a column, by its name in the spool. What has another name is shown as text.
fn field_type(kind: &str) -> FieldType {
    match kind {
        "INT32" => FieldType::Int,
        "INT64" => FieldType::Long,
        "DOUBLE" => FieldType::Double,
        "BOOLEAN" => FieldType::Boolean,
        "TIMESTAMP" => FieldType::Timestamptz,
        "JSON" => FieldType::Variant,
        _ => FieldType::String,
    }
}
