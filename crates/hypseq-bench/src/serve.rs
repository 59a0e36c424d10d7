//! The contenders that are Rust: hypseq's engine as a library, and DataFusion as it comes.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::file_format::options::{ParquetReadOptions, ReadOptions as _};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::prelude::{SessionConfig, SessionContext};
use hypseq_cache::Home;
use hypseq_engine::{Engine, EngineOptions};

use crate::answer;
use crate::contender::{Reply, Run};

/// With it on, DataFusion 55.2 answers `min` and `max` over several files wrongly.
const AGGREGATE_FILTER: &str = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown";

/// Which contender answers.
#[derive(Debug, Clone, Subcommand)]
pub enum Side {
    /// hypseq's engine over a home
    Engine {
        /// The home
        home: PathBuf,
    },
    /// DataFusion with table `messages` over folders of Parquet files
    Datafusion {
        /// The folders
        folders: Vec<PathBuf>,
    },
}

enum Session {
    Engine(Engine),
    Datafusion(SessionContext),
}

/// Answers the statements of stdin until it ends.
pub fn serve(side: &Side) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let session = Session::open(side).await?;
        for line in io::stdin().lock().lines() {
            let sql: String = serde_json::from_str(&line?)?;
            let reply = match session.answer(&sql).await {
                Ok(run) => Reply::Answer(run),
                Err(error) => Reply::Failure { error: format!("{error:#}") },
            };
            writeln!(io::stdout(), "{}", serde_json::to_string(&reply)?)?;
        }
        Ok(())
    })
}

impl Session {
    async fn open(side: &Side) -> Result<Self> {
        match side {
            Side::Engine { home } => {
                let (engine, problems) = Engine::open(&[Home::open(home)?], &EngineOptions::default()).await?;
                ensure!(problems.is_empty(), "the cache has problems: {problems:?}");
                Ok(Self::Engine(engine))
            }
            Side::Datafusion { folders } => datafusion(folders).await.map(Self::Datafusion),
        }
    }

    async fn answer(&self, sql: &str) -> Result<Run> {
        let began = Instant::now();
        let batches = self.batches(sql).await?;
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        Ok(Run { ms, rows: answer::of_batches(&batches)? })
    }

    async fn batches(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        match self {
            Self::Engine(engine) => Ok(engine.query(sql).await?.collect().await?),
            Self::Datafusion(context) => Ok(context.sql(sql).await?.collect().await?),
        }
    }
}

async fn datafusion(folders: &[PathBuf]) -> Result<SessionContext> {
    let context = SessionContext::new_with_config(SessionConfig::new().set_bool(AGGREGATE_FILTER, false));
    let url = |folder: &PathBuf| {
        let folder = folder.to_str().context("a folder's name is not text")?;
        Ok(ListingTableUrl::parse(format!("{folder}/"))?)
    };
    let urls = folders.iter().map(url).collect::<Result<Vec<_>>>()?;
    let options =
        ParquetReadOptions::default().to_listing_options(&context.copied_config(), context.copied_table_options());
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let config = config.infer_schema(&context.state()).await?;
    context.register_table("messages", Arc::new(ListingTable::try_new(config)?))?;
    Ok(context)
}
