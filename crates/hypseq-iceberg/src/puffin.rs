//! Deletion vectors: a Roaring bitmap of row positions, in a blob of a Puffin file.
//!
//! ```text
//! "PFA1" | blob … | footer: "PFA1" | JSON | its length (u32 little-endian) | flags (4 bytes) | "PFA1"
//!
//! blob:   length (u32 big-endian)         of magic and bitmap
//!         magic D1 D3 39 64
//!         bitmap                          64-bit Roaring, portable form, little-endian
//!         CRC-32 (u32 big-endian)         of magic and bitmap
//! ```
//!
//! (Iceberg's Puffin specification, "deletion-vector-v1" blob type.) The manifest says where the blob lies, so the
//! footer's JSON is not read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use roaring::RoaringTreemap;

use crate::avro::Mismatch;
use crate::{Error, io_error};

const FILE_MAGIC: [u8; 4] = *b"PFA1";
const BLOB_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// Reads the deletion vector at that place of a Puffin file.
///
/// # Errors
/// [`Error::Io`], or [`Error::Invalid`] at the first thing that does not verify.
pub(crate) fn read_deletion_vector(
    path: &Path,
    offset: u64,
    length: u64,
    record_count: u64,
) -> Result<RoaringTreemap, Error> {
    let blob = read_blob(path, offset, length)?;
    decode(&blob, record_count).map_err(|mismatch| mismatch.in_file(path))
}

fn read_blob(path: &Path, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    let io = |e: io::Error| io_error(path, &e);
    let mut file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    verify_extent(offset, length, size).map_err(|m| m.in_file(path))?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(io)?;
    verify_file_magic(magic, "start").map_err(|m| m.in_file(path))?;
    file.seek(SeekFrom::End(-4)).map_err(io)?;
    file.read_exact(&mut magic).map_err(io)?;
    verify_file_magic(magic, "end").map_err(|m| m.in_file(path))?;
    file.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut blob = Vec::new();
    file.take(length).read_to_end(&mut blob).map_err(io)?;
    Ok(blob)
}

/// The blob lies between the magic at the start and the footer's two at the end.
fn verify_extent(offset: u64, length: u64, size: u64) -> Result<(), Mismatch> {
    let end = offset.checked_add(length).and_then(|end| end.checked_add(2 * FILE_MAGIC.len() as u64));
    if offset >= FILE_MAGIC.len() as u64 && end.is_some_and(|end| end <= size) {
        return Ok(());
    }
    let expected = format!("a Puffin file with a blob of {length} bytes at {offset}");
    Err(Mismatch::new(expected, &format!("a file of {size} bytes")))
}

fn verify_file_magic(found: [u8; 4], place: &str) -> Result<(), Mismatch> {
    if found == FILE_MAGIC {
        return Ok(());
    }
    Err(Mismatch::new(format!("Puffin magic `PFA1` at its {place}"), &hex(found)))
}

fn decode(blob: &[u8], record_count: u64) -> Result<RoaringTreemap, Mismatch> {
    let too_short = || Mismatch::new("a deletion vector", &format!("a blob of {} bytes", blob.len()));
    let (length, rest) = blob.split_first_chunk::<4>().ok_or_else(too_short)?;
    let (body, checksum) = rest.split_last_chunk::<4>().ok_or_else(too_short)?;
    let (magic, bitmap) = body.split_first_chunk::<4>().ok_or_else(too_short)?;
    verify_length(u32::from_be_bytes(*length), body.len())?;
    verify_blob_magic(*magic)?;
    verify_checksum(u32::from_be_bytes(*checksum), body)?;
    let positions = parse_bitmap(bitmap)?;
    verify_cardinality(positions.len(), record_count)?;
    Ok(positions)
}

fn verify_length(stated: u32, actual: usize) -> Result<(), Mismatch> {
    if u64::from(stated) == actual as u64 {
        return Ok(());
    }
    Err(Mismatch::new(format!("a deletion vector of {actual} bytes"), &format!("a stated length of {stated}")))
}

fn verify_blob_magic(found: [u8; 4]) -> Result<(), Mismatch> {
    if found == BLOB_MAGIC {
        return Ok(());
    }
    Err(Mismatch::new(format!("deletion vector magic {}", hex(BLOB_MAGIC)), &hex(found)))
}

fn verify_checksum(stated: u32, body: &[u8]) -> Result<(), Mismatch> {
    let actual = crc32fast::hash(body);
    if stated == actual {
        return Ok(());
    }
    Err(Mismatch::new(format!("a deletion vector with CRC-32 {stated:08x}"), &format!("{actual:08x}")))
}

fn parse_bitmap(mut bytes: &[u8]) -> Result<RoaringTreemap, Mismatch> {
    let positions =
        RoaringTreemap::deserialize_from(&mut bytes).map_err(|e| Mismatch::new("a 64-bit Roaring bitmap", &e))?;
    verify_bitmap_end(bytes)?;
    Ok(positions)
}

fn verify_bitmap_end(rest: &[u8]) -> Result<(), Mismatch> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(Mismatch::new("the end of the deletion vector after its bitmap", &format!("{} more bytes", rest.len())))
}

fn verify_cardinality(positions: u64, record_count: u64) -> Result<(), Mismatch> {
    if positions == record_count {
        return Ok(());
    }
    Err(Mismatch::new(
        format!("a deletion vector of {record_count} rows, as its manifest says"),
        &format!("one of {positions}"),
    ))
}

fn hex(bytes: [u8; 4]) -> String {
    bytes.map(|b| format!("{b:02X}")).join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::damage::{damaged, testdata};

    fn real_blob() -> Vec<u8> {
        let file = testdata(
            "neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466/data/\
             1cd86e3b-aa93-4667-ae8e-3209139f6906-deletes.puffin",
        );
        file[4..94].to_vec()
    }

    #[test]
    fn a_cut_blob_is_an_error_wherever_it_is_cut() {
        let blob = real_blob();
        assert_eq!(decode(&blob, 25).unwrap(), (0..25).collect());
        for length in 0..blob.len() {
            assert!(decode(&blob[..length], 25).is_err(), "cut at {length}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_blob_is_refused(blob in damaged(real_blob())) {
            prop_assert!(blob == real_blob() || decode(&blob, 25).is_err());
        }

        /// With length and checksum put right, so that the damage reaches the bitmap.
        #[test]
        fn a_damaged_bitmap_is_decoded_or_refused(bitmap in damaged(real_blob()[8..86].to_vec())) {
            let body = [&BLOB_MAGIC[..], &bitmap].concat();
            let length = u32::try_from(body.len()).unwrap().to_be_bytes();
            let blob = [&length[..], &body, &crc32fast::hash(&body).to_be_bytes()].concat();
            if let Ok(positions) = decode(&blob, 25) {
                prop_assert_eq!(positions.len(), 25);
            }
        }
    }
}
