//! Results of `json_get` as text: the function returns a union of types, which no output format has.

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_functions_json::JSON_UNION_DATA_TYPE;
use datafusion_functions_json::udfs::json_union_to_text_udf;

/// A query whose columns of JSON unions are turned to text: strings without quotes, everything else as JSON.
pub(crate) fn as_text(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_union = |field: &datafusion::arrow::datatypes::Field| *field.data_type() == *JSON_UNION_DATA_TYPE;
    if !plan.schema().fields().iter().any(|field| is_union(field)) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(qualifier, field)| {
        let column = Expr::from((qualifier, field));
        if is_union(field) {
            json_union_to_text_udf().call(vec![column]).alias_qualified(qualifier.cloned(), field.name())
        } else {
            column
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
