//! Stops a query that nobody waits for any more.
//!
//! A task ends where it lets go of its thread. A join can make rows without end of the few that it reads, so it gets such
//! places; and a join whose condition no pair of rows passes makes nothing at all, so the condition looks whether to go on.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// Whether a query is to go on; it is not once this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Running {
    /// The plan with places at which it can be stopped.
    pub(crate) fn watch(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let wrap = |node: Arc<dyn ExecutionPlan>| {
            if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let filter = join.filter().map(|filter| self.watched(filter));
                let join = NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?;
                return Ok(Transformed::yes(yielding(Arc::new(join))));
            }
            if let Some((join, filter)) = node.downcast_ref::<HashJoinExec>().and_then(|j| Some((j, j.filter()?))) {
                let join = HashJoinExecBuilder::from(join).with_filter(Some(self.watched(filter))).build()?;
                return Ok(Transformed::yes(yielding(Arc::new(join))));
            }
            Ok(if makes_rows(&*node) { Transformed::yes(yielding(node)) } else { Transformed::no(node) })
        };
        plan.transform_up(wrap).data()
    }

    fn watched(&self, filter: &JoinFilter) -> JoinFilter {
        let condition = Arc::new(Watched { inner: Arc::clone(filter.expression()), is_over: Arc::clone(&self.0) });
        JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }
}

fn yielding(node: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(CooperativeExec::new(node))
}

fn makes_rows(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>() || node.is::<HashJoinExec>() || node.is::<SortMergeJoinExec>() || node.is::<UnnestExec>()
}

/// A condition that fails once the query is over.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn PhysicalExpr>,
    is_over: Arc<AtomicBool>,
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl Display for Watched {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.is_over.load(Ordering::Relaxed) {
            return exec_err!("the query was cancelled");
        }
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([inner]) = <[_; 1]>::try_from(children) else { return exec_err!("a watched condition has one child") };
        Ok(Arc::new(Self { inner, is_over: Arc::clone(&self.is_over) }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
