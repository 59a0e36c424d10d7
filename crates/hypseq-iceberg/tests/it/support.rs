//! Tables made by hand, so that a test can say what is wrong with one.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hypseq_iceberg::{SnapshotFiles, Table};
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const LOCATION: &str = "file:///home/op/t";
pub const SNAPSHOT: i64 = 77;

/// An entry of a manifest; by default a data file of 100 rows that was added with it.
#[derive(Clone)]
pub struct Entry {
    pub status: i64,
    pub snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub content: i64,
    pub url: String,
    pub format: &'static str,
    pub record_count: i64,
    pub nulls: Vec<(i32, i64)>,
    pub lower: Vec<(i32, Vec<u8>)>,
    pub upper: Vec<(i32, Vec<u8>)>,
    pub referenced: Option<String>,
    pub offset: Option<i64>,
    pub size: Option<i64>,
}

impl Entry {
    pub fn data(name: &str) -> Self {
        Self {
            status: 1,
            snapshot_id: None,
            sequence_number: None,
            content: 0,
            url: url(name),
            format: "PARQUET",
            record_count: 100,
            nulls: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            referenced: None,
            offset: None,
            size: None,
        }
    }

    pub fn positions(name: &str, rows: i64) -> Self {
        Self { content: 1, record_count: rows, ..Self::data(name) }
    }

    pub fn vector(name: &str, data: &str, blob: &[u8], rows: i64) -> Self {
        Self {
            content: 1,
            format: "PUFFIN",
            record_count: rows,
            referenced: Some(url(data)),
            offset: Some(4),
            size: Some(blob.len().try_into().unwrap()),
            ..Self::data(name)
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        long(&mut out, self.status);
        optional(&mut out, self.snapshot_id.as_ref(), |out, v| long(out, *v));
        optional(&mut out, self.sequence_number.as_ref(), |out, v| long(out, *v));
        long(&mut out, self.content);
        bytes(&mut out, self.url.as_bytes());
        bytes(&mut out, self.format.as_bytes());
        long(&mut out, self.record_count);
        long(&mut out, 1234);
        array(&mut out, &self.nulls, |out, (key, value)| {
            long(out, (*key).into());
            long(out, *value);
        });
        for bounds in [&self.lower, &self.upper] {
            array(&mut out, bounds, |out, (key, value)| {
                long(out, (*key).into());
                bytes(out, value);
            });
        }
        optional(&mut out, self.referenced.as_ref(), |out, v| bytes(out, v.as_bytes()));
        optional(&mut out, self.offset.as_ref(), |out, v| long(out, *v));
        optional(&mut out, self.size.as_ref(), |out, v| long(out, *v));
        out
    }
}

/// A manifest and what its list says of it.
#[derive(Clone)]
pub struct Manifest {
    pub content: i64,
    pub sequence_number: i64,
    pub entries: Vec<Entry>,
    pub codec: &'static str,
    /// Where the list says that it is; none for where it is.
    pub url: Option<String>,
    /// Added to the length and to the entry count in the list.
    pub off_by: (i64, i64),
}

impl Manifest {
    pub fn data(sequence_number: i64, entries: &[Entry]) -> Self {
        Self { content: 0, sequence_number, entries: entries.to_vec(), codec: "null", url: None, off_by: (0, 0) }
    }

    pub fn deletes(sequence_number: i64, entries: &[Entry]) -> Self {
        Self { content: 1, ..Self::data(sequence_number, entries) }
    }

    fn encode(&self) -> Vec<u8> {
        let map = |name: &str, value: &str| {
            json!(["null", {"type": "array", "logicalType": "map", "items": {"type": "record", "name": name,
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": value}]}}])
        };
        let schema = json!({"type": "record", "name": "manifest_entry", "fields": [
            {"name": "status", "type": "int"},
            {"name": "snapshot_id", "type": ["null", "long"]},
            {"name": "sequence_number", "type": ["null", "long"]},
            {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
                {"name": "content", "type": "int"},
                {"name": "file_path", "type": "string"},
                {"name": "file_format", "type": "string"},
                {"name": "record_count", "type": "long"},
                {"name": "file_size_in_bytes", "type": "long"},
                {"name": "null_value_counts", "type": map("n", "long")},
                {"name": "lower_bounds", "type": map("l", "bytes")},
                {"name": "upper_bounds", "type": map("u", "bytes")},
                {"name": "referenced_data_file", "type": ["null", "string"]},
                {"name": "content_offset", "type": ["null", "long"]},
                {"name": "content_size_in_bytes", "type": ["null", "long"]},
            ]}},
        ]});
        let records: Vec<Vec<u8>> = self.entries.iter().map(Entry::encode).collect();
        container(&schema, self.codec, &records)
    }
}

/// A table of one snapshot with these manifests.
pub struct TestTable(TempDir);

impl TestTable {
    pub fn new(manifests: &[Manifest]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::create_dir(dir.path().join("metadata")).unwrap();
        let table = Self(dir);
        let mut list = Vec::new();
        for (i, manifest) in manifests.iter().enumerate() {
            let encoded = manifest.encode();
            let mut record = Vec::new();
            let real = format!("{LOCATION}/metadata/m{i}.avro");
            bytes(&mut record, manifest.url.as_ref().unwrap_or(&real).as_bytes());
            long(&mut record, i64::try_from(encoded.len()).unwrap() + manifest.off_by.0);
            for number in [manifest.content, manifest.sequence_number, SNAPSHOT, 0, 0] {
                long(&mut record, number);
            }
            long(&mut record, i64::try_from(manifest.entries.len()).unwrap() + manifest.off_by.1);
            list.push(record);
            table.write(&format!("metadata/m{i}.avro"), &encoded);
        }
        let field = |name: &str, kind: &str| json!({"name": name, "type": kind});
        let schema = json!({"type": "record", "name": "manifest_file", "fields": [
            field("manifest_path", "string"), field("manifest_length", "long"), field("content", "int"),
            field("sequence_number", "long"), field("added_snapshot_id", "long"), field("added_files_count", "int"),
            field("existing_files_count", "int"), field("deleted_files_count", "int"),
        ]});
        table.write("metadata/list.avro", &container(&schema, "null", &list));
        table.write("metadata/version-hint.text", b"1");
        let metadata = json!({
            "format-version": 3, "table-uuid": "u", "location": LOCATION, "last-sequence-number": 9,
            "current-schema-id": 0,
            "schemas": [{"schema-id": 0, "fields": [
                {"id": 1, "name": "seq", "required": false, "type": "long"},
                {"id": 2, "name": "at", "required": false, "type": "timestamptz"},
                {"id": 3, "name": "text", "required": false, "type": "string"},
            ]}],
            "current-snapshot-id": SNAPSHOT,
            "snapshots": [{"snapshot-id": SNAPSHOT, "sequence-number": 9, "timestamp-ms": 0,
                "manifest-list": format!("{LOCATION}/metadata/list.avro")}],
        });
        table.write("metadata/v1.metadata.json", metadata.to_string().as_bytes());
        table
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn files(&self) -> SnapshotFiles {
        let table = Table::open(self.0.path()).unwrap();
        table.files(table.metadata.current_snapshot().unwrap()).unwrap()
    }

    /// The problems as text, with the table's folder taken out.
    pub fn problems(&self) -> Vec<String> {
        self.files().problems.iter().map(|p| self.without_folder(p)).collect()
    }

    pub fn without_folder(&self, error: &hypseq_iceberg::Error) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

pub fn url(name: &str) -> String {
    format!("{LOCATION}/{name}")
}

/// A container file with one block.
pub fn container(schema: &Value, codec: &str, records: &[Vec<u8>]) -> Vec<u8> {
    let sync = [7; 16];
    let mut out = b"Obj\x01".to_vec();
    long(&mut out, 2);
    for (key, value) in [("avro.schema", schema.to_string()), ("avro.codec", codec.to_owned())] {
        bytes(&mut out, key.as_bytes());
        bytes(&mut out, value.as_bytes());
    }
    long(&mut out, 0);
    out.extend(sync);
    long(&mut out, records.len().try_into().unwrap());
    bytes(&mut out, &pack(codec, &records.concat()));
    out.extend(sync);
    out
}

fn pack(codec: &str, data: &[u8]) -> Vec<u8> {
    match codec {
        "deflate" => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        "zstandard" => zstd::encode_all(data, 0).unwrap(),
        "snappy" => {
            let mut packed = snap::raw::Encoder::new().compress_vec(data).unwrap();
            packed.extend(crc32fast::hash(data).to_be_bytes());
            packed
        }
        _ => data.to_vec(),
    }
}

pub fn long(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest > 0x7f {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(rest.try_into().unwrap());
}

pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    long(out, value.len().try_into().unwrap());
    out.extend(value);
}

fn optional<T>(out: &mut Vec<u8>, value: Option<&T>, encode: impl Fn(&mut Vec<u8>, &T)) {
    long(out, value.is_some().into());
    if let Some(value) = value {
        encode(out, value);
    }
}

/// A nullable array: null when empty.
fn array<T>(out: &mut Vec<u8>, items: &[T], encode: impl Fn(&mut Vec<u8>, &T)) {
    long(out, (!items.is_empty()).into());
    if !items.is_empty() {
        long(out, items.len().try_into().unwrap());
        for item in items {
            encode(out, item);
        }
        long(out, 0);
    }
}

/// A deletion vector's blob.
pub fn blob(positions: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut body = vec![0xD1, 0xD3, 0x39, 0x64];
    positions.into_iter().collect::<RoaringTreemap>().serialize_into(&mut body).unwrap();
    sealed(&body)
}

/// A blob around magic and bitmap, with a length and a checksum that fit.
pub fn sealed(body: &[u8]) -> Vec<u8> {
    let mut blob = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    blob.extend(body);
    blob.extend(crc32fast::hash(body).to_be_bytes());
    blob
}

pub fn puffin(blob: &[u8]) -> Vec<u8> {
    let footer = b"{\"blobs\":[]}";
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PFA1", blob, b"PFA1", footer, &length, &[0; 4], b"PFA1"].concat()
}

/// A position-delete file.
pub fn position_deletes(path: &Path, rows: &[(&str, i64)]) {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let urls: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(url, _)| url)));
    let positions: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, pos)| *pos)));
    write_parquet(path, &RecordBatch::try_from_iter([("file_path", urls), ("pos", positions)]).unwrap());
}

pub fn write_parquet(path: &Path, batch: &arrow::array::RecordBatch) {
    let file = fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}
