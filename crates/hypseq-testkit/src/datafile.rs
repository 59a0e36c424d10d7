//! Data files: SNAPPY, data pages v2, plain or dictionary, and footers that state no least and greatest time.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowLeafColumn, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ConvertedType, Encoding, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::Error;
use crate::bounds::Metrics;
use crate::content::Content;
use crate::rows::Row;
use crate::schema::TableSchema;
use crate::spec::Dataset;

pub(crate) const CREATED_BY: &str = "hypseq-testkit";

/// How the data files of a schema are written.
pub(crate) struct Layout {
    pub schema: TableSchema,
    arrow: SchemaRef,
    parquet: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

/// A data file's bytes, and what its manifest says.
pub(crate) struct Encoded {
    pub bytes: Vec<u8>,
    /// Shared by the generations that hold the file.
    pub metrics: Arc<Metrics>,
}

/// Columns with few values, which HypAware's writer gives a dictionary.
const REPEATED: [&str; 22] = [
    "gateway_id",
    "schema_version",
    "session_id",
    "user_id",
    "provider",
    "model",
    "conversation_started_at",
    "client_name",
    "cwd",
    "git_branch",
    "role",
    "part_index",
    "part_type",
    "tool_name",
    "date",
    "serviceName",
    "severityNumber",
    "severityText",
    "previous_message_id.value",
    "compact_metadata.value",
    "status.value",
    "raw_frame.value",
];

impl Layout {
    /// The current schema of a dataset; `with_seq` tells the one of today from the one before seqs existed.
    pub(crate) fn new(dataset: Dataset, schema_id: i32, with_seq: bool) -> Result<Self, Error> {
        let schema = dataset.schema(schema_id, with_seq);
        let parquet = schema.parquet()?;
        let json = serde_json::to_string(&schema)?;
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::SNAPPY)
            .set_encoding(Encoding::PLAIN)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_statistics_truncate_length(Some(16))
            .set_offset_index_disabled(true)
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new("iceberg.schema".to_owned(), json)]));
        for leaf in parquet.columns() {
            let path = leaf.path().string();
            let column = || ColumnPath::new(leaf.path().parts().to_vec());
            if leaf.physical_type() == Physical::BOOLEAN {
                properties = properties.set_column_encoding(column(), Encoding::RLE);
            }
            if path.ends_with(".metadata") || REPEATED.contains(&path.as_str()) {
                properties = properties.set_column_dictionary_enabled(column(), true);
            }
        }
        Ok(Self { arrow: schema.arrow(), schema, parquet, properties: Arc::new(properties.build()) })
    }

    /// Writes rows of a partition, in this order.
    pub(crate) fn write(
        &self,
        content: &Content<'_>,
        rows: &[Row],
        row_group_rows: Option<usize>,
    ) -> Result<Encoded, Error> {
        let batch = content.batch(&self.schema, &self.arrow, rows)?;
        let metrics = Arc::new(Metrics::of(&self.schema, &batch));
        let bytes = self.encode(&batch, row_group_rows.unwrap_or(rows.len()).max(1))?;
        Ok(Encoded { bytes, metrics })
    }

    fn encode(&self, batch: &RecordBatch, row_group_rows: usize) -> Result<Vec<u8>, ParquetError> {
        let root = self.parquet.root_schema_ptr();
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, root, Arc::clone(&self.properties))?;
        let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&self.arrow));
        let mut start = 0;
        while start < batch.num_rows() {
            let part = batch.slice(start, row_group_rows.min(batch.num_rows() - start));
            let writers = factory.create_column_writers(file.flushed_row_groups().len())?;
            let mut row_group = file.next_row_group()?;
            for (mut writer, leaf) in writers.into_iter().zip(self.leaves(&part)?) {
                writer.write(&leaf)?;
                let mut chunk = writer.close()?;
                let metadata = &mut chunk.close_mut().metadata;
                if metadata.column_descr().converted_type() == ConvertedType::TIMESTAMP_MICROS {
                    *metadata = without_bounds(metadata)?;
                }
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close()?;
            start += part.num_rows();
        }
        file.close()?;
        Ok(bytes)
    }

    fn leaves(&self, batch: &RecordBatch) -> Result<Vec<ArrowLeafColumn>, ParquetError> {
        let mut leaves = Vec::with_capacity(self.parquet.num_columns());
        for (field, column) in self.arrow.fields().iter().zip(batch.columns()) {
            leaves.append(&mut compute_leaves(field, column)?);
        }
        Ok(leaves)
    }
}

/// Of times HypAware's writer states the nulls only; of the seq and of all other columns the least and greatest value too.
fn without_bounds(column: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData, ParquetError> {
    let nulls = column.statistics().and_then(Statistics::null_count_opt);
    let statistics = Statistics::new::<i64>(None, None, None, nulls, false);
    column.clone().into_builder().set_statistics(statistics).build()
}
