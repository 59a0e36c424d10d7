//! The rows of one data file, as a scan asks for them.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use hypseq_iceberg::guarded;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::errors::ParquetError;

use crate::chunks::Chunks;
use crate::datafile::DataFile;
use crate::footer::{Footer, Footers, OpenFile};
use crate::request::{Columns, Readings, Request};
use crate::scanfile::{ScanFile, Source};
use crate::shape::Reading;

/// The rows of one data file that are selected and fulfil the scan's condition, row group by row group.
///
/// Every error about the file's contents names the file, and so does a panic of the decoder, which some damaged files
/// cause. Errors of the condition itself, such as a division by zero, are left as they are.
pub(crate) struct FileRows {
    request: Arc<Request>,
    scan: Arc<ScanFile>,
    file: Arc<DataFile>,
    opened: OpenFile,
    footer: Arc<Footer>,
    readings: Arc<Readings>,
    /// The rows that are selected; none for all.
    selected: Option<Vec<Range<u64>>>,
    next_group: usize,
    next_row: u64,
    batch_size: usize,
    /// Rows that are decoded at a time of the columns that are not tested: no more than are wanted in all.
    rest_batch_size: usize,
    group: Option<Group>,
}

/// A row group in the middle of being read.
struct Group {
    /// Tested columns of the rows that fulfil the condition.
    tested: Option<RecordBatch>,
    rest: Block,
}

impl FileRows {
    /// Opens a file of a scan.
    ///
    /// # Errors
    /// It cannot be read, or is one that is known to be unreadable.
    pub(crate) fn open(
        request: &Arc<Request>,
        scan: &Arc<ScanFile>,
        footers: &Footers,
        batch_size: usize,
        limit: Option<usize>,
    ) -> Result<Self> {
        let file = match &scan.source {
            Source::File(file) => file,
            Source::Lost(unreadable) => return Err(DataFusionError::External(Box::new(unreadable.clone()))),
        };
        let (opened, footer, readings) = blaming(file, || {
            let (opened, footer) = footers.open(file)?;
            let readings = request.readings(file, &footer.shape)?;
            Ok::<_, ParquetError>((opened, footer, readings))
        })?;
        Ok(Self {
            request: Arc::clone(request),
            selected: scan.selected(footer.rows()),
            scan: Arc::clone(scan),
            file: Arc::clone(file),
            opened,
            footer,
            readings,
            next_group: 0,
            next_row: 0,
            batch_size,
            rest_batch_size: limit.map_or(batch_size, |limit| limit.clamp(1, batch_size)),
            group: None,
        })
    }

    /// The next rows; none at the file's end.
    ///
    /// # Errors
    /// The file cannot be read, or the condition cannot be evaluated.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(group) = &mut self.group {
                let offset = group.rest.done;
                if let Some(rest) = group.rest.next(&self.file, &self.scan, &self.request.rest, &self.readings.rest)? {
                    let tested = group.tested.as_ref().map(|tested| tested.slice(offset, rest.num_rows()));
                    let tested = tested.as_ref().map_or(&[][..], RecordBatch::columns);
                    return self.request.output(tested, rest.columns(), rest.num_rows()).map(Some);
                }
                self.group = None;
            }
            let Some(group) = self.footer.groups.get(self.next_group) else { return Ok(None) };
            let rows = group.rows;
            let start = self.next_row;
            let place = self.next_group;
            self.next_group += 1;
            self.next_row += rows;
            let selection = Selection::new(self.selected.as_deref(), start..start + rows);
            if selection.rows > 0 {
                self.group = self.start(place, selection)?;
            }
        }
    }

    /// Starts a row group: tests the condition, and prepares to read the other columns of the rows that fulfil it.
    fn start(&self, place: usize, mut selection: Selection) -> Result<Option<Group>> {
        let (request, readings) = (&self.request, &self.readings);
        if request.condition().is_none() {
            let rest = self.block(place, &request.rest, &readings.rest, selection, self.rest_batch_size)?;
            return Ok(Some(Group { tested: None, rest }));
        }
        let mut block = self.block(place, &request.tested, &readings.tested, selection.clone(), self.batch_size)?;
        let (mut kept, mut verdicts) = (Vec::new(), Vec::new());
        while let Some(tested) = block.next(&self.file, &self.scan, &request.tested, &readings.tested)? {
            let verdict = request.test(&tested)?;
            if verdict.true_count() == tested.num_rows() {
                kept.push(tested);
            } else if verdict.true_count() > 0 {
                kept.push(filter_record_batch(&tested, &verdict)?);
            }
            verdicts.push(verdict);
        }
        let tested = match kept.len() {
            0 => return Ok(None),
            1 => kept.pop(),
            _ => Some(concat_batches(request.tested.schema(), &kept)?),
        };
        selection.keep(&verdicts);
        let rest = self.block(place, &request.rest, &readings.rest, selection, self.rest_batch_size)?;
        Ok(Some(Group { tested, rest }))
    }

    fn block(
        &self,
        place: usize,
        columns: &Columns,
        reading: &Reading,
        selection: Selection,
        batch_size: usize,
    ) -> Result<Block> {
        let positions = columns.has_position.then(|| selection.positions());
        let (rows, batch_size) = (selection.rows, batch_size.min(selection.rows));
        if reading.leaves.is_empty() {
            return Ok(Block { reader: None, rows, done: 0, positions, batch_size });
        }
        let reader = blaming(&self.file, || {
            let group = &self.footer.groups[place];
            let chunks = Chunks::read(&self.opened, &self.footer.shape, group, &reading.leaves)?;
            ParquetRecordBatchReader::try_new_with_row_groups(&reading.levels, &chunks, batch_size, selection.of_group)
        })?;
        Ok(Block { reader: Some(reader), rows, done: 0, positions, batch_size })
    }
}

/// Some columns of some rows of a row group, batch by batch.
struct Block {
    /// None where no column is stored in the file.
    reader: Option<ParquetRecordBatchReader>,
    rows: usize,
    done: usize,
    positions: Option<Int64Array>,
    batch_size: usize,
}

impl Block {
    fn next(
        &mut self,
        file: &DataFile,
        scan: &ScanFile,
        columns: &Columns,
        reading: &Reading,
    ) -> Result<Option<RecordBatch>> {
        let left = self.rows - self.done;
        if left == 0 {
            return Ok(None);
        }
        let (stored, rows) = blaming(file, || {
            let Some(reader) = &mut self.reader else {
                let rows = left.min(self.batch_size);
                return Ok((reading.convert(&[], rows)?, rows));
            };
            let batch = reader.next().transpose()?;
            let found = batch.as_ref().map_or(0, RecordBatch::num_rows);
            let batch = batch.filter(|_| found <= left).ok_or_else(|| {
                ParquetError::General(format!("expected {left} more rows in a row group, found {found}"))
            })?;
            Ok::<_, ParquetError>((reading.convert(batch.columns(), found)?, found))
        })?;
        let positions = self.positions.as_ref().map(|positions| positions.slice(self.done, rows));
        self.done += rows;
        columns.fill(scan, stored, positions.as_ref(), rows).map(Some)
    }
}

/// Which rows of a row group are read.
#[derive(Clone)]
struct Selection {
    /// The row group's first row in the file.
    start: u64,
    /// How many are read.
    rows: usize,
    /// None for all.
    of_group: Option<RowSelection>,
}

impl Selection {
    /// Of these rows of a file, those that are in the given ranges.
    fn new(selected: Option<&[Range<u64>]>, group: Range<u64>) -> Self {
        let length = |range: &Range<u64>| usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let Some(selected) = selected else {
            return Self { start: group.start, rows: length(&group), of_group: None };
        };
        let first = selected.partition_point(|range| range.end <= group.start);
        let (mut selectors, mut rows, mut done) = (Vec::new(), 0, group.start);
        for range in selected[first..].iter().take_while(|range| range.start < group.end) {
            let range = range.start.max(group.start)..range.end.min(group.end);
            selectors.push(RowSelector::skip(length(&(done..range.start))));
            selectors.push(RowSelector::select(length(&range)));
            rows += length(&range);
            done = range.end;
        }
        selectors.push(RowSelector::skip(length(&(done..group.end))));
        let of_group = (rows < length(&group)).then(|| selectors.into());
        Self { start: group.start, rows, of_group }
    }

    /// Leaves out the rows whose verdict, in their order, is false.
    fn keep(&mut self, verdicts: &[BooleanArray]) {
        let kept: usize = verdicts.iter().map(BooleanArray::true_count).sum();
        if kept < self.rows {
            let kept_rows = RowSelection::from_filters(verdicts);
            self.of_group = Some(match &self.of_group {
                Some(selection) => selection.and_then(&kept_rows),
                None => kept_rows,
            });
            self.rows = kept;
        }
    }

    /// The rows' positions in the file.
    fn positions(&self) -> Int64Array {
        let start = i64::try_from(self.start).unwrap_or(i64::MAX);
        let Some(selection) = &self.of_group else {
            return (start..).take(self.rows).map(Some).collect();
        };
        let mut positions = Vec::with_capacity(self.rows);
        let mut row = start;
        let selectors: Vec<RowSelector> = selection.clone().into();
        for selector in selectors {
            let end = row + i64::try_from(selector.row_count).unwrap_or_default();
            if !selector.skip {
                positions.extend(row..end);
            }
            row = end;
        }
        positions.into()
    }
}

/// Runs what reads a file: its errors and its panics blame the file.
fn blaming<T, E: Display>(file: &DataFile, read: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    let message = match guarded(read) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("the decoder cannot make sense of it: {panic}"),
    };
    Err(DataFusionError::External(Box::new(file.blame(message))))
}
