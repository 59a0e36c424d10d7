//! `query`: canned queries, listed, shown or run; over a fleet, in each home apart.

use std::iter::repeat_n;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use hypseq_cache::Home;
use hypseq_engine::Engine;
use serde_json::{Value, json};

use crate::canned::{self, Bound, Canned};
use crate::cli::{Global, Query};
use crate::commands::sql;
use crate::executor;
use crate::exit::ExitStatus;
use crate::fleet;
use crate::grid::Grid;
use crate::printer::{Printer, Report};
use crate::select;

pub fn run(global: &Global, args: &Query, printer: &Printer) -> Result<ExitStatus> {
    let queries = canned::all(args.queries.as_deref())?;
    let Some(name) = &args.name else {
        printer.report(&List { queries: &queries })?;
        return Ok(ExitStatus::Yes);
    };
    let Some(query) = queries.iter().find(|q| q.name == *name) else {
        let names: Vec<&str> = queries.iter().map(|q| q.name.as_str()).collect();
        bail!("there is no query `{name}`\n  hint: there are {}", names.join(", "));
    };
    if args.show {
        printer.text(&query.sql)?;
        return Ok(ExitStatus::Yes);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let homes = select::homes(global)?;
    if let [Ok(home)] = homes.as_slice() {
        return runtime.block_on(async {
            let (engine, status) = sql::open(std::slice::from_ref(home), &args.memory, printer).await?;
            let bound = bound(&engine, query, args, printer)?;
            executor::print_all(engine.query_with_params(&bound.sql, bound.values), printer).await?;
            Ok(sql::finish(engine, status, printer))
        });
    }
    let ask = |home: &Home, label: &str| {
        let answer = runtime.block_on(answer(home, label, query, args, printer))?;
        Ok((label.to_owned(), answer))
    };
    let (answers, status) = fleet::ask(&homes, printer, ask, |(_, answer)| answer.status)?;
    if let Some(pair) = answers.windows(2).find(|pair| !pair[0].1.columns().eq(pair[1].1.columns())) {
        bail!("the answers of {} and {} have different columns\n  hint: ask each alone", pair[0].0, pair[1].0);
    }
    let schema = answers.first().map_or_else(|| with_home(&Schema::empty()), |(_, answer)| Arc::clone(&answer.schema));
    let batches = answers.into_iter().flat_map(|(_, answer)| answer.batches).collect();
    runtime.block_on(executor::print_rows(schema, batches, printer))?;
    Ok(status)
}

impl canned::Cache for Engine {
    fn has_dataset(&self, name: &str) -> bool {
        // The spool is looked into only for a dataset of which nothing was flushed yet.
        Engine::datasets(self).any(|dataset| dataset == name) || self.spooled_datasets().iter().any(|d| d == name)
    }

    fn datasets(&self) -> Vec<String> {
        self.spooled_datasets()
    }

    fn partitions(&self, dataset: &str) -> Vec<String> {
        Engine::partitions(self, dataset).into_iter().map(str::to_owned).collect()
    }

    fn generations(&self, dataset: &str, partition: &str) -> Vec<String> {
        Engine::generations(self, dataset, partition).into_iter().map(str::to_owned).collect()
    }

    fn without_live(&self, dataset: &str) -> Vec<String> {
        Engine::without_live(self, dataset).into_iter().map(str::to_owned).collect()
    }

    fn has_column(&self, name: &str) -> bool {
        Engine::has_column(self, name)
    }

    fn time_column(&self, dataset: &str) -> Option<String> {
        Engine::time_column(self, dataset)
    }
}

/// The query with its parameters bound; says which of them took their defaults.
fn bound(engine: &Engine, query: &Canned, args: &Query, printer: &Printer) -> Result<Bound> {
    let bound = query.bind(&args.params, args.zone.tz.as_deref(), engine)?;
    if !bound.defaults.is_empty() {
        printer.note(&format!("{} with {}", query.name, bound.defaults.join(" ")));
    }
    Ok(bound)
}

/// The whole answer of one home.
async fn answer(home: &Home, label: &str, query: &Canned, args: &Query, printer: &Printer) -> Result<Answer> {
    let (engine, status) = sql::open(std::slice::from_ref(home), &args.memory, printer).await?;
    let bound = bound(&engine, query, args, printer)?;
    let rows = engine.query_with_params(&bound.sql, bound.values).await?;
    let schema = with_home(&rows.schema());
    let batches = rows.collect().await?;
    let batches = batches.iter().map(|batch| {
        let home: ArrayRef = Arc::new(StringViewArray::from_iter_values(repeat_n(label, batch.num_rows())));
        let columns = [home].into_iter().chain(batch.columns().iter().cloned());
        RecordBatch::try_new(with_home(&batch.schema()), columns.collect())
    });
    let batches = batches.collect::<Result<_, _>>()?;
    Ok(Answer { status: sql::finish(engine, status, printer), schema, batches })
}

/// The answer of one home of a fleet; every row names the home.
struct Answer {
    status: ExitStatus,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Answer {
    /// What must be the same in all homes: names, and whether they are numbers.
    fn columns(&self) -> impl Iterator<Item = (&str, bool)> {
        self.schema.fields().iter().map(|field| (field.name().as_str(), field.data_type().is_numeric()))
    }
}

fn with_home(schema: &Schema) -> SchemaRef {
    let home = Arc::new(Field::new("home", DataType::Utf8View, false));
    Arc::new(Schema::new([home].into_iter().chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// Queries with their purpose and parameters.
pub struct List<'a> {
    pub queries: &'a [Canned],
}

impl Report for List<'_> {
    fn json(&self) -> Value {
        let queries = self.queries.iter().map(|q| {
            let params = q
                .params
                .iter()
                .map(|p| json!({ "name": p.name, "type": p.kind.label(), "default": p.default, "about": p.about }));
            json!({ "name": q.name, "purpose": q.purpose, "params": params.collect::<Vec<_>>() })
        });
        Value::Array(queries.collect())
    }

    /// What must be given; what may be is for `--show`.
    fn text(&self, printer: &Printer) -> String {
        let mut grid = Grid::new(&["name", "needs", "purpose"]);
        for query in self.queries {
            let needed = query.params.iter().filter(|p| p.default.is_none()).map(|p| p.name.as_str());
            grid.row([query.name.clone(), needed.collect::<Vec<_>>().join(" "), query.purpose.clone()]);
        }
        let example = "hypseq query rows-around-seq --param seq=722";
        format!(
            "{}\nRun one:                      {example}\nSee its SQL and parameters:   hypseq query rows-around-seq --show\n",
            grid.aligned(0, printer.width)
        )
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&["name", "purpose", "parameters"]);
        for query in self.queries {
            let params = query.params.iter().map(|p| match &p.default {
                Some(default) => format!("{}={default}", p.name),
                None => p.name.clone(),
            });
            grid.row([query.name.clone(), query.purpose.clone(), params.collect::<Vec<_>>().join(" ")]);
        }
        grid
    }
}
