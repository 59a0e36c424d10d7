//! Schema `complete`: the union over the generations of each partition, by seq.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::{ExecutionPlan, collect};
use hypseq_iceberg::FieldType;
use roaring::RoaringTreemap;
use tokio::sync::OnceCell;

use crate::datafile::{DataFile, Deletes};
use crate::dataset::{Dataset, SEQ};
use crate::footer::Footers;
use crate::load::{Generation, Snapshot};
use crate::scan::{Layout, TableColumn, pushdown};
use crate::scanfile::{ScanFile, Selected};

/// The union over the generations of a dataset's partitions: one row per seq and partition.
///
/// A row is taken from the live generation if that has its seq, else from the newest that has: from the rows that
/// are visible there before those that are deleted there. Rows without a seq are taken from the first generation,
/// in the same order, that has any.
///
/// Which rows these are is found out once, at the first scan, by reading the seqs of all generations.
#[derive(Debug)]
pub(crate) struct CompleteTable {
    layout: Layout,
    dataset: Arc<Dataset>,
    /// Seq, file, deleted and position of the rows of one generation.
    survey: Layout,
    files: OnceCell<Vec<Arc<ScanFile>>>,
}

impl CompleteTable {
    pub(crate) fn new(layout: Layout, dataset: Arc<Dataset>, footers: Arc<Footers>) -> Self {
        let survey = vec![
            TableColumn::stored(SEQ, FieldType::Long),
            TableColumn::constant("file", DataType::Int64, 0),
            TableColumn::constant("deleted", DataType::Boolean, 1),
            TableColumn::position("position"),
        ];
        Self { layout, dataset, survey: Layout::new(survey, footers), files: OnceCell::new() }
    }

    async fn choose(&self, session: &dyn Session) -> Result<Vec<Arc<ScanFile>>> {
        let mut chosen = Vec::new();
        let of_one_partition =
            |a: &Arc<Generation>, b: &Arc<Generation>| a.home == b.home && a.partition == b.partition;
        for generations in self.dataset.generations().chunk_by(of_one_partition) {
            let mut union = Union::default();
            for generation in generations {
                let Snapshot { files, lost } = generation.snapshot();
                let lost = lost.iter();
                chosen.extend(lost.map(|lost| ScanFile::lost(lost.clone(), self.dataset.constants_of(generation))));
                let rows = self.rows(files, session).await?;
                for (file, deleted, rows) in union.take(rows) {
                    let file = files.get(file).ok_or_else(|| internal_datafusion_err!("there is no file {file}"))?;
                    let rows =
                        if Some(rows.len()) == file.rows { Selected::All } else { Selected::Only(Arc::new(rows)) };
                    let constants = self.dataset.constants(generation, file, deleted);
                    chosen.push(ScanFile::new(Arc::clone(file), rows, constants));
                }
            }
        }
        Ok(chosen.into_iter().map(Arc::new).collect())
    }

    async fn rows(&self, files: &[Arc<DataFile>], session: &dyn Session) -> Result<Vec<Row>> {
        let scans = (0_i64..).zip(files).flat_map(|(place, file)| survey_scans(place, file)).map(Arc::new);
        let plan = self.survey.scan(scans.collect(), session, None, &[], None)?;
        let mut rows = Vec::new();
        for batch in collect(plan, session.task_ctx()).await? {
            rows.extend(decode(&batch)?);
        }
        Ok(rows)
    }
}

/// A file's visible and deleted rows, with the file's place among those of its generation.
fn survey_scans(place: i64, file: &Arc<DataFile>) -> Vec<ScanFile> {
    let scan = |rows, deleted| {
        let constants = vec![Some(ScalarValue::Int64(Some(place))), Some(ScalarValue::Boolean(deleted))];
        ScanFile::new(Arc::clone(file), rows, constants)
    };
    match &file.deletes {
        Deletes::Unknown(_) => vec![scan(Selected::All, None)],
        Deletes::Known(deleted) if deleted.is_empty() => vec![scan(Selected::All, Some(false))],
        Deletes::Known(deleted) => vec![
            scan(Selected::Except(Arc::clone(deleted)), Some(false)),
            scan(Selected::Only(Arc::clone(deleted)), Some(true)),
        ],
    }
}

fn decode(batch: &RecordBatch) -> Result<Vec<Row>> {
    let malformed = || internal_datafusion_err!("a survey of seqs has columns {}", batch.schema());
    let [seqs, files, deleted, positions] = batch.columns() else { return Err(malformed()) };
    let numbers = (seqs.as_primitive_opt::<Int64Type>(), files.as_primitive_opt::<Int64Type>());
    let (Some(seqs), Some(files)) = numbers else { return Err(malformed()) };
    let (Some(deleted), Some(positions)) = (deleted.as_boolean_opt(), positions.as_primitive_opt::<Int64Type>()) else {
        return Err(malformed());
    };
    let row = |(((seq, file), deleted), position): (((_, Option<i64>), _), Option<i64>)| {
        let file = usize::try_from(file?).ok()?;
        Some(Row { deleted, file, position: u64::try_from(position?).ok()?, seq })
    };
    let rows = seqs.iter().zip(files).zip(deleted).zip(positions).map(row);
    rows.collect::<Option<_>>().ok_or_else(malformed)
}

/// A row of a generation. Visible rows come before deleted ones in its order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    deleted: Option<bool>,
    file: usize,
    position: u64,
    seq: Option<i64>,
}

/// The seqs taken so far of one partition.
#[derive(Debug, Default)]
struct Union {
    seqs: RoaringTreemap,
    has_legacy: bool,
}

impl Union {
    /// Takes the rows of the next generation that are not there yet: positions by file and deletedness.
    fn take(&mut self, mut rows: Vec<Row>) -> Vec<(usize, Option<bool>, RoaringTreemap)> {
        rows.sort_unstable();
        let had_legacy = self.has_legacy;
        let mut taken = Vec::new();
        for of_one_file in rows.chunk_by(|a, b| a.file == b.file && a.deleted == b.deleted) {
            let mut positions = RoaringTreemap::new();
            for row in of_one_file {
                self.has_legacy |= row.seq.is_none();
                if row.seq.map_or(!had_legacy, |seq| self.seqs.insert(seq.cast_unsigned())) {
                    positions.insert(row.position);
                }
            }
            if let (Some(row), false) = (of_one_file.first(), positions.is_empty()) {
                taken.push((row.file, row.deleted, positions));
            }
        }
        taken
    }
}

#[async_trait]
impl TableProvider for CompleteTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.layout.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files.get_or_try_init(|| self.choose(session)).await?;
        self.layout.scan(files.clone(), session, projection, filters, limit)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(pushdown(filters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: Option<i64>, file: usize, position: u64, deleted: Option<bool>) -> Row {
        Row { deleted, file, position, seq }
    }

    /// Taken rows as (file, deleted, position).
    fn take(union: &mut Union, rows: Vec<Row>) -> Vec<(usize, Option<bool>, u64)> {
        let positions = |(file, deleted, rows): (_, _, RoaringTreemap)| {
            rows.into_iter().map(move |position| (file, deleted, position))
        };
        union.take(rows).into_iter().flat_map(positions).collect()
    }

    #[test]
    fn a_seq_is_taken_from_the_first_generation_that_has_it() {
        let mut union = Union::default();
        let newer = vec![row(Some(2), 0, 0, Some(false)), row(Some(3), 0, 1, Some(true))];
        let older =
            vec![row(Some(1), 0, 0, Some(false)), row(Some(2), 0, 1, Some(false)), row(Some(3), 0, 2, Some(false))];
        assert_eq!(take(&mut union, newer), [(0, Some(false), 0), (0, Some(true), 1)]);
        assert_eq!(take(&mut union, older), [(0, Some(false), 0)]);
    }

    #[test]
    fn within_a_generation_a_visible_row_goes_before_a_deleted_one() {
        let rows =
            vec![row(Some(7), 0, 4, Some(true)), row(Some(7), 1, 9, Some(false)), row(Some(7), 1, 11, Some(false))];
        assert_eq!(take(&mut Union::default(), rows), [(1, Some(false), 9)]);
    }

    #[test]
    fn rows_without_a_seq_are_all_taken_from_the_first_generation_that_has_any() {
        let mut union = Union::default();
        assert_eq!(take(&mut union, vec![row(Some(1), 0, 0, None)]), [(0, None, 0)]);
        let legacy = vec![row(None, 0, 0, Some(false)), row(None, 0, 1, Some(false)), row(None, 1, 0, Some(true))];
        assert_eq!(take(&mut union, legacy), [(0, Some(false), 0), (0, Some(false), 1), (1, Some(true), 0)]);
        assert_eq!(take(&mut union, vec![row(None, 0, 5, Some(false))]), []);
    }
}
