//! Every row that HypAware's own reader saw is what `SELECT *` shows, cell by cell.

use std::collections::HashSet;
use std::path::Path;

use hypseq_cache::Home;
use hypseq_iceberg::{FieldType, Table};
use serde_json::{Map, Value};

use super::CORPORA;
use super::answers::{corpus, home, rows};

#[test]
fn select_all_shows_the_rows_of_the_live_generations() {
    for name in CORPORA {
        let engine = corpus(name);
        for dataset in datasets(name) {
            let json = json_columns(name, &dataset);
            let shown: Vec<_> = rows(&engine, &format!("SELECT * FROM \"{dataset}\""))
                .into_iter()
                .map(|row| comparable(row, &json))
                .collect();
            for expected in expected(name).into_iter().filter(|row| row["_dataset"] == *dataset) {
                let partition = expected["_partition"].as_str().unwrap().to_owned();
                let of_partition = |row: &&Map<String, Value>| {
                    partition.split('/').all(|segment| {
                        let (key, value) = segment.split_once('=').unwrap();
                        row[key] == value
                    })
                };
                let is_shown = |row: &Map<String, Value>| {
                    expected.iter().filter(|(key, _)| !key.starts_with("_d") && *key != "_partition").all(
                        |(key, value)| {
                            let value = if *key == "_hyp_ingest_seq" { number(value) } else { value.clone() };
                            row.get(key) == Some(&value)
                        },
                    )
                };
                assert!(
                    shown.iter().filter(of_partition).any(is_shown),
                    "{name} {dataset} {partition} does not show {expected:?}, but for instance {:?}",
                    shown.iter().find(|row| row["_hyp_ingest_seq"] == number(&expected["_hyp_ingest_seq"]))
                );
            }
        }
    }
}

/// Seqs are strings in the expected rows.
fn number(seq: &Value) -> Value {
    seq.as_str().map_or(Value::Null, |seq| seq.parse::<i64>().unwrap().into())
}

/// JSON columns as JSON.
fn comparable(mut row: Map<String, Value>, json: &HashSet<String>) -> Map<String, Value> {
    for column in json {
        if let Some(Value::String(text)) = row.get(column) {
            let value = serde_json::from_str(text).unwrap();
            row.insert(column.clone(), value);
        }
    }
    row
}

fn expected(name: &str) -> Vec<Map<String, Value>> {
    let path = home("expected").join(format!("{name}.rows.ndjson"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn datasets(name: &str) -> Vec<String> {
    let mut datasets: Vec<_> = expected(name).iter().map(|row| row["_dataset"].as_str().unwrap().to_owned()).collect();
    datasets.dedup();
    datasets
}

/// Columns that the tables' own metadata calls variant.
fn json_columns(name: &str, dataset: &str) -> HashSet<String> {
    let partitions = Home::open(Path::new(&home(name))).unwrap().partitions().value;
    let live =
        partitions.iter().filter(|partition| partition.id.dataset == dataset).filter_map(|partition| partition.live());
    let schemas = live.map(|generation| Table::open(&generation.dir).unwrap().metadata.current_schema().clone());
    let variants = schemas.flat_map(|schema| schema.fields).filter(|field| field.field_type == FieldType::Variant);
    variants.map(|field| field.name).collect()
}
