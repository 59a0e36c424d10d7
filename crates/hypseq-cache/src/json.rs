//! Strict reading of HypAware's small JSON files: every complaint says what was expected and what was found.

use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value};

/// A file's bytes; none when there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An object under inspection, and where in the file it stands (`""`, `continuation.`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    prefix: &'a str,
}

/// Parses a file that should hold one JSON object.
pub(crate) fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("expected a JSON object, found {}", describe(&other))),
        Err(_) if bytes.iter().all(u8::is_ascii_whitespace) => {
            Err("expected a JSON object, found an empty file".to_owned())
        }
        Err(error) => Err(format!(
            "expected a JSON object, found {}, which does not parse: {error}",
            quote(&String::from_utf8_lossy(bytes))
        )),
    }
}

impl<'a> Object<'a> {
    pub(crate) fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, prefix: "" }
    }

    /// A field that must be there; `read` returns none for a value that is not `expected`.
    pub(crate) fn required<T>(
        self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, String> {
        let found = self.map.get(name);
        found.and_then(read).ok_or_else(|| {
            let found = found.map_or_else(|| "nothing".to_owned(), describe);
            format!("expected `{}{name}` to be {expected}, found {found}", self.prefix)
        })
    }

    /// A field that may be absent, but is as `expected` when it is there.
    pub(crate) fn optional<T>(
        self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        if self.map.contains_key(name) { self.required(name, expected, read).map(Some) } else { Ok(None) }
    }

    /// A nested object; `prefix` is its place in the file, for messages.
    pub(crate) fn object(self, name: &str, prefix: &'a str) -> Result<Object<'a>, String> {
        let map = self.required(name, "an object", Value::as_object)?;
        Ok(Object { map, prefix })
    }

    /// A format version, which must be exactly `version`.
    pub(crate) fn version(self, name: &str, version: u64) -> Result<(), String> {
        self.required(name, &version.to_string(), |value| (value.as_u64() == Some(version)).then_some(()))
    }

    pub(crate) fn count(self, name: &str) -> Result<u64, String> {
        self.required(name, "a non-negative integer", Value::as_u64)
    }

    pub(crate) fn string(self, name: &str) -> Result<String, String> {
        self.required(name, "a string", string)
    }

    pub(crate) fn optional_string(self, name: &str) -> Result<Option<String>, String> {
        self.optional(name, "a string", string)
    }

    /// A seq: digits only, in a string, and within a signed 64-bit integer.
    pub(crate) fn seq(self, name: &str) -> Result<i64, String> {
        self.required(name, "a decimal string from \"0\" to \"9223372036854775807\"", |value| {
            let text = value.as_str()?;
            // `parse` alone would take a leading `+`.
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
        })
    }
}

pub(crate) fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A value in a few words, for messages.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => format!("the number {value}"),
        Value::String(value) => format!("the string {}", quote(value)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text, quoted, with control characters made visible.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(LONGEST).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    format!("{start:?}{rest}")
}
