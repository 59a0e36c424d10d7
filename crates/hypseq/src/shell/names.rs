//! What can be named in a statement: tables with their columns, and functions.

use std::collections::HashSet;

use anyhow::Result;
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
        names.functions.extend(TABLE_FUNCTIONS.map(str::to_owned));
        names.functions.sort_unstable();
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

    /// A table by its name, with or without a schema.
    pub fn table(&self, name: &str) -> Option<&Table> {
        let (schema, name) = name.split_once('.').unwrap_or((DEFAULT_SCHEMA, name));
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
        if self.schema == DEFAULT_SCHEMA { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }
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
