//! Which statements are allowed: those that look, and `COPY … TO` a place outside the homes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::sqlparser::ast;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::object_store::local::LocalFileSystem;
use datafusion::sql::parser::{DFParser, ResetStatement, Statement};

use crate::dialect::HypDialect;
use crate::target::Protected;
use crate::{Error, formats};

/// The option that makes DataFusion 55 leave rows out of `min` and `max` over several files, without an error
/// (apache/datafusion#20267, #24816). It is off in every session.
pub(crate) const AGGREGATE_FILTER: &str = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown";
/// Sets [`AGGREGATE_FILTER`] too.
const EVERY_DYNAMIC_FILTER: &str = "datafusion.optimizer.enable_dynamic_filter_pushdown";
const TIME_ZONE: &str = "datafusion.execution.time_zone";
/// Settings that change how fast an answer comes, never what it is. A final dot stands for all below it.
const SETTINGS: [&str; 4] = [
    "datafusion.execution.batch_size",
    "datafusion.execution.target_partitions",
    "datafusion.execution.parquet.pushdown_filters",
    "datafusion.explain.",
];

const ALLOWED: &str = "allowed are queries, EXPLAIN, SHOW, DESCRIBE, CREATE VIEW, CREATE EXTERNAL TABLE, SET of harmless \
                       options, and COPY … TO a file outside the homes";

/// Splits a script into statements, each of an allowed kind.
pub(crate) fn parse(script: &str) -> Result<VecDeque<Statement>, Error> {
    let statements =
        DFParser::parse_sql_with_dialect(script, &HypDialect).map_err(|error| Error::from_datafusion(&error))?;
    statements.iter().try_for_each(check)?;
    Ok(statements)
}

fn check(statement: &Statement) -> Result<(), Error> {
    match statement {
        Statement::Statement(statement) => check_sql(statement),
        Statement::Explain(explain)
            if explain.options.analyze && matches!(*explain.statement, Statement::CopyTo(_)) =>
        {
            Err(refused("EXPLAIN ANALYZE COPY", "it would write the file; EXPLAIN alone does not"))
        }
        Statement::Explain(explain) => check(&explain.statement),
        Statement::CreateExternalTable(_) => Ok(()),
        Statement::CopyTo(copy) => formats::check(copy),
        Statement::Reset(ResetStatement::Variable(name)) => check_setting("RESET", &name.to_string()),
    }
}

fn check_sql(statement: &ast::Statement) -> Result<(), Error> {
    match statement {
        ast::Statement::Query(_)
        | ast::Statement::CreateView(_)
        | ast::Statement::ExplainTable { .. }
        | ast::Statement::ShowColumns { .. }
        | ast::Statement::ShowCreate { .. }
        | ast::Statement::ShowFunctions { .. }
        | ast::Statement::ShowTables { .. }
        | ast::Statement::ShowVariable { .. }
        | ast::Statement::ShowVariables { .. } => Ok(()),
        ast::Statement::Explain { statement, .. } => check_sql(statement),
        ast::Statement::Set(ast::Set::SingleAssignment { variable, .. }) => check_setting("SET", &variable.to_string()),
        ast::Statement::Set(ast::Set::SetTimeZone { .. }) => check_setting("SET", TIME_ZONE),
        other => Err(refused(&kind(&other.to_string()), "it is not one of the statements allowed here")),
    }
}

/// The keywords that a statement begins with.
fn kind(statement: &str) -> String {
    let is_keyword = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let words: Vec<&str> = statement.split_whitespace().take_while(is_keyword).take(2).collect();
    words.join(" ")
}

fn check_setting(verb: &str, name: &str) -> Result<(), Error> {
    let name = name.to_lowercase();
    let is_allowed = |allowed: &&str| name == *allowed || (allowed.ends_with('.') && name.starts_with(allowed));
    let reason = match name.as_str() {
        AGGREGATE_FILTER | EVERY_DYNAMIC_FILTER => {
            "with dynamic filters of aggregates this engine answers `min` and `max` over several files wrongly, so they \
             stay off"
        }
        TIME_ZONE | "timezone" | "time.zone" => "times are compared and shown in UTC, and nowhere else",
        _ if SETTINGS.iter().any(is_allowed) => return Ok(()),
        _ => "it is not one of the options that may be changed here",
    };
    Err(Error::Refused {
        statement: format!("{verb} {name}"),
        reason: reason.to_owned(),
        hint: format!("{} and all of datafusion.explain may be set", SETTINGS[..3].join(", ")),
    })
}

fn refused(statement: &str, reason: impl Into<String>) -> Error {
    Error::Refused { statement: statement.to_owned(), reason: reason.into(), hint: ALLOWED.to_owned() }
}

/// Checks what a statement turned out to do, wherever in the plan, and says which file it writes, if it writes one.
pub(crate) fn check_plan(plan: &LogicalPlan, protected: &Protected) -> Result<Option<PathBuf>, Error> {
    let mut verdict = Ok(None);
    plan.apply_with_subqueries(|node| {
        match check_node(node, protected) {
            // What is only explained is not written.
            Ok(target) if std::ptr::eq(node, plan) => verdict = Ok(target),
            Ok(_) => {}
            Err(refused) => verdict = Err(refused),
        }
        Ok(if verdict.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })
    .map_err(|error: DataFusionError| Error::from_datafusion(&error))?;
    verdict
}

fn check_node(node: &LogicalPlan, protected: &Protected) -> Result<Option<PathBuf>, Error> {
    match node {
        LogicalPlan::Dml(dml) => Err(refused(&dml.op.to_string().to_uppercase(), "nothing is ever changed here")),
        LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::CreateExternalTable(_))
        | LogicalPlan::Statement(PlanStatement::SetVariable(_) | PlanStatement::ResetVariable(_)) => Ok(None),
        LogicalPlan::Ddl(ddl) => Err(refused(ddl.name(), "it is not one of the statements allowed here")),
        LogicalPlan::Statement(other) => Err(refused(other.name(), "it is not one of the statements allowed here")),
        LogicalPlan::Copy(copy) => check_target(copy, protected).map(Some),
        _ => Ok(None),
    }
}

/// Checks the place that a statement writes to, and says which file it is.
fn check_target(copy: &CopyTo, protected: &Protected) -> Result<PathBuf, Error> {
    let target = &copy.output_url;
    let refused = |reason: String| Error::Refused {
        statement: format!("COPY TO '{target}'"),
        reason,
        hint: "name a new file, in a folder outside of every home and cache".to_owned(),
    };
    let url = ListingTableUrl::parse(target).map_err(|error| Error::from_datafusion(&error))?;
    if url.scheme() != "file" {
        return Err(refused(format!("only local files are written, not {}:", url.scheme())));
    }
    if !copy.partition_by.is_empty() || url.is_collection() || url.get_glob().is_some() {
        return Err(refused("one file is written, not a folder or a pattern of names".to_owned()));
    }
    let path = LocalFileSystem::new().path_to_filesystem(url.prefix());
    let path = path.map_err(|error| refused(format!("the path cannot be resolved: {error}")))?;
    protected.check(&path).map_err(refused)?;
    if path.symlink_metadata().is_ok() {
        return Err(refused("it is there already, and nothing is overwritten".to_owned()));
    }
    if !path.parent().is_some_and(Path::is_dir) {
        return Err(refused("there is no such folder".to_owned()));
    }
    // Without one a folder of several files would be made.
    if path.extension().is_none() {
        return Err(refused("its name has no ending, such as .csv".to_owned()));
    }
    Ok(path)
}
