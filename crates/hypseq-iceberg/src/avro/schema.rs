//! Avro schemas, as far as reading records by them needs.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Mismatch;

/// Types nested deeper than any real schema's are refused, by name as well as in place: they are walked by recursion.
const MAX_DEPTH: usize = 32;

/// So are those with more parts: a record of records of records, each named twice, takes for ever to walk.
const MAX_PARTS: usize = 10_000;

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
        Some(Parsed { kind: Type::Record(record), .. }) => Ok(record),
        Some(other) => Err(mismatch(&other.kind.name())),
        None => Err(mismatch(&"another one")),
    }
}

/// A type with what it takes to walk it.
#[derive(Debug, Clone)]
struct Parsed {
    kind: Type,
    depth: usize,
    parts: usize,
}

impl Parsed {
    fn leaf(kind: Type) -> Self {
        Self { kind, depth: 1, parts: 1 }
    }

    /// None when it is too deep or too large.
    fn around(kind: Type, inner: &[(usize, usize)]) -> Option<Self> {
        let depth = inner.iter().map(|(depth, _)| depth + 1).max().unwrap_or(1);
        let parts = inner.iter().map(|(_, parts)| parts).sum::<usize>() + 1;
        (depth <= MAX_DEPTH && parts <= MAX_PARTS).then_some(Self { kind, depth, parts })
    }

    fn size(&self) -> (usize, usize) {
        (self.depth, self.parts)
    }
}

struct Parser<'a> {
    /// Types that were defined so far and may be named again.
    named: HashMap<&'a str, Parsed>,
}

impl<'a> Parser<'a> {
    /// None when it is no schema, names a type before its definition ends, or is too deep or too large.
    fn parse(&mut self, schema: &'a Value, depth: usize) -> Option<Parsed> {
        if depth > MAX_DEPTH {
            return None;
        }
        match schema {
            Value::String(name) => self.by_name(name),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.parse(branch, depth + 1));
                let branches: Vec<Parsed> = branches.collect::<Option<_>>()?;
                let sizes: Vec<_> = branches.iter().map(Parsed::size).collect();
                Parsed::around(Type::Union(branches.into_iter().map(|branch| branch.kind).collect()), &sizes)
            }
            Value::Object(object) => {
                let inner = |key: &str| object.get(key);
                let parsed = match inner("type")? {
                    Value::String(kind) => match kind.as_str() {
                        "record" => {
                            let fields = inner("fields")?.as_array()?.iter().map(|field| self.field(field, depth));
                            let fields: Vec<(String, Parsed)> = fields.collect::<Option<_>>()?;
                            let sizes: Vec<_> = fields.iter().map(|(_, field)| field.size()).collect();
                            let fields = fields.into_iter().map(|(name, field)| (name, field.kind)).collect();
                            Parsed::around(Type::Record(Arc::new(RecordType { fields })), &sizes)?
                        }
                        "array" => {
                            let item = self.parse(inner("items")?, depth + 1)?;
                            let size = item.size();
                            Parsed::around(Type::Array(Box::new(item.kind)), &[size])?
                        }
                        "map" => {
                            let value = self.parse(inner("values")?, depth + 1)?;
                            let size = value.size();
                            Parsed::around(Type::Map(Box::new(value.kind)), &[size])?
                        }
                        "fixed" => Parsed::leaf(Type::Fixed(usize::try_from(inner("size")?.as_u64()?).ok()?)),
                        "enum" => Parsed::leaf(Type::Int),
                        name => self.by_name(name)?,
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

    fn by_name(&self, name: &str) -> Option<Parsed> {
        primitive(name).map(Parsed::leaf).or_else(|| self.named.get(name).cloned())
    }

    fn field(&mut self, field: &'a Value, depth: usize) -> Option<(String, Parsed)> {
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

    /// Records `r0`, `r1`, …, each with so many fields of the one before.
    fn chain(length: usize, fields: usize) -> String {
        let record = |n: usize| {
            let inner = if n == 0 { r#""null""#.to_owned() } else { format!(r#""r{}""#, n - 1) };
            let fields: Vec<String> = (0..fields).map(|f| format!(r#"{{"name":"f{f}","type":{inner}}}"#)).collect();
            format!(r#"{{"name":"x{n}","type":{{"type":"record","name":"r{n}","fields":[{}]}}}}"#, fields.join(","))
        };
        let records: Vec<String> = (0..length).map(record).collect();
        format!(r#"{{"type":"record","name":"all","fields":[{}]}}"#, records.join(","))
    }

    #[test]
    fn rejects_depth_and_size_that_come_from_names() {
        assert!(parse(chain(20, 1).as_bytes()).is_ok());
        assert_rejected(&chain(40, 1), "another one");
        assert_rejected(&chain(20, 2), "another one");
    }
}
