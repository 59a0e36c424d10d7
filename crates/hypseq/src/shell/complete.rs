//! What Tab offers: keywords, names and functions in SQL; and what each backslash command takes.

use std::collections::BTreeSet;

use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use hypseq_engine::TABLE_FUNCTIONS;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::command::COMMANDS;
use super::input;
use super::names::{DEFAULT_SCHEMA, Names, Table, quoted};
use crate::canned::Canned;

/// Keywords of the statements that are allowed.
const KEYWORDS: &[&str] = &[
    "ALL",
    "ANALYZE",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BIGINT",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "CREATE",
    "CROSS",
    "DATE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DOUBLE",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRECEDING",
    "QUALIFY",
    "RANGE",
    "RECURSIVE",
    "REPLACE",
    "RIGHT",
    "ROWS",
    "SELECT",
    "SET",
    "SHOW",
    "STORED",
    "TABLE",
    "TABLES",
    "TEXT",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];
/// After these a table is named.
const BEFORE_TABLES: [&str; 5] = ["FROM", "JOIN", "TABLE", "DESCRIBE", "COPY"];

/// Completes what is typed.
pub struct Complete {
    pub names: Names,
    pub queries: Vec<Canned>,
    /// The lines of the statement before the one that is typed.
    pub before: String,
    files: FilenameCompleter,
}

impl Complete {
    pub fn new(names: Names, queries: Vec<Canned>) -> Self {
        Self { names, queries, before: String::new(), files: FilenameCompleter::new() }
    }

    /// Where the word begins that the cursor is in or behind, and what could stand there.
    fn candidates(&self, line: &str, pos: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        let command = if self.before.is_empty() && typed.trim_start().starts_with('\\') {
            Some(typed.trim_start())
        } else {
            typed.rfind("\\g ").map(|at| &typed[at..])
        };
        let Some(command) = command else { return Ok(self.sql(typed)) };
        let words: Vec<&str> = command.split_whitespace().collect();
        if command.ends_with(char::is_whitespace) || words.len() > 1 {
            if matches!(words[0], "\\g" | "\\i") {
                return self.files.complete_path(line, pos);
            }
            let start = typed.trim_end_matches(|c: char| !c.is_whitespace()).len();
            let arguments = &words[1..words.len() - usize::from(start < pos)];
            return Ok((start, pairs(self.arguments(words[0], arguments), &typed[start..])));
        }
        let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
        Ok((pos - command.len(), pairs(names, command)))
    }

    /// What a command takes after these arguments.
    fn arguments(&self, command: &str, before: &[&str]) -> Vec<String> {
        let fixed = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        match (command, before) {
            ("\\d", []) => self.names.tables.iter().map(Table::sql_name).collect(),
            ("\\timing", []) => fixed(&["on", "off"]),
            ("\\x", []) => fixed(&["auto", "on", "off"]),
            ("\\pset", [] | [_, _]) => fixed(&["rows", "format"]),
            ("\\pset", [.., "rows"]) => fixed(&["all", "screen"]),
            ("\\pset", [.., "format"]) => fixed(&["table", "json", "ndjson", "csv", "markdown"]),
            ("\\query", []) => self.queries.iter().map(|query| query.name.clone()).collect(),
            ("\\query", [name, ..]) => {
                let query = self.queries.iter().find(|query| query.name == *name);
                query.iter().flat_map(|query| &query.params).map(|param| format!("{}=", param.name)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tables as they are named, and schemas with their dot.
    fn tables(&self) -> Vec<String> {
        let schemas = self.names.schemas().into_iter().map(|schema| format!("{schema}."));
        let tables = self.names.tables.iter().filter(|table| table.schema == DEFAULT_SCHEMA);
        tables.map(Table::sql_name).chain(schemas).collect()
    }

    fn sql(&self, typed: &str) -> (usize, Vec<Pair>) {
        let mut start = typed.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len();
        let statement = format!("{}{typed}", self.before);
        let mut tokens = Vec::new();
        let read = Tokenizer::new(&GenericDialect, &statement).tokenize_with_location_into_buf(&mut tokens);
        match read.map_err(|_| input::take_apart(&statement).open) {
            // The tokens end where the quoted name begins.
            Err('"') => {
                let quote = tokens.last().map_or(0, |token| input::offset(&statement, token.span.end));
                let Some(quote) = quote.checked_sub(self.before.len()) else { return (start, Vec::new()) };
                start = quote;
            }
            Ok(()) | Err('-') if start < typed.len() => _ = tokens.pop(),
            Ok(()) | Err('-') => {}
            Err(_) => return (start, Vec::new()),
        }
        let word = &typed[start..];
        let tokens: Vec<Token> = tokens.into_iter().map(|token| token.token).collect();
        if let [before @ .., Token::Period] = tokens.as_slice() {
            return (start, pairs(self.members(before, &tokens), word));
        }
        let previous = tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_)));
        let is_before_table =
            |keyword: &&str| matches!(previous, Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(keyword));
        if BEFORE_TABLES.iter().any(is_before_table) {
            let functions = TABLE_FUNCTIONS.map(|name| format!("{name}("));
            return (start, pairs(self.tables().into_iter().chain(functions), word));
        }
        let named = self.named(&tokens);
        let tables: Vec<&Table> =
            if named.is_empty() { self.names.tables.iter().collect() } else { named.iter().map(|(_, t)| *t).collect() };
        let columns: BTreeSet<&String> = tables.iter().flat_map(|t| &t.columns).map(|column| &column.name).collect();
        let is_lower = word.starts_with(char::is_lowercase);
        let keyword = |keyword: &&str| if is_lower { keyword.to_lowercase() } else { (*keyword).to_owned() };
        let functions = self.names.functions.iter().map(|function| format!("{function}("));
        let columns = columns.into_iter().map(|column| quoted(column).into_owned());
        let candidates = columns.chain(self.tables()).chain(functions);
        let keywords = KEYWORDS.iter().map(keyword);
        (start, pairs(candidates.chain(keywords), word))
    }

    /// What stands behind a dot: the tables of a schema, or the columns of a table or its alias.
    fn members(&self, before: &[Token], tokens: &[Token]) -> Vec<String> {
        let table = match before {
            [.., Token::Word(schema), Token::Period, Token::Word(name)] => {
                self.names.table(Some(&schema.value), &name.value)
            }
            [.., Token::Word(owner)] => {
                let owner = &owner.value;
                let tables = self.names.tables.iter().filter(|table| table.schema == *owner);
                let tables: Vec<String> = tables.map(|table| quoted(&table.name).into_owned()).collect();
                if !tables.is_empty() {
                    return tables;
                }
                let named = self.named(tokens).into_iter().find(|(name, _)| name == owner);
                named.map(|(_, table)| table).or_else(|| self.names.table(None, owner))
            }
            _ => None,
        };
        let columns = table.iter().flat_map(|table| &table.columns);
        columns.map(|column| quoted(&column.name).into_owned()).collect()
    }

    /// The tables that a statement names, each by its alias where it has one.
    fn named(&self, tokens: &[Token]) -> Vec<(String, &Table)> {
        let tokens: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let word = |at: usize| match tokens.get(at) {
            Some(Token::Word(word)) => Some(word.value.as_str()),
            _ => None,
        };
        let mut named = Vec::new();
        for at in 0..tokens.len() {
            let Some(first) = word(at) else { continue };
            let is_member = at > 0 && *tokens[at - 1] == Token::Period;
            let (schema, name, next) = match (tokens.get(at + 1), word(at + 2)) {
                (Some(Token::Period), Some(second)) => (Some(first), second, at + 3),
                _ => (None, first, at + 1),
            };
            let Some(table) = self.names.table(schema, name).filter(|_| !is_member) else { continue };
            let next = if word(next).is_some_and(|word| word.eq_ignore_ascii_case("as")) { next + 1 } else { next };
            let is_keyword = |word: &&str| KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word));
            let alias = word(next).filter(|word| !is_keyword(word)).unwrap_or(&table.name);
            named.push((alias.to_owned(), table));
        }
        named
    }
}

/// Those that begin with what is typed, in whatever case, and with or without a quote.
fn pairs(candidates: impl IntoIterator<Item = String>, typed: &str) -> Vec<Pair> {
    let begins = |candidate: &String| {
        let unquoted = candidate.strip_prefix('"').unwrap_or(candidate);
        [candidate, unquoted].iter().any(|name| name.get(..typed.len()).is_some_and(|n| n.eq_ignore_ascii_case(typed)))
    };
    let pair = |candidate: String| Pair { display: candidate.clone(), replacement: candidate };
    candidates.into_iter().filter(begins).map(pair).collect()
}

impl Completer for Complete {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        self.candidates(line, pos)
    }
}

impl Helper for Complete {}

impl Hinter for Complete {
    type Hint = String;
}

impl Highlighter for Complete {}

impl Validator for Complete {}

#[cfg(test)]
mod tests {
    use super::super::names::{Column, TableKind};
    use super::*;

    fn table(schema: &str, name: &str, columns: &[&str]) -> Table {
        let column = |name: &&str| Column { name: (*name).to_owned(), data_type: "TEXT".to_owned() };
        Table {
            schema: schema.to_owned(),
            name: name.to_owned(),
            kind: TableKind::Dataset,
            columns: columns.iter().map(column).collect(),
        }
    }

    /// What is offered for a line with the cursor at its end, and where it would be put.
    fn offered_after(before: &str, line: &str) -> (usize, Vec<String>) {
        let tables = vec![
            table("live", "logs", &["severity", "body"]),
            table("live", "messages", &["message_id", "model"]),
            table("live", "Odd.Data\"set", &["plain", "a-b"]),
            table("raw", "logs", &["severity", "body", "_pos"]),
            table("raw", "Odd.Data\"set", &["plain", "a-b"]),
        ];
        let functions = vec!["max".to_owned(), "min".to_owned()];
        let names = Names { tables, functions, ..Names::default() };
        let mut complete = Complete::new(names, crate::canned::all(None).expect("queries"));
        before.clone_into(&mut complete.before);
        let (start, pairs) = complete.candidates(line, line.len()).expect("candidates");
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    fn offered(line: &str) -> Vec<String> {
        offered_after("", line).1
    }

    #[test]
    fn keywords_follow_the_case_that_is_typed() {
        assert_eq!(offered("SEL"), ["SELECT"]);
        assert_eq!(offered("sel"), ["select"]);
        assert_eq!(offered_after("", "SELECT 1 whe"), (9, vec!["when".to_owned(), "where".to_owned()]));
    }

    #[test]
    fn tables_after_from_and_join() {
        let tables = ["logs", "messages", r#""Odd.Data""set""#, "live.", "raw."];
        let functions = ["generation(", "snapshot(", "seq_at(", "time_of_seq("];
        assert_eq!(offered("SELECT * FROM "), [&tables[..], &functions].concat());
        assert_eq!(offered("SELECT * FROM gen"), ["generation("]);
        assert_eq!(offered("select * from lo"), ["logs"]);
        assert_eq!(offered_after("SELECT *\n", "FROM raw.l"), (9, vec!["logs".to_owned()]));
        assert_eq!(offered("SELECT * FROM logs, messages WHERE 1 = 1 JOIN m"), ["messages"]);
    }

    #[test]
    fn columns_of_the_tables_that_are_named_else_all() {
        assert_eq!(offered("SELECT m"), ["message_id", "model", "messages", "max(", "min("]);
        assert_eq!(offered("SELECT max(b"), ["body", "between", "bigint", "by"]);
        assert_eq!(offered("SELECT * FROM messages WHERE se"), ["select", "set"]);
        assert_eq!(offered("SELECT * FROM raw.logs WHERE _"), ["_pos"]);
        assert_eq!(offered_after("SELECT * FROM logs\n", "WHERE sev"), (6, vec!["severity".to_owned()]));
    }

    #[test]
    fn columns_behind_a_table_or_its_alias() {
        assert_eq!(offered("SELECT logs."), ["severity", "body"]);
        assert_eq!(offered("SELECT * FROM raw.logs AS r WHERE r._"), ["_pos"]);
        assert_eq!(offered("SELECT * FROM messages m JOIN logs l ON m.m"), ["message_id", "model"]);
        assert_eq!(offered("SELECT nope."), Vec::<String>::new());
    }

    #[test]
    fn odd_names_are_quoted() {
        let odd = vec![r#""Odd.Data""set""#.to_owned()];
        assert_eq!(offered_after("", "SELECT * FROM Odd"), (14, odd.clone()));
        assert_eq!(offered_after("SELECT *\n", "FROM \"Odd.Data\"\"s"), (5, odd.clone()));
        assert_eq!(offered_after("", "SELECT * FROM raw.Odd"), (18, odd.clone()));
        assert_eq!(offered_after("", "SELECT * FROM raw.\"odd"), (18, odd));
        assert_eq!(offered(r#"SELECT "Odd.Data""set".a"#), [r#""a-b""#]);
        assert_eq!(offered(r#"SELECT * FROM raw."Odd.Data""set" AS o WHERE o."#), ["plain", r#""a-b""#]);
        assert_eq!(
            offered(r#"SELECT * FROM "Odd.Data""set" WHERE a-"#),
            offered(r#"SELECT * FROM "Odd.Data""set" WHERE "#)
        );
        assert_eq!(offered(r#"SELECT * FROM raw."Odd.Data""set" WHERE "a"#), [r#""a-b""#]);
        assert_eq!(offered(r"\d Odd"), [r#""Odd.Data""set""#]);
        assert_eq!(offered(r#"\d raw."O"#), [r#"raw."Odd.Data""set""#]);
        assert_eq!(offered_after("SELECT \"\n", "Odd"), (0, Vec::new()));
    }

    #[test]
    fn nothing_within_text_and_comments() {
        assert_eq!(offered("SELECT 'm"), Vec::<String>::new());
        assert_eq!(offered("SELECT /* m"), Vec::<String>::new());
        assert_eq!(offered_after("SELECT '\n", "m"), (0, Vec::new()));
    }

    #[test]
    fn commands_and_what_they_take() {
        assert_eq!(offered_after("", "\\t"), (0, vec!["\\timing".to_owned()]));
        assert_eq!(offered("\\query rows-"), ["rows-around-seq", "rows-per-day"]);
        assert_eq!(offered("\\query rows-around-seq s"), ["seq="]);
        assert_eq!(offered("\\query rows-around-seq seq=1 r"), ["rows="]);
        assert_eq!(offered("\\d m"), ["messages"]);
        assert_eq!(offered("\\d raw.l"), ["raw.logs"]);
        assert_eq!(offered("\\x "), ["auto", "on", "off"]);
        assert_eq!(offered("\\pset format c"), ["csv"]);
        assert_eq!(offered("\\pset rows 5 f"), ["format"]);
    }

    #[test]
    fn blanks_may_take_several_bytes() {
        assert_eq!(offered_after("", "\\query\u{a0}rows-p"), (8, vec!["rows-per-day".to_owned()]));
        assert_eq!(offered("\\x\u{a0}"), ["auto", "on", "off"]);
        assert_eq!(offered_after("", "\\i\u{a0}Cargo.to").1, Vec::<String>::new());
        assert_eq!(offered("\u{a0}\\t"), ["\\timing"]);
        assert_eq!(offered("SELECT\u{a0}max(b"), ["body", "between", "bigint", "by"]);
    }

    #[test]
    fn files_after_commands_that_take_one() {
        assert_eq!(offered_after("", "\\i Cargo.to"), (3, vec!["Cargo.toml".to_owned()]));
        assert_eq!(offered_after("", "SELECT 1 \\g sr"), (12, vec!["src/".to_owned()]));
    }
}
