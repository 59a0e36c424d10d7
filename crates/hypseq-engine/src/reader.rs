//! Reads the bytes of data files: footers through the session's cache, and errors that name the file.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetMetaData;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};

use crate::Unreadable;
use crate::datafile::DataFile;
use crate::rename::with_names_of_today;

/// What a scan attaches to each [`PartitionedFile`] for [`Readers`].
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A data file.
    File(Arc<DataFile>),
    /// A file that is known to be unreadable: the scan fails, unless nothing of it is needed.
    Lost(Unreadable),
}

/// Opens data files for the Parquet scan.
///
/// Reads block: they are small, and nearly always served from the system's file cache.
#[derive(Debug)]
pub(crate) struct Readers {
    footers: Arc<FileMetadataCache>,
}

impl Readers {
    pub(crate) fn new(footers: Arc<FileMetadataCache>) -> Self {
        Self { footers }
    }
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _footer_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let metrics = ParquetFileMetrics::new(partition, file.object_meta.location.as_ref(), metrics);
        Ok(Box::new(Reader { file, open: None, footers: Arc::clone(&self.footers), metrics }))
    }
}

struct Reader {
    file: PartitionedFile,
    open: Option<File>,
    footers: Arc<FileMetadataCache>,
    metrics: ParquetFileMetrics,
}

impl Reader {
    fn source(&self) -> parquet::errors::Result<Arc<DataFile>> {
        match self.file.extension::<Source>() {
            Some(Source::File(file)) => Ok(Arc::clone(file)),
            Some(Source::Lost(unreadable)) => Err(ParquetError::External(Box::new(unreadable.clone()))),
            None => Err(ParquetError::General(format!("`{}` is no data file of a cache", self.file.path()))),
        }
    }

    fn open(&mut self, source: &DataFile) -> io::Result<&mut File> {
        match &mut self.open {
            Some(file) => Ok(file),
            none => Ok(none.insert(File::open(&source.path)?)),
        }
    }

    fn read(&mut self, range: &Range<u64>) -> parquet::errors::Result<Bytes> {
        let source = self.source()?;
        let length = range.end.saturating_sub(range.start);
        let read = |file: &mut File| {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(range.start))?;
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = self.open(&source).and_then(read).map_err(|error| source.unreadable(error))?;
        if bytes.len() as u64 != length {
            let found = range.start + bytes.len() as u64;
            let message = format!("expected at least {} bytes, found {found}", range.end);
            return Err(source.unreadable(message));
        }
        self.metrics.bytes_scanned.add(bytes.len());
        Ok(bytes.into())
    }

    fn footer(&mut self) -> parquet::errors::Result<Arc<ParquetMetaData>> {
        let source = self.source()?;
        let key = self.file.object_meta.location.clone();
        if let Some(cached) = self.footers.get(&key).filter(|entry| entry.is_valid_for(&self.file.object_meta))
            && let Some(footer) = cached.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()
        {
            return Ok(Arc::clone(footer.parquet_metadata()));
        }
        let mut footer = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
        let file = self.open(&source).map_err(|error| source.unreadable(error))?;
        footer.try_parse(file).map_err(|error| source.unreadable(error))?;
        let footer = Arc::new(source.check(footer.finish()?)?);
        let cached = Arc::new(CachedParquetMetaData::new(Arc::clone(&footer)));
        self.footers.put(&key, CachedFileMetadataEntry::new(self.file.object_meta.clone(), cached));
        Ok(footer)
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        async move { self.read(&range) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        async move { ranges.iter().map(|range| self.read(range)).collect() }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        async move { self.footer() }.boxed()
    }
}

impl DataFile {
    /// Blames this file.
    pub(crate) fn blame(&self, message: impl Into<String>) -> Unreadable {
        Unreadable {
            path: self.path.clone(),
            message: message.into(),
            hint: format!("in schema raw, `WHERE _file <> '{}'` leaves this file out", self.relative),
        }
    }

    fn unreadable(&self, message: impl Display) -> ParquetError {
        ParquetError::External(Box::new(self.blame(message.to_string())))
    }

    /// Checks a footer against the manifest, and gives its columns the names that they have today.
    fn check(&self, footer: ParquetMetaData) -> parquet::errors::Result<ParquetMetaData> {
        let found: i64 = footer.row_groups().iter().map(RowGroupMetaData::num_rows).sum();
        if let Some(rows) = self.rows.filter(|rows| u64::try_from(found) != Ok(*rows)) {
            return Err(self.unreadable(format!("expected {rows} rows, as the manifest says, found {found}")));
        }
        with_names_of_today(footer, &self.field_ids)
    }
}
