//! The content of `ai_gateway_messages`: every column follows from a row, its session and its partition.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, StringBuilder, new_null_array};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use serde_json::{Map, Value, json};

use crate::content::{Content, date, day, iso, times};
use crate::rows::Row;
use crate::schema::{Kind, SEQ, TableSchema};
use crate::text::write_text;
use crate::variants::{self, Encoded, VariantColumn};

const GATEWAY: &str = "gw-testkit";
const SCHEMA_VERSION: i32 = 8;
const USER: &str = "op";
const BRANCH: &str = "main";
const TOOLS: [&str; 4] = ["Bash", "Read", "Edit", "Grep"];

/// Streams of random numbers of a row.
const ID: u64 = 1;
const TEXT: u64 = 2;
const ARGUMENTS: u64 = 3;

/// What of a message was drawn.
struct Drawn {
    role: &'static str,
    tool: Option<&'static str>,
    is_error: bool,
    latency_ms: usize,
}

impl Drawn {
    fn new(content: &Content<'_>, row: &Row) -> Self {
        let mut rng = content.rng(row, 0);
        Self {
            role: if row.index % 2 == 0 { "user" } else { "assistant" },
            tool: rng.permille(200).then(|| TOOLS[rng.index(TOOLS.len())]),
            is_error: rng.permille(20),
            latency_ms: rng.index(LATENCIES),
        }
    }

    fn part_type(&self) -> &'static str {
        if self.tool.is_some() { "tool_call" } else { "text" }
    }
}

fn message_id(content: &Content<'_>, row: &Row) -> String {
    let mut rng = content.rng(row, ID);
    format!("msg_{:016x}{:04x}", rng.next(), rng.next() >> 48)
}

pub(crate) fn part_id(content: &Content<'_>, row: &Row) -> String {
    format!("{}#0", message_id(content, row))
}

fn provider(content: &Content<'_>) -> &'static str {
    if content.partition.source == "claude" { "anthropic" } else { "openai" }
}

fn model(content: &Content<'_>) -> &'static str {
    if content.partition.source == "claude" { "claude-opus" } else { "gpt-code" }
}

fn text(content: &Content<'_>, row: &Row) -> String {
    let mut text = String::new();
    write_text(&mut text, content.text_bytes, &mut content.rng(row, TEXT));
    text
}

fn command(content: &Content<'_>, row: &Row) -> String {
    let mut text = String::new();
    write_text(&mut text, 20, &mut content.rng(row, ARGUMENTS));
    text
}

fn tools(content: &Content<'_>, row: &Row, tool: &str) -> Value {
    json!([{"name": tool, "input": {"cmd": command(content, row), "n": row.index}}])
}

fn tool_args(content: &Content<'_>, row: &Row) -> Value {
    let deep = json!({"a": [1, 2, row.index], "f": f64::from(row.index) + 0.5, "s": "é✓", "b": true, "z": null});
    json!({"cmd": command(content, row), "deep": deep})
}

fn attributes(latency_ms: usize) -> Value {
    json!({"gateway": {"identity_source": "native", "latency_ms": latency_ms}})
}

/// The attributes by latency: every row has some.
static ATTRIBUTES: LazyLock<Vec<Encoded>> =
    LazyLock::new(|| (0..LATENCIES).filter_map(|ms| variants::encode(&attributes(ms)).ok()).collect());
const LATENCIES: usize = 900;

/// The columns of a data file, in the schema's order.
pub(crate) fn columns(content: &Content<'_>, schema: &TableSchema, rows: &[Row]) -> Result<Vec<ArrayRef>, ArrowError> {
    let drawn: Vec<Drawn> = rows.iter().map(|row| Drawn::new(content, row)).collect();
    let file = Columns { content, rows, drawn: &drawn };
    schema.fields.iter().map(|column| file.column(&column.name, column.kind)).collect()
}

struct Columns<'a> {
    content: &'a Content<'a>,
    rows: &'a [Row],
    drawn: &'a [Drawn],
}

impl Columns<'_> {
    fn column(&self, name: &str, kind: Kind) -> Result<ArrayRef, ArrowError> {
        let Self { content, rows, drawn } = self;
        let column: ArrayRef = match name {
            "gateway_id" => self.same(GATEWAY),
            "schema_version" => self.int(|_| SCHEMA_VERSION),
            "session_id" => self.given(|row| &content.session(row).id),
            "user_id" => self.same(USER),
            "provider" => self.same(provider(content)),
            "model" => self.same(model(content)),
            "tools" => self.variants(|row, drawn| drawn.tool.map(|tool| tools(content, row, tool)))?,
            "conversation_started_at" => Arc::new(times(rows.iter().map(|row| Some(content.session(row).started_ms)))),
            "client_name" => self.same(&content.partition.source),
            "cwd" => self.given(|row| content.session(row).cwd),
            "git_branch" => self.same(BRANCH),
            "is_sidechain" => Arc::new(BooleanArray::from(vec![false; rows.len()])),
            "message_id" => self.made(|out, row| out.push_str(&message_id(content, row))),
            "message_index" => self.int(|row| row.index),
            "message_created_at" => Arc::new(times(rows.iter().map(|row| row.time_ms))),
            "role" => Arc::new(StringArray::from_iter_values(drawn.iter().map(|drawn| drawn.role))),
            "part_id" => self.made(|out, row| out.push_str(&part_id(content, row))),
            "part_index" => self.int(|_| 0),
            "part_type" => Arc::new(StringArray::from_iter_values(drawn.iter().map(Drawn::part_type))),
            "content_text" => self.made(|out, row| write_text(out, content.text_bytes, &mut content.rng(row, TEXT))),
            "tool_name" => Arc::new(drawn.iter().map(|drawn| drawn.tool).collect::<StringArray>()),
            "tool_args" => self.variants(|row, drawn| drawn.tool.map(|_| tool_args(content, row)))?,
            "is_error" => Arc::new(drawn.iter().map(|drawn| Some(drawn.is_error)).collect::<BooleanArray>()),
            "attributes" => self.attributes(),
            "date" => self.dates(),
            SEQ => Arc::new(rows.iter().map(|row| row.seq).collect::<Int64Array>()),
            _ => match kind {
                Kind::Variant => variants::nulls(rows.len()),
                Kind::Boolean => new_null_array(&DataType::Boolean, rows.len()),
                _ => new_null_array(&DataType::Utf8, rows.len()),
            },
        };
        Ok(column)
    }

    fn same(&self, text: &str) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, self.rows.len())))
    }

    fn given<'v>(&'v self, value: impl Fn(&'v Row) -> &'v str) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(self.rows.iter().map(value)))
    }

    fn made(&self, write: impl Fn(&mut String, &Row)) -> ArrayRef {
        let mut column = StringBuilder::new();
        let mut text = String::new();
        for row in self.rows {
            text.clear();
            write(&mut text, row);
            column.append_value(&text);
        }
        Arc::new(column.finish())
    }

    fn int(&self, value: impl Fn(&Row) -> i32) -> ArrayRef {
        Arc::new(self.rows.iter().map(|row| Some(value(row))).collect::<Int32Array>())
    }

    fn variants(&self, value: impl Fn(&Row, &Drawn) -> Option<Value>) -> Result<ArrayRef, ArrowError> {
        let mut column = VariantColumn::default();
        for (row, drawn) in self.rows.iter().zip(self.drawn) {
            match value(row, drawn) {
                Some(json) => column.append(&variants::encode(&json)?),
                None => column.append_null(),
            }
        }
        Ok(column.finish())
    }

    fn attributes(&self) -> ArrayRef {
        let mut column = VariantColumn::default();
        for drawn in self.drawn {
            column.append(&ATTRIBUTES[drawn.latency_ms]);
        }
        column.finish()
    }

    fn dates(&self) -> ArrayRef {
        self.made(|out, row| out.push_str(&date(day(row.time_ms.unwrap_or_default()))))
    }
}

/// A row as the spool has it: captured values, without those that are null anyway.
pub(crate) fn spooled(content: &Content<'_>, row: &Row) -> Map<String, Value> {
    let drawn = Drawn::new(content, row);
    let session = content.session(row);
    let time_ms = row.time_ms.unwrap_or_default();
    let values = [
        ("gateway_id", json!(GATEWAY)),
        ("schema_version", json!(SCHEMA_VERSION)),
        ("session_id", json!(session.id)),
        ("conversation_id", Value::Null),
        ("user_id", json!(USER)),
        ("provider", json!(provider(content))),
        ("model", json!(model(content))),
        ("tools", drawn.tool.map_or(Value::Null, |tool| tools(content, row, tool))),
        ("conversation_started_at", json!(iso(session.started_ms))),
        ("client_name", json!(content.partition.source)),
        ("cwd", json!(session.cwd)),
        ("git_branch", json!(BRANCH)),
        ("is_sidechain", json!(false)),
        ("message_id", json!(message_id(content, row))),
        ("message_index", json!(row.index)),
        ("message_created_at", json!(iso(time_ms))),
        ("role", json!(drawn.role)),
        ("part_id", json!(part_id(content, row))),
        ("part_index", json!(0)),
        ("part_type", json!(drawn.part_type())),
        ("content_text", json!(text(content, row))),
        ("tool_name", json!(drawn.tool)),
        ("tool_args", drawn.tool.map_or(Value::Null, |_| tool_args(content, row))),
        ("is_error", json!(drawn.is_error)),
        ("attributes", attributes(drawn.latency_ms)),
        ("date", json!(date(day(time_ms)))),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
