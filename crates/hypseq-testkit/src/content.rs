//! What rows say: their ids and their columns, which follow from the seed and the row's place alone.

use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use chrono::{DateTime, SecondsFormat};

use crate::rng::Rng;
use crate::rows::{Row, Session};
use crate::schema::TableSchema;
use crate::spec::{Dataset, PartitionSpec};
use crate::{logs, messages};

/// A partition's content.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub partition: &'a PartitionSpec,
    /// Its own, and not another partition's.
    pub key: u64,
    pub text_bytes: usize,
    pub sessions: &'a [Session],
}

impl Content<'_> {
    /// Random numbers of a row; others for each `stream`.
    pub(crate) fn rng(&self, row: &Row, stream: u64) -> Rng {
        Rng::keyed(&[self.key, row.place, stream])
    }

    pub(crate) fn session(&self, row: &Row) -> &Session {
        &self.sessions[row.session]
    }

    /// The row's value in [`Dataset::id_column`].
    pub(crate) fn id(&self, row: &Row) -> String {
        match self.partition.dataset {
            Dataset::Messages => messages::part_id(self, row),
            Dataset::Logs => logs::span_id(self, row),
        }
    }

    pub(crate) fn batch(
        &self,
        schema: &TableSchema,
        arrow: &SchemaRef,
        rows: &[Row],
    ) -> Result<RecordBatch, ArrowError> {
        let columns = match self.partition.dataset {
            Dataset::Messages => messages::columns(self, schema, rows),
            Dataset::Logs => logs::columns(self, schema, rows),
        };
        RecordBatch::try_new(SchemaRef::clone(arrow), columns?)
    }
}

/// A column of times, as microseconds.
pub(crate) fn times(times_ms: impl Iterator<Item = Option<i64>>) -> TimestampMicrosecondArray {
    times_ms.map(|time| time.map(|ms| ms * 1000)).collect::<TimestampMicrosecondArray>().with_timezone("UTC")
}

pub(crate) fn iso(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The day of a time, as days since 1970.
pub(crate) fn day(ms: i64) -> i64 {
    ms.div_euclid(86_400_000)
}

/// A day as `YYYY-MM-DD`.
pub(crate) fn date(day: i64) -> String {
    DateTime::from_timestamp_millis(day * 86_400_000).unwrap_or_default().format("%Y-%m-%d").to_string()
}
