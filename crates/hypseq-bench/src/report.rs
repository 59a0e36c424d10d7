//! The comparison as Markdown and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::arena::{Mode, Side};
use crate::cache::{Cache, Kind, Size};
use crate::compare::Measured;
use crate::machine::Machine;
use crate::stats::geometric_mean;

/// Everything that was measured, and on what.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// What was compared.
    pub versions: Versions,
    /// Counted runs of each contender for each question.
    pub runs: usize,
    /// The caches.
    pub caches: Vec<OfCache>,
}

/// What was compared.
#[derive(Debug, Serialize)]
pub struct Versions {
    /// What hypseq says of itself.
    pub hypseq: String,
    /// DuckDB's Python package.
    pub duckdb: &'static str,
    /// DataFusion.
    pub datafusion: &'static str,
}

/// What was measured on one cache.
#[derive(Debug, Serialize)]
pub struct OfCache {
    /// Its folder's name.
    pub name: String,
    /// Live generations only.
    pub live: Size,
    /// All generations.
    pub all: Size,
    /// How many generations the partition has that is asked about.
    pub generations: usize,
    /// The times.
    pub measured: Vec<Measured>,
    #[serde(skip)]
    kind: Kind,
}

impl OfCache {
    /// A cache with its times.
    pub fn new(cache: &Cache, kind: Kind, measured: Vec<Measured>) -> Self {
        Self {
            name: cache.home.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            live: cache.live_size(),
            all: cache.size(),
            generations: cache.partition().generations.len(),
            measured,
            kind,
        }
    }
}

impl Report {
    /// The tables, for a README.
    pub fn markdown(&self) -> String {
        let Self { machine, versions, runs, caches } = self;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}, {} cores, {} GiB, Linux {}. {} at {}, DuckDB {}, DataFusion {}. Medians of {runs} runs in turns, in ms; \
             the page cache is warm. A process of hypseq or DataFusion is timed from its start to its end; DuckDB's own \
             start is not counted. A ratio says how many times as fast hypseq was.",
            machine.cpu,
            machine.cores,
            machine.memory_gib,
            machine.kernel,
            versions.hypseq,
            machine.commit,
            versions.duckdb,
            versions.datafusion,
        );
        for cache in caches {
            let deletes = match cache.kind {
                Kind::Incident => format!(
                    "deleted of these, which only hypseq knows of: {} in the live generations, {} in all; the others count them",
                    cache.live.deleted, cache.all.deleted
                ),
                Kind::Undeleted => "nothing is deleted: all answers were compared and are the same".to_owned(),
            };
            let _ = writeln!(
                out,
                "\n## {}\n\n{} rows in {} files of the live generations, {} in {} files of all; {deletes}.",
                cache.name, cache.live.rows, cache.live.files, cache.all.rows, cache.all.files,
            );
            for (mode, title) in [(Mode::Whole, "A process for each question"), (Mode::Warm, "One session, warm")] {
                let _ = writeln!(out, "\n### {title}\n");
                out.push_str(&table(cache.measured.iter().filter(|measured| measured.mode == mode)));
            }
        }
        out
    }
}

fn table<'a>(measured: impl Iterator<Item = &'a Measured>) -> String {
    let mut out = String::from(
        "| question | hypseq | DuckDB | ratio | DataFusion | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut ratios = [Vec::new(), Vec::new()];
    for line in measured {
        let [to_duckdb, to_datafusion] = [Side::Duckdb, Side::Datafusion].map(|side| line.ratio(side));
        if line.sql {
            ratios[0].extend(to_duckdb);
            ratios[1].extend(to_datafusion);
        }
        let [hypseq, duckdb, datafusion] =
            [Side::Hypseq, Side::Duckdb, Side::Datafusion].map(|side| cell(line.median(side), ""));
        let _ = writeln!(
            out,
            "| {} | {hypseq} | {duckdb} | {} | {datafusion} | {} |",
            line.question,
            cell(to_duckdb, " ×"),
            cell(to_datafusion, " ×"),
        );
    }
    let [duckdb, datafusion] = ratios.map(|ratios| cell(geometric_mean(&ratios), " ×"));
    let _ = writeln!(out, "| geometric mean of the SQL questions | | | {duckdb} | | {datafusion} |");
    out
}

/// Three digits or so of a number, and a unit.
pub fn cell(value: Option<f64>, unit: &str) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value < 9.995 => format!("{value:.2}{unit}"),
        Some(value) if value < 99.95 => format!("{value:.1}{unit}"),
        Some(value) => format!("{value:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::stats::Times;

    fn measured(question: &'static str, sql: bool, ms: &[(Side, f64)]) -> Measured {
        let times_ms = ms.iter().map(|&(side, ms)| (side, Times::of(vec![ms]))).collect::<BTreeMap<_, _>>();
        Measured { question, sql, mode: Mode::Whole, times_ms }
    }

    #[test]
    fn a_table_has_ratios_and_their_mean_over_sql() {
        let lines = [
            measured("resolve", false, &[(Side::Hypseq, 10.0), (Side::Duckdb, 1234.0)]),
            measured("a", true, &[(Side::Hypseq, 10.0), (Side::Duckdb, 20.0), (Side::Datafusion, 40.0)]),
            measured("b", true, &[(Side::Hypseq, 10.0), (Side::Duckdb, 80.0), (Side::Datafusion, 10.0)]),
        ];
        let expected = "\
| question | hypseq | DuckDB | ratio | DataFusion | ratio |
| --- | ---: | ---: | ---: | ---: | ---: |
| resolve | 10.0 | 1234 | 123 × | – | – |
| a | 10.0 | 20.0 | 2.00 × | 40.0 | 4.00 × |
| b | 10.0 | 80.0 | 8.00 × | 10.0 | 1.00 × |
| geometric mean of the SQL questions | | | 4.00 × | | 2.00 × |
";
        assert_eq!(table(lines.iter()), expected);
    }
}
