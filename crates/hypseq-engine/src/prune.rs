//! Leaves out files that hold no row for a condition, by what is known of them without opening them.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::PhysicalExpr;

use crate::scan::{Origin, TableColumn, constant};
use crate::scanfile::ScanFile;

/// A condition that files are held against.
#[derive(Debug)]
pub(crate) struct Pruner {
    predicate: PruningPredicate,
}

impl Pruner {
    /// None where the condition says nothing about least and greatest values.
    pub(crate) fn new(condition: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
        let predicate = builder.try_build(Arc::clone(condition)).ok()?;
        (!predicate.always_true()).then_some(Self { predicate })
    }

    /// Whether each file may hold a row for the condition.
    ///
    /// # Errors
    /// The condition cannot be evaluated over the bounds; no file can then be left out.
    pub(crate) fn verdicts(&self, files: &[Arc<ScanFile>], columns: &[TableColumn]) -> Result<Vec<bool>> {
        self.predicate.prune(&Known { files, columns })
    }
}

/// What is known of files: bounds from their manifests, and their constants.
///
/// Bounds and counts are those of the whole file. For a selection of its rows they hold as well: least and greatest
/// values are still bounds, and where no value is null, or every one is, that is so for the selected ones.
struct Known<'a> {
    files: &'a [Arc<ScanFile>],
    columns: &'a [TableColumn],
}

/// Which of a column's bounds.
#[derive(Clone, Copy)]
enum Bound {
    Lower,
    Upper,
}

impl Known<'_> {
    fn column(&self, column: &Column) -> Option<&TableColumn> {
        self.columns.iter().find(|other| other.field.name() == column.name())
    }

    fn bound(&self, column: &Column, bound: Bound) -> Option<ArrayRef> {
        let column = self.column(column)?;
        let null = ScalarValue::try_from(column.field.data_type()).ok()?;
        let value = |file: &Arc<ScanFile>| match column.origin {
            Origin::Stored(_) => stored_bound(file, column, bound).unwrap_or_else(|| null.clone()),
            Origin::Constant(_) => constant(&file.constants, column).ok().flatten().unwrap_or(&null).clone(),
            Origin::Position => null.clone(),
        };
        ScalarValue::iter_to_array(self.files.iter().map(value)).ok()
    }
}

fn stored_bound(file: &ScanFile, column: &TableColumn, bound: Bound) -> Option<ScalarValue> {
    let bounds = file.file()?.bounds(column.field.name());
    let bound = match bound {
        Bound::Lower => bounds.lower?,
        Bound::Upper => bounds.upper?,
    };
    match column.field.data_type() {
        DataType::Int64 => Some(ScalarValue::Int64(Some(bound))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Some(ScalarValue::TimestampMicrosecond(Some(bound), zone.clone()))
        }
        _ => None,
    }
}

impl PruningStatistics for Known<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, Bound::Lower)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, Bound::Upper)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let column = self.column(column)?;
        let nulls = |file: &Arc<ScanFile>| match column.origin {
            Origin::Stored(_) => file.file()?.bounds(column.field.name()).nulls,
            Origin::Constant(_) | Origin::Position => None,
        };
        Some(Arc::new(self.files.iter().map(nulls).collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = |file: &Arc<ScanFile>| file.file()?.rows;
        Some(Arc::new(self.files.iter().map(rows).collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
