//! What each generation shows, against the figures of HypAware's own reader.

use serde_json::{Value, json};

use super::CORPORA;
use super::answers::{corpus, home, rows, value};

struct Figures {
    dataset: String,
    partition: String,
    generation: Value,
}

fn generations(name: &str) -> Vec<Figures> {
    let text = std::fs::read_to_string(home("expected").join(format!("{name}.expected.json"))).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let mut generations = Vec::new();
    for partition in expected["partitions"].as_array().unwrap() {
        for generation in partition["generations"].as_array().unwrap() {
            generations.push(Figures {
                dataset: partition["dataset"].as_str().unwrap().to_owned(),
                partition: partition["partition"].as_str().unwrap().to_owned(),
                generation: generation.clone(),
            });
        }
    }
    generations
}

impl Figures {
    /// The rows of this generation that are visible in it.
    fn visible_rows(&self) -> String {
        format!(
            "raw.\"{}\" WHERE _partition = '{}' AND _generation = {} AND _referenced AND NOT _deleted",
            self.dataset,
            self.partition,
            self.generation["generation"].to_string().replace('"', "'")
        )
    }

    /// HypAware knows no time column of a dataset that is not one of its own.
    fn time_column(&self) -> &'static str {
        match self.dataset.as_str() {
            "ai_gateway_messages" => "message_created_at",
            "logs" => "timestamp",
            _ => "CAST(NULL AS TIMESTAMP)",
        }
    }
}

fn number_of(seq: &Value) -> Value {
    seq.as_str().map_or(Value::Null, |seq| seq.parse::<i64>().unwrap().into())
}

#[test]
fn raw_rows_that_are_not_deleted_are_those_of_the_generation() {
    for name in CORPORA {
        let engine = corpus(name);
        for figures in generations(name) {
            let (from, time, expected) = (figures.visible_rows(), figures.time_column(), &figures.generation);
            let found = rows(
                &engine,
                &format!(
                    "SELECT count(*) AS live_rows, count(*) - count(_hyp_ingest_seq) AS null_seq_rows,
                     count(*) - count({time}) AS null_time_rows, min(_hyp_ingest_seq) AS min_seq,
                     max(_hyp_ingest_seq) AS max_seq, min({time}) AS min_time, max({time}) AS max_time FROM {from}"
                ),
            );
            let wanted = json!({
                "live_rows": expected["live_rows"].as_i64().unwrap_or(0),
                "null_seq_rows": expected["null_seq_rows"].as_i64().unwrap_or(0),
                "null_time_rows": expected["null_time_rows"].as_i64().unwrap_or(0),
                "min_seq": number_of(&expected["min_seq"]),
                "max_seq": number_of(&expected["max_seq"]),
                "min_time": expected["min_time"],
                "max_time": expected["max_time"],
            });
            assert_eq!(Value::from(found[0].clone()), wanted, "{name}: {from}");
        }
    }
}

#[test]
fn boundary_figures_are_those_of_the_generation() {
    for name in CORPORA {
        let engine = corpus(name);
        for figures in generations(name) {
            let (from, time) = (figures.visible_rows(), figures.time_column());
            let Some(times) = figures.generation["at"].as_object() else { continue };
            let columns = times.keys().enumerate().map(|(number, at)| {
                format!(
                    "max(_hyp_ingest_seq) FILTER (WHERE {time} <= '{at}') AS tight{number},
                     min(_hyp_ingest_seq) FILTER (WHERE {time} > '{at}') AS first{number},
                     count(_hyp_ingest_seq) FILTER (WHERE {time} <= '{at}') AS before{number}"
                )
            });
            let found = rows(&engine, &format!("SELECT {} FROM {from}", columns.collect::<Vec<_>>().join(", ")));
            for (number, (at, expected)) in times.iter().enumerate() {
                let found = ["tight", "first", "before"].map(|name| found[0][&format!("{name}{number}")].clone());
                let wanted = [
                    number_of(&expected["last_seq_at_or_before"]),
                    number_of(&expected["first_seq_after"]),
                    expected["rows_at_or_before"].clone(),
                ];
                assert_eq!(found, wanted, "{name} {at}: {from}");
            }
        }
    }
}

#[test]
fn live_has_the_rows_of_the_live_generations() {
    for name in CORPORA {
        let engine = corpus(name);
        let mut datasets = std::collections::BTreeMap::new();
        for figures in generations(name) {
            let rows = figures.generation["live_rows"].as_i64().filter(|_| figures.generation["live"] == true);
            *datasets.entry(figures.dataset).or_insert(0) += rows.unwrap_or(0);
        }
        for (dataset, rows) in datasets {
            assert_eq!(value(&engine, &format!("SELECT count(*) FROM \"{dataset}\"")), rows, "{name} {dataset}");
        }
    }
}
