//! What the consumer of a plan must know of the cache: whether a rewind's boundary still stands in the live generation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use hypseq_boundary::{Reason, Row, RowSet};
use hypseq_cache::{Home, Partition};
use hypseq_iceberg::Table;
use hypseq_plan::{BoundaryRefusal, Rewind, Seq, Sha256, Time, WatermarkPath, World};

use crate::live::Live;
use crate::proof::Proof;
use crate::survey::Survey;
use crate::time::show;

/// A cache on disk.
pub struct CacheWorld<'a> {
    home: &'a Home,
    known: RefCell<HashMap<Asked, Result<(), BoundaryRefusal>>>,
}

/// A question with all that its answer depends on: a generation's metadata file is never written twice.
#[derive(PartialEq, Eq, Hash)]
struct Asked {
    watermark: WatermarkPath,
    target: Seq,
    metadata_file: PathBuf,
    metadata: Sha256,
}

impl<'a> CacheWorld<'a> {
    pub fn new(home: &'a Home) -> Self {
        Self { home, known: RefCell::default() }
    }
}

impl World for CacheWorld<'_> {
    fn boundary_holds(&self, rewind: &Rewind) -> Result<(), BoundaryRefusal> {
        let live = Live::open(self.home, &rewind.dataset, &rewind.partition).map_err(BoundaryRefusal::Unknown)?;
        let asked = Asked {
            watermark: rewind.watermark.clone(),
            target: rewind.target.last_exported_seq,
            metadata_file: live.table.metadata_file.clone(),
            metadata: Sha256::of(&live.table.metadata_bytes),
        };
        if let Some(answer) = self.known.borrow().get(&asked) {
            return answer.clone();
        }
        let answer = holds(&live, rewind);
        self.known.borrow_mut().insert(asked, answer.clone());
        answer
    }
}

/// The rows of a boundary as a plan names them, and the seqs between which there are no others.
struct Planned<'a> {
    rows: Vec<&'a hypseq_plan::Row>,
    from: i64,
    to: i64,
    /// Times are known here.
    timed: bool,
}

impl<'a> Planned<'a> {
    fn of(rewind: &'a Rewind, timed: bool) -> Self {
        let (last, next) = (rewind.guard.last_row.as_ref(), rewind.guard.next_row.as_ref());
        let seq = |row: &hypseq_plan::Row| row.seq.get();
        Self {
            rows: last.into_iter().chain(next).collect(),
            from: last.map_or(0, seq),
            to: next.map_or(rewind.observed.seq.get(), seq),
            timed,
        }
    }

    fn is(&self, planned: &hypseq_plan::Row, found: &Row) -> bool {
        planned.seq.get() == found.seq
            && planned.id.as_deref() == found.id.as_deref()
            && (!self.timed || planned.time == found.time.and_then(Time::from_micros))
    }

    fn missing(&self, visible: &RowSet) -> Vec<&'a hypseq_plan::Row> {
        let stands = |planned: &&hypseq_plan::Row| visible.rows().iter().any(|found| self.is(planned, found));
        self.rows.iter().copied().filter(|planned| !stands(planned)).collect()
    }

    fn strangers<'r>(&self, visible: &'r RowSet) -> impl Iterator<Item = &'r Row> {
        visible.rows().iter().filter(|found| !self.rows.iter().any(|planned| self.is(planned, found)))
    }
}

fn holds(live: &Live, rewind: &Rewind) -> Result<(), BoundaryRefusal> {
    let planned = Planned::of(rewind, live.columns().time.is_some());
    let visible = live.rows(planned.from, planned.to).map_err(BoundaryRefusal::Unknown)?;
    let found = &live.table.metadata.table_uuid;
    let expected = &rewind.guard.table_uuid;
    let missing = planned.missing(&visible);
    let strangers: Vec<&Row> = planned.strangers(&visible).collect();
    let known = found == expected || has_table(&live.partition, expected);
    let unmoved = missing.is_empty() && strangers.is_empty();
    // Retired folders are removed after a day; a later compaction of one is then known by its rows, if these have ids.
    let known_by_rows = unmoved && planned.rows.iter().any(|row| row.id.is_some());
    if !(known || known_by_rows) {
        return Err(BoundaryRefusal::AnotherTable { expected: expected.clone(), found: found.clone() });
    }
    match strangers.first() {
        Some(row) => Err(BoundaryRefusal::Moved(format!("{} was not there", name(row)))),
        None if unmoved => Ok(()),
        None => deleted(live, rewind, &planned, &missing),
    }
}

fn has_table(partition: &Partition, uuid: &str) -> bool {
    let others = partition.generations.iter().filter(|g| g.has_metadata);
    others.filter_map(|g| Table::open(&g.dir).ok()).any(|table| table.metadata.table_uuid == uuid)
}

/// Whether the rows that are gone were deleted, by what the generations' own metadata shows.
fn deleted(
    live: &Live,
    rewind: &Rewind,
    planned: &Planned<'_>,
    missing: &[&hypseq_plan::Row],
) -> Result<(), BoundaryRefusal> {
    let unknown = |error: anyhow::Error| BoundaryRefusal::Unknown(format!("{error:#}"));
    let survey = Survey::of(&live.partition, None).map_err(unknown)?;
    let reference = survey.reference(None).map_err(unknown)?;
    let proof = Proof::of(&survey, reference, rewind.target.last_exported_seq.get(), None);
    let differences = proof.generations.iter().flat_map(|g| &g.comparison.differences);
    let explained = differences.filter(|d| d.missing_in_reference && d.reason != Reason::Unexplained).map(|d| &d.row);
    let shown = survey.generations.iter().flat_map(|g| g.scan.deleted.iter().map(|d| &d.row));
    let gone: Vec<&Row> = explained.chain(shown).collect();
    match missing.iter().find(|row| !gone.iter().any(|found| planned.is(row, found))) {
        None => Ok(()),
        Some(row) => {
            let time = row.time.map_or_else(|| "no time".to_owned(), |time| time.to_string());
            let id = row.id.as_deref().unwrap_or("no id");
            Err(BoundaryRefusal::Moved(format!("seq {} ({time}, {id}) is gone, and no delete explains it", row.seq)))
        }
    }
}

fn name(row: &Row) -> String {
    let time = row.time.map_or_else(|| "no time".to_owned(), show);
    format!("seq {} ({time}, {})", row.seq, row.id.as_deref().unwrap_or("no id"))
}
