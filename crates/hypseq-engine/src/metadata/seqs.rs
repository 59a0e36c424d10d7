//! `cache.seqs`: who has which seq. One counter numbers the rows of all datasets, so a hole in one partition is explained by
//! the others.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::Result;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, lit};
use datafusion::prelude::ident;
use datafusion::scalar::ScalarValue;
use hypseq_iceberg::FieldType;

use crate::dataset::{Dataset, SEQ};
use crate::homes::HOME;
use crate::schema::{UTC, arrow_field};

/// A view over the tables of schema `complete`: each seq once per partition, from whichever generation has it.
pub(crate) fn view<'a>(
    complete: impl Iterator<Item = (&'a String, &'a Arc<Dataset>, Arc<dyn TableProvider>)>,
) -> Result<Arc<dyn TableProvider>> {
    let mut union: Option<LogicalPlanBuilder> = None;
    for (name, dataset, table) in complete {
        let rows = LogicalPlanBuilder::scan(name.as_str(), provider_as_source(table), None)?
            .filter(ident(SEQ).is_not_null())?
            .project(columns(name, dataset))?;
        union = Some(match union {
            Some(others) => others.union(rows.build()?)?,
            None => rows,
        });
    }
    Ok(match union {
        Some(union) => Arc::new(ViewTable::new(union.build()?, None)),
        None => Arc::new(EmptyTable::new(Arc::new(Schema::new(without_datasets())))),
    })
}

fn without_datasets() -> Vec<Field> {
    vec![
        arrow_field("seq", FieldType::Long),
        arrow_field("dataset", FieldType::String),
        arrow_field("partition", FieldType::String),
        arrow_field("time", FieldType::Timestamptz),
        arrow_field("generation", FieldType::String),
        arrow_field("deleted", FieldType::Boolean),
    ]
}

fn columns(name: &str, dataset: &Dataset) -> Vec<Expr> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    let text = |value: &str| lit(ScalarValue::Utf8View(Some(value.to_owned())));
    let mut columns = Vec::new();
    columns.extend(dataset.has_home().then(|| ident(HOME)));
    columns.extend([
        ident(SEQ).alias("seq"),
        text(name).alias("dataset"),
        ident("_partition").alias("partition"),
        cast(dataset.time_column().map_or_else(|| lit(ScalarValue::Null), ident), time).alias("time"),
        ident("_generation").alias("generation"),
        ident("_deleted").alias("deleted"),
    ]);
    columns
}
