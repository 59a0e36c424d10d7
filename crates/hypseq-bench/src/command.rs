//! The questions that hypseq answers by a command: its arguments, DuckDB's SQL, and the figures that both must give.

use serde_json::Value;

use crate::answer::{Answer, text};
use crate::cache::{Cache, Generation, Partition, Size};

/// A question that is a command of hypseq.
#[derive(Clone, Copy)]
pub struct Command {
    /// The command line, after `hypseq --home HOME --format json`.
    pub arguments: fn(&Cache) -> Vec<String>,
    /// What DuckDB is asked: a row for each generation, which begins with its number.
    pub duckdb: fn(&Cache) -> String,
    /// The generations of hypseq's JSON, in the order of their numbers.
    generations: fn(&Value) -> Vec<&Value>,
    /// DuckDB's other columns, as JSON pointers into hypseq's generation.
    columns: &'static [&'static str],
    /// Columns that add up to the number of rows asked about; none where no rows are counted.
    counts: &'static [usize],
    /// The rows asked about.
    pub among: fn(&Cache) -> Size,
}

/// `resolve`, and all that it says of the boundary.
pub const RESOLVE: Command = Command {
    arguments: resolve,
    duckdb: |cache| {
        let rows = per_generation(cache, ROWS, &[(cache.partition(), cache.partition().live())]);
        at_time(include_str!("../questions/resolve.sql"), cache).replace("{rows}", &rows)
    },
    generations: |json| vec![json],
    columns: &[
        "/tight_seq",
        "/safe_seq",
        "/first_seq_after",
        "/rows_at_or_before",
        "/rows_after",
        "/lost_at_tight",
        "/resent_at_safe",
        "/last_row/id",
        "/next_row/id",
    ],
    counts: &[4, 5],
    among: |cache| Size::of([cache.partition().live()]),
};

/// `resolve` beside the least that can be asked: the last seq at or before the time, and the first after it.
pub const RESOLVE_SEQS: Command = Command {
    duckdb: |cache| per_generation(cache, SEQS, &[(cache.partition(), cache.partition().live())]),
    columns: &["/tight_seq", "/first_seq_after"],
    counts: &[],
    ..RESOLVE
};

/// `verify`, and all that it says of the generations.
pub const VERIFY: Command = Command {
    arguments: verify,
    duckdb: |cache| {
        let generations = generations(cache.partition());
        let live = (generations.len() - 1).to_string();
        let sql = at_time(include_str!("../questions/verify.sql"), cache).replace("{live}", &live);
        sql.replace("{rows}", &per_generation(cache, ROWS, &generations))
    },
    generations: |json| sorted(&json["generations"], "name"),
    columns: &[
        "/visible_rows",
        "/max_seq",
        "/tight_seq",
        "/first_seq_after",
        "/last_row/seq",
        "/next_row/seq",
        "/last_row/id",
        "/next_row/id",
        "/missing_rows",
    ],
    counts: &[1],
    among: |cache| Size::of(&cache.partition().generations),
};

/// `verify` beside the least that can be asked: the two seqs of each generation.
pub const VERIFY_SEQS: Command = Command {
    duckdb: |cache| in_order(&per_generation(cache, SEQS, &generations(cache.partition()))),
    columns: &["/tight_seq", "/first_seq_after"],
    counts: &[],
    ..VERIFY
};

/// `status`: what there is in every generation of every partition.
pub const STATUS: Command = Command {
    arguments: |_| vec!["status".to_owned()],
    duckdb: |cache| {
        let all: Vec<_> = cache.facts.partitions.iter().flat_map(generations).collect();
        in_order(&per_generation(cache, include_str!("../questions/status-of-a-generation.sql"), &all))
    },
    generations: |json| {
        let partitions = sorted(&json["partitions"], "partition");
        partitions.into_iter().flat_map(|partition| sorted(&partition["generations"], "name")).collect()
    },
    columns: &["/visible_rows", "/min_seq", "/max_seq", "/min_time", "/max_time"],
    counts: &[1],
    among: Cache::size,
};

const ROWS: &str = include_str!("../questions/rows-of-a-generation.sql");
const SEQS: &str = include_str!("../questions/seqs-of-a-generation.sql");

impl Command {
    /// The figures of DuckDB's answer in hypseq's JSON.
    pub fn figures(&self, json: &Value) -> Answer {
        let row = |(number, generation): (usize, &Value)| {
            let values = self.columns.iter().map(|column| text(generation.pointer(column).unwrap_or(&Value::Null)));
            [number.to_string()].into_iter().chain(values).collect()
        };
        (self.generations)(json).into_iter().enumerate().map(row).collect()
    }

    /// The rows that an answer counts; none where it counts none.
    pub fn counted(&self, answer: &Answer) -> Option<u64> {
        let cells = answer.iter().flat_map(|row| self.counts.iter().filter_map(|&column| row.get(column)));
        (!self.counts.is_empty()).then(|| cells.filter_map(|cell| cell.parse::<u64>().ok()).sum())
    }
}

fn resolve(cache: &Cache) -> Vec<String> {
    at("resolve", cache)
}

fn verify(cache: &Cache) -> Vec<String> {
    at("verify", cache)
}

fn at(command: &str, cache: &Cache) -> Vec<String> {
    let time = format!("@{}", cache.facts.time_ms);
    [command, "--partition", &cache.partition().path, "--at", &time].map(str::to_owned).into()
}

/// A partition's generations, oldest first, which is the order of their names.
fn generations(partition: &Partition) -> Vec<(&Partition, &Generation)> {
    partition.generations.iter().map(|generation| (partition, generation)).collect()
}

fn sorted<'a>(values: &'a Value, by: &str) -> Vec<&'a Value> {
    let mut values: Vec<&Value> = values.as_array().into_iter().flatten().collect();
    values.sort_by_key(|value| text(&value[by]));
    values
}

/// One statement of one per generation, of which each reads that generation's files.
fn per_generation(cache: &Cache, sql: &str, generations: &[(&Partition, &Generation)]) -> String {
    let one = |(number, (partition, generation)): (usize, &(&Partition, &Generation))| {
        let files = format!("read_parquet('{}/*.parquet')", cache.data_folder(partition, generation).display());
        at_time(sql, cache).replace("{number}", &number.to_string()).replace("{files}", &files)
    };
    generations.iter().enumerate().map(one).collect::<Vec<_>>().join("UNION ALL\n")
}

fn in_order(sql: &str) -> String {
    format!("{sql}ORDER BY generation")
}

fn at_time(sql: &str, cache: &Cache) -> String {
    sql.replace("{time}", &format!("make_timestamptz({})", cache.facts.time_ms * 1000))
}
