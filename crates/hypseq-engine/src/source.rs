//! DataFusion's Parquet source with two things added: an error names the file that it is about, and filters on
//! JSON columns stay out of the decoder.

use std::any::Any;
use std::collections::HashSet;
use std::fmt::{self, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use parquet::errors::ParquetError;

use crate::Unreadable;
use crate::datafile::DataFile;
use crate::error::find;
use crate::reader::Source;

/// A Parquet scan over data files of a cache.
#[derive(Clone)]
pub(crate) struct CacheSource {
    parquet: Arc<dyn FileSource>,
    json_columns: Arc<HashSet<String>>,
}

impl CacheSource {
    pub(crate) fn new(parquet: ParquetSource, json_columns: HashSet<String>) -> Self {
        Self { parquet: Arc::new(parquet), json_columns: Arc::new(json_columns) }
    }

    fn with(&self, parquet: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { parquet, json_columns: Arc::clone(&self.json_columns) })
    }

    /// The Parquet source would take such a filter for one on text, and then find a group in the file.
    fn is_on_json(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        collect_columns(filter).iter().any(|column| self.json_columns.contains(column.name()))
    }
}

impl FileSource for CacheSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.parquet.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(Blaming { inner: self.parquet.create_morselizer(store, config, partition)? }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.with(self.parquet.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut Formatter) -> fmt::Result {
        self.parquet.fmt_extra(format, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let on_json: Vec<bool> = filters.iter().map(|filter| self.is_on_json(filter)).collect();
        let others = filters.into_iter().zip(&on_json).filter(|(_, on_json)| !**on_json).map(|(filter, _)| filter);
        let pushed = self.parquet.try_pushdown_filters(others.collect(), config)?;
        let mut answers = pushed.filters.into_iter();
        let answer = |on_json: &bool| if *on_json { PushedDown::No } else { answers.next().unwrap_or(PushedDown::No) };
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(on_json.iter().map(answer).collect());
        Ok(match pushed.updated_node {
            Some(parquet) => propagation.with_updated_node(self.with(parquet)),
            None => propagation,
        })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.parquet.try_pushdown_sort(order, properties)?.map(|parquet| self.with(parquet)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.parquet.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.parquet.try_pushdown_projection(projection)?.map(|parquet| self.with(parquet)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.parquet.apply_expressions(f)
    }
}

/// A step of a file's scan that puts the file's name on errors which are about its contents.
#[derive(Debug)]
struct Blaming<T> {
    inner: T,
}

#[derive(Debug)]
struct BlamingFile<T> {
    inner: T,
    file: Arc<DataFile>,
}

impl Morselizer for Blaming<Box<dyn Morselizer>> {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let source = file.extension::<Source>().cloned();
        let inner = self.inner.plan_file(file)?;
        Ok(match source {
            Some(Source::File(file)) => Box::new(BlamingFile { inner, file }),
            _ => inner,
        })
    }
}

impl MorselPlanner for BlamingFile<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, file } = *self;
        let plan = catch_unwind(AssertUnwindSafe(|| inner.plan()));
        let Some(mut plan) = blame(&file, plan)? else { return Ok(None) };
        let planner = {
            let file = Arc::clone(&file);
            move |inner| Box::new(BlamingFile { inner, file: Arc::clone(&file) }) as Box<dyn MorselPlanner>
        };
        let morsel = |inner| Box::new(BlamingFile { inner, file: Arc::clone(&file) }) as Box<dyn Morsel>;
        let mut blaming = MorselPlan::new()
            .with_morsels(plan.take_morsels().into_iter().map(morsel).collect())
            .with_planners(plan.take_ready_planners().into_iter().map(&planner).collect());
        if let Some(pending) = plan.take_pending_planner() {
            blaming.set_pending_planner(async move {
                let outcome = AssertUnwindSafe(pending.into_future()).catch_unwind().await;
                blame(&file, outcome).map(planner)
            });
        }
        Ok(Some(blaming))
    }
}

impl Morsel for BlamingFile<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, file } = *self;
        AssertUnwindSafe(inner.into_stream()).catch_unwind().map(move |batch| blame(&file, batch)).boxed()
    }
}

/// An error about a file's contents is turned into one that names the file, and so is a panic of the decoder, which
/// some damaged files cause. Other errors (a division by zero in an expression that is evaluated in the scan) are left
/// as they are.
fn blame<T>(file: &DataFile, result: std::thread::Result<Result<T>>) -> Result<T> {
    let error = match result {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(panic) => {
            ParquetError::General(format!("the decoder cannot make sense of it: {}", message(&*panic))).into()
        }
    };
    let is_about_contents = match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::IoError(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(**error, ArrowError::ParquetError(_)),
        _ => false,
    };
    if is_about_contents && find::<Unreadable>(&error).is_none() {
        Err(DataFusionError::External(Box::new(file.blame(error.find_root().message()))))
    } else {
        Err(error)
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
