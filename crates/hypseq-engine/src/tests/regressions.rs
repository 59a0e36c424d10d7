//! Wrong answers seen elsewhere, by name.

use super::differential::answer;
use super::files::Generated;
use super::rows::START;
use crate::EngineOptions;

fn two_partitions() -> EngineOptions {
    EngineOptions { target_partitions: Some(2), memory_limit: None }
}

/// apache/datafusion#20267, #24816: the dynamic filter that an aggregate without groups pushes into the scan leaves
/// out rows that another of its aggregates needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn min_and_max_with_filters_over_many_files() {
    for seed in 0..4 {
        let table = Generated::new(seed, 60, 30);
        let engine = table.engine(&two_partitions(), &[]);
        for part in 1..6 {
            let at = START + table.seqs * 10_000_000 * part / 6;
            let known = table.visible().filter_map(|row| Some((row.at?, row.seq?)));
            let tight = known.clone().filter(|(time, _)| *time <= at).map(|(_, seq)| seq).max();
            let first = known.filter(|(time, _)| *time > at).map(|(_, seq)| seq).min();
            let sql = format!(
                "SELECT max(seq) FILTER (WHERE at <= to_timestamp_micros({at})),
                        min(seq) FILTER (WHERE at > to_timestamp_micros({at})) FROM t"
            );
            for _ in 0..3 {
                let expected = [tight, first].map(|seq| seq.map_or("∅".to_owned(), |seq| seq.to_string()));
                assert_eq!(answer(&engine, &sql).await, [expected.join(" | ")], "seed {seed}: {sql}");
            }
        }
    }
}

/// NVIDIA/spark-rapids#14572: a count that needs no column skipped the deletes.
#[tokio::test]
async fn count_without_columns_applies_deletes() {
    let table = Generated::new(20, 30, 40);
    let engine = table.engine(&two_partitions(), &[]);
    assert_eq!(answer(&engine, "SELECT count(*) FROM t").await, [table.visible().count().to_string()]);
}

/// apache/iceberg-rust#1806: positions were counted from the first row group that was read.
#[tokio::test]
async fn positions_count_from_the_start_of_the_file() {
    let table = Generated::new(21, 20, 40);
    let (engine, oracle) = (table.engine(&two_partitions(), &[]), table.oracle());
    for sql in [
        "SELECT file, pos, seq FROM raw.t WHERE pos >= 30",
        "SELECT file, pos, seq FROM raw.t WHERE deleted",
        "SELECT file, max(pos) FROM t GROUP BY file",
        "SELECT file, pos FROM raw.t WHERE seq % 7 = 0 ORDER BY pos DESC, file LIMIT 50",
    ] {
        assert_eq!(answer(&engine, sql).await, answer(&oracle, sql).await, "{sql}");
    }
}

/// Files without a partition key have a null there: stated as having no nulls, they would be left out.
#[tokio::test]
async fn rows_without_a_constant_are_found() {
    let table = Generated::new(22, 30, 10);
    let (engine, oracle) = (table.engine(&two_partitions(), &[]), table.oracle());
    let sql = "SELECT file, count(*) FROM t WHERE source IS NULL GROUP BY file";
    let found = answer(&engine, sql).await;
    assert!(!found.is_empty());
    assert_eq!(found, answer(&oracle, sql).await);
}

/// Splitting files for parallel reading drops those without a byte, and with them the error that they are.
#[tokio::test]
async fn an_empty_file_fails_even_where_files_are_split() {
    let table = Generated::new(23, 10, 40);
    table.empty_file(4);
    let engine = table.engine(&two_partitions(), &[("datafusion.optimizer.repartition_file_min_size", "0")]);
    for sql in ["SELECT count(*) FROM t", "SELECT max(seq) FROM t"] {
        let error = engine.sql(sql).await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().contains("file 4.parquet"), "{error}");
    }
}

/// A footer that is kept says the same as one that is read.
#[tokio::test]
async fn a_second_query_gives_the_same_answer() {
    let table = Generated::new(24, 12, 20);
    let (engine, oracle) = (table.engine(&two_partitions(), &[]), table.oracle());
    for sql in
        ["SELECT * FROM t", "SELECT count(*), min(seq) FROM raw.t WHERE NOT deleted", "SELECT file, pos FROM raw.t"]
    {
        let expected = answer(&oracle, sql).await;
        for _ in 0..2 {
            assert_eq!(answer(&engine, sql).await, expected, "{sql}");
        }
    }
}

/// A limit is of rows that fulfil the condition, not of rows that are looked at.
#[tokio::test]
async fn a_limit_counts_rows_that_fulfil_the_condition() {
    let table = Generated::new(25, 30, 40);
    let engine = table.engine(&two_partitions(), &[]);
    let all = answer(&engine, "SELECT seq FROM t WHERE word = 'merge'").await;
    for limit in [0, 1, 7, 1000] {
        let found = answer(&engine, &format!("SELECT seq FROM t WHERE word = 'merge' LIMIT {limit}")).await;
        assert_eq!(found.len(), all.len().min(limit));
        assert!(found.iter().all(|seq| all.contains(seq)));
    }
}

/// A query plan is one object: asked for a second time, as in each round of a recursion, it starts over.
#[tokio::test]
async fn a_scan_within_a_recursion_starts_over() {
    let table = Generated::new(26, 4, 10);
    let (engine, oracle) = (table.engine(&two_partitions(), &[]), table.oracle());
    let sql = "WITH RECURSIVE r AS (SELECT min(seq) AS s, 0 AS n FROM t UNION ALL
                   SELECT t.seq, r.n + 1 FROM r JOIN t ON t.seq > r.s AND t.seq < r.s + 5 WHERE r.n < 3)
               SELECT n, count(*), max(s) FROM r GROUP BY n";
    assert_eq!(answer(&engine, sql).await, answer(&oracle, sql).await);
}
