//! Tables whose rows are worked out when a query needs them.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use hypseq_iceberg::FieldType;

use crate::homes::{HOME, Homes, OpenHome};
use crate::schema::{UTC, arrow_field};

/// What a metadata table is made of.
pub(crate) trait Relation: Debug + Send + Sync + 'static {
    /// The table's name.
    const NAME: &'static str;
    /// A row, before it is taken apart.
    type Row: Send;

    /// The columns, `home` aside.
    fn columns() -> Vec<Column<Self::Row>>;

    /// The rows of one home. What cannot be read is left out here and is among the engine's problems.
    fn rows(home: &OpenHome) -> Vec<Self::Row>;
}

type Values<R> = Box<dyn Fn(&[R]) -> ArrayRef>;

/// A column: its name and type, and how its values come out of rows.
pub(crate) struct Column<R> {
    name: &'static str,
    field_type: FieldType,
    values: Values<R>,
}

/// A column of text.
pub(crate) fn text<R>(name: &'static str, get: impl for<'a> Fn(&'a R) -> Option<&'a str> + 'static) -> Column<R> {
    let values = move |rows: &[R]| Arc::new(rows.iter().map(&get).collect::<StringViewArray>()) as ArrayRef;
    Column { name, field_type: FieldType::String, values: Box::new(values) }
}

/// A BIGINT column.
pub(crate) fn long<R>(name: &'static str, get: impl Fn(&R) -> Option<i64> + 'static) -> Column<R> {
    let values = move |rows: &[R]| Arc::new(rows.iter().map(&get).collect::<Int64Array>()) as ArrayRef;
    Column { name, field_type: FieldType::Long, values: Box::new(values) }
}

/// A BIGINT column of a count, which a BIGINT holds or the value is null.
pub(crate) fn count<R>(name: &'static str, get: impl Fn(&R) -> Option<u64> + 'static) -> Column<R> {
    long(name, move |row| get(row).and_then(|count| i64::try_from(count).ok()))
}

/// A column of times, in microseconds since 1970, UTC.
pub(crate) fn time<R>(name: &'static str, get: impl Fn(&R) -> Option<i64> + 'static) -> Column<R> {
    let values = move |rows: &[R]| {
        let times: TimestampMicrosecondArray = rows.iter().map(&get).collect();
        Arc::new(times.with_timezone(UTC)) as ArrayRef
    };
    Column { name, field_type: FieldType::Timestamptz, values: Box::new(values) }
}

/// A BOOLEAN column.
pub(crate) fn flag<R>(name: &'static str, get: impl Fn(&R) -> Option<bool> + 'static) -> Column<R> {
    let values = move |rows: &[R]| Arc::new(rows.iter().map(&get).collect::<BooleanArray>()) as ArrayRef;
    Column { name, field_type: FieldType::Boolean, values: Box::new(values) }
}

type Compute = dyn Fn(&SchemaRef) -> Result<Vec<RecordBatch>> + Send + Sync;

/// A table that is computed when it is scanned.
pub(crate) struct Computed {
    schema: SchemaRef,
    batches: Arc<Compute>,
}

impl Computed {
    /// A table of batches with a schema, which is handed to whoever makes them.
    pub(crate) fn of_batches(
        schema: SchemaRef,
        batches: impl Fn(&SchemaRef) -> Result<Vec<RecordBatch>> + Send + Sync + 'static,
    ) -> Self {
        Self { schema, batches: Arc::new(batches) }
    }

    /// The table of a relation over the homes of a session.
    pub(crate) fn relation<R: Relation>(homes: &Arc<Homes>) -> Self {
        let (several, homes) = (homes.are_several(), Arc::clone(homes));
        let rows = move || Ok(homes.iter().map(|home| (Arc::clone(&home.label), R::rows(home))).collect());
        Self::new(several, R::columns, rows)
    }

    /// A table of rows by home; `several` is whether there is a `home` column.
    pub(crate) fn new<R: 'static>(
        several: bool,
        columns: fn() -> Vec<Column<R>>,
        rows: impl Fn() -> Result<Vec<(Arc<str>, Vec<R>)>> + Send + Sync + 'static,
    ) -> Self {
        let home = several.then(|| arrow_field(HOME, FieldType::String));
        let fields = columns().into_iter().map(|column| arrow_field(column.name, column.field_type));
        let schema = Arc::new(Schema::new(home.into_iter().chain(fields).collect::<Vec<_>>()));
        let batches = move |schema: &SchemaRef| {
            let columns = columns();
            let batch = |(label, rows): (Arc<str>, Vec<R>)| {
                let home = several
                    .then(|| Arc::new(rows.iter().map(|_| Some(&*label)).collect::<StringViewArray>()) as ArrayRef);
                let arrays = home.into_iter().chain(columns.iter().map(|column| (column.values)(&rows)));
                Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect())?)
            };
            rows()?.into_iter().map(batch).collect()
        };
        Self::of_batches(schema, batches)
    }
}

impl Debug for Computed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computed").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Computed {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (batches, schema) = (Arc::clone(&self.batches), Arc::clone(&self.schema));
        let computed = tokio::task::spawn_blocking(move || batches(&schema)).await;
        let computed = computed.map_err(|error| DataFusionError::External(Box::new(error)))??;
        Ok(MemorySourceConfig::try_new_exec(&[computed], Arc::clone(&self.schema), projection.cloned())?)
    }
}
