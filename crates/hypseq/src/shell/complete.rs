//! What Tab offers: keywords, names and functions in SQL; and what each backslash command takes.

use std::collections::BTreeSet;

use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::command::COMMANDS;
use super::input;
use super::names::{DEFAULT_SCHEMA, Names, Table};
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
        tables.map(|table| table.name.clone()).chain(schemas).collect()
    }

    fn sql(&self, typed: &str) -> (usize, Vec<Pair>) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = typed.trim_end_matches(is_word).len();
        let word = &typed[start..];
        let statement = format!("{}{typed}", self.before);
        let mut tokens = Vec::new();
        let read = Tokenizer::new(&GenericDialect, &statement).tokenize_with_location_into_buf(&mut tokens);
        if read.is_err() && input::take_apart(&statement).open != '-' {
            return (start, Vec::new());
        }
        let tokens: Vec<Token> = tokens.into_iter().map(|token| token.token).collect();
        if let Some((owner, _)) = word.rsplit_once('.') {
            let start = start + owner.len() + 1;
            return (start, pairs(self.members(owner, &tokens), &typed[start..]));
        }
        let mut words = tokens.iter().filter_map(|token| match token {
            Token::Word(word) => Some(word.value.to_uppercase()),
            Token::Whitespace(_) | Token::EOF => None,
            _ => Some(String::new()),
        });
        let previous = if word.is_empty() { words.next_back() } else { words.nth_back(1) };
        if previous.is_some_and(|previous| BEFORE_TABLES.contains(&previous.as_str())) {
            return (start, pairs(self.tables(), word));
        }
        let named = self.named(&tokens);
        let tables: Vec<&Table> =
            if named.is_empty() { self.names.tables.iter().collect() } else { named.iter().map(|(_, t)| *t).collect() };
        let columns: BTreeSet<&String> = tables.iter().flat_map(|t| &t.columns).map(|column| &column.name).collect();
        let is_lower = word.starts_with(char::is_lowercase);
        let keyword = |keyword: &&str| if is_lower { keyword.to_lowercase() } else { (*keyword).to_owned() };
        let functions = self.names.functions.iter().map(|function| format!("{function}("));
        let candidates = columns.into_iter().cloned().chain(self.tables()).chain(functions);
        let keywords = KEYWORDS.iter().map(keyword);
        (start, pairs(candidates.chain(keywords), word))
    }

    /// What stands behind a dot: the tables of a schema, or the columns of a table or its alias.
    fn members(&self, owner: &str, tokens: &[Token]) -> Vec<String> {
        let tables = self.names.tables.iter().filter(|table| table.schema == owner);
        let tables: Vec<String> = tables.map(|table| table.name.clone()).collect();
        if !tables.is_empty() {
            return tables;
        }
        let named = self.named(tokens);
        let named = named.iter().find(|(name, _)| name == owner).map(|(_, table)| *table);
        let table = named.or_else(|| self.names.table(owner));
        table.iter().flat_map(|table| &table.columns).map(|column| column.name.clone()).collect()
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
            let qualified = match (tokens.get(at + 1), word(at + 2)) {
                (Some(Token::Period), Some(second)) => Some(format!("{first}.{second}")),
                _ => None,
            };
            let table = qualified.as_deref().map_or_else(|| self.names.table(first), |name| self.names.table(name));
            let Some(table) = table.filter(|_| !is_member) else { continue };
            let next = if qualified.is_some() { at + 3 } else { at + 1 };
            let next = if word(next).is_some_and(|word| word.eq_ignore_ascii_case("as")) { next + 1 } else { next };
            let is_keyword = |word: &&str| KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word));
            let alias = word(next).filter(|word| !is_keyword(word)).unwrap_or(&table.name);
            named.push((alias.to_owned(), table));
        }
        named
    }
}

/// Those that begin with what is typed, in whatever case.
fn pairs(candidates: impl IntoIterator<Item = String>, typed: &str) -> Vec<Pair> {
    let begins = |candidate: &String| {
        candidate.get(..typed.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(typed))
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
            table("raw", "logs", &["severity", "body", "_pos"]),
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
        assert_eq!(offered("SELECT * FROM "), ["logs", "messages", "live.", "raw."]);
        assert_eq!(offered("select * from lo"), ["logs"]);
        assert_eq!(offered_after("SELECT *\n", "FROM raw."), (9, vec!["logs".to_owned()]));
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
        assert_eq!(offered("\\d raw."), ["raw.logs"]);
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
