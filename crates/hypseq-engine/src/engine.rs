//! The engine: homes in, streams of rows out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as ParsedStatement;
use futures::{Stream, TryStreamExt as _};
use hypseq_cache::{Home, Partition, PartitionId, Problem, labels};

use crate::catalog::{CACHE, CATALOG, COMPLETE, Catalog, LIVE, RAW, SPOOL};
use crate::dataset::Dataset;
use crate::footer::Footers;
use crate::functions::Datasets;
use crate::homes::{Homes, OpenHome};
use crate::load::load;
use crate::spool::SpoolSchema;
use crate::stopping::Running;
use crate::target::Protected;
use crate::{Error, functions, metadata, output, session, statements};

/// How much of the machine queries may use.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Threads that a query is spread over; the number of cores where there is none.
    pub target_partitions: Option<usize>,
    /// Bytes that all running queries together may hold before they spill to disk; unlimited where there is none.
    pub memory_limit: Option<usize>,
}

/// A session over the caches of one or more homes, as they were when it was opened.
///
/// A query fails when it needs a file that cannot be read: a data file, or a manifest or delete file without which
/// the rows of a live generation are not known for sure. It never goes on without it, since a total over the rest
/// would look like the whole. Files that a condition on partition, provenance, seq or time rules out are not needed.
pub struct Engine {
    context: SessionContext,
    protected: Protected,
    broken: BTreeMap<String, Problem>,
    homes: Arc<Homes>,
    datasets: Arc<Datasets>,
    spool: Arc<SpoolSchema>,
}

/// One statement that has been parsed and found to be of an allowed kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement(ParsedStatement);

/// The rows of one statement, as a stream of record batches.
///
/// A statement that has no rows to show (`CREATE VIEW`) has a schema without columns and no batches.
pub struct Rows {
    stream: SendableRecordBatchStream,
    _running: Running,
    unfinished: Option<Unfinished>,
}

/// A file that a statement is writing. One that does not come to its end would look whole.
struct Unfinished(PathBuf);

impl Unfinished {
    /// Takes the name, which nobody must have.
    fn new(path: PathBuf) -> Result<Self, Error> {
        match fs::File::create_new(&path) {
            Ok(_) => Ok(Self(path)),
            Err(error) => Err(Error::Query(format!("cannot write `{}`: {error}", path.display()))),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Whoever hears of the failure hears of nothing else.
        let _ = fs::remove_file(&self.0);
    }
}

impl Engine {
    /// Opens a session: finds all generations and reads their table metadata. What cannot be read is among the problems;
    /// see [`Engine`] for what that means for queries. Manifests and delete files are read once a query needs them: what
    /// is wrong with those, [`Engine::problems`] says afterwards.
    ///
    /// A partition whose live generation is unknown has no rows in schema `live`.
    ///
    /// # Errors
    /// The session cannot be set up.
    pub async fn open(homes: &[Home], options: &EngineOptions) -> Result<(Self, Vec<Problem>), Error> {
        let protected = Protected::new(homes);
        let loading: Vec<_> = homes
            .iter()
            .cloned()
            .zip(labels(homes.iter()))
            .map(|(home, label)| tokio::task::spawn_blocking(move || load(home, label.into())))
            .collect();
        let mut homes = Homes(Vec::new());
        for loaded in loading {
            homes.0.push(loaded.await.map_err(|error| Error::Query(error.to_string()))?);
        }
        let mut problems: Vec<Problem> = homes.iter().flat_map(|home| home.problems.clone()).collect();
        let generations: Vec<_> = homes.generations().cloned().collect();
        let (mut datasets, mut broken) = (Datasets::new(), BTreeMap::new());
        for (name, dataset) in Dataset::group(&generations, homes.are_several()) {
            match dataset {
                Ok(dataset) => {
                    datasets.insert(name, Arc::new(dataset));
                }
                Err(problem) => {
                    problems.push(problem.clone());
                    homes.blame(&name, &problem);
                    broken.insert(name, problem);
                }
            }
        }
        let (homes, datasets) = (Arc::new(homes), Arc::new(datasets));

        let setup = |error: DataFusionError| Error::from_datafusion(&error);
        let runtime = session::runtime(options).map_err(setup)?;
        let footers = Arc::new(Footers::default());
        let context = session::context(options, runtime).map_err(setup)?;
        functions::register(&context, &datasets, &footers);
        let spool = Arc::new(SpoolSchema::new(Arc::clone(&homes), Arc::clone(&datasets)));
        context.register_catalog(CATALOG, Arc::new(catalog(&homes, &datasets, &footers, &spool).map_err(setup)?));
        Ok((Self { context, protected, broken, homes, datasets, spool }, problems))
    }

    /// The names of the datasets that have a table in schema `live`.
    pub fn datasets(&self) -> impl Iterator<Item = &str> {
        self.datasets.keys().map(String::as_str)
    }

    /// The names of the datasets that have one in schema `spool`: the others, and those of which nothing was flushed yet.
    pub fn spooled_datasets(&self) -> Vec<String> {
        self.spool.table_names()
    }

    /// The paths of the partitions of a dataset.
    pub fn partitions(&self, dataset: &str) -> BTreeSet<&str> {
        let of_dataset = self.homes.partitions().filter(|partition| partition.id.dataset == dataset);
        of_dataset.map(|partition| partition.id.path.as_str()).collect()
    }

    /// The partitions of a dataset of which it is not known which generation is live.
    pub fn without_live(&self, dataset: &str) -> BTreeSet<&str> {
        let of_dataset = self.homes.partitions().filter(|partition| partition.id.dataset == dataset);
        let is_unknown = |partition: &&Partition| partition.live().is_none() && !partition.generations.is_empty();
        of_dataset.filter(is_unknown).map(|partition| partition.id.path.as_str()).collect()
    }

    /// The names of the generations of a partition.
    pub fn generations(&self, dataset: &str, partition: &str) -> BTreeSet<&str> {
        let is_meant = |id: &PartitionId| id.dataset == dataset && id.path == partition;
        let of_partition = self.homes.generations().filter(|generation| is_meant(&generation.partition));
        of_partition.map(|generation| generation.name.as_str()).collect()
    }

    /// The column that holds the time of a dataset's rows, where one is known.
    pub fn time_column(&self, dataset: &str) -> Option<String> {
        self.datasets.get(dataset)?.time_column()
    }

    /// Whether some dataset has a column of this name, its spooled rows included. Partition segments are columns; those that
    /// say where a row is from are not.
    pub fn has_column(&self, name: &str) -> bool {
        self.datasets.values().any(|dataset| dataset.has_column(name)) || self.spool.has_column(name)
    }

    /// The session, for tests that ask it directly.
    #[cfg(test)]
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// What the queries so far have found to be unreadable, beyond the problems that were known when the session opened.
    pub fn problems(&self) -> Vec<Problem> {
        let of_generations = self.homes.generations().flat_map(|generation| generation.problems());
        of_generations.chain(self.homes.iter().flat_map(OpenHome::noted)).collect()
    }

    /// Splits a script into statements and checks that each is of an allowed kind, before any is run.
    ///
    /// # Errors
    /// A statement does not parse, or is refused.
    pub fn parse(&self, script: &str) -> Result<Vec<Statement>, Error> {
        Ok(statements::parse(script)?.into_iter().map(Statement).collect())
    }

    /// Starts a statement. Rows come as they are read; dropping them cancels it.
    ///
    /// # Errors
    /// The statement names what is not there, does not type, or is refused.
    pub async fn execute(&self, statement: &Statement) -> Result<Rows, Error> {
        self.execute_with_params(statement, Vec::new()).await
    }

    /// As [`Engine::execute`], with a value for each `$name` in the statement.
    ///
    /// # Errors
    /// As [`Engine::execute`], or a parameter has no value.
    pub async fn execute_with_params(
        &self,
        statement: &Statement,
        params: Vec<(String, ScalarValue)>,
    ) -> Result<Rows, Error> {
        let failed = |error: DataFusionError| self.explain(&error);
        let plan = self.context.state().statement_to_plan(statement.0.clone()).await.map_err(failed)?;
        let plan = plan.with_param_values(ParamValues::from(params)).map_err(failed)?;
        let target = statements::check_plan(&plan, &self.protected)?;
        let plan = output::presentable(plan).map_err(failed)?;
        let frame = self.context.execute_logical_plan(plan).await.map_err(failed)?;
        let context = Arc::new(frame.task_ctx());
        let running = Running::default();
        let plan = frame.create_physical_plan().await.and_then(|plan| running.watch(plan)).map_err(failed)?;
        let unfinished = target.map(Unfinished::new).transpose()?;
        let stream = execute_stream(plan, context).map_err(failed)?;
        // In a task of its own, so that whoever waits for rows is not held up by a query that has none yet.
        Ok(Rows { stream: spawn_buffered(stream, 1), _running: running, unfinished })
    }

    /// An error for a person, with what is known of a table that is not there.
    fn explain(&self, error: &DataFusionError) -> Error {
        let Error::Query(message) = Error::from_datafusion(error) else { return Error::from_datafusion(error) };
        let missing = message.split_once("table '").and_then(|(_, rest)| rest.split_once("' not found"));
        let Some((name, _)) = missing else { return Error::Query(message) };
        let hint = match name.rsplit('.').next().and_then(|name| self.broken.get(name)) {
            Some(problem) => problem.message.clone(),
            None => "SHOW TABLES lists all tables".to_owned(),
        };
        Error::Query(format!("{message}\n  hint: {hint}"))
    }

    /// Parses and starts a single statement.
    ///
    /// # Errors
    /// As [`Engine::parse`] and [`Engine::execute`], or there is not exactly one statement.
    pub async fn query(&self, sql: &str) -> Result<Rows, Error> {
        self.query_with_params(sql, Vec::new()).await
    }

    /// As [`Engine::query`], with a value for each `$name` in the statement.
    ///
    /// # Errors
    /// As [`Engine::query`], or a parameter has no value.
    pub async fn query_with_params(&self, sql: &str, params: Vec<(String, ScalarValue)>) -> Result<Rows, Error> {
        match self.parse(sql)?.as_slice() {
            [statement] => self.execute_with_params(statement, params).await,
            statements => Err(Error::Query(format!("expected one statement, found {}", statements.len()))),
        }
    }
}

fn catalog(
    homes: &Arc<Homes>,
    datasets: &Arc<Datasets>,
    footers: &Arc<Footers>,
    spool: &Arc<SpoolSchema>,
) -> Result<Catalog, DataFusionError> {
    let mut tables: [BTreeMap<String, Arc<dyn TableProvider>>; 3] = Default::default();
    let [live, raw, complete] = &mut tables;
    for (name, dataset) in &**datasets {
        live.insert(name.clone(), Arc::new(dataset.live(footers)));
        raw.insert(name.clone(), Arc::new(dataset.raw(footers)));
        complete.insert(name.clone(), Arc::new(dataset.complete(footers)));
    }
    let [live, raw, complete] = tables;
    let mut cache = metadata::tables(homes);
    let of_complete =
        datasets.iter().filter_map(|(name, dataset)| Some((name, dataset, Arc::clone(complete.get(name)?))));
    cache.insert("seqs".to_owned(), metadata::seqs::view(of_complete)?);
    let catalog = Catalog::new([(LIVE, live), (RAW, raw), (COMPLETE, complete), (CACHE, cache)]);
    Ok(catalog.with(SPOOL, Arc::clone(spool) as Arc<dyn SchemaProvider>))
}

impl Rows {
    /// Names and types of the columns, known before the first row.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// All rows at once.
    ///
    /// # Errors
    /// As the stream's.
    pub async fn collect(self) -> Result<Vec<RecordBatch>, Error> {
        self.try_collect().await
    }
}

impl Stream for Rows {
    type Item = Result<RecordBatch, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.stream).poll_next(cx);
        if matches!(next, Poll::Ready(None)) {
            std::mem::forget(self.unfinished.take());
        }
        next.map(|next| next.map(|batch| batch.map_err(|error| Error::from_datafusion(&error))))
    }
}
