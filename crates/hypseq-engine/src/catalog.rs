//! Catalog `hyp`: a schema per way of looking at the datasets, one for the metadata, and views and external tables beside
//! them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};

/// The only catalog.
pub(crate) const CATALOG: &str = "hyp";
/// The schema of names without one.
pub(crate) const LIVE: &str = "live";
/// Every physical row.
pub(crate) const RAW: &str = "raw";
/// The union over generations.
pub(crate) const COMPLETE: &str = "complete";

/// Rows captured and not yet flushed.
pub(crate) const SPOOL: &str = "spool";
/// The metadata.
pub(crate) const CACHE: &str = "cache";

type Tables = BTreeMap<String, Arc<dyn TableProvider>>;

/// The catalog of a session. Its schemas are fixed.
#[derive(Debug)]
pub(crate) struct Catalog {
    schemas: BTreeMap<&'static str, Arc<dyn SchemaProvider>>,
}

impl Catalog {
    /// Schemas whose tables are known.
    pub(crate) fn new(schemas: impl IntoIterator<Item = (&'static str, Tables)>) -> Self {
        let schema =
            |(name, own)| (name, Arc::new(Schema { own, added: RwLock::default() }) as Arc<dyn SchemaProvider>);
        Self { schemas: schemas.into_iter().map(schema).collect() }
    }

    /// With a schema that finds its tables itself.
    pub(crate) fn with(mut self, name: &'static str, schema: Arc<dyn SchemaProvider>) -> Self {
        self.schemas.insert(name, schema);
        self
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.keys().map(ToString::to_string).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.get(name).cloned()
    }
}

/// One schema: the tables that it came with, which stay, and what the session adds to them.
#[derive(Debug)]
struct Schema {
    own: Tables,
    added: RwLock<HashMap<String, Arc<dyn TableProvider>>>,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = self.own.keys().chain(added.keys()).cloned().collect();
        names.sort_unstable();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        Ok(self.own.get(name).or_else(|| added.get(name)).cloned())
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.own.contains_key(&name) {
            return exec_err!("`{name}` is a table of the cache; choose another name");
        }
        Ok(self.added.write().unwrap_or_else(PoisonError::into_inner).insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.own.contains_key(name) {
            return exec_err!("`{name}` is a table of the cache and cannot be replaced");
        }
        Ok(self.added.write().unwrap_or_else(PoisonError::into_inner).remove(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.added.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }
}
