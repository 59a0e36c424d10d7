//! A table that is a set of data files: columns that the files hold, columns that are constant in each file, and
//! the position of each row in its file.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Statistics, internal_datafusion_err};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfigBuilder, FileSource as _, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use hypseq_iceberg::FieldType;
use parquet::arrow::RowNumber;

use crate::adapter::Adapters;
use crate::reader::Readers;
use crate::scanfile::ScanFile;
use crate::schema::arrow_field;
use crate::source::CacheSource;

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The data files, where it has this type.
    Stored(FieldType),
    /// The value at this place of [`ScanFile::constants`].
    Constant(usize),
    /// The row's position in its file, from 0.
    Position,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    pub field: FieldRef,
    pub origin: Origin,
}

impl TableColumn {
    pub(crate) fn stored(name: &str, field_type: FieldType) -> Self {
        Self { field: Arc::new(arrow_field(name, field_type)), origin: Origin::Stored(field_type) }
    }

    pub(crate) fn constant(name: &str, data_type: DataType, place: usize) -> Self {
        Self { field: Arc::new(Field::new(name, data_type, true)), origin: Origin::Constant(place) }
    }

    pub(crate) fn position(name: &str) -> Self {
        Self { field: Arc::new(Field::new(name, DataType::Int64, false)), origin: Origin::Position }
    }
}

/// The columns of a table, and how its files are opened.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    readers: Arc<Readers>,
}

impl Layout {
    pub(crate) fn new(columns: Vec<TableColumn>, readers: Arc<Readers>) -> Self {
        let fields: Vec<FieldRef> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)), readers }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A scan of these files.
    ///
    /// The statistics of the whole are never exact, so that no total is ever taken from a manifest instead of the
    /// files. Those of single files only serve to leave files out.
    pub(crate) fn scan(
        &self,
        files: &[ScanFile],
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.needed(files, filters, session);
        let wanted = self.wanted(projection)?;
        let (stored, constants, positions) =
            (of(&wanted, is_stored), of(&wanted, is_constant), of(&wanted, is_position));
        let with_row_number =
            |column: &&TableColumn| Arc::new(column.field.as_ref().clone().with_extension_type(RowNumber));
        let table_schema = TableSchema::builder(Arc::new(Schema::new(fields(&stored))))
            .with_table_partition_cols(fields(&constants))
            .with_virtual_columns(positions.iter().map(with_row_number).collect::<Vec<_>>())
            .build();
        let projection = projection_of(&wanted, table_schema.table_schema())?;
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(projection.project_schema(table_schema.table_schema())?))));
        }

        let json = stored.iter().filter(|column| column.origin == Origin::Stored(FieldType::Variant));
        let json_columns: HashSet<String> = json.map(|column| column.field.name().clone()).collect();
        let parquet = ParquetSource::new(table_schema.clone())
            .with_table_parquet_options(parquet_options(session))
            .with_parquet_file_reader_factory(Arc::clone(&self.readers) as Arc<dyn ParquetFileReaderFactory>);
        let source = CacheSource::new(parquet, json_columns)
            .try_pushdown_projection(&projection)?
            .ok_or_else(|| internal_datafusion_err!("the Parquet source does not take a projection"))?;

        let rows: u64 = files.iter().filter_map(|file| file.row_count()).sum();
        let statistics = Statistics {
            num_rows: usize::try_from(rows).map_or(Precision::Absent, Precision::Inexact),
            ..Statistics::new_unknown(table_schema.table_schema())
        };
        let files = files.iter().map(|file| file.partitioned(&stored, &constants)).collect::<Result<Vec<_>>>()?;
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file_groups(FileGroup::new(files).split_files(session.config().target_partitions()))
            .with_statistics(statistics)
            .with_limit(limit)
            .with_expr_adapter(Some(Arc::new(Adapters)))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// Filters on constant columns alone leave out whole files in [`Layout::scan`]; none is applied to rows.
    pub(crate) fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        let pushdown = |filter: &&Expr| {
            if self.is_on_constants(filter) {
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        filters.iter().map(pushdown).collect()
    }

    fn is_on_constants(&self, filter: &Expr) -> bool {
        let is_constant = |name: &str| {
            let column = self.columns.iter().find(|column| column.field.name() == name);
            column.is_some_and(|column| is_constant(column.origin))
        };
        !filter.is_volatile() && filter.column_refs().iter().all(|column| is_constant(column.name()))
    }

    /// The files that filters on constant columns do not rule out.
    fn needed<'a>(&self, files: &'a [ScanFile], filters: &[Expr], session: &dyn Session) -> Vec<&'a ScanFile> {
        let mut needed: Vec<&ScanFile> = files.iter().collect();
        for filter in filters.iter().filter(|filter| self.is_on_constants(filter)) {
            // An expression that only means something in a running query, such as a subquery, rules nothing out.
            if let Ok(verdicts) = self.verdicts(filter, &needed, session) {
                needed =
                    needed.into_iter().zip(verdicts).filter(|(_, verdict)| *verdict).map(|(file, _)| file).collect();
            }
        }
        needed
    }

    /// Whether each file's constants fulfil a filter, or may do so where they are not all known.
    fn verdicts(&self, filter: &Expr, files: &[&ScanFile], session: &dyn Session) -> Result<Vec<bool>> {
        let named = filter.column_refs();
        let is_named = |column: &&TableColumn| named.iter().any(|name| name.name() == column.field.name());
        let columns: Vec<&TableColumn> = self.columns.iter().filter(is_named).collect();
        let values = |column: &&TableColumn| files.iter().map(|file| file.constant(column)).collect::<Result<Vec<_>>>();
        let values = columns.iter().map(values).collect::<Result<Vec<_>>>()?;
        let array = |(column, values): (&&TableColumn, &Vec<Option<&ScalarValue>>)| {
            let null = ScalarValue::try_from(column.field.data_type())?;
            ScalarValue::iter_to_array(values.iter().map(|value| value.unwrap_or(&null).clone()))
        };
        let arrays = columns.iter().zip(&values).map(array).collect::<Result<Vec<_>>>()?;

        let schema = Arc::new(Schema::new(fields(&columns)));
        let expr = session.create_physical_expr(unqualified(filter)?, &DFSchema::try_from(Arc::clone(&schema))?)?;
        let verdicts = expr.evaluate(&RecordBatch::try_new(schema, arrays)?)?.into_array(files.len())?;
        let is_known = |place: usize| values.iter().all(|values| values.get(place).is_some_and(Option::is_some));
        let verdict = |(place, verdict): (usize, Option<bool>)| verdict == Some(true) || !is_known(place);
        Ok(as_boolean_array(&verdicts)?.iter().enumerate().map(verdict).collect())
    }

    fn wanted(&self, projection: Option<&Vec<usize>>) -> Result<Vec<&TableColumn>> {
        let Some(places) = projection else { return Ok(self.columns.iter().collect()) };
        let column = |place: &usize| self.columns.get(*place);
        places
            .iter()
            .map(|place| column(place).ok_or_else(|| internal_datafusion_err!("there is no column {place}")))
            .collect()
    }
}

/// HypAware's files have neither page indexes nor Bloom filters: not looking for them saves reads, and keeps the
/// selections of undeleted rows apart from those of page pruning.
fn parquet_options(session: &dyn Session) -> TableParquetOptions {
    let global = session.config_options().execution.parquet.clone();
    let mut options = TableParquetOptions { global, ..TableParquetOptions::default() };
    options.global.enable_page_index = false;
    options.global.bloom_filter_on_read = false;
    options
}

/// The filter with columns named without their table.
fn unqualified(filter: &Expr) -> Result<Expr> {
    let bare = |expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(Expr::from(Column::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    };
    filter.clone().transform(bare).data()
}

fn is_stored(origin: Origin) -> bool {
    matches!(origin, Origin::Stored(_))
}

fn is_constant(origin: Origin) -> bool {
    matches!(origin, Origin::Constant(_))
}

fn is_position(origin: Origin) -> bool {
    origin == Origin::Position
}

fn of<'a>(columns: &[&'a TableColumn], is_wanted: fn(Origin) -> bool) -> Vec<&'a TableColumn> {
    columns.iter().copied().filter(|column| is_wanted(column.origin)).collect()
}

fn fields(columns: &[&TableColumn]) -> Vec<FieldRef> {
    columns.iter().map(|column| Arc::clone(&column.field)).collect()
}

/// The wanted columns, in their order, out of a scan's own schema: stored, constant, position.
fn projection_of(wanted: &[&TableColumn], scan: &Schema) -> Result<ProjectionExprs> {
    let expr = |column: &&TableColumn| {
        let name = column.field.name();
        let found: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new_with_schema(name, scan)?);
        // The mark that asks the Parquet reader for row numbers has no place in a table's schema.
        let expr = match column.origin {
            Origin::Position => Arc::new(CastExpr::new_with_target_field(found, Arc::clone(&column.field), None)),
            _ => found,
        };
        Ok(ProjectionExpr { expr, alias: name.clone() })
    };
    Ok(ProjectionExprs::new(wanted.iter().map(expr).collect::<Result<Vec<_>>>()?))
}

/// A table whose files are known.
#[derive(Debug)]
pub(crate) struct FileTable {
    pub layout: Layout,
    pub files: Vec<ScanFile>,
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.layout.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.layout.scan(&self.files, session, projection, filters, limit)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.layout.pushdown(filters))
    }
}
