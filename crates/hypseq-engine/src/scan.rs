//! A table that is a set of data files: columns that the files hold, columns that are constant in each file, and
//! the position of each row in its file.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use hypseq_iceberg::FieldType;
use rayon::prelude::*;

use crate::exec::{Scan, ScanExec};
use crate::footer::Footers;
use crate::load::made_once;
use crate::request::Request;
use crate::scanfile::ScanFile;
use crate::schema::arrow_field;

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
    footers: Arc<Footers>,
}

impl Layout {
    pub(crate) fn new(columns: Vec<TableColumn>, footers: Arc<Footers>) -> Self {
        let fields: Vec<FieldRef> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)), footers }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A scan of these files.
    pub(crate) fn scan(
        &self,
        files: Vec<Arc<ScanFile>>,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all_files = files.len();
        let wanted = self.wanted(projection)?;
        let files = self.needed(files, |file| &file.constants, filters, session)?;
        let on_rows = filters.iter().filter(|filter| !self.is_on_constants(filter));
        let condition = on_rows.cloned().reduce(Expr::and);
        let condition = condition.map(|condition| self.condition(&condition, session)).transpose()?;
        let (tested, condition) = condition.unzip();
        let request = Arc::new(Request::new(&wanted, tested.unwrap_or_default(), condition));
        let files = request.needed(files);
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::clone(request.schema()))));
        }
        let wanted = wanted.into_iter().cloned().collect();
        let scan = Scan { request, wanted, footers: Arc::clone(&self.footers), all_files };
        Ok(Arc::new(ScanExec::new(scan, files, limit, session.config().target_partitions())))
    }

    /// The columns that a condition is on, and the condition over them.
    fn condition(&self, condition: &Expr, session: &dyn Session) -> Result<(Vec<TableColumn>, Arc<dyn PhysicalExpr>)> {
        let tested = self.named_in(condition);
        let schema = DFSchema::try_from(Schema::new(fields(&tested)))?;
        let expr = session.create_physical_expr(unqualified(condition)?, &schema)?;
        Ok((tested.into_iter().cloned().collect(), expr))
    }

    fn named_in(&self, expr: &Expr) -> Vec<&TableColumn> {
        let named = expr.column_refs();
        let is_named = |column: &&TableColumn| named.iter().any(|name| name.name() == column.field.name());
        self.columns.iter().filter(is_named).collect()
    }

    fn is_on_constants(&self, filter: &Expr) -> bool {
        let is_constant = |name: &str| {
            let column = self.columns.iter().find(|column| column.field.name() == name);
            column.is_some_and(|column| is_constant(column.origin))
        };
        filter.column_refs().iter().all(|column| is_constant(column.name()))
    }

    /// What filters on constant columns do not rule out.
    fn needed<T>(
        &self,
        mut needed: Vec<T>,
        constants: impl Fn(&T) -> &[Option<ScalarValue>],
        filters: &[Expr],
        session: &dyn Session,
    ) -> Result<Vec<T>> {
        for filter in filters.iter().filter(|filter| self.is_on_constants(filter)) {
            if needed.is_empty() {
                break;
            }
            let constants: Vec<_> = needed.iter().map(&constants).collect();
            let mut verdicts = self.verdicts(filter, &constants, session)?.into_iter();
            needed.retain(|_| verdicts.next().unwrap_or(true));
        }
        Ok(needed)
    }

    /// Whether constants fulfil a filter, or may do so where they are not all known.
    fn verdicts(&self, filter: &Expr, all: &[&[Option<ScalarValue>]], session: &dyn Session) -> Result<Vec<bool>> {
        let columns = self.named_in(filter);
        let values = |column: &&TableColumn| all.iter().map(|one| constant(one, column)).collect::<Result<Vec<_>>>();
        let values = columns.iter().map(values).collect::<Result<Vec<_>>>()?;
        let array = |(column, values): (&&TableColumn, &Vec<Option<&ScalarValue>>)| {
            let null = ScalarValue::try_from(column.field.data_type())?;
            ScalarValue::iter_to_array(values.iter().map(|value| value.unwrap_or(&null).clone()))
        };
        let arrays = columns.iter().zip(&values).map(array).collect::<Result<Vec<_>>>()?;

        let schema = Arc::new(Schema::new(fields(&columns)));
        let expr = session.create_physical_expr(unqualified(filter)?, &DFSchema::try_from(Arc::clone(&schema))?)?;
        // A filter may be on no column at all, as `true` is.
        let count = RecordBatchOptions::new().with_row_count(Some(all.len()));
        let constants = RecordBatch::try_new_with_options(schema, arrays, &count)?;
        let verdicts = expr.evaluate(&constants)?.into_array(all.len())?;
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

/// Conditions are fulfilled by the scan, all but those that mean something only in a running query.
pub(crate) fn pushdown(filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
    let of_a_query = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::OuterReferenceColumn(..)
        ))
    };
    let pushdown = |filter: &&Expr| {
        if filter.is_volatile() || filter.exists(of_a_query).unwrap_or(true) {
            TableProviderFilterPushDown::Unsupported
        } else {
            TableProviderFilterPushDown::Exact
        }
    };
    filters.iter().map(pushdown).collect()
}

/// The value of a constant column, out of those of a file; none where it is not known.
pub(crate) fn constant<'a>(
    constants: &'a [Option<ScalarValue>],
    column: &TableColumn,
) -> Result<Option<&'a ScalarValue>> {
    let value = match column.origin {
        Origin::Constant(place) => constants.get(place),
        Origin::Stored(_) | Origin::Position => None,
    };
    let value = value.ok_or_else(|| internal_datafusion_err!("`{}` is no constant", column.field.name()))?;
    Ok(value.as_ref())
}

/// The filter with columns named without their table.
fn unqualified(filter: &Expr) -> Result<Expr> {
    let bare = |expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(Expr::from(Column::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    };
    filter.clone().transform(bare).data()
}

fn is_constant(origin: Origin) -> bool {
    matches!(origin, Origin::Constant(_))
}

fn fields(columns: &[&TableColumn]) -> Vec<FieldRef> {
    columns.iter().map(|column| Arc::clone(&column.field)).collect()
}

/// A table over the files of some generations.
#[derive(Debug)]
pub(crate) struct FileTable {
    pub layout: Layout,
    pub parts: Vec<Part>,
}

/// The files of one generation.
pub(crate) struct Part {
    /// The constants that all of them have; none where they differ.
    pub constants: Vec<Option<ScalarValue>>,
    find: Box<dyn Fn() -> Files + Send + Sync>,
    files: OnceLock<Files>,
}

type Files = Vec<Arc<ScanFile>>;

impl Part {
    /// `find` finds the files, once a scan needs them.
    pub(crate) fn new(constants: Vec<Option<ScalarValue>>, find: impl Fn() -> Files + Send + Sync + 'static) -> Self {
        Self { constants, find: Box::new(find), files: OnceLock::new() }
    }

    fn files(&self) -> &Files {
        made_once(&self.files, &self.find)
    }
}

impl Debug for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("constants", &self.constants).finish_non_exhaustive()
    }
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
        let needed = self.layout.needed(self.parts.iter().collect(), |part| &part.constants, filters, session)?;
        let files: Vec<_> = needed.into_par_iter().flat_map_iter(|part| part.files().iter().cloned()).collect();
        self.layout.scan(files, session, projection, filters, limit)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(pushdown(filters))
    }
}
