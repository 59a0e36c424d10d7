//! One record: where its fields' values stand, decoded when they are asked for.

use std::sync::Arc;

use super::Mismatch;
use super::schema::{RecordType, Type};

type Data<'d> = &'d [u8];

/// A record as written. A field that the schema lacks, or that is null, is none.
#[derive(Debug, Clone)]
pub(crate) struct Record<'d> {
    schema: Arc<RecordType>,
    values: Vec<Value<'d>>,
}

#[derive(Debug, Clone)]
enum Value<'d> {
    /// The bytes of a value that is no record.
    Bytes(Data<'d>),
    Record(Record<'d>),
}

impl<'d> Record<'d> {
    /// Takes one record off the data.
    pub(super) fn take(schema: &Arc<RecordType>, data: &mut Data<'d>) -> Result<Self, Mismatch> {
        let mut values = Vec::with_capacity(schema.fields.len());
        for (_, field) in &schema.fields {
            values.push(if let Type::Record(inner) = field {
                Value::Record(Self::take(inner, data)?)
            } else {
                let start = *data;
                skip(field, data).ok_or_else(cut)?;
                Value::Bytes(&start[..start.len() - data.len()])
            });
        }
        Ok(Self { schema: Arc::clone(schema), values })
    }

    /// Whether the writer's schema has the field at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.fields.iter().any(|(field, _)| field == name)
    }

    fn field(&self, name: &str) -> Option<(&Type, &Value<'d>)> {
        let place = self.schema.fields.iter().position(|(field, _)| field == name)?;
        Some((&self.schema.fields[place].1, &self.values[place]))
    }

    /// The type and bytes of a value that is not null.
    fn value(&self, name: &str) -> Result<Option<(&Type, Data<'d>)>, Mismatch> {
        match self.field(name) {
            None => Ok(None),
            Some((found, Value::Record(_))) => Ok(Some((found, &[]))),
            Some((found, Value::Bytes(bytes))) => {
                let mut data = *bytes;
                let found = branch(found, &mut data).ok_or_else(cut)?;
                Ok((*found != Type::Null).then_some((found, data)))
            }
        }
    }

    pub(crate) fn long(&self, name: &str) -> Result<Option<i64>, Mismatch> {
        match self.value(name)? {
            None => Ok(None),
            Some((Type::Int | Type::Long, mut data)) => take_long(&mut data).map(Some).ok_or_else(cut),
            Some((other, _)) => Err(wrong_type(name, "an int or long", other)),
        }
    }

    pub(crate) fn string(&self, name: &str) -> Result<Option<&'d str>, Mismatch> {
        match self.value(name)? {
            None => Ok(None),
            Some((Type::String, mut data)) => {
                let bytes = take_bytes(&mut data).ok_or_else(cut)?;
                let text = std::str::from_utf8(bytes);
                text.map(Some).map_err(|e| Mismatch::new(format!("UTF-8 in `{name}`"), &e))
            }
            Some((other, _)) => Err(wrong_type(name, "a string", other)),
        }
    }

    pub(crate) fn record(&self, name: &str) -> Result<Option<&Record<'d>>, Mismatch> {
        match self.field(name) {
            None => Ok(None),
            Some((_, Value::Record(record))) => Ok(Some(record)),
            Some((other, Value::Bytes(_))) => Err(wrong_type(name, "a record", other)),
        }
    }

    /// Visits a map from int to long, written as an array of key-value records. An entry with a null is left out.
    pub(crate) fn visit_longs(&self, name: &str, visit: impl FnMut(i32, i64)) -> Result<(), Mismatch> {
        let take = |value: &Type, data: &mut Data<'d>| match value {
            Type::Int | Type::Long => Some(take_long(data)),
            _ => None,
        };
        self.visit(name, take, visit)
    }

    /// Visits a map from int to bytes, written as an array of key-value records. An entry with a null is left out.
    pub(crate) fn visit_bytes(&self, name: &str, visit: impl FnMut(i32, Data<'d>)) -> Result<(), Mismatch> {
        let take = |value: &Type, data: &mut Data<'d>| match value {
            Type::Bytes => Some(take_bytes(data)),
            _ => None,
        };
        self.visit(name, take, visit)
    }

    /// Visits the entries of a map. `take` reads a value, as far as it is of the right type.
    fn visit<T>(
        &self,
        name: &str,
        take: impl Fn(&Type, &mut Data<'d>) -> Option<Option<T>>,
        mut visit: impl FnMut(i32, T),
    ) -> Result<(), Mismatch> {
        let Some((found, mut data)) = self.value(name)? else { return Ok(()) };
        let wrong = || wrong_type(name, "an array of key-value records", found);
        let Type::Array(item) = found else { return Err(wrong()) };
        let Type::Record(item) = item.as_ref() else { return Err(wrong()) };
        let [(key_name, key_type), (value_name, value_type)] = item.fields.as_slice() else { return Err(wrong()) };
        if key_name != "key" || value_name != "value" {
            return Err(wrong());
        }
        loop {
            let count = take_block(&mut data).ok_or_else(cut)?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                let key = match branch(key_type, &mut data).ok_or_else(cut)? {
                    Type::Int | Type::Long => take_long(&mut data).ok_or_else(cut)?,
                    _ => return Err(wrong()),
                };
                let key = i32::try_from(key).map_err(|_| Mismatch::new(format!("a field id in `{name}`"), &key))?;
                let value = branch(value_type, &mut data).ok_or_else(cut)?;
                if *value != Type::Null {
                    let value = take(value, &mut data).ok_or_else(|| wrong_value(name, value))?;
                    visit(key, value.ok_or_else(cut)?);
                }
            }
        }
    }
}

fn cut() -> Mismatch {
    Mismatch::new("an Avro record of the file's schema", &"a cut or damaged one")
}

fn wrong_type(name: &str, expected: &str, found: &Type) -> Mismatch {
    Mismatch::new(format!("{expected} in `{name}`"), &found.name())
}

fn wrong_value(name: &str, found: &Type) -> Mismatch {
    Mismatch::new(format!("other values in `{name}`"), &found.name())
}

/// The branch of a union that a value is of; a type that is no union is its own.
fn branch<'t>(found: &'t Type, data: &mut Data<'_>) -> Option<&'t Type> {
    match found {
        Type::Union(branches) => branches.get(usize::try_from(take_long(data)?).ok()?),
        found => Some(found),
    }
}

fn skip(found: &Type, data: &mut Data<'_>) -> Option<()> {
    match found {
        Type::Null => Some(()),
        Type::Boolean => take(data, 1).map(drop),
        Type::Int | Type::Long => take_long(data).map(drop),
        Type::Float => take(data, 4).map(drop),
        Type::Double => take(data, 8).map(drop),
        Type::Bytes | Type::String => take_bytes(data).map(drop),
        Type::Fixed(size) => take(data, *size).map(drop),
        Type::Union(_) => {
            let found = branch(found, data)?;
            skip(found, data)
        }
        Type::Array(item) => for_each_item(data, |data| skip(item, data)),
        Type::Map(value) => for_each_item(data, |data| {
            take_bytes(data)?;
            skip(value, data)
        }),
        Type::Record(record) => record.fields.iter().try_for_each(|(_, field)| skip(field, data)),
    }
}

/// Takes a map off the data, whose values are bytes; none when it is cut.
pub(super) fn take_map<'d>(data: &mut Data<'d>, mut entry: impl FnMut(&'d [u8], &'d [u8])) -> Option<()> {
    for_each_item(data, |data| {
        let key = take_bytes(data)?;
        entry(key, take_bytes(data)?);
        Some(())
    })
}

/// Takes every item of an array or a map off the data.
fn for_each_item<'d>(data: &mut Data<'d>, mut take: impl FnMut(&mut Data<'d>) -> Option<()>) -> Option<()> {
    loop {
        let count = take_block(data)?;
        if count == 0 {
            return Some(());
        }
        for _ in 0..count {
            let before = data.len();
            take(data)?;
            // Items without bytes could be any number: nothing bounds how long they are counted.
            if data.len() == before {
                return None;
            }
        }
    }
}

/// How many items the next block of an array or a map has; 0 at the end.
fn take_block(data: &mut Data<'_>) -> Option<u64> {
    let count = take_long(data)?;
    if count < 0 {
        take_long(data)?;
    }
    Some(count.unsigned_abs())
}

fn take<'d>(data: &mut Data<'d>, length: usize) -> Option<Data<'d>> {
    let (taken, rest) = data.split_at_checked(length)?;
    *data = rest;
    Some(taken)
}

fn take_bytes<'d>(data: &mut Data<'d>) -> Option<Data<'d>> {
    let length = usize::try_from(take_long(data)?).ok()?;
    take(data, length)
}

/// A zigzag varint of at most ten bytes.
#[inline]
pub(super) fn take_long(data: &mut Data<'_>) -> Option<i64> {
    // Nearly all are this short.
    if let [byte @ 0..0x80, after @ ..] = data {
        *data = after;
        return Some(i64::from(byte >> 1) ^ -i64::from(byte & 1));
    }
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = data.split_first()?;
        *data = after;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && *byte > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::schema::parse;
    use super::*;

    fn record<'d>(fields: &str, mut data: &'d [u8]) -> Result<Record<'d>, String> {
        let schema = parse(format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#).as_bytes()).unwrap();
        let record =
            Record::take(&schema, &mut data).map_err(|e| format!("expected {}, found {}", e.expected, e.found))?;
        assert_eq!(data, b"", "all of it is taken");
        Ok(record)
    }

    const MAP: &str = r#"{"name":"m","type":["null",{"type":"array","items":{"type":"record","name":"kv","fields":[
        {"name":"key","type":"int"},{"name":"value","type":["null","long"]}]}}]}"#;

    #[test]
    fn maps_in_blocks_of_either_form() {
        // A union's second branch; a block of two, a sized block of one, the end. The second entry is null.
        let data = [2, 4, 2, 2, 20, 4, 0, 1, 6, 6, 2, 22, 0];
        let record = record(MAP, &data).unwrap();
        let longs = |name: &str| {
            let mut longs = Vec::new();
            record.visit_longs(name, |key, value| longs.push((key, value))).map(|()| longs)
        };
        assert_eq!(longs("m").unwrap(), [(1, 10), (3, 11)]);
        assert_eq!(longs("other").unwrap(), []);
        assert_eq!(record.visit_bytes("m", |_, _| ()).unwrap_err().expected, "other values in `m`");
    }

    #[test]
    fn every_type_is_skipped() {
        let fields = r#"{"name":"a","type":"boolean"},{"name":"b","type":"float"},{"name":"c","type":"double"},
            {"name":"d","type":{"type":"fixed","name":"f","size":2}},{"name":"e","type":{"type":"map","values":"string"}},
            {"name":"f","type":"null"},{"name":"g","type":"long"}"#;
        let data = [&[1][..], &[0; 4], &[0; 8], &[7, 7], &[2, 2, b'k', 4, b'v', b'w', 0], &[5]].concat();
        assert_eq!(record(fields, &data).unwrap().long("g").unwrap(), Some(-3));
    }

    #[test]
    fn rejects_values_that_do_not_fit() {
        let cut = "expected an Avro record of the file's schema, found a cut or damaged one";
        for (fields, data) in [
            (r#"{"name":"a","type":"long"}"#, &[0x80][..]),
            (r#"{"name":"a","type":"string"}"#, &[4, b'x']),
            (r#"{"name":"a","type":"string"}"#, &[3, b'x']),
            (r#"{"name":"a","type":["null","long"]}"#, &[4]),
            (r#"{"name":"a","type":{"type":"array","items":"null"}}"#, &[4, 0]),
        ] {
            assert_eq!(record(fields, data).unwrap_err(), cut, "{fields} {data:?}");
        }
    }

    #[test]
    fn rejects_fields_of_another_type() {
        let text = r#"{"name":"t","type":"string"},{"name":"n","type":"long"}"#;
        let record = record(text, &[2, 0xff, 2]).unwrap();
        let said = |e: Mismatch| (e.expected, e.found);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(said(record.long("t").unwrap_err()), pair("an int or long in `t`", "string"));
        assert_eq!(said(record.string("n").unwrap_err()), pair("a string in `n`", "long"));
        assert_eq!(said(record.record("n").unwrap_err()), pair("a record in `n`", "long"));
        assert_eq!(
            said(record.visit_longs("t", |_, _| ()).unwrap_err()),
            pair("an array of key-value records in `t`", "string")
        );
        assert_eq!(record.string("t").unwrap_err().expected, "UTF-8 in `t`");
    }

    #[test]
    fn numbers_of_any_length() {
        let long = |mut bytes: &[u8]| take_long(&mut bytes).map(|n| (n, bytes.len()));
        assert_eq!(long(&[0]), Some((0, 0)));
        assert_eq!(long(&[3, 1]), Some((-2, 1)));
        assert_eq!(long(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Some((i64::MIN, 0)));
        assert_eq!(long(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!(long(&[0x80]), None);
        assert_eq!(long(&[]), None);
    }
}
