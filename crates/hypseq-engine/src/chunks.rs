//! The bytes of one row group, as the Parquet decoder asks for them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::footer::{OpenFile, RowGroup};
use crate::shape::Shape;

/// Two wanted ranges that are no further apart than this are read as one.
const GAP: u64 = 8 * 1024;

/// Some columns of a row group, read into memory.
pub(crate) struct Chunks<'a> {
    shape: &'a Shape,
    rows: usize,
    columns: Vec<(usize, ColumnChunkMetaData)>,
    pieces: Vec<Piece>,
}

impl<'a> Chunks<'a> {
    /// Reads these leaf columns of a row group.
    ///
    /// # Errors
    /// The file ends before one of them does.
    pub(crate) fn read(file: &OpenFile, shape: &'a Shape, group: &RowGroup, leaves: &[usize]) -> Result<Self> {
        let mut columns = Vec::with_capacity(leaves.len());
        let mut ranges = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let missing = || ParquetError::General(format!("a row group has no column {leaf}"));
            let column = group.chunks.get(*leaf).ok_or_else(missing)?.metadata(shape.column(*leaf))?;
            let (start, length) = column.byte_range();
            let end = start.checked_add(length);
            ranges.push(start..end.ok_or_else(|| ParquetError::General(format!("a column ends after {start}")))?);
            columns.push((*leaf, column));
        }
        let pieces = merged(ranges).into_iter().map(|range| {
            let bytes = file.read(range.start, range.end - range.start)?;
            Ok(Piece { start: range.start, bytes })
        });
        Ok(Self { shape, rows: usize::try_from(group.rows)?, columns, pieces: pieces.collect::<Result<_>>()? })
    }
}

fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP) => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

impl RowGroups for Chunks<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let unread = || ParquetError::General(format!("column {leaf} was not read"));
        let (_, column) = self.columns.iter().find(|(other, _)| *other == leaf).ok_or_else(unread)?;
        let (start, _) = column.byte_range();
        let piece = self.pieces.iter().rfind(|piece| piece.start <= start).ok_or_else(unread)?;
        let pages = SerializedPageReader::new(Arc::new(piece.clone()), column, self.rows, None)?;
        Ok(Box::new(OneChunk(Some(Box::new(pages)))))
    }

    /// Only asked for by columns that are made up from it, of which there are none here.
    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::empty())
    }

    /// As [`Chunks::row_groups`].
    fn metadata(&self) -> &ParquetMetaData {
        self.shape.metadata()
    }
}

/// The pages of one column of one row group.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// A range of a file, under its places in the file.
#[derive(Debug, Clone)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn from(&self, start: u64) -> Result<Bytes> {
        let offset = start.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.filter(|offset| *offset <= self.bytes.len());
        let outside = || ParquetError::General(format!("a page at {start} lies outside its column"));
        Ok(self.bytes.slice(offset.ok_or_else(outside)?..))
    }
}

impl Length for Piece {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Piece {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.from(start).map(bytes::Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = self.from(start)?;
        if bytes.remaining() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_close_are_read_as_one() {
        assert_eq!(merged(vec![20_000..20_010, 0..100, 100..200, 8_392..8_400]), [0..8_400, 20_000..20_010]);
        assert_eq!(merged(vec![10..20, 0..100, 50_000..50_001]), [0..100, 50_000..50_001]);
        assert_eq!(merged(Vec::new()), []);
    }
}
