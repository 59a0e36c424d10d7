//! How values leave the engine: what no output format has comes as text, and files of text hold the same texts as answers
//! that are printed.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::Result;
use datafusion::functions::expr_fn::to_char;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion_functions_json::JSON_UNION_DATA_TYPE;
use datafusion_functions_json::udfs::json_union_to_text_udf;

use crate::formats::TextFormat;
use crate::schema::UTC;

/// UTC with milliseconds and a `Z`.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.3fZ";

/// Whether a column is shown as a text in JSON: a BIGINT that is a seq or the id of a snapshot, by its name. It may exceed
/// what a JSON number holds exactly.
pub fn is_text_in_json(field: &Field) -> bool {
    let name = field.name().to_lowercase();
    *field.data_type() == DataType::Int64 && (name.contains("seq") || matches!(&*name, "snapshot_id" | "parent_id"))
}

/// A statement whose values come out as they should.
pub(crate) fn presentable(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(mut copy) => {
            let format = TextFormat::of(&*copy.file_type);
            let input = Arc::unwrap_or_clone(copy.input);
            copy.input = Arc::new(with_columns(input, |field, column| for_file(field, column, format))?);
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

fn for_file(field: &Field, column: Expr, format: Option<TextFormat>) -> Option<Expr> {
    let is_time = matches!(field.data_type(), DataType::Timestamp(..));
    match format {
        Some(_) if is_time => {
            let utc = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
            Some(to_char(cast(column, utc), lit(TIME)))
        }
        Some(TextFormat::Json) if is_text_in_json(field) => Some(cast(column, DataType::Utf8View)),
        _ => without_union(field, column),
    }
}
