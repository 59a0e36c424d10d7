//! The DataFusion session: its options, its limits, and its functions.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::catalog::{CATALOG, LIVE};
use crate::statements::AGGREGATE_FILTER;
use crate::{EngineOptions, formats, known};

/// Limits that all queries of a session share.
pub(crate) fn runtime(options: &EngineOptions) -> Result<Arc<RuntimeEnv>> {
    let builder = RuntimeEnvBuilder::new();
    match options.memory_limit {
        Some(bytes) => builder.with_memory_pool(Arc::new(FairSpillPool::new(bytes)) as Arc<dyn MemoryPool>),
        None => builder,
    }
    .build_arc()
}

/// A session with everything but the catalog.
pub(crate) fn context(options: &EngineOptions, runtime: Arc<RuntimeEnv>) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, LIVE)
        .with_information_schema(true)
        .set_bool(AGGREGATE_FILTER, false)
        // In DataFusion 55 it fails on JSON access over renamed columns and self-joins (apache/datafusion#24241, #25446).
        .set_bool("datafusion.optimizer.enable_leaf_expression_pushdown", false)
        // Names of columns such as `serviceName` need no quotes; function names are found in any case regardless.
        .set_bool("datafusion.sql_parser.enable_ident_normalization", false);
    if let Some(partitions) = options.target_partitions {
        config = config.with_target_partitions(partitions);
    }
    let mut context = SessionContext::new_with_config_rt(config, runtime);
    context.register_udf(known::udf());
    datafusion_functions_json::register_all(&mut context)?;
    formats::register(&context)?;
    Ok(context)
}
