//! Canned queries: SQL files with a header that names their purpose and parameters.
//!
//! ```sql
//! -- name: rows-around-seq
//! -- purpose: the rows around a seq
//! -- param: dataset DATASET = ai_gateway_messages   the dataset
//! -- param: seq BIGINT                              the seq in the middle
//! SELECT … FROM complete.{dataset} WHERE _hyp_ingest_seq >= $seq
//! ```
//!
//! The name is the file's, and may be left out. A `$name` is bound as a value. A `{name}` is a DATASET or a COLUMN: a name
//! that must exist in the cache, put into the text as a quoted identifier (as `$name` it is a value like any other).

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
    Column,
}

/// A query ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub sql: String,
    pub values: Vec<(String, ScalarValue)>,
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
        let mut canned =
            Self { name: name.to_owned(), purpose: String::new(), params: Vec::new(), sql: text.to_owned() };
        for line in text.lines() {
            let Some(header) = line.strip_prefix("--").map(str::trim) else { break };
            match header.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("name", named)) if named == name => {}
                Some(("name", named)) => bail!("the header names the query `{named}`, and its file `{name}`"),
                Some(("purpose", purpose)) => purpose.clone_into(&mut canned.purpose),
                Some(("param", param)) => canned.params.push(Param::parse(param)?),
                _ => bail!(
                    "`{line}` is not a header line; expected `-- purpose: …` or `-- param: NAME TYPE [= DEFAULT]  …`"
                ),
            }
        }
        if canned.purpose.is_empty() {
            bail!("query `{name}` has no `-- purpose:` line");
        }
        Ok(canned)
    }

    /// Binds `NAME=VALUE` arguments. `exists` says whether a DATASET or a COLUMN is there.
    pub fn bind(&self, given: &[String], exists: impl Fn(Kind, &str) -> bool) -> Result<Bound> {
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
        let mut bound = Bound { sql: self.sql.clone(), values: Vec::new() };
        for param in &self.params {
            let value = arguments.get(param.name.as_str()).copied().or(param.default.as_deref());
            let value = value.with_context(|| format!("parameter `{}` is missing\n{}", param.name, self.usage()))?;
            let value = param.kind.value(value).with_context(|| format!("parameter `{}`", param.name))?;
            match value {
                Value::Scalar(scalar) => bound.values.push((param.name.clone(), scalar)),
                Value::Identifier(name) => {
                    if !exists(param.kind, &name) {
                        bail!("parameter `{}`: there is no {} `{name}`", param.name, param.kind.noun());
                    }
                    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
                    bound.sql = bound.sql.replace(&format!("{{{}}}", param.name), &quoted);
                    bound.values.push((param.name.clone(), ScalarValue::Utf8(Some(name))));
                }
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

enum Value {
    Scalar(ScalarValue),
    Identifier(String),
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        [Self::Bigint, Self::Text, Self::Timestamp, Self::Dataset, Self::Column].into_iter().find(|k| k.label() == text)
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Bigint => "BIGINT",
            Self::Text => "TEXT",
            Self::Timestamp => "TIMESTAMP",
            Self::Dataset => "DATASET",
            Self::Column => "COLUMN",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            _ => "column",
        }
    }

    fn value(self, text: &str) -> Result<Value> {
        Ok(match self {
            Self::Bigint => Value::Scalar(ScalarValue::Int64(Some(parse_seq(text)?))),
            Self::Text => Value::Scalar(ScalarValue::Utf8(Some(text.to_owned()))),
            Self::Timestamp => {
                let at = time::parse(text, None)?.at;
                Value::Scalar(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())))
            }
            Self::Dataset | Self::Column => Value::Identifier(text.to_owned()),
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

    fn canned() -> Canned {
        Canned::parse("around", TEXT).expect("a query")
    }

    fn refusal(given: &[&str]) -> String {
        let given: Vec<String> = given.iter().map(|g| (*g).to_owned()).collect();
        format!("{:#}", canned().bind(&given, |_, name| name == "logs").expect_err("refused"))
    }

    #[test]
    fn values_are_bound_and_names_are_quoted() {
        let bound = canned().bind(&["seq=9".to_owned()], |_, name| name == "logs").expect("bound");
        assert!(bound.sql.ends_with("SELECT $seq FROM \"logs\"\n"), "{}", bound.sql);
        let at = ScalarValue::TimestampMicrosecond(Some(1_785_272_400_000_000), Some("UTC".into()));
        let values = [
            ("dataset".to_owned(), ScalarValue::Utf8(Some("logs".to_owned()))),
            ("seq".to_owned(), ScalarValue::Int64(Some(9))),
            ("at".to_owned(), at),
        ];
        assert_eq!(bound.values, values);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_list() {
        assert!(refusal(&[]).contains("`seq` is missing"));
        assert!(refusal(&[]).contains("--param at=TIMESTAMP  a time (default 2026-07-28T21:00:00Z)"));
        assert!(refusal(&["nope=1"]).contains("has no parameter `nope`"));
        assert!(refusal(&["seq"]).contains("is not NAME=VALUE"));
        assert!(refusal(&["seq=1", "seq=2"]).contains("given twice"));
        assert!(refusal(&["seq=x"]).contains("is not a seq"));
        assert!(refusal(&["seq=1", "at=2026-07-28T21:00:00"]).contains("has no zone"));
        assert!(refusal(&["seq=1", "dataset=x\"; DROP"]).contains("there is no dataset"));
    }

    #[test]
    fn headers_that_do_not_parse_are_refused() {
        for text in [
            "SELECT 1",
            "-- hello\nSELECT 1",
            "-- purpose: x\n-- param: seq\nSELECT 1",
            "-- purpose: x\n-- param: a INT b\n",
            "-- name: y\n-- purpose: x\nSELECT 1",
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
                let used = if matches!(kind, Kind::Dataset | Kind::Column) {
                    format!("{{{name}}}")
                } else {
                    format!("${name}")
                };
                assert!(query.sql.contains(&used), "{} does not use {used}", query.name);
            }
        }
    }
}
