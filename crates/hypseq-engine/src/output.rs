//! How values leave the engine: what no output format has comes as text, and times are in files of text as they are printed.
//! In NDJSON files seqs are numbers and JSON columns texts, as whoever reads the file as a table expects.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::Result;
use datafusion::functions::expr_fn::to_char;
use datafusion::functions::regex::expr_fn::regexp_replace;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion_functions_json::JSON_UNION_DATA_TYPE;
use datafusion_functions_json::udfs::json_union_to_text_udf;

use crate::formats;
use crate::schema::UTC;

/// UTC with microseconds and a `Z`.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";

/// Whether the BIGINTs of a column of this name are shown as texts in JSON: seqs and the ids of snapshots may exceed what a
/// JSON number holds exactly. `min(t._hyp_ingest_seq)` is a seq, `count(t._hyp_ingest_seq)` is none.
pub fn is_text_in_json(name: &str) -> bool {
    let inner = match name.split_once('(') {
        Some(("min" | "max" | "first_value" | "last_value" | "array_agg", inner)) => {
            inner.split_once(')').map_or(inner, |(inner, _)| inner)
        }
        Some(_) => return false,
        None => name,
    };
    let column = inner.rsplit('.').next().unwrap_or(inner);
    column == "seq" || column.ends_with("_seq") || matches!(column, "snapshot_id" | "parent_id")
}

/// A statement whose values come out as they should.
pub(crate) fn presentable(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(mut copy) => {
            let is_text = formats::is_text(&*copy.file_type);
            let input = Arc::unwrap_or_clone(copy.input);
            copy.input = Arc::new(with_columns(input, |field, column| for_file(field, column, is_text))?);
            Ok(LogicalPlan::Copy(copy))
        }
        plan => with_columns(plan, without_union),
    }
}

/// The plan with some of its columns replaced.
fn with_columns(plan: LogicalPlan, replace: impl Fn(&Field, Expr) -> Option<Expr>) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let columns = plan.schema().iter().map(|(qualifier, field)| {
        let column = Expr::from((qualifier, field));
        match replace(field, column.clone()) {
            Some(replaced) => {
                is_changed = true;
                replaced.alias_qualified(qualifier.cloned(), field.name())
            }
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    if is_changed { LogicalPlanBuilder::from(plan).project(columns)?.build() } else { Ok(plan) }
}

/// `json_get` returns a union of types: strings come without quotes, everything else as JSON.
fn without_union(field: &Field, column: Expr) -> Option<Expr> {
    (*field.data_type() == *JSON_UNION_DATA_TYPE).then(|| json_union_to_text_udf().call(vec![column]))
}

/// In a file of text a time is written as it is printed: with milliseconds, and more only where there is more.
fn for_file(field: &Field, column: Expr, is_text: bool) -> Option<Expr> {
    if is_text && matches!(field.data_type(), DataType::Timestamp(..)) {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let time = to_char(cast(column, utc), lit(TIME));
        return Some(regexp_replace(time, lit("000Z$"), lit("Z"), None));
    }
    without_union(field, column)
}
