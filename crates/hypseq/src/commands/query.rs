//! `query`: canned queries, listed, shown or run.

use anyhow::{Result, bail};
use hypseq_engine::Engine;
use serde_json::{Value, json};

use crate::batches;
use crate::canned::{self, Canned, Kind};
use crate::cli::{Global, Query};
use crate::commands::sql;
use crate::exit::ExitStatus;
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
    let homes = [select::one_home(global, "query")?];
    tokio::runtime::Runtime::new()?.block_on(async {
        let (engine, status) = sql::open(&homes, printer).await?;
        let names = Names::read(&engine).await?;
        let bound = query.bind(&args.params, |kind, name| names.has(kind, name))?;
        batches::print(engine.query_with_params(&bound.sql, bound.values).await?, printer).await?;
        Ok(sql::finish(engine, status, printer))
    })
}

/// The datasets and columns that there are.
struct Names {
    datasets: Vec<String>,
    columns: Vec<String>,
}

impl Names {
    async fn read(engine: &Engine) -> Result<Self> {
        let mut names = Self { datasets: Vec::new(), columns: Vec::new() };
        let sql = "SELECT DISTINCT table_name, column_name FROM information_schema.columns WHERE table_schema = 'raw'";
        for batch in engine.query(sql).await?.collect().await? {
            for row in 0..batch.num_rows() {
                names.datasets.extend(batches::text(batch.column(0), row)?);
                names.columns.extend(batches::text(batch.column(1), row)?);
            }
        }
        Ok(names)
    }

    fn has(&self, kind: Kind, name: &str) -> bool {
        let known = if kind == Kind::Dataset { &self.datasets } else { &self.columns };
        known.iter().any(|k| k == name)
    }
}

struct List<'a> {
    queries: &'a [Canned],
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

    fn text(&self, printer: &Printer) -> String {
        self.grid().aligned(0, printer.width)
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
