//! Delete files: deletion vectors in Puffin files, and position-delete Parquet files.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use roaring::RoaringTreemap;
use serde_json::json;

use crate::datafile::CREATED_BY;

const FILE_MAGIC: [u8; 4] = *b"PFA1";
const BLOB_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// Where the only blob of a Puffin file starts.
pub(crate) const BLOB_OFFSET: i64 = 4;

/// A Puffin file with one deletion vector, and the length of its blob in bytes.
pub(crate) fn puffin(data_file: &str, positions: &RoaringTreemap) -> (Vec<u8>, i64) {
    let mut body = BLOB_MAGIC.to_vec();
    // Writing to memory does not fail.
    let _ = positions.serialize_into(&mut body);
    let mut blob = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    blob.extend_from_slice(&body);
    blob.extend(crc32fast::hash(&body).to_be_bytes());
    let length = i64::try_from(blob.len()).unwrap_or(i64::MAX);
    let footer = json!({"blobs": [{
        "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1,
        "offset": BLOB_OFFSET, "length": length,
        "properties": {"referenced-data-file": data_file, "cardinality": positions.len().to_string()},
    }]})
    .to_string();
    let mut file = FILE_MAGIC.to_vec();
    file.append(&mut blob);
    file.extend(FILE_MAGIC);
    file.extend(footer.as_bytes());
    file.extend(u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes());
    file.extend([0; 4]);
    file.extend(FILE_MAGIC);
    (file, length)
}

/// A position-delete file, sorted by data file and position.
pub(crate) fn positions(rows: &[(&str, u64)]) -> Result<Vec<u8>, ParquetError> {
    // Reserved field ids of Iceberg's specification.
    let field = |name: &str, kind, id: &str| {
        let metadata = [(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_owned())].into();
        Field::new(name, kind, false).with_metadata(metadata)
    };
    let schema = Arc::new(Schema::new(vec![
        field("file_path", DataType::Utf8, "2147483546"),
        field("pos", DataType::Int64, "2147483545"),
    ]));
    let urls: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(url, _)| url)));
    let places: ArrayRef = Arc::new(rows.iter().map(|(_, place)| Some(place.cast_signed())).collect::<Int64Array>());
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(CREATED_BY.to_owned()).build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, Arc::clone(&schema), Some(properties))?;
    writer.write(&RecordBatch::try_new(schema, vec![urls, places])?)?;
    writer.close()?;
    Ok(file)
}
