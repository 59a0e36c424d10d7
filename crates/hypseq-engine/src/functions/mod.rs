//! Table functions: a generation that is not live, a snapshot that is not the newest, and the boundary of a time.

mod boundary;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use hypseq_cache::GenerationState;

use crate::dataset::Dataset;
use crate::footer::Footers;
use crate::load::Generation;
use crate::schema::UTC;

/// Datasets by name.
pub(crate) type Datasets = BTreeMap<String, Arc<Dataset>>;

/// Names of the functions.
pub const TABLE_FUNCTIONS: [&str; 4] = {
    let [a, b, c, d] = Function::ALL;
    [a.name(), b.name(), c.name(), d.name()]
};

/// Adds the functions to a session.
pub(crate) fn register(context: &SessionContext, datasets: &Arc<Datasets>, footers: &Arc<Footers>) {
    for function in Function::ALL {
        let (datasets, footers) = (Arc::clone(datasets), Arc::clone(footers));
        context.register_udtf(function.name(), Arc::new(OfPartition { function, datasets, footers }));
    }
}

#[derive(Debug, Clone, Copy)]
enum Function {
    Generation,
    Snapshot,
    SeqAt,
    TimeOfSeq,
}

impl Function {
    const ALL: [Self; 4] = [Self::Generation, Self::Snapshot, Self::SeqAt, Self::TimeOfSeq];

    const fn name(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Snapshot => "snapshot",
            Self::SeqAt => "seq_at",
            Self::TimeOfSeq => "time_of_seq",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Generation => "generation('<dataset>', '<partition>', '<generation>')",
            Self::Snapshot => "snapshot('<dataset>', '<partition>', <snapshot id>)",
            Self::SeqAt => "seq_at('<dataset>', '<partition>', '<time>')",
            Self::TimeOfSeq => "time_of_seq('<dataset>', '<partition>', <seq>)",
        }
    }

    fn wrong(self, argument: &Expr) -> datafusion::error::DataFusionError {
        let found = match argument {
            Expr::Literal(value, _) if value.try_as_str().is_some() => format!("'{value}'"),
            Expr::Literal(value, _) => value.to_string(),
            other => other.to_string(),
        };
        plan_datafusion_err!("expected {}, found {found}", self.usage())
    }

    fn text(self, argument: &Expr) -> Result<String> {
        let text = if let Expr::Literal(value, _) = argument { value.try_as_str().flatten() } else { None };
        text.map(str::to_owned).ok_or_else(|| self.wrong(argument))
    }

    fn number(self, argument: &Expr) -> Result<i64> {
        match self.cast(argument, &DataType::Int64)? {
            ScalarValue::Int64(Some(number)) => Ok(number),
            _ => Err(self.wrong(argument)),
        }
    }

    /// Microseconds since 1970.
    fn time(self, argument: &Expr) -> Result<i64> {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) = self.cast(argument, &utc) else {
            return plan_err!("{}\n  hint: write a time as '2026-07-28T21:00:00Z'", self.wrong(argument).message());
        };
        match self.text(argument) {
            Ok(text) if !has_zone(&text) => {
                plan_err!("'{text}' is a time without a zone\n  hint: end it with `Z` for UTC, or with an offset")
            }
            _ => Ok(micros),
        }
    }

    fn cast(self, argument: &Expr, data_type: &DataType) -> Result<ScalarValue> {
        let Expr::Literal(value, _) = argument else { return Err(self.wrong(argument)) };
        // A number would be read as microseconds, which nobody means.
        if data_type.is_temporal() && value.data_type().is_numeric() {
            return Err(self.wrong(argument));
        }
        value.cast_to(data_type).map_err(|_| self.wrong(argument))
    }
}

/// A function of a dataset, a partition and a third argument.
#[derive(Debug)]
struct OfPartition {
    function: Function,
    datasets: Arc<Datasets>,
    footers: Arc<Footers>,
}

impl TableFunctionImpl for OfPartition {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let function = self.function;
        let [dataset, partition, third] = args.exprs() else {
            return plan_err!("expected {}, found {} arguments", function.usage(), args.exprs().len());
        };
        let dataset = self.dataset(&function.text(dataset)?)?;
        let partition = function.text(partition)?;
        let generations = generations(&dataset, &partition)?;
        let several = dataset.has_home();
        Ok(match function {
            Function::Generation => {
                Arc::new(dataset.of_generations(&named(&generations, &function.text(third)?)?, &self.footers))
            }
            Function::Snapshot => {
                Arc::new(dataset.of_snapshots(with_snapshot(&generations, function.number(third)?)?, &self.footers))
            }
            Function::SeqAt => {
                let at = function.time(third)?;
                let live = live(&generations, &partition)?;
                if live.iter().any(|generation| generation.columns().is_some_and(|columns| columns.time.is_none())) {
                    return plan_err!(
                        "it is not known which column of the dataset holds a row's time\n  hint: ask with `hypseq resolve \
                         --time-column`"
                    );
                }
                Arc::new(boundary::seq_at(live, several, at))
            }
            Function::TimeOfSeq => {
                let seq = function.number(third)?;
                Arc::new(boundary::time_of_seq(live(&generations, &partition)?, several, seq))
            }
        })
    }
}

impl OfPartition {
    fn dataset(&self, name: &str) -> Result<Arc<Dataset>> {
        let known = || self.datasets.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = self.datasets.get(name).cloned();
        found.ok_or_else(|| plan_datafusion_err!("there is no dataset `{name}`\n  hint: there are {}", known()))
    }
}

/// The generations of a partition, in every home that has it.
fn generations(dataset: &Dataset, partition: &str) -> Result<Vec<Arc<Generation>>> {
    let found: Vec<_> = dataset.generations().iter().filter(|g| g.partition.path == partition).cloned().collect();
    if found.is_empty() {
        let mut known: Vec<&str> = dataset.generations().iter().map(|g| g.partition.path.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return plan_err!("there is no partition `{partition}`\n  hint: there are {}", known.join(", "));
    }
    Ok(found)
}

fn named(generations: &[Arc<Generation>], name: &str) -> Result<Vec<Arc<Generation>>> {
    let found: Vec<_> = generations.iter().filter(|generation| generation.name == name).cloned().collect();
    if found.is_empty() {
        let known: Vec<&str> = generations.iter().map(|generation| generation.name.as_str()).collect();
        return plan_err!("there is no generation `{name}`\n  hint: there are {}", known.join(", "));
    }
    if let Some(leftover) = found.iter().find(|generation| generation.table().is_none()) {
        return plan_err!(
            "`{}` has no readable metadata, so which of its rows are visible is not known\n  hint: schema raw shows the rows \
             of its data files",
            leftover.dir.display()
        );
    }
    Ok(found)
}

fn live(generations: &[Arc<Generation>], partition: &str) -> Result<Vec<Arc<Generation>>> {
    let live: Vec<_> = generations.iter().filter(|g| g.state == GenerationState::Live).cloned().collect();
    if live.is_empty() {
        return plan_err!(
            "the live generation of `{partition}` is unknown\n  hint: see cache.problems; the generations are in schema raw"
        );
    }
    Ok(live)
}

/// Whether a text says `Z` or an offset after its date.
fn has_zone(time: &str) -> bool {
    time.get("2026-07-28".len()..).is_some_and(|rest| rest.ends_with(['Z', 'z']) || rest.contains(['+', '-']))
}

type AtSnapshot = (Arc<Generation>, hypseq_iceberg::Snapshot);

fn with_snapshot(generations: &[Arc<Generation>], id: i64) -> Result<Vec<AtSnapshot>> {
    let found = generations.iter().filter_map(|generation| {
        let snapshots = &generation.table()?.metadata.snapshots;
        Some((Arc::clone(generation), snapshots.iter().find(|snapshot| snapshot.id == id)?.clone()))
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return plan_err!("no generation of the partition has a snapshot {id}\n  hint: they are in cache.snapshots");
    }
    Ok(found)
}
