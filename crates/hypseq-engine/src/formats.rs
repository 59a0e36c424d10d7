//! File formats that statements read and write: Parquet, CSV and NDJSON.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::GetExt;
use datafusion::common::Result;
use datafusion::common::file_options::file_type::FileType;
use datafusion::datasource::file_format::json::JsonFormatFactory;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::CopyToStatement;

use crate::Error;

const NDJSON: &str = "ndjson";
/// As `STORED AS` names them, and as files' names end.
const WRITTEN: [&str; 4] = ["parquet", "csv", NDJSON, "json"];

/// Makes the name `NDJSON` known, beside DataFusion's own `JSON`, which is the same.
pub(crate) fn register(context: &SessionContext) -> Result<()> {
    context.state_ref().write().register_file_format(Arc::new(Ndjson), false)
}

/// JSON with one object per line, under its own name.
#[derive(Debug)]
struct Ndjson;

impl FileFormatFactory for Ndjson {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        JsonFormatFactory::new().create(state, options)
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        FileFormatFactory::default(&JsonFormatFactory::new())
    }
}

impl GetExt for Ndjson {
    fn get_ext(&self) -> String {
        NDJSON.to_owned()
    }
}

/// Whether everything in files of a format is text.
pub(crate) fn is_text(file_type: &dyn FileType) -> bool {
    matches!(&*file_type.get_ext(), "csv" | NDJSON | "json")
}

/// Checks that the format of a file is said, and is one of those that are written.
pub(crate) fn check(copy: &CopyToStatement) -> Result<(), Error> {
    let extension = || Some(Path::new(&copy.target).extension()?.to_str()?.to_owned());
    let format = copy.stored_as.clone().or_else(extension);
    if format.as_ref().is_some_and(|format| WRITTEN.contains(&&*format.to_lowercase())) {
        return Ok(());
    }
    let found = format.map_or_else(|| "none".to_owned(), |format| format!("`{format}`"));
    Err(Error::Query(format!(
        "COPY TO '{}': expected the format of the file, found {found}\n  hint: end its name with .parquet, .csv or .ndjson, or \
         say STORED AS PARQUET, CSV or NDJSON",
        copy.target
    )))
}
