//! What a rewind would make the sink send, read row by row from the live generation.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use arrow::array::{Array, AsArray};
use futures::StreamExt;
use hypseq_cache::{Home, Partition, PartitionId, Policy, Withheld};
use hypseq_engine::Engine;

use crate::batches;

/// A sink's chunk holds at most this many rows (cache-format: the tick).
const CHUNK_ROWS: u64 = 5000;
/// And at most this many bytes of NDJSON.
const CHUNK_BYTES: u64 = 4 << 20;

/// What lies above a watermark.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Rows that today's policy would withhold.
    pub withheld: u64,
    /// The rules that withhold them, each with how many rows.
    pub rules: Vec<String>,
    /// All rows as NDJSON.
    pub bytes: u64,
    /// Chunks that they fill.
    pub chunks: u64,
}

/// Measures the live rows of a partition above a seq.
pub async fn measure(engine: &Engine, home: &Home, partition: &Partition, above: i64) -> Result<Outgoing> {
    let dataset = partition.id.dataset.replace('"', "\"\"");
    let path = partition.id.path.replace('\'', "''");
    let sql = format!(
        "SELECT * EXCEPT (_generation, _generation_state, _partition, _file, _pos, _deleted, _referenced, _hyp_ingest_seq) \
         FROM raw.\"{dataset}\" WHERE _generation_state = 'live' AND _referenced AND NOT _deleted AND _partition = '{path}' \
         AND _hyp_ingest_seq > {above}"
    );
    let policy = home.policy();
    let source = source(&partition.id);
    let mut outgoing = Outgoing::default();
    let mut rules: BTreeMap<String, u64> = BTreeMap::new();
    let (mut chunk_rows, mut chunk_bytes) = (0, 0);
    let mut rows = engine.query(&sql).await.context("the rows to be sent cannot be read")?;
    while let Some(batch) = rows.next().await {
        let batch = batch.context("the rows to be sent cannot be read")?;
        let folders = batch
            .column_by_name("cwd")
            .map(|c| arrow::compute::cast(c, &arrow::datatypes::DataType::Utf8))
            .transpose()?;
        let folders = folders.as_ref().map(AsArray::as_string::<i32>);
        for row in 0..batch.num_rows() {
            let bytes = batches::json_row(&batch, row)?.len() as u64 + 1;
            if chunk_rows == CHUNK_ROWS || (chunk_rows > 0 && chunk_bytes + bytes > CHUNK_BYTES) {
                (chunk_rows, chunk_bytes) = (0, 0);
            }
            outgoing.chunks += u64::from(chunk_rows == 0);
            chunk_rows += 1;
            chunk_bytes += bytes;
            outgoing.bytes += bytes;
            let cwd = folders.filter(|c| !c.is_null(row)).map(|c| c.value(row));
            if let Some(rule) = withheld(&policy, source, cwd) {
                outgoing.withheld += 1;
                *rules.entry(rule).or_default() += 1;
            }
        }
    }
    outgoing.rules =
        rules.into_iter().map(|(rule, rows)| format!("{rule}: {}", crate::sentence::count(rows, "row"))).collect();
    Ok(outgoing)
}

/// The source whose rows a partition holds, by its path.
pub fn source(id: &PartitionId) -> Option<&str> {
    id.segments().into_iter().find(|(key, _)| matches!(*key, "source" | "client")).map(|(_, value)| value)
}

/// The rule that withholds a row, in words.
pub fn withheld(policy: &Policy, source: Option<&str>, cwd: Option<&str>) -> Option<String> {
    policy.withholds(source, cwd).map(|why| match why {
        Withheld::StoreUnreadable => "a policy store does not parse, so nothing is sent at all".to_owned(),
        Withheld::Source(source) => format!("source {source} is opted out of sync"),
        Withheld::Folder(folder, class) => format!("folder {folder} is {class}"),
    })
}
