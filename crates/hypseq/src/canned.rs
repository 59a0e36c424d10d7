//! Canned queries: SQL files with a header that names their purpose and parameters.
//!
//! ```sql
//! -- name: rows-around-seq
//! -- purpose: the rows around a seq
//! -- needs: live
//! -- param: dataset DATASET = ai_gateway_messages   the dataset
//! -- param: seq BIGINT                              the seq in the middle
//! SELECT … FROM complete.{dataset} WHERE _hyp_ingest_seq >= $seq
//! ```
//!
//! The name is the file's, and may be left out. A `$name` is bound as a value. DATASET, PARTITION, GENERATION and COLUMN are
//! names that must exist in the cache; as `{name}` a DATASET or a COLUMN is put into the text as a quoted identifier. A COLUMN
//! that is `auto` is the one that holds the time of the dataset's rows. A query that `needs: live` is refused where the live
//! generation of its partition, or of one of its dataset's, is unknown: it would leave rows out without a word.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use datafusion::common::ScalarValue;

use crate::boundary::parse_seq;
use crate::time;

macro_rules! built_in {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../../../queries/", $name, ".sql"))),)*] };
}

/// The queries that come with the program, by name: every file of the folder.
const BUILT_IN: &[(&str, &str)] = built_in![
    "boundary-per-generation",
    "duplicate-ids",
    "gap-candidates",
    "generations",
    "holes",
    "no-longer-visible",
    "only-in-one-generation",
    "out-of-order",
    "rows-around-seq",
    "rows-per-day",
    "sessions-in-gap",
    "sink-lag",
    "spooled",
    "straddling-files",
    "tool-calls",
    "top-sessions",
];

/// A query with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canned {
    pub name: String,
    pub purpose: String,
    /// Whether it is about live generations.
    pub needs_live: bool,
    pub params: Vec<Param>,
    pub sql: String,
}

/// A parameter of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub kind: Kind,
    pub default: Option<String>,
    pub about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bigint,
    Text,
    Timestamp,
    Dataset,
    Partition,
    Generation,
    Column,
}

/// What there is in a cache.
pub trait Cache {
    fn has_dataset(&self, name: &str) -> bool;
    fn datasets(&self) -> Vec<String>;
    fn partitions(&self, dataset: &str) -> Vec<String>;
    fn generations(&self, dataset: &str, partition: &str) -> Vec<String>;
    /// The partitions of a dataset of which it is not known which generation is live.
    fn without_live(&self, dataset: &str) -> Vec<String>;
    fn has_column(&self, name: &str) -> bool;
    /// The column that holds the time of a dataset's rows.
    fn time_column(&self, dataset: &str) -> Option<String>;
}

/// A COLUMN that the cache chooses.
const AUTO: &str = "auto";

/// A query ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub sql: String,
    pub values: Vec<(String, ScalarValue)>,
    /// What was not given and took its default, as `name=value`.
    pub defaults: Vec<String>,
}

/// Every query, of a folder or built in, by name.
pub fn all(folder: Option<&Path>) -> Result<Vec<Canned>> {
    let Some(folder) = folder else {
        return BUILT_IN.iter().map(|(name, text)| Canned::parse(name, text)).collect();
    };
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut queries = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sql") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            queries.push(Canned::parse(&name, &text).with_context(|| format!("`{}`", path.display()))?);
        }
    }
    queries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(queries)
}

impl Canned {
    fn parse(name: &str, text: &str) -> Result<Self> {
        let mut canned = Self {
            name: name.to_owned(),
            purpose: String::new(),
            needs_live: false,
            params: Vec::new(),
            sql: text.to_owned(),
        };
        for line in text.lines() {
            let Some(header) = line.strip_prefix("--").map(str::trim) else { break };
            match header.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("name", named)) if named == name => {}
                Some(("name", named)) => bail!("the header names the query `{named}`, and its file `{name}`"),
                Some(("purpose", purpose)) => purpose.clone_into(&mut canned.purpose),
                Some(("needs", "live")) => canned.needs_live = true,
                Some(("param", param)) => canned.params.push(Param::parse(param)?),
                _ => bail!(
                    "`{line}` is not a header line; expected `-- purpose: …` or `-- param: NAME TYPE [= DEFAULT]  …`"
                ),
            }
        }
        let place = |kind: Kind| canned.params.iter().position(|param| param.kind == kind);
        for (inner, outer) in [(Kind::Partition, Kind::Dataset), (Kind::Generation, Kind::Partition)] {
            if place(inner).is_some_and(|at| place(outer).is_none_or(|outer| outer > at)) {
                bail!("a {} has no {} before it, in which it is looked for", inner.label(), outer.label());
            }
        }
        if canned.purpose.is_empty() {
            bail!("query `{name}` has no `-- purpose:` line");
        }
        Ok(canned)
    }

    /// Binds `NAME=VALUE` arguments. `zone` is that of times without one.
    pub fn bind(&self, given: &[String], zone: Option<&str>, cache: &impl Cache) -> Result<Bound> {
        let mut arguments = BTreeMap::new();
        for argument in given {
            let (name, value) = argument
                .split_once('=')
                .with_context(|| format!("`{argument}` is not NAME=VALUE\n{}", self.usage()))?;
            if !self.params.iter().any(|p| p.name == name) {
                bail!("query `{}` has no parameter `{name}`\n{}", self.name, self.usage());
            }
            if arguments.insert(name, value).is_some() {
                bail!("parameter `{name}` was given twice");
            }
        }
        let missing = self.params.iter().filter(|p| p.default.is_none() && !arguments.contains_key(p.name.as_str()));
        let missing: Vec<String> = missing.map(|param| format!("`{}`", param.name)).collect();
        if !missing.is_empty() {
            let (noun, verb) = if missing.len() == 1 { ("parameter", "is") } else { ("parameters", "are") };
            bail!("{noun} {} {verb} missing\n{}", missing.join(" and "), self.usage());
        }
        let mut bound = Bound { sql: self.sql.clone(), values: Vec::new(), defaults: Vec::new() };
        let mut place = Place::default();
        for param in &self.params {
            let given = arguments.get(param.name.as_str()).copied();
            let text = given.or(param.default.as_deref()).unwrap_or_default();
            let text = place.resolve(param.kind, text, cache).with_context(|| format!("parameter `{}`", param.name))?;
            if given.is_none() {
                bound.defaults.push(format!("{}={text}", param.name));
            }
            let value = param.kind.value(&text, zone).with_context(|| format!("parameter `{}`", param.name))?;
            if matches!(param.kind, Kind::Dataset | Kind::Column) {
                let quoted = format!("\"{}\"", text.replace('"', "\"\""));
                bound.sql = bound.sql.replace(&format!("{{{}}}", param.name), &quoted);
            }
            bound.values.push((param.name.clone(), value));
        }
        if self.needs_live {
            let unknown = cache.without_live(&place.dataset);
            let is_asked = |partition: &&String| place.partition.is_empty() || place.partition == **partition;
            if let Some(partition) = unknown.iter().find(is_asked) {
                bail!(
                    "the live generation of `{partition}` is not known, and query `{}` is about it\n  hint: cache.problems says \
                     why; schemas raw and complete have its rows",
                    self.name
                );
            }
        }
        Ok(bound)
    }

    /// The parameters, one per line.
    fn usage(&self) -> String {
        if self.params.is_empty() {
            return "  hint: it has no parameters".to_owned();
        }
        let lines = self.params.iter().map(|p| {
            let default = p.default.as_ref().map_or_else(|| "required".to_owned(), |d| format!("default {d}"));
            format!("    --param {}={}  {} ({default})", p.name, p.kind.label(), p.about)
        });
        format!("  hint: its parameters are\n{}", lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Param {
    fn parse(text: &str) -> Result<Self> {
        let malformed = || anyhow!("`-- param: {text}` is not NAME TYPE [= DEFAULT]  ABOUT");
        let (name, rest) = text.split_once(char::is_whitespace).ok_or_else(malformed)?;
        let (kind, rest) = rest.trim().split_once(char::is_whitespace).ok_or_else(malformed)?;
        let kind = Kind::parse(kind).ok_or_else(malformed)?;
        let rest = rest.trim();
        let (default, about) = match rest.strip_prefix('=') {
            Some(rest) => {
                let (default, about) = rest.trim().split_once("  ").ok_or_else(malformed)?;
                (Some(default.to_owned()), about)
            }
            None => (None, rest),
        };
        Ok(Self { name: name.to_owned(), kind, default, about: about.trim().to_owned() })
    }
}

/// The dataset and partition among the parameters so far, in which those that follow are looked for.
#[derive(Default)]
struct Place {
    dataset: String,
    partition: String,
}

impl Place {
    /// The name that a parameter stands for, which must be there.
    fn resolve(&mut self, kind: Kind, text: &str, cache: &impl Cache) -> Result<String> {
        let choices = match kind {
            Kind::Bigint | Kind::Text | Kind::Timestamp => return Ok(text.to_owned()),
            Kind::Column if text == AUTO => {
                return cache.time_column(&self.dataset).with_context(|| {
                    format!("it is not known which column of `{}` holds a row's time\n  hint: name one", self.dataset)
                });
            }
            Kind::Column if cache.has_column(text) => return Ok(text.to_owned()),
            Kind::Column => bail!("there is no column `{text}`\n  hint: DESCRIBE shows the columns of a table"),
            Kind::Dataset if cache.has_dataset(text) => vec![text.to_owned()],
            Kind::Dataset => cache.datasets(),
            Kind::Partition => cache.partitions(&self.dataset),
            Kind::Generation => cache.generations(&self.dataset, &self.partition),
        };
        if !choices.iter().any(|choice| choice == text) {
            bail!("there is no {} `{text}`\n  hint: there are {}", kind.label().to_lowercase(), choices.join(", "));
        }
        match kind {
            Kind::Dataset => text.clone_into(&mut self.dataset),
            Kind::Partition => text.clone_into(&mut self.partition),
            _ => {}
        }
        Ok(text.to_owned())
    }
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Bigint, Self::Text, Self::Timestamp, Self::Dataset, Self::Partition, Self::Generation, Self::Column];

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == text)
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Bigint => "BIGINT",
            Self::Text => "TEXT",
            Self::Timestamp => "TIMESTAMP",
            Self::Dataset => "DATASET",
            Self::Partition => "PARTITION",
            Self::Generation => "GENERATION",
            Self::Column => "COLUMN",
        }
    }

    fn value(self, text: &str, zone: Option<&str>) -> Result<ScalarValue> {
        Ok(match self {
            Self::Bigint => ScalarValue::Int64(Some(parse_seq(text)?)),
            Self::Timestamp => ScalarValue::TimestampMicrosecond(Some(time::parse(text, zone)?.at), Some("UTC".into())),
            _ => ScalarValue::Utf8(Some(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- purpose: the rows around a seq\n\
                        -- param: dataset DATASET = logs  which dataset\n\
                        -- param: seq BIGINT  the seq\n\
                        -- param: at TIMESTAMP = 2026-07-28T21:00:00Z  a time\n\
                        SELECT $seq FROM {dataset}\n";

    /// A cache with one dataset, of two partitions.
    struct Logs;

    impl Cache for Logs {
        fn has_dataset(&self, name: &str) -> bool {
            name == "logs"
        }

        fn datasets(&self) -> Vec<String> {
            vec!["logs".to_owned()]
        }

        fn partitions(&self, dataset: &str) -> Vec<String> {
            if dataset == "logs" { vec!["source=a".to_owned(), "source=b".to_owned()] } else { Vec::new() }
        }

        fn generations(&self, _: &str, partition: &str) -> Vec<String> {
            if partition == "source=a" { vec!["table".to_owned()] } else { Vec::new() }
        }

        fn without_live(&self, dataset: &str) -> Vec<String> {
            if dataset == "logs" { vec!["source=b".to_owned()] } else { Vec::new() }
        }

        fn has_column(&self, name: &str) -> bool {
            name == "body"
        }

        fn time_column(&self, dataset: &str) -> Option<String> {
            (dataset == "logs").then(|| "timestamp".to_owned())
        }
    }

    fn bind(text: &str, given: &[&str]) -> Result<Bound> {
        let given: Vec<String> = given.iter().map(|g| (*g).to_owned()).collect();
        Canned::parse("around", text).expect("a query").bind(&given, None, &Logs)
    }

    fn refusal(given: &[&str]) -> String {
        format!("{:#}", bind(TEXT, given).expect_err("refused"))
    }

    fn text(value: &str) -> ScalarValue {
        ScalarValue::Utf8(Some(value.to_owned()))
    }

    #[test]
    fn values_are_bound_and_names_are_quoted() {
        let bound = bind(TEXT, &["seq=9"]).expect("bound");
        assert!(bound.sql.ends_with("SELECT $seq FROM \"logs\"\n"), "{}", bound.sql);
        let at = ScalarValue::TimestampMicrosecond(Some(1_785_272_400_000_000), Some("UTC".into()));
        let values = [
            ("dataset".to_owned(), text("logs")),
            ("seq".to_owned(), ScalarValue::Int64(Some(9))),
            ("at".to_owned(), at),
        ];
        assert_eq!(bound.values, values);
        assert_eq!(bound.defaults, ["dataset=logs", "at=2026-07-28T21:00:00Z"]);
    }

    const NAMES: &str = "-- purpose: names\n\
                         -- param: dataset DATASET = logs  which dataset\n\
                         -- param: partition PARTITION = source=a  its partition\n\
                         -- param: generation GENERATION = table  its generation\n\
                         -- param: time COLUMN = auto  its time\n\
                         SELECT {time} FROM {dataset}\n";

    #[test]
    fn names_are_looked_for_in_their_place() {
        let bound = bind(NAMES, &[]).expect("bound");
        assert!(bound.sql.ends_with("SELECT \"timestamp\" FROM \"logs\"\n"), "{}", bound.sql);
        assert_eq!(
            bound.values[1..3],
            [("partition".to_owned(), text("source=a")), ("generation".to_owned(), text("table"))]
        );
        assert!(bind(NAMES, &["time=body"]).expect("bound").sql.contains("SELECT \"body\""));
        for (given, says) in [
            (
                "partition=source=c",
                "parameter `partition`: there is no partition `source=c`\n  hint: there are source=a, source=b",
            ),
            ("partition=source=b", "parameter `generation`: there is no generation `table`\n  hint: there are "),
            ("generation=tabel", "parameter `generation`: there is no generation `tabel`\n  hint: there are table"),
            ("time=nope", "parameter `time`: there is no column `nope`"),
            ("dataset=x\"; DROP", "parameter `dataset`: there is no dataset `x\"; DROP`\n  hint: there are logs"),
        ] {
            let refused = format!("{:#}", bind(NAMES, &[given]).expect_err("refused"));
            assert!(refused.starts_with(says), "{refused}");
        }
    }

    #[test]
    fn a_query_about_live_generations_needs_to_know_them() {
        let of_partition = "-- purpose: x\n-- needs: live\n-- param: dataset DATASET = logs  a\n\
                            -- param: partition PARTITION = source=a  b\nSELECT $partition FROM {dataset}\n";
        assert!(bind(of_partition, &[]).is_ok());
        let refused = bind(of_partition, &["partition=source=b"]).expect_err("refused").to_string();
        assert!(refused.starts_with("the live generation of `source=b` is not known"), "{refused}");
        let of_all = "-- purpose: x\n-- needs: live\n-- param: dataset DATASET = logs  a\nSELECT 1 FROM {dataset}\n";
        assert!(bind(of_all, &[]).is_err());
        assert!(bind(&of_all.replace("-- needs: live\n", ""), &[]).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_list() {
        assert!(refusal(&[]).starts_with("parameter `seq` is missing\n"));
        assert!(refusal(&[]).contains("--param at=TIMESTAMP  a time (default 2026-07-28T21:00:00Z)"));
        let two = "-- purpose: x\n-- param: from BIGINT  a\n-- param: to BIGINT  b\nSELECT $from, $to\n";
        let refused = bind(two, &[]).expect_err("refused").to_string();
        assert!(refused.starts_with("parameters `from` and `to` are missing\n"), "{refused}");
        assert!(refusal(&["nope=1"]).contains("has no parameter `nope`"));
        assert!(refusal(&["seq"]).contains("is not NAME=VALUE"));
        assert!(refusal(&["seq=1", "seq=2"]).contains("given twice"));
        assert!(refusal(&["seq=x"]).contains("is not a seq"));
        assert!(refusal(&["seq=1", "at=2026-07-28T21:00:00"]).contains("has no zone"));
    }

    #[test]
    fn headers_that_do_not_parse_are_refused() {
        for text in [
            "SELECT 1",
            "-- hello\nSELECT 1",
            "-- purpose: x\n-- param: seq\nSELECT 1",
            "-- purpose: x\n-- param: a INT b\n",
            "-- name: y\n-- purpose: x\nSELECT 1",
            "-- purpose: x\n-- param: p PARTITION  a\n-- param: d DATASET  b\nSELECT 1",
            "-- purpose: x\n-- param: d DATASET  a\n-- param: g GENERATION  b\nSELECT 1",
        ] {
            assert!(Canned::parse("x", text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_file_of_the_folder_is_built_in_and_parses() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries");
        assert_eq!(all(None).expect("all parse"), all(Some(&folder)).expect("all parse"));
    }

    #[test]
    fn every_built_in_query_names_itself_and_uses_its_parameters() {
        for query in all(None).expect("all parse") {
            assert!(query.sql.starts_with(&format!("-- name: {}\n-- purpose: ", query.name)), "{}", query.name);
            for Param { name, kind, .. } in &query.params {
                let as_name =
                    matches!(kind, Kind::Dataset | Kind::Column) && query.sql.contains(&format!("{{{name}}}"));
                assert!(as_name || query.sql.contains(&format!("${name}")), "{} does not use {name}", query.name);
            }
        }
    }
}
