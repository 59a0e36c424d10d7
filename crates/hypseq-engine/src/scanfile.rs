//! One data file's part in a scan: the rows selected, the constant columns, and the bounds by which the file may be
//! left out.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics, internal_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::object_store::path::Path as StorePath;
use hypseq_iceberg::Bounds;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;

use crate::Unreadable;
use crate::datafile::DataFile;
use crate::reader::Source;
use crate::scan::{Origin, TableColumn};

/// Which rows of a data file a scan yields, by position in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selected {
    /// Every row.
    All,
    /// Only these.
    Only(Arc<RoaringTreemap>),
    /// All but these.
    Except(Arc<RoaringTreemap>),
}

/// One data file's part in a scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanFile {
    pub source: Source,
    pub rows: Selected,
    /// Values of the table's constant columns; none where the value is not known.
    pub constants: Vec<Option<ScalarValue>>,
}

impl ScanFile {
    pub(crate) fn new(file: Arc<DataFile>, rows: Selected, constants: Vec<Option<ScalarValue>>) -> Self {
        Self { source: Source::File(file), rows, constants }
    }

    /// A file without which the table is not whole: a scan that cannot do without it fails.
    pub(crate) fn lost(unreadable: Unreadable, constants: Vec<Option<ScalarValue>>) -> Self {
        Self { source: Source::Lost(unreadable), rows: Selected::All, constants }
    }

    /// How many rows it yields, as far as that is known.
    pub(crate) fn row_count(&self) -> Option<u64> {
        let Source::File(file) = &self.source else { return None };
        match &self.rows {
            Selected::All => file.rows,
            Selected::Only(rows) => Some(rows.len()),
            Selected::Except(rows) => file.rows.map(|all| all.saturating_sub(rows.len())),
        }
    }

    /// This file for a scan of these stored and constant columns.
    pub(crate) fn partitioned(&self, stored: &[&TableColumn], constants: &[&TableColumn]) -> Result<PartitionedFile> {
        let path = match &self.source {
            Source::File(file) => &file.path,
            Source::Lost(unreadable) => &unreadable.path,
        };
        let mut file = PartitionedFile::new("", self.size()).with_extension(self.source.clone());
        file.object_meta.location = location(path);
        for column in constants {
            let value = self.constant(column)?.cloned();
            file.partition_values.push(value.map_or_else(|| column.field.data_type().try_into(), Ok)?);
        }
        if let Source::File(data) = &self.source {
            file.statistics = Some(Arc::new(self.statistics(data, stored, &file.partition_values)));
        }
        Ok(match self.selection()? {
            Some(selection) => file.with_extension(ParquetRowSelection::new(selection)),
            None => file,
        })
    }

    /// Never zero: where files are split for parallel reading, DataFusion drops those without a byte, and the error
    /// that they are with them.
    fn size(&self) -> u64 {
        match &self.source {
            Source::File(file) => file.size.max(1),
            Source::Lost(_) => 1,
        }
    }

    /// Its value of a constant column; none where that is not known.
    pub(crate) fn constant(&self, column: &TableColumn) -> Result<Option<&ScalarValue>> {
        let value = match column.origin {
            Origin::Constant(place) => self.constants.get(place),
            Origin::Stored(_) | Origin::Position => None,
        };
        let value = value.ok_or_else(|| internal_datafusion_err!("`{}` is no constant", column.field.name()))?;
        Ok(value.as_ref())
    }

    /// Least and greatest values are stated as exact, which is what makes DataFusion leave files out by them. They
    /// are so for the whole file. For a selection of its rows they are still bounds, and counts are stated as
    /// exact only where they hold for every selection.
    fn statistics(&self, file: &DataFile, stored: &[&TableColumn], constants: &[ScalarValue]) -> Statistics {
        let bounds = |column: &&TableColumn| file.bounds.get(column.field.name()).copied().unwrap_or_default();
        let whole = self.rows == Selected::All;
        let stored = stored.iter().map(|column| column_statistics(bounds(column), column.field.data_type(), whole));
        let constants = constants.iter().map(constant_statistics);
        let rows = self.row_count().and_then(|rows| usize::try_from(rows).ok());
        Statistics {
            num_rows: rows.map_or(Precision::Absent, |rows| exact_if(whole, rows)),
            total_byte_size: Precision::Absent,
            column_statistics: stored.chain(constants).collect(),
        }
    }

    fn selection(&self) -> Result<Option<RowSelection>> {
        let (rows, are_wanted) = match &self.rows {
            Selected::All => return Ok(None),
            Selected::Only(rows) => (rows, true),
            Selected::Except(rows) => (rows, false),
        };
        let total = match &self.source {
            Source::File(file) => file.rows.and_then(|total| usize::try_from(total).ok()),
            Source::Lost(_) => None,
        };
        let total = total.ok_or_else(|| internal_datafusion_err!("rows are selected from a file of unknown length"))?;
        Ok(Some(select(rows, are_wanted, total)))
    }
}

/// The name under which a file's footer is cached and its metrics are shown.
fn location(path: &Path) -> StorePath {
    StorePath::from(path.to_string_lossy().as_ref())
}

fn exact_if(is_exact: bool, count: usize) -> Precision<usize> {
    if is_exact { Precision::Exact(count) } else { Precision::Inexact(count) }
}

fn column_statistics(bounds: Bounds, data_type: &DataType, whole: bool) -> ColumnStatistics {
    let value = |bound: Option<i64>| match (bound, data_type) {
        (Some(bound), DataType::Int64) => Precision::Exact(ScalarValue::Int64(Some(bound))),
        (Some(bound), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Precision::Exact(ScalarValue::TimestampMicrosecond(Some(bound), zone.clone()))
        }
        _ => Precision::Absent,
    };
    let nulls = bounds.nulls.and_then(|nulls| usize::try_from(nulls).ok());
    ColumnStatistics {
        min_value: value(bounds.lower),
        max_value: value(bounds.upper),
        null_count: nulls.map_or(Precision::Absent, |nulls| exact_if(whole || nulls == 0, nulls)),
        ..ColumnStatistics::new_unknown()
    }
}

fn constant_statistics(value: &ScalarValue) -> ColumnStatistics {
    if value.is_null() {
        return ColumnStatistics::new_unknown();
    }
    ColumnStatistics {
        min_value: Precision::Exact(value.clone()),
        max_value: Precision::Exact(value.clone()),
        null_count: Precision::Exact(0),
        ..ColumnStatistics::new_unknown()
    }
}

/// A selection over `total` rows: of those in `rows`, or of all others.
fn select(rows: &RoaringTreemap, are_wanted: bool, total: usize) -> RowSelection {
    let mut selectors = Vec::new();
    let selector = |count, wanted| if wanted { RowSelector::select(count) } else { RowSelector::skip(count) };
    let mut done = 0;
    for run in runs(rows) {
        selectors.push(selector(run.start.saturating_sub(done), !are_wanted));
        selectors.push(selector(run.len(), are_wanted));
        done = run.end;
    }
    selectors.push(selector(total.saturating_sub(done), !are_wanted));
    selectors.into()
}

/// Consecutive positions, joined.
fn runs(rows: &RoaringTreemap) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for row in rows.iter().filter_map(|row| usize::try_from(row).ok()) {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end = row + 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}
