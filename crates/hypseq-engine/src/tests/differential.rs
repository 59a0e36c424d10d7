//! Random queries over random tables, against the same rows in memory.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;

use super::files::Generated;
use super::queries;
use super::rows::Random;
use crate::EngineOptions;

/// The rows of a query as text, sorted.
pub(super) async fn answer(context: &SessionContext, sql: &str) -> Vec<String> {
    let batches = context.sql(sql).await.expect(sql).collect().await.expect(sql);
    let options = FormatOptions::default().with_null("∅");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" | "));
        }
    }
    rows.sort_unstable();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_are_those_of_the_rows_in_memory() {
    for seed in 0..12 {
        let table = Generated::new(seed, if seed % 3 == 0 { 24 } else { 6 }, if seed % 3 == 0 { 8 } else { 40 });
        let edges = table.edges();
        let oracle = table.oracle();
        let mut random = Random(seed + 1_000);
        let queries: Vec<String> = (0..30).map(|_| queries::random(&mut random, &edges)).collect();
        let mut expected = Vec::new();
        for sql in &queries {
            expected.push(answer(&oracle, sql).await);
        }
        for target_partitions in [1, 2, 8] {
            let pushdown = if (seed + target_partitions) % 3 == 0 { "false" } else { "true" };
            let settings = [
                ("datafusion.execution.parquet.pushdown_filters", pushdown),
                ("datafusion.execution.batch_size", if seed % 2 == 0 { "8192" } else { "16" }),
                ("datafusion.optimizer.repartition_file_min_size", if seed % 2 == 0 { "0" } else { "10485760" }),
            ];
            let target_partitions = usize::try_from(target_partitions).ok();
            let options = EngineOptions { target_partitions, memory_limit: None };
            let engine = table.engine(&options, &settings);
            for (sql, expected) in queries.iter().zip(&expected) {
                // Wrong answers that depend on timing do not come every time.
                for _ in 0..2 {
                    let found = answer(&engine, sql).await;
                    assert_eq!(&found, expected, "seed {seed}, {options:?}, {settings:?}\n{sql}");
                }
            }
        }
    }
}
