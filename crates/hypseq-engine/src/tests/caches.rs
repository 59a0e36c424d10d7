//! Random queries over whole caches, against the same rows read file by file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::{cast, concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use hypseq_cache::{GenerationState, Home};
use hypseq_iceberg::{DataFile, Table};
use hypseq_testkit::small;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::differential::answer;
use super::files::Edges;
use super::queries;
use super::rows::Random;
use crate::catalog::{CATALOG, Catalog, LIVE, RAW};
use crate::variant::to_json;
use crate::{Engine, EngineOptions};

const STORED: [&str; 8] = [
    "_hyp_ingest_seq",
    "message_created_at",
    "conversation_started_at",
    "part_index",
    "role",
    "is_sidechain",
    "part_id",
    "attributes",
];

/// The names that the random queries use, over the columns of a dataset. The rows of `t` are told apart by `file`.
const VIEWS: [&str; 2] = [
    "CREATE VIEW t AS
     SELECT _hyp_ingest_seq AS seq, message_created_at AS at, part_index AS n, role AS word, source,
            is_sidechain AS flag, conversation_started_at AS late, attributes AS attrs,
            CAST(_hyp_ingest_seq AS DOUBLE) AS wide, part_index AS pos,
            concat(part_id, '/', _hyp_ingest_seq) AS file, false AS deleted
     FROM ai_gateway_messages",
    "CREATE VIEW raw.t AS
     SELECT _hyp_ingest_seq AS seq, message_created_at AS at, part_index AS n, role AS word, source,
            is_sidechain AS flag, conversation_started_at AS late, attributes AS attrs,
            CAST(_hyp_ingest_seq AS DOUBLE) AS wide, _pos AS pos, _file AS file, _deleted AS deleted
     FROM raw.ai_gateway_messages WHERE _referenced",
];

fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let types = [
        DataType::Int64,
        time.clone(),
        time,
        DataType::Int32,
        DataType::Utf8,
        DataType::Boolean,
        DataType::Utf8,
        DataType::Utf8,
    ];
    let stored = STORED.iter().zip(types).map(|(name, data_type)| Field::new(*name, data_type, true));
    let added = [
        Field::new("source", DataType::Utf8, true),
        Field::new("_file", DataType::Utf8, true),
        Field::new("_pos", DataType::Int64, true),
        Field::new("_deleted", DataType::Boolean, true),
        Field::new("_referenced", DataType::Boolean, true),
    ];
    Arc::new(Schema::new(stored.chain(added).collect::<Vec<_>>()))
}

/// Every row of a data file.
fn rows_of(file: &DataFile, source: &str, cache_root: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file.path).unwrap()).unwrap();
    let stored = Arc::clone(reader.schema());
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    let rows = concat_batches(&stored, &batches).unwrap();
    let schema = schema();
    let value = |(name, field): (&str, &Arc<Field>)| -> ArrayRef {
        match rows.column_by_name(name) {
            Some(column) if name == "attributes" => {
                cast(&to_json(column.as_struct()).unwrap(), &DataType::Utf8).unwrap()
            }
            Some(column) => cast(column, field.data_type()).unwrap(),
            None => new_null_array(field.data_type(), rows.num_rows()),
        }
    };
    let mut columns: Vec<ArrayRef> = STORED.iter().copied().zip(schema.fields()).map(value).collect();
    let deleted = file.deleted_rows().unwrap();
    let (count, positions) = (rows.num_rows(), 0_i64..);
    let name = file.path.strip_prefix(cache_root).unwrap().to_str().unwrap();
    columns.push(Arc::new(StringArray::from(vec![source; count])));
    columns.push(Arc::new(StringArray::from(vec![name; count])));
    columns.push(Arc::new(positions.take(count).collect::<Int64Array>()));
    columns.push(Arc::new((0..count as u64).map(|pos| Some(deleted.contains(pos))).collect::<BooleanArray>()));
    columns.push(Arc::new(BooleanArray::from(vec![true; count])));
    RecordBatch::try_new(schema, columns).unwrap()
}

/// The rows of a home in memory, in a session that has nothing that could leave any out; and seqs and times of them.
fn oracle(home: &Home) -> (SessionContext, Edges) {
    let (mut live, mut raw) = (Vec::new(), Vec::new());
    for partition in home.partitions().value {
        let source = partition.id.path.strip_prefix("source=");
        let Some(source) = source.filter(|_| partition.id.dataset == "ai_gateway_messages") else { continue };
        for generation in partition.generations.iter().filter(|generation| generation.has_metadata) {
            let table = Table::open(&generation.dir).unwrap();
            let Some(snapshot) = table.metadata.current_snapshot() else { continue };
            for file in table.files(snapshot).unwrap().data {
                let rows = rows_of(&file, source, home.cache_root());
                if generation.state == GenerationState::Live {
                    let kept: BooleanArray = rows
                        .column_by_name("_deleted")
                        .unwrap()
                        .as_boolean()
                        .iter()
                        .map(|d| Some(d == Some(false)))
                        .collect();
                    live.push(filter_record_batch(&rows, &kept).unwrap());
                }
                raw.push(rows);
            }
        }
    }
    let edges = edges(&raw);
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, LIVE)
        .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
        .set_bool("datafusion.optimizer.enable_leaf_expression_pushdown", false)
        .set_bool("datafusion.sql_parser.enable_ident_normalization", false);
    let mut context = SessionContext::new_with_config_rt(config, Arc::new(RuntimeEnv::default()));
    datafusion_functions_json::register_all(&mut context).unwrap();
    let table = |batches| {
        let table = MemTable::try_new(schema(), vec![batches]).unwrap();
        [("ai_gateway_messages".to_owned(), Arc::new(table) as Arc<dyn TableProvider>)].into()
    };
    context.register_catalog(CATALOG, Arc::new(Catalog::new([(LIVE, table(live)), (RAW, table(raw))])));
    (context, edges)
}

/// Least and greatest seq and time of each file, and their neighbours.
fn edges(files: &[RecordBatch]) -> Edges {
    use datafusion::arrow::compute::{max, min};
    use datafusion::arrow::datatypes::{Int64Type, TimestampMicrosecondType};
    let (mut seqs, mut times) = (vec![0], vec![0]);
    for rows in files {
        let (seq, time) =
            (rows.column(0).as_primitive::<Int64Type>(), rows.column(1).as_primitive::<TimestampMicrosecondType>());
        seqs.extend([min(seq), max(seq)].into_iter().flatten().flat_map(|seq| [seq - 1, seq, seq + 1]));
        times.extend([min(time), max(time)].into_iter().flatten().flat_map(|time| [time - 1000, time, time + 1000]));
    }
    Edges { seqs, times }
}

async fn compare(path: &Path, queries: u64, seed: u64) {
    let home = Home::open(path).unwrap();
    let (oracle, edges) = oracle(&home);
    let mut random = Random(seed);
    let queries: Vec<String> = (0..queries).map(|_| queries::random(&mut random, &edges)).collect();
    let mut expected = Vec::new();
    for view in VIEWS {
        answer(&oracle, view).await;
    }
    for sql in &queries {
        expected.push(answer(&oracle, sql).await);
    }
    for target_partitions in [1, 2, 8] {
        let options = EngineOptions { target_partitions: Some(target_partitions), memory_limit: None };
        let (engine, _) = Engine::open(std::slice::from_ref(&home), &options).await.unwrap();
        for view in VIEWS {
            engine.query(view).await.unwrap();
        }
        for (sql, expected) in queries.iter().zip(&expected) {
            // Wrong answers that depend on timing do not come every time.
            for _ in 0..2 {
                let found = answer(engine.context(), sql).await;
                assert_eq!(&found, expected, "{}, seed {seed}, {target_partitions} partitions\n{sql}", path.display());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_the_corpora() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    for (seed, corpus) in (1..).zip(["neutral", "monotone", "skew", "crashed", "sinks"]) {
        compare(&testdata.join(corpus), 25, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_generated_caches() {
    for seed in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        small(seed, dir.path()).unwrap();
        compare(dir.path(), 25, seed).await;
    }
}
