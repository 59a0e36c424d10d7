//! The questions. SQL is asked of everybody in the same words; what a command of hypseq answers is asked of DuckDB in the
//! SQL that gives the same figures.

use crate::cache::Cache;
use crate::command::{self, Command};

/// A question.
pub struct Question {
    /// What it is called in the table.
    pub name: &'static str,
    /// How it is put.
    pub asked: Asked,
}

/// How a question is put.
#[derive(Clone, Copy)]
pub enum Asked {
    /// In SQL that is the same for everybody; see [`Dialect`] for what stands in braces.
    Sql(&'static str),
    /// As a command of hypseq.
    Command(Command),
}

/// All of them.
pub const QUESTIONS: [Question; 11] = [
    Question { name: "resolve", asked: Asked::Command(command::RESOLVE) },
    Question { name: "resolve; DuckDB: two seqs only", asked: Asked::Command(command::RESOLVE_SEQS) },
    Question { name: "verify", asked: Asked::Command(command::VERIFY) },
    Question { name: "verify; DuckDB: two seqs only", asked: Asked::Command(command::VERIFY_SEQS) },
    Question { name: "status", asked: Asked::Command(command::STATUS) },
    Question { name: "rows per day", asked: Asked::Sql(include_str!("../questions/rows-per-day.sql")) },
    Question { name: "text search", asked: Asked::Sql(include_str!("../questions/text-search.sql")) },
    Question { name: "top sessions", asked: Asked::Sql(TOP_SESSIONS) },
    Question { name: "one part_id", asked: Asked::Sql(include_str!("../questions/one-part-id.sql")) },
    Question { name: "between two seqs", asked: Asked::Sql(include_str!("../questions/between-two-seqs.sql")) },
    Question { name: "export of one day", asked: Asked::Sql(include_str!("../questions/export-one-day.sql")) },
];

/// A `GROUP BY` over everything.
pub const TOP_SESSIONS: &str = include_str!("../questions/top-sessions.sql");

/// What the words in braces are to one contender.
pub struct Dialect {
    /// `{messages}`: the rows of all live generations.
    pub messages: String,
    /// `{as_snappy_parquet}`: the end of a `COPY`.
    pub as_snappy_parquet: &'static str,
    /// `{file}`: where an export goes.
    pub file: String,
}

impl Dialect {
    /// hypseq, which asks its own table.
    pub fn hypseq(file: String) -> Self {
        Self { messages: "ai_gateway_messages".to_owned(), as_snappy_parquet: SNAPPY_OF_DATAFUSION, file }
    }

    /// hypseq over the live generations' physical rows, those that are deleted included.
    pub fn hypseq_raw(file: String) -> Self {
        let messages = "(SELECT * FROM raw.ai_gateway_messages WHERE _generation_state = 'live') AS messages";
        Self { messages: messages.to_owned(), ..Self::hypseq(file) }
    }

    /// DataFusion, whose table is named so.
    pub fn datafusion(file: String) -> Self {
        Self { messages: "messages".to_owned(), as_snappy_parquet: SNAPPY_OF_DATAFUSION, file }
    }

    /// DuckDB, which reads the files.
    pub fn duckdb(cache: &Cache, file: String) -> Self {
        let globs =
            cache.live_folders().iter().map(|folder| format!("'{}/*.parquet'", folder.display())).collect::<Vec<_>>();
        Self {
            messages: format!("read_parquet([{}])", globs.join(", ")),
            as_snappy_parquet: "(FORMAT parquet, COMPRESSION snappy)",
            file,
        }
    }

    /// The question in this dialect.
    pub fn put(&self, sql: &str, cache: &Cache) -> String {
        let facts = &cache.facts;
        sql.replace("{messages}", &self.messages)
            .replace("{as_snappy_parquet}", self.as_snappy_parquet)
            .replace("{file}", &self.file)
            .replace("{id}", &facts.id)
            .replace("{last_seq}", &facts.last_seq.to_string())
            .replace("{day}", DAY)
    }
}

const SNAPPY_OF_DATAFUSION: &str = "STORED AS PARQUET OPTIONS ('format.compression' 'snappy')";
/// A day in the middle of the incident, well before its time.
const DAY: &str = "2026-08-05";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Facts, Generation, Partition};

    fn cache() -> Cache {
        let generation = |name: &str| Generation { name: name.to_owned(), data_files: 1, raw_rows: 3, visible_rows: 2 };
        let partition = Partition {
            dataset: "ai_gateway_messages".to_owned(),
            path: "source=claude".to_owned(),
            generations: vec![generation("table-1"), generation("table-2")],
        };
        let facts =
            Facts { time_ms: 1000, last_seq: 7, next_seq: 9, id: "msg_a#0".to_owned(), partitions: vec![partition] };
        Cache { home: "/home/op/.hyp".into(), facts }
    }

    #[test]
    fn every_word_in_braces_is_filled_in() {
        let cache = cache();
        for question in &QUESTIONS {
            let dialects = [
                Dialect::hypseq("a".to_owned()),
                Dialect::hypseq_raw("a".to_owned()),
                Dialect::datafusion("a".to_owned()),
                Dialect::duckdb(&cache, "a".to_owned()),
            ];
            let texts = match question.asked {
                Asked::Sql(sql) => dialects.map(|dialect| dialect.put(sql, &cache)).to_vec(),
                Asked::Command(command) => vec![(command.duckdb)(&cache)],
            };
            for text in texts {
                assert!(!text.contains(['{', '}']), "{}: {text}", question.name);
            }
        }
    }

    #[test]
    fn duckdb_reads_the_live_files() {
        let cache = cache();
        assert_eq!(
            Dialect::duckdb(&cache, String::new()).put("FROM {messages} WHERE part_id = '{id}'", &cache),
            "FROM read_parquet(['/home/op/.hyp/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-2/data/\
             *.parquet']) WHERE part_id = 'msg_a#0'"
        );
    }
}
