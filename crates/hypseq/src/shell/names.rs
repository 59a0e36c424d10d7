//! What can be named in a statement: tables with their columns, and functions.

use std::borrow::Cow;
use std::collections::HashSet;

use anyhow::Result;
use datafusion::common::TableReference;
use hypseq_engine::{Engine, TABLE_FUNCTIONS};

use crate::batches::text;

/// The schema of names without one.
pub const DEFAULT_SCHEMA: &str = "live";
/// The schema of tables about the cache itself.
const METADATA_SCHEMA: &str = "cache";

/// All names of a session.
#[derive(Debug, Default)]
pub struct Names {
    /// Sorted by schema and name.
    pub tables: Vec<Table>,
    pub functions: Vec<String>,
    /// Tables of the caches; what is there beside them, the session has added.
    pub own: HashSet<(String, String)>,
}

/// A table with its columns in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub schema: String,
    pub name: String,
    pub kind: TableKind,
    pub columns: Vec<Column>,
}

/// What a table is; in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableKind {
    Dataset,
    View,
    External,
    Metadata,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub data_type: String,
}

impl Names {
    /// The names of a session in which nothing has been added yet.
    pub async fn read(engine: &Engine) -> Result<Self> {
        let mut names = Self::default();
        let functions = "SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1";
        names.functions = rows(engine, functions).await?.into_iter().flatten().collect();
        // They stand where tables do.
        names.functions.retain(|name| !TABLE_FUNCTIONS.contains(&name.as_str()));
        names.read_tables(engine).await?;
        names.own = names.tables.iter().map(|table| (table.schema.clone(), table.name.clone())).collect();
        for table in &mut names.tables {
            table.kind = if table.schema == METADATA_SCHEMA { TableKind::Metadata } else { TableKind::Dataset };
        }
        Ok(names)
    }

    /// Reads the tables again, which a statement has changed.
    pub async fn read_tables(&mut self, engine: &Engine) -> Result<()> {
        let tables = "SELECT t.table_schema, t.table_name, t.table_type, c.column_name, c.data_type \
                      FROM information_schema.tables t LEFT JOIN information_schema.columns c \
                      ON c.table_schema = t.table_schema AND c.table_name = t.table_name \
                      WHERE t.table_schema <> 'information_schema' \
                      ORDER BY t.table_schema, t.table_name, c.ordinal_position";
        self.tables.clear();
        for row in rows(engine, tables).await? {
            let [schema, name, table_type, column, data_type] = row.as_slice() else { continue };
            if self.tables.last().is_none_or(|last| last.schema != *schema || last.name != *name) {
                let kind = self.kind(schema, name, table_type);
                self.tables.push(Table { schema: schema.clone(), name: name.clone(), kind, columns: Vec::new() });
            }
            if let Some(table) = self.tables.last_mut()
                && !column.is_empty()
            {
                table.columns.push(Column { name: column.clone(), data_type: sql_type(data_type) });
            }
        }
        Ok(())
    }

    fn kind(&self, schema: &str, name: &str, table_type: &str) -> TableKind {
        match (self.own.contains(&(schema.to_owned(), name.to_owned())), table_type) {
            (true, _) if schema == METADATA_SCHEMA => TableKind::Metadata,
            (true, _) => TableKind::Dataset,
            (false, "VIEW") => TableKind::View,
            (false, _) => TableKind::External,
        }
    }

    /// A table by its name as a statement has it, quoted where it needs quotes, with or without a schema.
    pub fn named(&self, sql_name: &str) -> Option<&Table> {
        let name = TableReference::parse_str_normalized(sql_name, true);
        self.table(name.schema(), name.table()).filter(|_| name.catalog().is_none())
    }

    /// A table by its schema, if it is named, and its name itself.
    pub fn table(&self, schema: Option<&str>, name: &str) -> Option<&Table> {
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        self.tables.iter().find(|table| table.schema == schema && table.name == name)
    }

    pub fn schemas(&self) -> Vec<&str> {
        let mut schemas: Vec<&str> = self.tables.iter().map(|table| table.schema.as_str()).collect();
        schemas.dedup();
        schemas
    }
}

impl Table {
    /// The name by which a statement finds it.
    pub fn sql_name(&self) -> String {
        let name = quoted(&self.name);
        if self.schema == DEFAULT_SCHEMA { name.into_owned() } else { format!("{}.{name}", quoted(&self.schema)) }
    }
}

/// A name as a statement has it: quoted where it needs quotes. Case needs none: names are taken as they are typed.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

impl TableKind {
    pub fn label(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::View => "view",
            Self::External => "external table",
            Self::Metadata => "metadata",
        }
    }
}

/// A type as SQL calls it, where the engine says what Arrow calls it.
fn sql_type(arrow: &str) -> String {
    let name = match arrow {
        "Boolean" => "BOOLEAN",
        "Int32" => "INT",
        "Int64" => "BIGINT",
        "Float32" => "REAL",
        "Float64" => "DOUBLE",
        "Utf8" | "LargeUtf8" | "Utf8View" => "TEXT",
        "Binary" | "LargeBinary" | "BinaryView" => "BYTEA",
        "Date32" => "DATE",
        _ if arrow.starts_with("Timestamp(") => "TIMESTAMP",
        _ => arrow,
    };
    name.to_owned()
}

/// The rows of a query as text, nulls empty.
async fn rows(engine: &Engine, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in engine.query(sql).await?.collect().await? {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| Ok(text(column, row)?.unwrap_or_default()));
            rows.push(cells.collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted_and_found() {
        let table = |schema: &str, name: &str| Table {
            schema: schema.to_owned(),
            name: name.to_owned(),
            kind: TableKind::Dataset,
            columns: Vec::new(),
        };
        let all = [
            (table("live", "Logs_2"), "Logs_2"),
            (table("live", "2nd"), r#""2nd""#),
            (table("live", "My.Data\"set"), r#""My.Data""set""#),
            (table("raw", "My.Data\"set"), r#"raw."My.Data""set""#),
            (table("raw", "été"), r#"raw."été""#),
        ];
        let names = Names { tables: all.iter().map(|(table, _)| table.clone()).collect(), ..Names::default() };
        for (table, sql_name) in &all {
            assert_eq!(table.sql_name(), *sql_name);
            assert_eq!(names.named(sql_name), Some(table));
        }
        for unknown in ["logs_2", "raw.Logs_2", "a.raw.Logs_2", "My.Data", ""] {
            assert_eq!(names.named(unknown), None, "{unknown}");
        }
    }
}
