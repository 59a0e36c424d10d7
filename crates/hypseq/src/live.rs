//! A partition's live generation as it is at this moment, read no further than a question needs.

use hypseq_boundary::{Row, RowSet};
use hypseq_cache::{Home, Partition, Policy};
use hypseq_iceberg::Table;
use hypseq_scan::{Columns, LazyScan, scan_generation};

use crate::outgoing::{source, withheld};
use crate::select;

/// A live generation, opened.
pub struct Live {
    pub partition: Partition,
    pub table: Table,
}

/// Rows of a stretch of seqs, by what today's policy does with them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Rows that the sink may send.
    pub sendable: u64,
    /// Rows that policy withholds.
    pub withheld: u64,
    /// The rules that withhold them.
    pub rules: Vec<String>,
}

impl Live {
    /// Finds the partition and opens its live generation; else why that is not possible, in words.
    pub fn open(home: &Home, dataset: &str, path: &str) -> Result<Self, String> {
        let found = home.partitions();
        let partition = found.value.into_iter().find(|p| p.id.dataset == dataset && p.id.path == path);
        let partition = partition.ok_or_else(|| format!("there is no partition {dataset} {path} in this home"))?;
        let name = select::name(&partition.id);
        let live = partition.live().ok_or_else(|| match &partition.cursor {
            Err(problem) => format!("{name}: the live generation is unknown: {}", problem.message),
            Ok(_) => format!("{name}: the cursor names a folder that is not there"),
        })?;
        let table = Table::open(&live.dir).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { partition, table })
    }

    /// The columns that identify a row.
    pub fn columns(&self) -> Columns {
        Columns::of(&self.partition.id.dataset, self.table.metadata.current_schema())
    }

    /// The visible rows with a seq from `from` to `to`, both included. Only files that may hold any are opened.
    pub fn rows(&self, from: i64, to: i64) -> Result<RowSet, String> {
        self.scan(&self.columns(), from, to)
    }

    /// What today's policy does with the visible rows above `above` and at or below `up_to`.
    pub fn stretch(&self, policy: &Policy, above: i64, up_to: i64) -> Result<Stretch, String> {
        let mut stretch = Stretch::default();
        let Some(from) = above.checked_add(1).filter(|from| *from <= up_to) else { return Ok(stretch) };
        let folder = self.table.metadata.current_schema().field("cwd").map(|field| field.name.clone());
        // A scan reads one text column of each row, the id as a rule; here it is the folder that policy goes by.
        let columns = Columns { time: None, id: folder, ..self.columns() };
        let source = source(&self.partition.id);
        for row in self.scan(&columns, from, up_to)?.rows() {
            match withheld(policy, source, row.id.as_deref()) {
                None => stretch.sendable += 1,
                Some(rule) => {
                    stretch.withheld += 1;
                    if !stretch.rules.contains(&rule) {
                        stretch.rules.push(rule);
                    }
                }
            }
        }
        Ok(stretch)
    }

    fn scan(&self, columns: &Columns, from: i64, to: i64) -> Result<RowSet, String> {
        let name = select::name(&self.partition.id);
        let Some(snapshot) = self.table.metadata.current_snapshot() else { return Ok(RowSet::new(Vec::new())) };
        let files = self.table.files(snapshot).map_err(|error| format!("{name}: {error}"))?;
        if let Some(problem) = files.problems.first() {
            return Err(format!("{name}: {problem}"));
        }
        let rows = LazyScan::new(&self.table, &files, columns).and_then(|rows| rows.between(from, to));
        if let Ok(rows) = rows {
            return Ok(RowSet::new(rows));
        }
        let scan = scan_generation(&self.table, &files, columns);
        match scan.problems.first() {
            Some(problem) => Err(format!("{name}: `{}`: {}", problem.path.display(), problem.message)),
            None => Ok(scan.visible.filtered(|row: &Row| (from..=to).contains(&row.seq))),
        }
    }
}
