//! The central sink: what it has sent of a partition, and where its watermark stands.

use std::collections::BTreeMap;

use crate::rows::Row;
use crate::truth::WatermarkTruth;

/// The sink's view of one partition.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// Rows that the next tick would send.
    unsent: u64,
    /// How many of them will be lost, by loss.
    doomed: BTreeMap<usize, u64>,
    last_seq: i64,
    pub watermark: Option<(WatermarkTruth, i64)>,
}

impl Sink {
    /// Takes notice of a row that was flushed. A legacy row is sent only where there is no watermark yet.
    pub(crate) fn see(&mut self, row: &Row) {
        if row.seq.is_none() && self.watermark.is_some() {
            return;
        }
        self.unsent += 1;
        self.last_seq = self.last_seq.max(row.seq.unwrap_or(0));
        if let Some(loss) = row.loss {
            *self.doomed.entry(loss).or_default() += 1;
        }
    }

    /// The rows of a loss are gone.
    pub(crate) fn lose(&mut self, loss: usize) {
        self.unsent -= self.doomed.remove(&loss).unwrap_or(0);
    }

    /// Sends, or drops, what is new. A tick that finds nothing writes nothing.
    pub(crate) fn tick(&mut self, withheld: bool, now_ms: i64) {
        if self.unsent == 0 {
            return;
        }
        let before = self.watermark.map_or(0, |(watermark, _)| watermark.exported);
        let exported = if withheld { before } else { before + self.unsent };
        self.watermark = Some((WatermarkTruth { seq: self.last_seq, exported }, now_ms));
        self.unsent = 0;
        self.doomed.clear();
    }
}
