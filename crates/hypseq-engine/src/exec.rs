//! The scan of data files as an operator of a query.

use std::fmt::{self, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracker, DynamicFilterTracking};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalSortExpr, conjunction};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, SortOrderPushdownResult,
};
use futures::stream::try_unfold;

use crate::footer::Footers;
use crate::prune::Pruner;
use crate::request::Request;
use crate::rows::FileRows;
use crate::scan::TableColumn;
use crate::scanfile::ScanFile;

/// Files that a dynamic condition is held against at a time.
const LOOK_AHEAD: usize = 256;

/// Reads rows of data files. Its partitions take the files from one queue, so that none is idle while there are any.
#[derive(Debug, Clone)]
pub(crate) struct ScanExec {
    scan: Arc<Scan>,
    files: Arc<Vec<Arc<ScanFile>>>,
    /// A condition that other operators refine while the query runs. It leaves out files, and never rows.
    dynamic: Option<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    queue: Arc<Queue>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// The files that are still to be read, of one run of the scan.
#[derive(Debug)]
struct Queue {
    next_file: AtomicUsize,
    /// Which partitions have begun.
    begun: Vec<AtomicBool>,
}

impl Queue {
    fn new(partitions: usize) -> Arc<Self> {
        let begun = std::iter::repeat_with(AtomicBool::default).take(partitions).collect();
        Arc::new(Self { next_file: AtomicUsize::default(), begun })
    }
}

/// What does not change while a scan is planned.
#[derive(Debug)]
pub(crate) struct Scan {
    pub request: Arc<Request>,
    /// The table's columns that are wanted, in the order of the request's schema.
    pub wanted: Vec<TableColumn>,
    pub footers: Arc<Footers>,
    /// How many files the table has.
    pub all_files: usize,
}

impl ScanExec {
    pub(crate) fn new(scan: Scan, files: Vec<Arc<ScanFile>>, limit: Option<usize>, partitions: usize) -> Self {
        let partitions = partitions.min(files.len()).max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(scan.request.schema())),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scan: Arc::new(scan),
            files: Arc::new(files),
            dynamic: None,
            limit,
            queue: Queue::new(partitions),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// A queue with all files in it.
    fn new_queue(&self) -> Arc<Queue> {
        Queue::new(self.properties.partitioning.partition_count())
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter) -> fmt::Result {
        write!(f, "ScanExec: files={} of {}", self.files.len(), self.scan.all_files)?;
        let names: Vec<&str> = self.scan.wanted.iter().map(|column| column.field.name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))?;
        if let Some(condition) = self.scan.request.condition() {
            write!(f, ", condition={condition}")?;
        }
        if let Some(dynamic) = &self.dynamic {
            write!(f, ", files_if={dynamic}")?;
        }
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { queue: self.new_queue(), ..Self::clone(&self) }))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.scan.request.condition().into_iter().chain(&self.dynamic) {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        // The queue is emptied once: read again, a partition would have no rows, and nothing would say so.
        match self.queue.begun.get(partition) {
            None => return internal_err!("a scan has no partition {partition}"),
            Some(begun) if begun.swap(true, Ordering::Relaxed) => {
                return internal_err!("partition {partition} of a scan is read twice");
            }
            Some(_) => {}
        }
        let batch_size = context.session_config().batch_size().max(1);
        let schema = self.schema();
        let reader = Reader {
            scan: Arc::clone(&self.scan),
            files: Arc::clone(&self.files),
            queue: Arc::clone(&self.queue),
            dynamic: self.dynamic.as_ref().map(Dynamic::new),
            batch_size,
            left: self.limit,
            file: None,
            small: BatchCoalescer::new(Arc::clone(&schema), batch_size)
                .with_biggest_coalesce_batch_size(Some(batch_size / 8)),
            files_read: MetricBuilder::new(&self.metrics).counter("files_read", partition),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = try_unfold(reader, |mut reader| async move {
            let batch = reader.next().await?;
            Ok(batch.map(|batch| (batch, reader)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// Never exact, so that no total is ever taken from a manifest instead of the files.
    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let rows: u64 = self.files.iter().filter_map(|file| file.row_count()).sum();
        let parts = args.partition().map_or(1, |_| self.properties.partitioning.partition_count());
        let rows = usize::try_from(rows).map_or(Precision::Absent, |rows| Precision::Inexact(rows / parts));
        Ok(Arc::new(Statistics { num_rows: rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { limit, queue: self.new_queue(), ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    /// Conditions that come as expressions of the query have been dealt with by then. What comes late is refined while
    /// the query runs.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let conditions: Vec<_> = pushed.parent_filters.into_iter().map(|condition| condition.filter).collect();
        let none = vec![PushedDown::No; conditions.len()];
        let unchanged = FilterPushdownPropagation::with_parent_pushdown_result(none);
        if phase != FilterPushdownPhase::Post || conditions.is_empty() {
            return Ok(unchanged);
        }
        let dynamic = Some(conjunction(self.dynamic.iter().cloned().chain(conditions)));
        let scan = Self { dynamic, queue: self.new_queue(), ..self.clone() };
        Ok(unchanged.with_updated_node(Arc::new(scan)))
    }

    /// Reads the files with the first values first, so that the greatest of the first values, once known, leaves out most
    /// of the other files.
    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let Some(first) = order.first() else { return Ok(SortOrderPushdownResult::Unsupported) };
        let Some(column) = first.expr.downcast_ref::<Column>() else { return Ok(SortOrderPushdownResult::Unsupported) };
        let mut files = Vec::clone(&self.files);
        let bound = |file: &Arc<ScanFile>| {
            let bounds = file.file().map(|file| file.bounds(column.name())).unwrap_or_default();
            if first.options.descending { bounds.upper.map(|upper| !upper) } else { bounds.lower }
        };
        files.sort_by_cached_key(|file| bound(file).map_or((true, 0), |bound| (false, bound)));
        let scan = Self { files: Arc::new(files), queue: self.new_queue(), ..self.clone() };
        Ok(SortOrderPushdownResult::Inexact { inner: Arc::new(scan) })
    }
}

/// One partition of a scan.
struct Reader {
    scan: Arc<Scan>,
    files: Arc<Vec<Arc<ScanFile>>>,
    queue: Arc<Queue>,
    dynamic: Option<Dynamic>,
    batch_size: usize,
    left: Option<usize>,
    file: Option<FileRows>,
    /// Rows of small files, joined.
    small: BatchCoalescer,
    files_read: Count,
    metrics: BaselineMetrics,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.small.next_completed_batch() {
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if self.left == Some(0) || !self.read()? {
                if self.small.is_empty() {
                    return Ok(None);
                }
                self.small.finish_buffered_batch()?;
            }
            // Reading blocks; between two reads the query can be stopped, and other tasks of this thread go on.
            tokio::task::yield_now().await;
        }
    }

    /// Reads some rows; false where there are none left.
    fn read(&mut self) -> Result<bool> {
        let time = self.metrics.elapsed_compute().clone();
        let _timer = time.timer();
        if self.file.is_none() {
            let Some(file) = self.next_file() else { return Ok(false) };
            self.files_read.add(1);
            let Scan { request, footers, .. } = &*self.scan;
            self.file = Some(FileRows::open(request, &file, footers, self.batch_size, self.left)?);
        }
        let Some(batch) = self.file.as_mut().map(FileRows::next).transpose()?.flatten() else {
            self.file = None;
            return Ok(true);
        };
        let rows = self.left.map_or(batch.num_rows(), |left| left.min(batch.num_rows()));
        self.left = self.left.map(|left| left - rows);
        self.small.push_batch(batch.slice(0, rows))?;
        Ok(true)
    }

    /// The next file of the queue that the dynamic condition does not rule out.
    fn next_file(&mut self) -> Option<Arc<ScanFile>> {
        loop {
            let place = self.queue.next_file.fetch_add(1, Ordering::Relaxed);
            let file = self.files.get(place)?;
            let dynamic = self.dynamic.as_mut();
            if dynamic.is_none_or(|dynamic| dynamic.may_hold(place, &self.files, &self.scan)) {
                return Some(Arc::clone(file));
            }
        }
    }
}

/// A condition that changes while the query runs, held against files ahead of those that are read.
struct Dynamic {
    condition: Arc<dyn PhysicalExpr>,
    tracking: DynamicFilterTracking,
    /// Verdicts on files from this place on, by the condition as it was last seen.
    from: usize,
    verdicts: Vec<bool>,
}

impl Dynamic {
    fn new(condition: &Arc<dyn PhysicalExpr>) -> Self {
        let tracking = DynamicFilterTracking::classify(condition);
        Self { condition: Arc::clone(condition), tracking, from: 0, verdicts: Vec::new() }
    }

    fn may_hold(&mut self, place: usize, files: &[Arc<ScanFile>], scan: &Scan) -> bool {
        if self.tracking.watcher().is_some_and(DynamicFilterTracker::changed) {
            self.verdicts.clear();
        }
        let known = |this: &Self| place.checked_sub(this.from).and_then(|ahead| this.verdicts.get(ahead)).copied();
        if let Some(verdict) = known(self) {
            return verdict;
        }
        let ahead = &files[place..files.len().min(place + LOOK_AHEAD)];
        let pruner = Pruner::new(&self.condition, scan.request.schema());
        let verdicts = pruner.and_then(|pruner| pruner.verdicts(ahead, &scan.wanted).ok());
        (self.from, self.verdicts) = (place, verdicts.unwrap_or_else(|| vec![true; ahead.len()]));
        known(self).unwrap_or(true)
    }
}
