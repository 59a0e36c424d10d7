//! From a table's columns to those of one data file: columns that the file lacks, narrower types, and variants as
//! JSON text.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, lit};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use datafusion::physical_plan::PhysicalExpr;
use parquet::errors::ParquetError;

use crate::variant::{VariantToJson, is_variant};

/// Makes an [`Adapter`] for each data file.
#[derive(Debug)]
pub(crate) struct Adapters;

impl PhysicalExprAdapterFactory for Adapters {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(Adapter { table, file }))
    }
}

/// Rewrites expressions over a table's columns into expressions over a file's.
#[derive(Debug)]
struct Adapter {
    table: SchemaRef,
    file: SchemaRef,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        expr.transform(|expr| match expr.downcast_ref::<Column>() {
            Some(column) => self.column(column.name()).map(Transformed::yes),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }
}

impl Adapter {
    fn column(&self, name: &str) -> Result<Arc<dyn PhysicalExpr>> {
        let wanted = self.table.field_with_name(name)?;
        let Some((index, stored)) = self.file.fields().find(name) else {
            return Ok(lit(ScalarValue::try_new_null(wanted.data_type())?));
        };
        let column = Arc::new(Column::new(stored.name(), index));
        if stored.data_type() == wanted.data_type() {
            Ok(column)
        } else if is_variant(stored.data_type()) && *wanted.data_type() == DataType::Utf8View {
            let function = Arc::new(ScalarUDF::from(VariantToJson::new()));
            let options = Arc::new(ConfigOptions::default());
            Ok(Arc::new(ScalarFunctionExpr::try_new(function, vec![column], &self.file, options)?))
        } else if holds(wanted.data_type(), stored.data_type()) {
            Ok(Arc::new(CastExpr::new(column, wanted.data_type().clone(), None)))
        } else {
            Err(mismatch(stored, wanted))
        }
    }
}

/// Whether every value of the stored type has its like in the wanted one.
fn holds(wanted: &DataType, stored: &DataType) -> bool {
    match wanted {
        DataType::Int32 => matches!(stored, DataType::Int8 | DataType::Int16),
        DataType::Int64 => stored.is_signed_integer(),
        DataType::Float64 => matches!(stored, DataType::Float32),
        DataType::Utf8View => stored.is_string(),
        DataType::Timestamp(..) => matches!(stored, DataType::Timestamp(..)),
        _ => false,
    }
}

/// A file whose columns do not have the table's types is a file that cannot be read.
fn mismatch(stored: &Field, wanted: &Field) -> DataFusionError {
    let message = format!(
        "column `{}` has type {} here, and the table's type is {}",
        stored.name(),
        stored.data_type(),
        wanted.data_type()
    );
    ParquetError::General(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{Schema, TimeUnit};

    fn adapted(stored: Option<DataType>, wanted: DataType) -> Result<String> {
        let table = Schema::new(vec![Field::new("a", DataType::Utf8View, true), Field::new("c", wanted, true)]);
        let file = Schema::new(stored.map(|stored| Field::new("c", stored, true)).into_iter().collect::<Vec<_>>());
        let adapter = Adapters.create(Arc::new(table), Arc::new(file))?;
        adapter.rewrite(Arc::new(Column::new("c", 1))).map(|expr| expr.to_string())
    }

    #[test]
    fn columns_are_found_by_name_and_widened() {
        assert_eq!(adapted(Some(DataType::Int64), DataType::Int64).unwrap(), "c@0");
        assert_eq!(adapted(Some(DataType::Int32), DataType::Int64).unwrap(), "CAST(c@0 AS Int64)");
        assert_eq!(adapted(Some(DataType::Float32), DataType::Float64).unwrap(), "CAST(c@0 AS Float64)");
        let time = |unit| DataType::Timestamp(unit, Some("UTC".into()));
        let adapted_time = adapted(Some(time(TimeUnit::Millisecond)), time(TimeUnit::Microsecond)).unwrap();
        assert_eq!(adapted_time, "CAST(c@0 AS Timestamp(µs, \"UTC\"))");
    }

    #[test]
    fn a_column_that_the_file_lacks_is_null() {
        assert_eq!(adapted(None, DataType::Int64).unwrap(), "NULL");
    }

    #[test]
    fn values_that_do_not_fit_are_an_error() {
        for (stored, wanted) in [
            (DataType::Int64, DataType::Int32),
            (DataType::Utf8, DataType::Int64),
            (DataType::Int64, DataType::Utf8View),
            (DataType::Float64, DataType::Int64),
        ] {
            let error = adapted(Some(stored.clone()), wanted.clone()).unwrap_err().to_string();
            let message = format!("column `c` has type {stored} here, and the table's type is {wanted}");
            assert!(error.contains(&message), "{error}");
        }
    }
}
