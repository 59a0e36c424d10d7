//! `\d`: the tables, or the columns of one.

use anyhow::{Result, bail};
use datafusion::common::TableReference;
use serde_json::{Value, json};

use super::names::{Names, Table};
use crate::grid::Grid;
use crate::printer::{Printer, Report};

/// Prints all tables, datasets first, or the columns of the one that is named.
pub fn describe(names: &Names, table: Option<&str>, printer: &Printer) -> Result<()> {
    let Some(name) = table else {
        let mut tables: Vec<&Table> = names.tables.iter().collect();
        tables.sort_by_key(|table| table.kind);
        return printer.report(&Tables(tables));
    };
    let Some(table) = names.named(name) else {
        let typed = TableReference::parse_str_normalized(name, true);
        let same = names.tables.iter().filter(|table| table.name == typed.table()).map(Table::sql_name);
        let hint = match same.collect::<Vec<_>>().join(", ") {
            same if same.is_empty() => "\\d lists all tables".to_owned(),
            same => format!("there is {same}"),
        };
        bail!("there is no table `{name}`\n  hint: {hint}");
    };
    printer.report(&Columns(table))
}

struct Tables<'a>(Vec<&'a Table>);

struct Columns<'a>(&'a Table);

impl Report for Tables<'_> {
    fn json(&self) -> Value {
        let table = |t: &&Table| json!({ "schema": t.schema, "table": t.name, "kind": t.kind.label(), "columns": t.columns.len() });
        Value::Array(self.0.iter().map(table).collect())
    }

    fn text(&self, printer: &Printer) -> String {
        self.grid().aligned(0, printer.width)
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&["schema", "table", "kind", ">columns"]);
        for table in &self.0 {
            let columns = table.columns.len().to_string();
            grid.row([table.schema.as_str(), &table.name, table.kind.label(), &columns]);
        }
        grid
    }
}

impl Report for Columns<'_> {
    fn json(&self) -> Value {
        let columns = self.0.columns.iter().map(|c| json!({ "column": c.name, "type": c.data_type }));
        Value::Array(columns.collect())
    }

    fn text(&self, printer: &Printer) -> String {
        self.grid().aligned(0, printer.width)
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&["column", "type"]);
        for column in &self.0.columns {
            grid.row([column.name.as_str(), &column.data_type]);
        }
        grid
    }
}
