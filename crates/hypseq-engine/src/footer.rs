//! Data files, opened: their footers, and byte ranges out of them.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescPtr;

use crate::datafile::DataFile;
use crate::shape::Shape;

/// Bytes that are read from the end of a file at first: nearly always its whole footer, and all of a small file.
const TAIL: u64 = 16 * 1024;

/// Bytes at the very end of a file: the footer's length and the magic.
const FOOTER_END: usize = 8;

/// Bytes of memory in which the footers of data files are kept. What comes after that is read again each time: a
/// scan goes through all files in turn, so that throwing out older ones would throw out the next one needed.
const KEPT: usize = 128 * 1024 * 1024;

/// What of a data file's footer is used. The whole takes more memory than many a file.
#[derive(Debug)]
pub(crate) struct Footer {
    pub shape: Arc<Shape>,
    pub groups: Vec<RowGroup>,
}

/// A row group.
#[derive(Debug)]
pub(crate) struct RowGroup {
    pub rows: u64,
    /// By place among the leaf columns.
    pub chunks: Vec<Chunk>,
}

/// Where a column of a row group is.
#[derive(Debug)]
pub(crate) struct Chunk {
    compression: Compression,
    size: i64,
    data_page: i64,
    dictionary_page: Option<i64>,
}

impl Footer {
    fn new(metadata: &ParquetMetaData, shape: Arc<Shape>) -> Result<Self> {
        let chunk = |column: &ColumnChunkMetaData| Chunk {
            compression: column.compression(),
            size: column.compressed_size(),
            data_page: column.data_page_offset(),
            dictionary_page: column.dictionary_page_offset(),
        };
        let group = |group: &RowGroupMetaData| {
            Ok(RowGroup { rows: u64::try_from(group.num_rows())?, chunks: group.columns().iter().map(chunk).collect() })
        };
        Ok(Self { shape, groups: metadata.row_groups().iter().map(group).collect::<Result<_>>()? })
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    fn memory_size(&self) -> usize {
        self.groups.iter().map(|group| size_of::<RowGroup>() + size_of_val(group.chunks.as_slice())).sum()
    }
}

impl Chunk {
    /// As the Parquet decoder knows it.
    pub(crate) fn metadata(&self, column: ColumnDescPtr) -> Result<ColumnChunkMetaData> {
        ColumnChunkMetaData::builder(column)
            .set_compression(self.compression)
            .set_total_compressed_size(self.size)
            .set_data_page_offset(self.data_page)
            .set_dictionary_page_offset(self.dictionary_page)
            .build()
    }
}

/// What the scans of a session share: the shapes of files, and room for footers.
#[derive(Debug, Default)]
pub(crate) struct Footers {
    shapes: Mutex<Vec<Arc<Shape>>>,
    kept: AtomicUsize,
}

impl Footers {
    /// Opens a data file and checks its footer against its manifest.
    ///
    /// # Errors
    /// The file is not there, is no Parquet file, or has other rows than its manifest says.
    pub(crate) fn open(&self, file: &DataFile) -> Result<(OpenFile, Arc<Footer>)> {
        let mut opened = OpenFile::open(&file.path)?;
        if let Some(footer) = file.footer.get() {
            return Ok((opened, Arc::clone(footer)));
        }
        let metadata = opened.footer()?;
        let footer = Arc::new(Footer::new(&metadata, self.shape(&metadata)?)?);
        let found = footer.rows();
        if let Some(rows) = file.rows.filter(|rows| found != *rows) {
            let message = format!("expected {rows} rows, as the manifest says, found {found}");
            return Err(ParquetError::General(message));
        }
        let size = footer.memory_size();
        if self.kept.fetch_add(size, Ordering::Relaxed) < KEPT {
            let _ = file.footer.set(Arc::clone(&footer));
        } else {
            self.kept.fetch_sub(size, Ordering::Relaxed);
        }
        Ok((opened, footer))
    }

    /// The shape of a file's columns, which nearly all files of a table share.
    fn shape(&self, metadata: &ParquetMetaData) -> Result<Arc<Shape>> {
        let descriptor = metadata.file_metadata().schema_descr_ptr();
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shapes.iter().find(|shape| shape.is_of(&descriptor)) {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::new(Shape::new(descriptor)?);
        shapes.push(Arc::clone(&shape));
        Ok(shape)
    }
}

/// A data file that was opened. Reads block: they are small, and nearly always served from the system's file cache.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: File,
    length: u64,
    /// Its last bytes, once the footer was read.
    tail: Bytes,
}

impl OpenFile {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, tail: Bytes::new() })
    }

    fn footer(&mut self) -> Result<ParquetMetaData> {
        let tail = TAIL.min(self.length);
        self.tail = self.read(self.length - tail, tail)?;
        let too_short = |bytes| ParquetError::General(format!("expected a file of at least {bytes} bytes"));
        let end = self.tail.last_chunk::<FOOTER_END>().ok_or_else(|| too_short(FOOTER_END))?;
        let length = FooterTail::try_new(end)?.metadata_length();
        let before_end = self.length.saturating_sub(FOOTER_END as u64);
        let start = before_end.checked_sub(length as u64).ok_or_else(|| too_short(length))?;
        let bytes = self.read(start, length as u64)?;
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options))
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// The file ends before.
    pub(crate) fn read(&self, start: u64, length: u64) -> Result<Bytes> {
        let end = start.checked_add(length).filter(|end| *end <= self.length).ok_or_else(|| {
            let end = start.saturating_add(length);
            ParquetError::General(format!("expected at least {end} bytes, found {}", self.length))
        })?;
        let tail_start = self.length - self.tail.len() as u64;
        if start >= tail_start && !self.tail.is_empty() {
            return Ok(self.tail.slice(usize::try_from(start - tail_start)?..usize::try_from(end - tail_start)?));
        }
        let mut bytes = vec![0; usize::try_from(length)?];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}
