//! The rows of one data file: seq, time and id, visible ones apart from deleted ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use hypseq_boundary::Row;
use hypseq_iceberg::{DataFile, DeletedRows, Schema};

use crate::data_file::{Unusable, position, read, verify_row_count};
use crate::{Columns, DeletedRow};

/// What one data file adds to a scan.
#[derive(Debug, Default)]
pub(crate) struct FileRows {
    pub visible: Vec<Row>,
    pub deleted: Vec<DeletedRow>,
    /// Rows, whatever they are.
    pub rows: u64,
    pub deleted_rows: u64,
    /// Visible rows without a seq.
    pub legacy_rows: u64,
    /// Visible rows without a time.
    pub null_time_rows: u64,
    /// Least and greatest time of visible rows.
    pub times: Option<(i64, i64)>,
    /// Least and greatest time of legacy rows.
    pub legacy_times: Option<(i64, i64)>,
}

/// Widens a range to include a value.
pub(crate) fn widen(range: &mut Option<(i64, i64)>, value: i64) {
    let (min, max) = range.unwrap_or((value, value));
    *range = Some((min.min(value), max.max(value)));
}

impl FileRows {
    pub(crate) fn read(
        file: &DataFile,
        deleted: &DeletedRows,
        columns: &Columns,
        schema: &Schema,
    ) -> Result<Self, Unusable> {
        read(&file.path, |reader| {
            verify_row_count(reader.rows()?, file.record_count)?;
            let found = reader.columns();
            let place = |name: &str| position(&found, schema, name);
            let seq = place(columns.seq);
            let time = columns.time.as_deref().and_then(place);
            let id = columns.id.as_deref().and_then(place);
            let read: BTreeSet<usize> = [seq, time, id].into_iter().flatten().collect();
            let mut rows = Self::default();
            for batch in reader.batches(read.iter().copied())? {
                let batch = batch?;
                let column = |place: Option<usize>| {
                    place.and_then(|place| read.iter().position(|read| *read == place)).map(|i| batch.column(i))
                };
                let values = Values {
                    seqs: column(seq).map(|c| seqs(c, columns.seq)).transpose()?,
                    times: column(time).map(|c| times(c, columns.time.as_deref())).transpose()?,
                    ids: column(id).map(|c| ids(c, columns.id.as_deref())).transpose()?,
                };
                rows.add(&batch, &values, file, deleted)?;
            }
            verify_row_count(rows.rows, file.record_count)?;
            Ok(rows)
        })
    }

    fn add(
        &mut self,
        batch: &RecordBatch,
        values: &Values,
        file: &DataFile,
        deleted: &DeletedRows,
    ) -> Result<(), Unusable> {
        for i in 0..batch.num_rows() {
            let pos = self.rows;
            self.rows += 1;
            let seq = values.seq(i).map(verify_seq).transpose()?;
            let time = values.time(i);
            let row = seq.map(|seq| Row { seq, time, id: values.id(i) });
            if deleted.contains(pos) {
                self.deleted_rows += 1;
                let by = || file.deleted_by(pos).iter().map(|delete| delete.path.clone()).collect();
                self.deleted.extend(row.map(|row| DeletedRow { row, by: by() }));
                continue;
            }
            match time {
                Some(time) => widen(&mut self.times, time),
                None => self.null_time_rows += 1,
            }
            if let Some(row) = row {
                self.visible.push(row);
            } else {
                self.legacy_rows += 1;
                if let Some(time) = time {
                    widen(&mut self.legacy_times, time);
                }
            }
        }
        Ok(())
    }
}

/// Seqs start at 1.
fn verify_seq(seq: i64) -> Result<i64, Unusable> {
    if seq >= 1 {
        return Ok(seq);
    }
    Err(Unusable::new("seqs of 1 or more", &seq))
}

/// The columns of a batch; one that the file lacks reads as null.
struct Values {
    seqs: Option<Int64Array>,
    times: Option<TimestampMicrosecondArray>,
    ids: Option<StringArray>,
}

impl Values {
    fn seq(&self, i: usize) -> Option<i64> {
        self.seqs.as_ref().filter(|c| c.is_valid(i)).map(|c| c.value(i))
    }

    fn time(&self, i: usize) -> Option<i64> {
        self.times.as_ref().filter(|c| c.is_valid(i)).map(|c| c.value(i))
    }

    fn id(&self, i: usize) -> Option<Arc<str>> {
        self.ids.as_ref().filter(|c| c.is_valid(i)).map(|c| c.value(i).into())
    }
}

pub(crate) fn seqs(column: &ArrayRef, name: &str) -> Result<Int64Array, Unusable> {
    let typed = column.as_primitive_opt::<Int64Type>();
    typed.cloned().ok_or_else(|| Unusable::new(format!("64-bit integers in `{name}`"), column.data_type()))
}

fn times(column: &ArrayRef, name: Option<&str>) -> Result<TimestampMicrosecondArray, Unusable> {
    let mismatch = || {
        let expected = format!("times in UTC, at most microseconds fine, in `{}`", name.unwrap_or_default());
        Unusable::new(expected, column.data_type())
    };
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Millisecond, Some(_)) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            let micros = cast(column, &micros).map_err(|_| mismatch())?;
            micros.as_primitive_opt::<TimestampMicrosecondType>().cloned().ok_or_else(mismatch)
        }
        _ => Err(mismatch()),
    }
}

fn ids(column: &ArrayRef, name: Option<&str>) -> Result<StringArray, Unusable> {
    let typed = column.as_string_opt::<i32>();
    typed.cloned().ok_or_else(|| Unusable::new(format!("text in `{}`", name.unwrap_or_default()), column.data_type()))
}
