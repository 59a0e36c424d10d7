//! Avro object container files, record by record.
//!
//! ```text
//! "Obj" 01 | map: avro.schema, avro.codec, … | sync (16 bytes)
//! { count (long) | size (long) | size bytes, packed by the codec | sync } …
//! ```
//!
//! (Avro 1.11.1, "Object Container Files".) The container is taken apart here and only the records go through
//! `arrow-avro`: its own container reader (59.3) neither compares sync markers nor notices a cut last block, and does not
//! return when a block holds more bytes than its count says.

use std::io::Read;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray as _, BinaryArray, Int32Array, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow_avro::compression::CompressionCodec;
use arrow_avro::reader::{Decoder, ReaderBuilder, read_header_info};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use serde_json::Value;

use crate::Error;

/// No block of a real manifest comes near this; a damaged zstd frame could claim anything.
const MAX_UNPACKED: u64 = 512 << 20;

/// Snappy's best ratio is below 22; its header could claim 4 GiB.
const MAX_SNAPPY_RATIO: usize = 32;

/// Registry framing of a record (magic 0 and a schema id): the way to hand `arrow-avro` one record and be told how many
/// bytes it took.
const FRAME: [u8; 5] = [0, 0, 0, 0, 0];
const FRAME_ID: Fingerprint = Fingerprint::Id(0);

/// Decodes every record of a container file. Of the record's fields only those in `wanted` are decoded (`a`, and `a.b`
/// for a field of a nested record); `convert` turns a record into what is kept of it.
///
/// # Errors
/// [`Error::Invalid`] at the first thing that does not verify.
pub(crate) fn decode<T>(
    path: &Path,
    bytes: &[u8],
    wanted: &[&str],
    mut convert: impl FnMut(&Record) -> Result<T, Mismatch>,
) -> Result<Vec<T>, Error> {
    let mut decode = || -> Result<Vec<T>, Mismatch> {
        let header = read_header_info(bytes).map_err(|e| Mismatch::new("an Avro container file", &e))?;
        let codec = header.compression().map_err(|e| Mismatch::new("a known Avro codec", &e))?;
        let schema = header.writer_schema().map_err(|e| Mismatch::new("an Avro schema", &e))?;
        let mut decoder = record_decoder(&schema, wanted)?;
        let mut rest = usize::try_from(header.header_len()).ok().and_then(|n| bytes.get(n..)).unwrap_or_default();
        let mut records = Vec::new();
        while !rest.is_empty() {
            let block = Block::take(&mut rest, &header.sync())?;
            let data = unpack(codec, block.data)?;
            let mut data = data.as_deref().unwrap_or(block.data);
            verify_count(block.count, data.len())?;
            for _ in 0..block.count {
                records.push(convert(&next_record(&mut decoder, &mut data)?)?);
            }
            verify_block_end(data)?;
        }
        Ok(records)
    };
    decode().map_err(|mismatch| mismatch.in_file(path))
}

/// What a decoder wanted and what it got, before it is known in which file.
#[derive(Debug)]
pub(crate) struct Mismatch {
    expected: String,
    found: String,
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, found: &dyn std::fmt::Display) -> Self {
        Self { expected: expected.into(), found: found.to_string() }
    }

    pub(crate) fn in_file(self, path: &Path) -> Error {
        Error::Invalid { path: path.to_owned(), expected: self.expected, found: self.found }
    }
}

struct Block<'a> {
    count: u64,
    data: &'a [u8],
}

impl<'a> Block<'a> {
    fn take(rest: &mut &'a [u8], sync: &[u8; 16]) -> Result<Self, Mismatch> {
        let count = take_long(rest).and_then(|n| u64::try_from(n).ok());
        let count = count.ok_or_else(|| Mismatch::new("the record count of an Avro block", &"no such number"))?;
        let size = take_long(rest).and_then(|n| usize::try_from(n).ok());
        let size = size.ok_or_else(|| Mismatch::new("the size of an Avro block", &"no such number"))?;
        let (data, after) = rest
            .split_at_checked(size)
            .ok_or_else(|| Mismatch::new(format!("an Avro block of {size} bytes"), &format!("{} left", rest.len())))?;
        let (marker, after) = after.split_at_checked(sync.len()).ok_or_else(|| {
            Mismatch::new("a sync marker after the Avro block", &format!("{} bytes left", after.len()))
        })?;
        verify_sync(marker, sync)?;
        *rest = after;
        Ok(Self { count, data })
    }
}

/// A zigzag varint of at most ten bytes.
fn take_long(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
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

fn verify_sync(marker: &[u8], sync: &[u8; 16]) -> Result<(), Mismatch> {
    if marker == sync {
        return Ok(());
    }
    Err(Mismatch::new("the file's sync marker after the Avro block", &"other bytes"))
}

/// Every record here has at least one field, so takes at least one byte.
fn verify_count(count: u64, bytes: usize) -> Result<(), Mismatch> {
    if count <= bytes as u64 {
        return Ok(());
    }
    Err(Mismatch::new(format!("an Avro block of {count} records"), &format!("{bytes} bytes")))
}

fn verify_block_end(rest: &[u8]) -> Result<(), Mismatch> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(Mismatch::new("the end of the Avro block after its last record", &format!("{} more bytes", rest.len())))
}

/// A block's data, unpacked; none when it is not packed.
fn unpack(codec: Option<CompressionCodec>, data: &[u8]) -> Result<Option<Vec<u8>>, Mismatch> {
    match codec {
        None => Ok(None),
        Some(CompressionCodec::Deflate) => read_limited(flate2::read::DeflateDecoder::new(data)).map(Some),
        Some(CompressionCodec::ZStandard) => {
            let decoder = zstd::Decoder::new(data).map_err(|e| Mismatch::new("a zstd frame", &e))?;
            read_limited(decoder).map(Some)
        }
        Some(CompressionCodec::Snappy) => unpack_snappy(data).map(Some),
        Some(other) => Err(Mismatch::new("codec null, deflate, snappy or zstandard", &format!("{other:?}"))),
    }
}

fn read_limited(decoder: impl Read) -> Result<Vec<u8>, Mismatch> {
    let mut unpacked = Vec::new();
    let length = decoder
        .take(MAX_UNPACKED)
        .read_to_end(&mut unpacked)
        .map_err(|e| Mismatch::new("an Avro block that unpacks", &e))?;
    if length as u64 == MAX_UNPACKED {
        return Err(Mismatch::new(format!("an Avro block below {MAX_UNPACKED} bytes"), &"a larger one"));
    }
    Ok(unpacked)
}

/// Avro follows the snappy data with a CRC-32 (big-endian) of what it unpacks to.
fn unpack_snappy(data: &[u8]) -> Result<Vec<u8>, Mismatch> {
    let (packed, checksum) = data
        .split_last_chunk::<4>()
        .ok_or_else(|| Mismatch::new("a snappy block with its checksum", &"fewer than 4 bytes"))?;
    let length = snap::raw::decompress_len(packed).map_err(|e| Mismatch::new("a snappy block", &e))?;
    if length / MAX_SNAPPY_RATIO > packed.len() {
        return Err(Mismatch::new(
            "a snappy block",
            &format!("{} bytes that claim to unpack to {length}", packed.len()),
        ));
    }
    let unpacked = snap::raw::Decoder::new().decompress_vec(packed).map_err(|e| Mismatch::new("a snappy block", &e))?;
    let (expected, found) = (u32::from_be_bytes(*checksum), crc32fast::hash(&unpacked));
    if expected != found {
        return Err(Mismatch::new(format!("a snappy block with CRC-32 {expected:08x}"), &format!("{found:08x}")));
    }
    Ok(unpacked)
}

fn record_decoder(writer_schema: &AvroSchema, wanted: &[&str]) -> Result<Decoder, Mismatch> {
    let mismatch = |e: &dyn std::fmt::Display| Mismatch::new("an Avro schema of a record", e);
    let mut schema: Value = serde_json::from_str(&writer_schema.json_string).map_err(|e| mismatch(&e))?;
    prune(&mut schema, "", wanted).ok_or_else(|| mismatch(&"another one"))?;
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store.set(FRAME_ID, writer_schema.clone()).map_err(|e| mismatch(&e))?;
    ReaderBuilder::new()
        .with_batch_size(1)
        .with_writer_schema_store(store)
        .with_active_fingerprint(FRAME_ID)
        .with_reader_schema(AvroSchema::new(schema.to_string()))
        .build_decoder()
        .map_err(|e| mismatch(&e))
}

/// Makes the reader's schema out of the writer's: the same records with the wanted fields only. None when it is not a
/// record or nothing would be left.
fn prune(schema: &mut Value, prefix: &str, wanted: &[&str]) -> Option<()> {
    let fields = schema.get_mut("fields")?.as_array_mut()?;
    let mut kept = Vec::new();
    for mut field in std::mem::take(fields) {
        let path = format!("{prefix}{}", field.get("name")?.as_str()?);
        let inner = format!("{path}.");
        if wanted.iter().any(|w| w.starts_with(&inner)) {
            prune(field.get_mut("type")?, &inner, wanted)?;
            kept.push(field);
        } else if wanted.contains(&path.as_str()) {
            kept.push(field);
        }
    }
    let any = !kept.is_empty();
    *fields = kept;
    any.then_some(())
}

fn next_record(decoder: &mut Decoder, data: &mut &[u8]) -> Result<Record, Mismatch> {
    let mismatch = |e: &dyn std::fmt::Display| Mismatch::new("an Avro record of the file's schema", e);
    decoder.decode(&FRAME).map_err(|e| mismatch(&e))?;
    let taken = decoder.decode(data).map_err(|e| mismatch(&e))?;
    let batch = decoder.flush().map_err(|e| mismatch(&e))?.ok_or_else(|| mismatch(&"a cut one"))?;
    *data = data.get(taken..).unwrap_or_default();
    Ok(Record::from(batch))
}

/// One decoded record. A field that the schema lacks, or that is null, is none.
pub(crate) struct Record(StructArray);

impl From<RecordBatch> for Record {
    fn from(batch: RecordBatch) -> Self {
        Self(StructArray::from(batch))
    }
}

impl Record {
    /// Whether the writer's schema has the field at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.column_by_name(name).is_some()
    }

    fn value(&self, name: &str) -> Option<&ArrayRef> {
        self.0.column_by_name(name).filter(|column| column.is_valid(0))
    }

    pub(crate) fn long(&self, name: &str) -> Result<Option<i64>, Mismatch> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.data_type() {
            DataType::Int32 => Ok(Some(value.as_primitive::<Int32Type>().value(0).into())),
            DataType::Int64 => Ok(Some(value.as_primitive::<Int64Type>().value(0))),
            other => Err(wrong_type(name, "an int or long", other)),
        }
    }

    pub(crate) fn string(&self, name: &str) -> Result<Option<&str>, Mismatch> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_string_opt::<i32>().ok_or_else(|| wrong_type(name, "a string", value.data_type()))?;
        Ok(Some(text.value(0)))
    }

    pub(crate) fn record(&self, name: &str) -> Result<Option<Record>, Mismatch> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let record = value.as_struct_opt().ok_or_else(|| wrong_type(name, "a record", value.data_type()))?;
        Ok(Some(Record(record.clone())))
    }

    /// A map from int to long, written as an array of key-value records. An entry with a null is left out.
    pub(crate) fn long_map(&self, name: &str) -> Result<Vec<(i32, i64)>, Mismatch> {
        let Some((keys, values)) = self.map(name)? else { return Ok(Vec::new()) };
        let longs = values
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| wrong_type(name, "long values", values.data_type()))?;
        Ok(keys.iter().zip(longs).filter_map(|(key, value)| key.zip(value)).collect())
    }

    /// A map from int to bytes, written as an array of key-value records. An entry with a null is left out.
    pub(crate) fn bytes_map(&self, name: &str) -> Result<BytesMap, Mismatch> {
        let Some((keys, values)) = self.map(name)? else { return Ok(BytesMap(None)) };
        let bytes =
            values.as_binary_opt::<i32>().ok_or_else(|| wrong_type(name, "bytes values", values.data_type()))?;
        Ok(BytesMap(Some((keys, bytes.clone()))))
    }

    fn map(&self, name: &str) -> Result<Option<(Int32Array, ArrayRef)>, Mismatch> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let mismatch = || wrong_type(name, "an array of key-value records", value.data_type());
        let entries = value.as_list_opt::<i32>().ok_or_else(mismatch)?.value(0);
        let entries = entries.as_struct_opt().ok_or_else(mismatch)?;
        let keys =
            entries.column_by_name("key").and_then(|k| k.as_primitive_opt::<Int32Type>()).ok_or_else(mismatch)?;
        let values = entries.column_by_name("value").ok_or_else(mismatch)?;
        Ok(Some((keys.clone(), values.clone())))
    }
}

/// Bytes by int.
pub(crate) struct BytesMap(Option<(Int32Array, BinaryArray)>);

impl BytesMap {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &[u8])> {
        self.0.iter().flat_map(|(keys, values)| keys.iter().zip(values).filter_map(|(k, v)| k.zip(v)))
    }
}

fn wrong_type(name: &str, expected: &str, found: &DataType) -> Mismatch {
    Mismatch::new(format!("{expected} in `{name}`"), found)
}

/// A count or a size: there, and not negative.
pub(crate) fn size(value: Option<i64>, name: &str) -> Result<u64, Mismatch> {
    let size = value.and_then(|v| u64::try_from(v).ok());
    size.ok_or_else(|| {
        let found = value.map_or_else(|| "none".to_owned(), |v| v.to_string());
        Mismatch::new(format!("`{name}` of 0 or more"), &found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: [u8; 16] = [9; 16];
    const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[
        {"name":"skipped","type":"string"},
        {"name":"number","type":["null","long"]},
        {"name":"inner","type":{"type":"record","name":"i","fields":[
            {"name":"a","type":"int"}, {"name":"b","type":"string"}]}}]}"#;

    /// Two records: ("x", 300, (1, "yz")) and ("", null, (-1, "")).
    const RECORDS: [u8; 12] = [2, b'x', 2, 0xd8, 0x04, 2, 4, b'y', b'z', 0, 0, 1];
    const LAST: [u8; 1] = [0];

    fn header(schema: &str, codec: &str) -> Vec<u8> {
        let mut out = b"Obj\x01\x04".to_vec();
        for text in ["avro.schema", schema, "avro.codec", codec] {
            let length = text.len() * 2;
            out.extend([(length & 0x7f | 0x80).to_le_bytes()[0], (length >> 7).to_le_bytes()[0]]);
            out.extend(text.as_bytes());
        }
        out.push(0);
        out.extend(SYNC);
        out
    }

    fn block(count: u8, data: &[u8]) -> Vec<u8> {
        let mut out = vec![count * 2, (data.len() * 2).to_le_bytes()[0]];
        out.extend(data);
        out.extend(SYNC);
        out
    }

    fn records() -> Vec<u8> {
        [&RECORDS[..], &LAST].concat()
    }

    /// `number` and `inner.a` of each record.
    type Numbers = Vec<(Option<i64>, Option<i64>)>;

    fn read(file: &[u8]) -> Result<Numbers, String> {
        let wanted = ["number", "inner.a", "not.there"];
        let read = decode(Path::new("f.avro"), file, &wanted, |record| {
            assert!(!record.has("skipped"));
            let inner = record.record("inner")?.unwrap();
            assert_eq!(inner.string("b")?, None);
            Ok((record.long("number")?, inner.long("a")?))
        });
        read.map_err(|e| e.to_string())
    }

    fn assert_rejected(file: &[u8], message: &str) {
        assert_eq!(read(file).unwrap_err(), format!("`f.avro`: expected {message}"));
    }

    #[test]
    fn reads_the_wanted_fields_of_every_block() {
        let file = [header(SCHEMA, "null"), block(2, &records()), block(1, &records()[..9])].concat();
        assert_eq!(read(&file).unwrap(), [(Some(300), Some(1)), (None, Some(-1)), (Some(300), Some(1))]);
    }

    #[test]
    fn rejects_another_kind_of_file() {
        assert_rejected(b"PAR1", "an Avro container file, found Parser error: Incorrect avro magic");
        assert_rejected(b"", "an Avro container file, found EOF: Unexpected EOF while reading Avro header");
    }

    #[test]
    fn rejects_a_schema_that_is_not_a_record_of_the_wanted_fields() {
        assert_rejected(&header(r#""long""#, "null"), "an Avro schema of a record, found another one");
        let others = r#"{"type":"record","name":"r","fields":[{"name":"x","type":"int"}]}"#;
        assert_rejected(&header(others, "null"), "an Avro schema of a record, found another one");
        assert!(read(&header("{", "null")).unwrap_err().contains("an Avro schema of a record, found EOF"));
    }

    #[test]
    fn rejects_an_unknown_codec() {
        let message = "a known Avro codec, found Parser error: Unrecognized compression codec 'lz4'";
        assert_rejected(&header(SCHEMA, "lz4"), message);
    }

    #[test]
    fn rejects_a_bad_sync_marker() {
        let mut file = [header(SCHEMA, "null"), block(2, &records())].concat();
        *file.last_mut().unwrap() = 8;
        assert_rejected(&file, "the file's sync marker after the Avro block, found other bytes");
    }

    #[test]
    fn rejects_a_cut_block() {
        let cut = |bytes: usize| {
            let block = block(2, &records());
            [&header(SCHEMA, "null"), &block[..bytes]].concat()
        };
        assert_rejected(&cut(1), "the size of an Avro block, found no such number");
        assert_rejected(&cut(9), "an Avro block of 13 bytes, found 7 left");
        assert_rejected(&cut(20), "a sync marker after the Avro block, found 5 bytes left");
    }

    #[test]
    fn rejects_a_count_that_does_not_fit() {
        let file = |count: u8| [header(SCHEMA, "null"), block(count, &records())].concat();
        assert_rejected(&file(1), "the end of the Avro block after its last record, found 4 more bytes");
        assert_rejected(&file(3), "an Avro record of the file's schema, found a cut one");
        assert_rejected(&file(14), "an Avro block of 14 records, found 13 bytes");
        let negative = [&header(SCHEMA, "null")[..], &[3, 0], &SYNC].concat();
        assert_rejected(&negative, "the record count of an Avro block, found no such number");
    }

    #[test]
    fn rejects_blocks_that_do_not_unpack() {
        let packed = |codec: &str, data: &[u8]| [header(SCHEMA, codec), block(2, data)].concat();
        assert!(
            read(&packed("deflate", &[0xff; 5])).unwrap_err().contains("expected an Avro block that unpacks, found")
        );
        assert!(
            read(&packed("zstandard", &[0xff; 5])).unwrap_err().contains("expected an Avro block that unpacks, found")
        );
        assert!(
            read(&packed("snappy", &[0x0d, 0, 0, 0, 0, 0])).unwrap_err().contains("expected a snappy block, found")
        );
        assert_rejected(&packed("snappy", &[1, 2, 3]), "a snappy block with its checksum, found fewer than 4 bytes");
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0];
        assert_rejected(&packed("snappy", &claim), "a snappy block, found 6 bytes that claim to unpack to 4294967295");
        let mut snappy = snap::raw::Encoder::new().compress_vec(&records()).unwrap();
        let sum = crc32fast::hash(&records());
        snappy.extend((sum ^ 1).to_be_bytes());
        assert_rejected(
            &packed("snappy", &snappy),
            &format!("a snappy block with CRC-32 {:08x}, found {sum:08x}", sum ^ 1),
        );
    }

    #[test]
    fn rejects_fields_of_another_type() {
        let wrong = r#"{"type":"record","name":"r","fields":[
            {"name":"number","type":"string"},{"name":"inner","type":"string"}]}"#;
        let file = [header(wrong, "null"), block(1, &[2, b'x', 2, b'y'])].concat();
        let read = |check: fn(&Record) -> Result<(), Mismatch>| {
            decode(Path::new("f.avro"), &file, &["number", "inner"], check).unwrap_err().to_string()
        };
        let expect = |what: &str| format!("`f.avro`: expected {what}, found Utf8");
        assert_eq!(read(|r| r.long("number").map(drop)), expect("an int or long in `number`"));
        assert_eq!(read(|r| r.record("inner").map(drop)), expect("a record in `inner`"));
        assert_eq!(read(|r| r.long_map("inner").map(drop)), expect("an array of key-value records in `inner`"));
        assert_eq!(read(|r| r.bytes_map("inner").map(drop)), expect("an array of key-value records in `inner`"));
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
