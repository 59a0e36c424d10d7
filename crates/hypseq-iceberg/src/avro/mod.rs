//! Avro object container files, record by record.
//!
//! ```text
//! "Obj" 01 | map: avro.schema, avro.codec, … | sync (16 bytes)
//! { count (long) | size (long) | size bytes, packed by the codec | sync } …
//! ```
//!
//! (Avro 1.11.1, "Object Container Files".) A record is taken apart without decoding it: of a manifest's entries with
//! their many columns only a few values are wanted. `arrow-avro` (59.3), which decodes whole batches, neither compares
//! sync markers nor notices a cut last block, and does not return when a block holds more bytes than its count says.

mod record;
mod schema;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

pub(crate) use self::record::Record;
use self::record::take_long;
use self::schema::RecordType;
use crate::Error;

const MAGIC: &[u8] = b"Obj\x01";

/// No block of a real manifest comes near this; a damaged zstd frame could claim anything.
const MAX_UNPACKED: u64 = 512 << 20;

/// Records that are taken apart before they are converted: enough to share out, and little memory.
const AT_A_TIME: u64 = 4096;

/// Snappy's best ratio is below 22; its header could claim 4 GiB.
const MAX_SNAPPY_RATIO: usize = 32;

/// Decodes every record of a container file; `convert` turns a record into what is kept of it. Where a record ends is
/// only known when it has been passed, but some thousand at a time are converted in parallel.
///
/// # Errors
/// [`Error::Invalid`] at the first thing that does not verify.
pub(crate) fn decode<T: Send>(
    path: &Path,
    bytes: &[u8],
    convert: impl Fn(&Record<'_>) -> Result<T, Mismatch> + Sync,
) -> Result<Vec<T>, Error> {
    let decode = || -> Result<Vec<T>, Mismatch> {
        let mut rest = bytes;
        let header = Header::take(&mut rest)?;
        let mut converted = Vec::new();
        while !rest.is_empty() {
            let block = Block::take(&mut rest, &header.sync)?;
            let data = header.codec.unpack(block.data)?;
            let mut data = data.as_deref().unwrap_or(block.data);
            verify_count(block.count, data.len())?;
            let mut left = block.count;
            while left > 0 {
                let part = left.min(AT_A_TIME);
                let take = |_| Record::take(&header.schema, &mut data);
                let records: Vec<Record<'_>> = (0..part).map(take).collect::<Result<_, _>>()?;
                let part_converted: Vec<T> = records.par_iter().map(&convert).collect::<Result<_, _>>()?;
                converted.extend(part_converted);
                left -= part;
            }
            verify_block_end(data)?;
        }
        Ok(converted)
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

struct Header {
    schema: Arc<RecordType>,
    codec: Codec,
    sync: [u8; 16],
}

impl Header {
    fn take(rest: &mut &[u8]) -> Result<Self, Mismatch> {
        let mismatch = |found: &dyn std::fmt::Display| Mismatch::new("an Avro container file", found);
        *rest = rest.strip_prefix(MAGIC).ok_or_else(|| mismatch(&"a file that does not begin with `Obj` 1"))?;
        let (mut schema, mut codec) = (None, None);
        let entries = record::take_map(rest, |key, value| match key {
            b"avro.schema" => schema = Some(value),
            b"avro.codec" => codec = Some(value),
            _ => {}
        });
        entries.ok_or_else(|| mismatch(&"a cut header"))?;
        let (sync, after) = rest.split_first_chunk::<16>().ok_or_else(|| mismatch(&"a cut header"))?;
        *rest = after;
        Ok(Self {
            schema: schema::parse(schema.ok_or_else(|| mismatch(&"one without a schema"))?)?,
            codec: Codec::parse(codec)?,
            sync: *sync,
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

impl Codec {
    fn parse(name: Option<&[u8]>) -> Result<Self, Mismatch> {
        match name {
            None | Some(b"null") => Ok(Self::Null),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(b"snappy") => Ok(Self::Snappy),
            Some(b"zstandard") => Ok(Self::Zstandard),
            Some(other) => Err(Mismatch::new(
                "codec null, deflate, snappy or zstandard",
                &format!("`{}`", String::from_utf8_lossy(other)),
            )),
        }
    }

    /// A block's data, unpacked; none when it is not packed.
    fn unpack(self, data: &[u8]) -> Result<Option<Vec<u8>>, Mismatch> {
        match self {
            Self::Null => Ok(None),
            Self::Deflate => read_limited(flate2::read::DeflateDecoder::new(data)).map(Some),
            Self::Snappy => unpack_snappy(data).map(Some),
            Self::Zstandard => {
                let decoder = zstd::Decoder::new(data).map_err(|e| Mismatch::new("a zstd frame", &e))?;
                read_limited(decoder).map(Some)
            }
        }
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
        let read = decode(Path::new("f.avro"), file, |record| {
            assert!(record.has("skipped") && !record.has("other"));
            let inner = record.record("inner")?.unwrap();
            assert_eq!(inner.string("c")?, None);
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
        assert_rejected(b"PAR1", "an Avro container file, found a file that does not begin with `Obj` 1");
        assert_rejected(b"", "an Avro container file, found a file that does not begin with `Obj` 1");
        let whole = header(SCHEMA, "null");
        assert_rejected(&whole[..40], "an Avro container file, found a cut header");
        assert_rejected(&whole[..whole.len() - 1], "an Avro container file, found a cut header");
        assert_rejected(b"Obj\x01\0################", "an Avro container file, found one without a schema");
    }

    #[test]
    fn rejects_an_unknown_codec() {
        let message = "codec null, deflate, snappy or zstandard, found `lz4`";
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
        assert_rejected(&file(3), "an Avro record of the file's schema, found a cut or damaged one");
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
}

/// Every manifest of the corpora's messages, against `arrow-avro`, which cannot read a record without fields: the partition
/// of the other datasets.
#[cfg(test)]
mod oracle {
    use std::fs;
    use std::path::PathBuf;

    use arrow::array::{Array as _, AsArray as _, StructArray};
    use arrow::datatypes::{Int32Type, Int64Type};
    use arrow_avro::reader::ReaderBuilder;

    use super::*;

    /// Path, rows, and upper bounds of a data file.
    type File = (String, i64, Vec<(i32, Vec<u8>)>);

    fn ours(bytes: &[u8]) -> Vec<File> {
        let files = decode(Path::new("m.avro"), bytes, |record| {
            let file = record.record("data_file")?.unwrap();
            let mut bounds = Vec::new();
            file.visit_bytes("upper_bounds", |id, bound| bounds.push((id, bound.to_vec())))?;
            Ok((file.string("file_path")?.unwrap().to_owned(), file.long("record_count")?.unwrap(), bounds))
        });
        files.unwrap()
    }

    fn theirs(bytes: &[u8]) -> Vec<File> {
        let reader = ReaderBuilder::new().build(bytes).unwrap();
        let mut files = Vec::new();
        for batch in reader {
            let batch = batch.unwrap();
            let file = batch.column_by_name("data_file").unwrap().as_struct();
            let column = |name: &str| file.column_by_name(name).unwrap();
            for row in 0..batch.num_rows() {
                let bounds = column("upper_bounds").as_list::<i32>();
                let bounds = if bounds.is_null(row) { Vec::new() } else { entries(bounds.value(row).as_struct()) };
                let path = column("file_path").as_string::<i32>().value(row).to_owned();
                files.push((path, column("record_count").as_primitive::<Int64Type>().value(row), bounds));
            }
        }
        files
    }

    fn entries(entries: &StructArray) -> Vec<(i32, Vec<u8>)> {
        let keys = entries.column_by_name("key").unwrap().as_primitive::<Int32Type>();
        let values = entries.column_by_name("value").unwrap().as_binary::<i32>();
        (0..entries.len()).map(|i| (keys.value(i), values.value(i).to_vec())).collect()
    }

    fn manifests(dir: PathBuf, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                manifests(path, found);
            } else if path.extension().is_some_and(|e| e == "avro") && !name.starts_with("snap-") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_manifest_reads_as_arrow_avro_reads_it() {
        let mut found = Vec::new();
        manifests(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata"), &mut found);
        found.retain(|path| path.components().any(|part| part.as_os_str() == "ai_gateway_messages"));
        assert!(found.len() > 100, "{} manifests only", found.len());
        for path in found {
            let bytes = fs::read(&path).unwrap();
            assert_eq!(ours(&bytes), theirs(&bytes), "{}", path.display());
        }
    }
}
