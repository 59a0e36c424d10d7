//! What a scan takes from each of its files: the columns of its condition first, and the others only of the rows that
//! fulfil it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array as _, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::physical_plan::PhysicalExpr;

use crate::datafile::DataFile;
use crate::prune::Pruner;
use crate::scan::{Origin, TableColumn, constant};
use crate::scanfile::ScanFile;
use crate::shape::{Reading, Shape};

/// What a scan takes from each file.
#[derive(Debug)]
pub(crate) struct Request {
    /// The columns that the condition is on.
    pub tested: Columns,
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// The columns that are wanted besides.
    pub rest: Columns,
    schema: SchemaRef,
    output: Vec<Taken>,
    recipes: Mutex<Vec<Recipe>>,
}

/// Where a column that is wanted comes from.
#[derive(Debug, Clone, Copy)]
enum Taken {
    Tested(usize),
    Rest(usize),
}

/// How the columns of a request are read from files of one shape and table.
#[derive(Debug, Clone)]
struct Recipe {
    shape: Arc<Shape>,
    field_ids: Arc<HashMap<String, i32>>,
    readings: Arc<Readings>,
}

/// See [`Reading`].
#[derive(Debug)]
pub(crate) struct Readings {
    pub tested: Reading,
    pub rest: Reading,
}

impl Request {
    /// The condition is over the columns `tested`.
    pub(crate) fn new(
        wanted: &[&TableColumn],
        tested: Vec<TableColumn>,
        condition: Option<Arc<dyn PhysicalExpr>>,
    ) -> Self {
        let mut rest = Vec::new();
        let mut taken = |column: &&TableColumn| {
            if let Some(place) = tested.iter().position(|other| other.field.name() == column.field.name()) {
                return Taken::Tested(place);
            }
            rest.push((*column).clone());
            Taken::Rest(rest.len() - 1)
        };
        let output = wanted.iter().map(&mut taken).collect();
        let fields: Vec<FieldRef> = wanted.iter().map(|column| Arc::clone(&column.field)).collect();
        Self {
            tested: Columns::new(tested),
            condition,
            rest: Columns::new(rest),
            schema: Arc::new(Schema::new(fields)),
            output,
            recipes: Mutex::default(),
        }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn condition(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        self.condition.as_ref()
    }

    /// The files that the condition does not rule out by what is known without opening them.
    pub(crate) fn needed(&self, mut files: Vec<Arc<ScanFile>>) -> Vec<Arc<ScanFile>> {
        let pruner = self.condition.as_ref().and_then(|condition| Pruner::new(condition, &self.tested.schema));
        if let Some(verdicts) = pruner.and_then(|pruner| pruner.verdicts(&files, &self.tested.all).ok()) {
            let mut verdicts = verdicts.into_iter();
            files.retain(|_| verdicts.next().unwrap_or(true));
        }
        files
    }

    /// How this file is read.
    ///
    /// # Errors
    /// A column of the file has a type whose values the table's type does not hold.
    pub(crate) fn readings(&self, file: &DataFile, shape: &Arc<Shape>) -> parquet::errors::Result<Arc<Readings>> {
        let mut recipes = self.recipes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of =
            |recipe: &&Recipe| Arc::ptr_eq(&recipe.shape, shape) && Arc::ptr_eq(&recipe.field_ids, &file.field_ids);
        if let Some(known) = recipes.iter().find(is_of) {
            return Ok(Arc::clone(&known.readings));
        }
        let reading = |columns: &Columns| Reading::new(shape, &file.field_ids, &columns.stored);
        let readings = Arc::new(Readings { tested: reading(&self.tested)?, rest: reading(&self.rest)? });
        let (shape, field_ids) = (Arc::clone(shape), Arc::clone(&file.field_ids));
        recipes.push(Recipe { shape, field_ids, readings: Arc::clone(&readings) });
        Ok(readings)
    }

    /// Which rows of the tested columns fulfil the condition.
    pub(crate) fn test(&self, tested: &RecordBatch) -> Result<BooleanArray> {
        let Some(condition) = &self.condition else { return Ok(BooleanArray::from(vec![true; tested.num_rows()])) };
        let verdicts = condition.evaluate(tested)?.into_array(tested.num_rows())?;
        let verdicts = as_boolean_array(&verdicts)?;
        Ok(if verdicts.null_count() > 0 { prep_null_mask_filter(verdicts) } else { verdicts.clone() })
    }

    /// The wanted columns, in their order.
    pub(crate) fn output(&self, tested: &[ArrayRef], rest: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let column = |taken: &Taken| match *taken {
            Taken::Tested(place) => tested.get(place),
            Taken::Rest(place) => rest.get(place),
        };
        let missing = || internal_datafusion_err!("a column was not read");
        let columns = self.output.iter().map(|taken| column(taken).cloned().ok_or_else(missing));
        batch(&self.schema, columns.collect::<Result<_>>()?, rows)
    }
}

/// Some columns of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    all: Vec<TableColumn>,
    schema: SchemaRef,
    /// Those that are stored in the files.
    stored: Vec<FieldRef>,
    /// Whether the rows' positions are among them.
    pub has_position: bool,
}

impl Columns {
    fn new(columns: Vec<TableColumn>) -> Self {
        let fields: Vec<FieldRef> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
        let stored = columns.iter().filter(|column| matches!(column.origin, Origin::Stored(_)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            stored: stored.map(|column| Arc::clone(&column.field)).collect(),
            has_position: columns.iter().any(|column| column.origin == Origin::Position),
            all: columns,
        }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// These columns of some rows of a file: the stored ones are given, the others are made.
    pub(crate) fn fill(
        &self,
        file: &ScanFile,
        stored: Vec<ArrayRef>,
        positions: Option<&Int64Array>,
        rows: usize,
    ) -> Result<RecordBatch> {
        let mut stored = stored.into_iter();
        let missing = |column: &TableColumn| internal_datafusion_err!("`{}` was not read", column.field.name());
        let values = |column: &TableColumn| match column.origin {
            Origin::Stored(_) => stored.next().ok_or_else(|| missing(column)),
            Origin::Position => positions.map(|rows| Arc::new(rows.clone()) as ArrayRef).ok_or_else(|| missing(column)),
            Origin::Constant(_) => match constant(&file.constants, column)? {
                Some(value) => value.to_array_of_size(rows),
                None => ScalarValue::try_from(column.field.data_type())?.to_array_of_size(rows),
            },
        };
        let columns = self.all.iter().map(values).collect::<Result<_>>()?;
        batch(&self.schema, columns, rows)
    }
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
