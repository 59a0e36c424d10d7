//! `query`: canned queries, listed, shown or run; over a fleet, in each home apart.

use anyhow::{Result, bail};
use hypseq_cache::Home;
use hypseq_engine::Engine;
use serde_json::{Value, json};

use crate::batches;
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
    let ask = |home: &Home| runtime.block_on(answer(home, query, args, printer));
    let (answers, status) = fleet::ask(&homes, printer, ask, |answer| answer.status)?;
    if let Some(pair) = answers.windows(2).find(|pair| pair[0].headers != pair[1].headers) {
        bail!("the answers of {} and {} have different columns\n  hint: ask each alone", pair[0].home, pair[1].home);
    }
    printer.report(&FleetAnswer { answers: &answers })?;
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
async fn answer(home: &Home, query: &Canned, args: &Query, printer: &Printer) -> Result<Answer> {
    let (engine, status) = sql::open(std::slice::from_ref(home), &args.memory, printer).await?;
    let bound = bound(&engine, query, args, printer)?;
    let rows = engine.query_with_params(&bound.sql, bound.values).await?;
    let fields = rows.schema();
    let headers = fields.fields().iter().map(|field| {
        let right = if field.data_type().is_numeric() { ">" } else { "" };
        format!("{right}{}", field.name())
    });
    let mut answer = Answer { home: home.name().to_owned(), status, headers: headers.collect(), rows: Vec::new() };
    for batch in rows.collect().await? {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| Ok(batches::text(column, row)?.unwrap_or_default()));
            let json = serde_json::from_str(&batches::json_row(&batch, row)?)?;
            answer.rows.push((cells.collect::<Result<_>>()?, json));
        }
    }
    answer.status = sql::finish(engine, status, printer);
    Ok(answer)
}

/// The answer of one home of a fleet.
struct Answer {
    home: String,
    status: ExitStatus,
    /// As a grid takes them.
    headers: Vec<String>,
    /// As text, and as JSON.
    rows: Vec<(Vec<String>, Value)>,
}

/// The answers of a fleet; every row names its home.
struct FleetAnswer<'a> {
    answers: &'a [Answer],
}

impl Report for FleetAnswer<'_> {
    fn json(&self) -> Value {
        let rows = |answer: &Answer| {
            let rows = answer.rows.iter().map(|(_, json)| fleet::named(json.clone(), Some(&answer.home)));
            rows.collect::<Vec<Value>>()
        };
        Value::Array(self.answers.iter().flat_map(rows).collect())
    }

    fn text(&self, printer: &Printer) -> String {
        self.grid().aligned(0, printer.width)
    }

    fn grid(&self) -> Grid {
        let headers = self.answers.first().into_iter().flat_map(|answer| &answer.headers).map(String::as_str);
        let headers: Vec<&str> = ["home"].into_iter().chain(headers).collect();
        let mut grid = Grid::new(&headers);
        for answer in self.answers {
            for (cells, _) in &answer.rows {
                grid.row([&answer.home].into_iter().chain(cells));
            }
        }
        grid
    }
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
