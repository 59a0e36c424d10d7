//! The rows of one running statement, until they end or Ctrl-C is pressed; or rows that are there already.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use anyhow::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::{self, LocalBoxStream};
use futures::{StreamExt, TryStreamExt};
use hypseq_engine::Rows;

use crate::interrupt::Watch;
use crate::progress::Progress;

/// Rows that come, and the count of those that came.
pub struct Source<'a> {
    schema: SchemaRef,
    rows: LocalBoxStream<'a, Result<RecordBatch>>,
    watch: Option<&'a Watch>,
    /// Spins until the first rows are there.
    waiting: Option<Progress>,
    ahead: VecDeque<RecordBatch>,
    came: u64,
}

impl<'a> Source<'a> {
    pub fn new(rows: Rows, watch: Option<&'a Watch>, waiting: Progress) -> Self {
        let schema = rows.schema();
        let rows = rows.map_err(anyhow::Error::from).boxed_local();
        Self { schema, rows, watch, waiting: Some(waiting), ahead: VecDeque::new(), came: 0 }
    }

    /// Rows that are all there already.
    pub fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = stream::iter(batches.into_iter().map(Ok)).boxed_local();
        Self { schema, rows, watch: None, waiting: None, ahead: VecDeque::new(), came: 0 }
    }

    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    pub fn is_cancelled(&self) -> bool {
        self.watch.is_some_and(Watch::is_pressed)
    }

    /// The next rows, not yet handed out: so many, if there are as many.
    pub async fn peek(&mut self, rows: u64) -> Result<&VecDeque<RecordBatch>> {
        while self.came < rows {
            let Some(batch) = self.pull().await? else { break };
            self.ahead.push_back(batch);
        }
        Ok(&self.ahead)
    }

    /// Hands out one row after the other, until it is told to stop.
    pub async fn each(&mut self, mut row: impl FnMut(&RecordBatch, usize) -> Result<ControlFlow<()>>) -> Result<()> {
        loop {
            let batch = match self.ahead.pop_front() {
                Some(batch) => batch,
                None => match self.pull().await? {
                    Some(batch) => batch,
                    None => return Ok(()),
                },
            };
            for index in 0..batch.num_rows() {
                if self.is_cancelled() || row(&batch, index)?.is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Counts all rows, those that are still to come too.
    pub async fn count(&mut self) -> Result<u64> {
        while self.pull().await?.is_some() {}
        Ok(self.came)
    }

    async fn pull(&mut self) -> Result<Option<RecordBatch>> {
        let next = match self.watch {
            Some(watch) => watch.unless_pressed(self.rows.next()).await.flatten(),
            None => self.rows.next().await,
        };
        self.waiting = None;
        let Some(batch) = next.transpose()? else { return Ok(None) };
        self.came += batch.num_rows() as u64;
        Ok(Some(batch))
    }
}
