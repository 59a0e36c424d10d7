//! JSON of the values that every command shows: seqs are strings, times RFC 3339.

use hypseq_boundary::Row;
use serde_json::{Value, json};

use crate::time;

/// A seq as a string: it may exceed what a JSON number holds exactly.
pub fn seq(seq: Option<i64>) -> Value {
    seq.map_or(Value::Null, |s| Value::String(s.to_string()))
}

/// A time in microseconds.
pub fn time(micros: Option<i64>) -> Value {
    micros.map_or(Value::Null, |t| Value::String(time::show(t)))
}

/// A row, by what identifies it.
pub fn row(row: Option<&Row>) -> Value {
    row.map_or(Value::Null, |r| json!({ "seq": seq(Some(r.seq)), "time": time(r.time), "id": r.id.as_deref() }))
}
