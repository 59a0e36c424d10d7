//! Avro schemas, as far as reading records by them needs.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Mismatch;

/// Types nested deeper than any real schema's are refused.
const MAX_DEPTH: usize = 32;

/// How a value is written (Avro 1.11.1, "Binary Encoding").
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Null,
    Boolean,
    /// Zigzag varint; also an enum's index.
    Int,
    /// Zigzag varint.
    Long,
    Float,
    Double,
    /// Length (long), then that many bytes.
    Bytes,
    /// As bytes, in UTF-8.
    String,
    /// That many bytes.
    Fixed(usize),
    /// Index of the branch (long), then the value.
    Union(Vec<Type>),
    /// Blocks of count (long; a negative one is followed by the block's size) and items, up to a count of 0.
    Array(Box<Type>),
    /// As an array, with a string before each value.
    Map(Box<Type>),
    /// The fields' values in order.
    Record(Arc<RecordType>),
}

/// A record's fields.
#[derive(Debug, PartialEq)]
pub(super) struct RecordType {
    pub fields: Vec<(String, Type)>,
}

impl Type {
    /// The name used in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Fixed(_) => "fixed",
            Self::Union(_) => "union",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Record(_) => "record",
        }
    }
}

/// Reads the schema of a file's records.
pub(super) fn parse(json: &[u8]) -> Result<Arc<RecordType>, Mismatch> {
    let mismatch = |found: &dyn std::fmt::Display| Mismatch::new("an Avro schema of a record", found);
    let json: Value = serde_json::from_slice(json).map_err(|e| mismatch(&e))?;
    match (Parser { named: HashMap::new() }).parse(&json, 0) {
        Some(Type::Record(record)) => Ok(record),
        Some(other) => Err(mismatch(&other.name())),
        None => Err(mismatch(&"another one")),
    }
}

struct Parser<'a> {
    /// Types that were defined so far and may be named again.
    named: HashMap<&'a str, Type>,
}

impl<'a> Parser<'a> {
    /// None when it is no schema, names a type before its definition ends, or is nested too deeply.
    fn parse(&mut self, schema: &'a Value, depth: usize) -> Option<Type> {
        if depth > MAX_DEPTH {
            return None;
        }
        match schema {
            Value::String(name) => primitive(name).or_else(|| self.named.get(name.as_str()).cloned()),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.parse(branch, depth + 1));
                branches.collect::<Option<_>>().map(Type::Union)
            }
            Value::Object(object) => {
                let inner = |key: &str| object.get(key);
                let parsed = match inner("type")? {
                    Value::String(kind) => match kind.as_str() {
                        "record" => {
                            let fields = inner("fields")?.as_array()?.iter().map(|field| self.field(field, depth));
                            Type::Record(Arc::new(RecordType { fields: fields.collect::<Option<_>>()? }))
                        }
                        "array" => Type::Array(Box::new(self.parse(inner("items")?, depth + 1)?)),
                        "map" => Type::Map(Box::new(self.parse(inner("values")?, depth + 1)?)),
                        "fixed" => Type::Fixed(usize::try_from(inner("size")?.as_u64()?).ok()?),
                        "enum" => Type::Int,
                        name => primitive(name).or_else(|| self.named.get(name).cloned())?,
                    },
                    nested => self.parse(nested, depth + 1)?,
                };
                if let Some(name) = inner("name").and_then(Value::as_str) {
                    self.named.insert(name, parsed.clone());
                }
                Some(parsed)
            }
            _ => None,
        }
    }

    fn field(&mut self, field: &'a Value, depth: usize) -> Option<(String, Type)> {
        let name = field.get("name")?.as_str()?.to_owned();
        Some((name, self.parse(field.get("type")?, depth + 1)?))
    }
}

fn primitive(name: &str) -> Option<Type> {
    Some(match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "int" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "string" => Type::String,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Type::{Boolean, Bytes, Double, Float, Int, Long, Null, String as Text};
    use super::*;

    fn assert_rejected(json: &str, found: &str) {
        let error = parse(json.as_bytes()).unwrap_err();
        assert_eq!((error.expected.as_str(), error.found.as_str()), ("an Avro schema of a record", found), "{json}");
    }

    #[test]
    fn every_type() {
        let schema = parse(
            br#"{"type":"record","name":"r","fields":[
                {"name":"a","type":["null","boolean","int","long","float","double","bytes","string"]},
                {"name":"b","type":{"type":"array","items":{"type":"record","name":"kv","fields":[
                    {"name":"key","type":"int"},{"name":"value","type":{"type":"long","logicalType":"timestamp-micros"}}]}}},
                {"name":"c","type":{"type":"map","values":"kv"}},
                {"name":"d","type":{"type":"fixed","name":"f","size":16}},
                {"name":"e","type":{"type":"enum","name":"g","symbols":["x","y"]}}]}"#,
        );
        let kv = Type::Record(Arc::new(RecordType {
            fields: vec![("key".to_owned(), Type::Int), ("value".to_owned(), Type::Long)],
        }));
        let union = Type::Union(vec![Null, Boolean, Int, Long, Float, Double, Bytes, Text]);
        let types = [union, Type::Array(Box::new(kv.clone())), Type::Map(Box::new(kv)), Type::Fixed(16), Type::Int];
        let fields = ["a", "b", "c", "d", "e"].map(str::to_owned).into_iter().zip(types).collect();
        assert_eq!(schema.unwrap(), Arc::new(RecordType { fields }));
    }

    #[test]
    fn rejects_what_is_no_record() {
        assert_rejected(r#""long""#, "long");
        assert_rejected(r#"{"type":"record","name":"r"}"#, "another one");
        assert_rejected(r#"{"type":"record","name":"r","fields":[{"name":"x","type":"nothing"}]}"#, "another one");
        assert!(parse(b"{").unwrap_err().found.contains("EOF"));
    }

    #[test]
    fn rejects_a_record_within_itself_and_bottomless_nesting() {
        let within = r#"{"type":"record","name":"r","fields":[{"name":"x","type":["null","r"]}]}"#;
        assert_rejected(within, "another one");
        let deep = (0..40).fold(r#""int""#.to_owned(), |inner, _| format!(r#"{{"type":"array","items":{inner}}}"#));
        assert_rejected(
            &format!(r#"{{"type":"record","name":"r","fields":[{{"name":"x","type":{deep}}}]}}"#),
            "another one",
        );
    }
}
