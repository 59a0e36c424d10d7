//! Verdicts over small generations, one case each.

use hypseq_boundary::{Deleted, Difference, GenerationView, Reason, Row, RowSet, Verdict, Verification, verify};

/// Generations oldest first, the last one live and the reference, as in a partition.
#[derive(Default)]
struct Partition {
    generations: Vec<(String, RowSet, Vec<Deleted>)>,
}

fn row(seq: i64) -> Row {
    Row { seq, time: Some(seq * 10), id: Some(format!("p{seq}").into()) }
}

fn seqs(range: impl IntoIterator<Item = i64>) -> Vec<Row> {
    range.into_iter().map(row).collect()
}

impl Partition {
    fn with(mut self, rows: Vec<Row>, deleted: &[i64]) -> Self {
        let name = format!("g{}", self.generations.len() + 1);
        let deleted = deleted.iter().map(|s| Deleted { row: row(*s), by: "x-deletes.puffin".to_owned() }).collect();
        self.generations.push((name, RowSet::new(rows), deleted));
        self
    }

    fn verify(&self, watermark: i64, cutoff: Option<i64>) -> Verification {
        let views: Vec<GenerationView<'_>> = self
            .generations
            .iter()
            .map(|(name, rows, deleted)| GenerationView { name, rows: Ok(rows), leftover: false, deleted })
            .collect();
        verify(&views, views.len() - 1, watermark, cutoff)
    }
}

fn verdicts(verification: &Verification) -> Vec<Verdict> {
    verification.generations.iter().map(|g| g.verdict).collect()
}

fn unexplained(verification: &Verification, generation: usize) -> Vec<i64> {
    verification.generations[generation].unexplained().map(|d| d.row.seq).collect()
}

#[test]
fn copies_agree() {
    let verification = Partition::default().with(seqs(1..=8), &[]).with(seqs(1..=9), &[]).verify(5, None);
    assert_eq!(verdicts(&verification), [Verdict::Agrees, Verdict::Agrees]);
    assert!(verification.proven);
    assert_eq!(verification.generations[0].last_row, Some(row(5)));
    assert_eq!(verification.generations[0].next_row, Some(row(6)));
    assert_eq!(
        verification.generations[0].differences,
        [Difference { row: row(9), missing_in_reference: false, reason: Reason::FlushedLater }]
    );
}

#[test]
fn one_generation_alone_covers_itself() {
    assert!(Partition::default().with(seqs(1..=9), &[]).verify(5, None).proven);
}

#[test]
fn deletes_at_the_boundary_are_named() {
    let live: Vec<Row> = seqs([1, 2, 3, 4, 7, 8]);
    let verification = Partition::default().with(seqs(1..=8), &[]).with(live, &[5, 6]).verify(5, None);
    assert_eq!(verdicts(&verification), [Verdict::AgreesAfterDeletes, Verdict::Agrees]);
    assert!(verification.proven);
    let by = Reason::DeletedBy { generation: "g2".to_owned(), file: "x-deletes.puffin".to_owned() };
    assert_eq!(
        verification.generations[0].differences,
        [
            Difference { row: row(5), missing_in_reference: true, reason: by.clone() },
            Difference { row: row(6), missing_in_reference: true, reason: by },
        ]
    );
}

#[test]
fn deletes_of_a_generation_in_between_explain_too() {
    let verification = Partition::default()
        .with(seqs(1..=8), &[])
        .with(seqs([1, 2, 3, 4, 6, 7, 8]), &[5])
        .with(seqs([1, 2, 3, 4, 6, 7, 8]), &[])
        .verify(4, None);
    assert_eq!(verdicts(&verification), [Verdict::AgreesAfterDeletes, Verdict::Agrees, Verdict::Agrees]);
    assert!(verification.proven);
}

#[test]
fn retention_explains_rows_older_than_its_cutoff_only() {
    let partition = Partition::default().with(seqs(1..=8), &[]).with(seqs(4..=8), &[]);
    assert!(partition.verify(5, Some(31)).proven);
    let without = partition.verify(5, Some(30));
    assert_eq!(verdicts(&without), [Verdict::Disagrees, Verdict::Agrees]);
    assert_eq!(unexplained(&without, 0), [3]);
    assert!(!without.proven);
}

#[test]
fn retention_does_not_excuse_a_changed_seq() {
    let mut older = seqs(1..=8);
    older[0].seq = 100;
    let middle = seqs(1..=8);
    let verification =
        Partition::default().with(older, &[]).with(middle, &[]).with(seqs(4..=12), &[]).verify(5, Some(35));
    assert_eq!(verification.generations[0].verdict, Verdict::Disagrees);
    assert_eq!(unexplained(&verification, 0), [100], "and nothing that was flushed later");
}

#[test]
fn a_row_replayed_after_a_generation_was_retired_is_excused_by_retention() {
    let replay = Row { seq: 9, ..row(1) };
    let mut middle = seqs(1..=8);
    middle.push(replay);
    let verification =
        Partition::default().with(seqs(1..=8), &[]).with(middle, &[]).with(seqs(4..=8), &[]).verify(5, Some(35));
    assert!(verification.proven, "{verification:?}");
}

#[test]
fn the_oldest_ends_before() {
    let verification = Partition::default().with(seqs(1..=3), &[]).with(seqs(1..=9), &[]).verify(5, None);
    assert_eq!(verdicts(&verification), [Verdict::EndsBefore, Verdict::Agrees]);
    assert!(!verification.generations[0].covers);
    assert!(verification.proven);
}

#[test]
fn growth_explains_a_boundary_at_the_very_end() {
    let verification = Partition::default().with(seqs(1..=3), &[]).with(seqs(1..=9), &[]).verify(9, None);
    assert_eq!(verdicts(&verification), [Verdict::Grew, Verdict::Agrees]);
    assert!(verification.proven);
}

#[test]
fn a_changed_seq_in_an_older_generation_disagrees() {
    let mut older = seqs(1..=8);
    older[2].seq = 77;
    let verification = Partition::default().with(older, &[]).with(seqs(1..=9), &[]).verify(5, None);
    assert_eq!(verification.generations[0].verdict, Verdict::Disagrees);
    assert_eq!(unexplained(&verification, 0), [3, 77]);
    assert!(!verification.proven);
}

#[test]
fn a_changed_seq_in_the_live_generation_disagrees() {
    let mut live = seqs(1..=9);
    live[2].seq = 77;
    let verification = Partition::default().with(seqs(1..=8), &[]).with(live, &[]).verify(5, None);
    assert_eq!(verification.generations[0].verdict, Verdict::Disagrees);
    assert_eq!(unexplained(&verification, 0), [3]);
}

#[test]
fn a_changed_time_disagrees() {
    let mut older = seqs(1..=8);
    older[7].time = Some(81);
    let verification = Partition::default().with(older, &[]).with(seqs(1..=9), &[]).verify(5, None);
    assert_eq!(verification.generations[0].verdict, Verdict::Disagrees);
    assert_eq!(unexplained(&verification, 0), [8, 8]);
}

#[test]
fn a_duplicate_that_a_compaction_dropped_agrees() {
    let mut older = seqs(1..=8);
    older[5].id = older[4].id.clone();
    let mut live = older.clone();
    live.remove(5);
    let verification = Partition::default().with(older, &[]).with(live, &[]).verify(5, None);
    assert_eq!(verdicts(&verification), [Verdict::AgreesAfterDeletes, Verdict::Agrees]);
    assert_eq!(verification.generations[0].differences[0].reason, Reason::Duplicate { kept_seq: 5 });
}

#[test]
fn the_twin_of_a_duplicate_must_be_in_both() {
    let mut older = seqs(1..=8);
    older[5].seq = 66;
    let verification = Partition::default().with(older, &[]).with(seqs(1..=8), &[]).verify(4, None);
    assert_eq!(unexplained(&verification, 0), [6, 66]);
}

#[test]
fn an_orphan_copied_from_the_live_generation_agrees_and_rows_that_come_from_nowhere_do_not() {
    let (live, copy, strange) =
        (RowSet::new(seqs(1..=9)), RowSet::new(seqs(1..=9)), RowSet::new(seqs([1, 2, 3, 4, 6])));
    let view = |name, rows| GenerationView { name, rows: Ok(rows), leftover: false, deleted: &[] };
    let verification = verify(&[view("live", &live), view("orphan", &copy)], 0, 5, None);
    assert_eq!(verdicts(&verification), [Verdict::Agrees, Verdict::Agrees]);
    let verification = verify(&[view("live", &live), view("orphan", &strange)], 0, 5, None);
    assert_eq!(unexplained(&verification, 1), [5], "the rows after its last are growth");
    let ended = RowSet::new(seqs(1..=7));
    let verification = verify(&[view("live", &live), view("orphan", &ended)], 0, 5, None);
    assert_eq!(verdicts(&verification), [Verdict::Agrees, Verdict::Agrees]);
}

#[test]
fn an_unreadable_generation_proves_nothing() {
    let rows = RowSet::new(seqs(1..=9));
    let unreadable =
        |leftover| GenerationView { name: "g1", rows: Err("`x.parquet` is empty".to_owned()), leftover, deleted: &[] };
    let whole = GenerationView { name: "g2", rows: Ok(&rows), leftover: false, deleted: &[] };
    let verification = verify(&[unreadable(false), whole.clone()], 1, 5, None);
    assert_eq!(verdicts(&verification), [Verdict::Unreadable, Verdict::Agrees]);
    assert_eq!(verification.generations[0].unreadable.as_deref(), Some("`x.parquet` is empty"));
    assert!(!verification.proven);

    let leftover = verify(&[unreadable(true), whole.clone()], 1, 5, None);
    assert_eq!(verdicts(&leftover), [Verdict::Unreadable, Verdict::Agrees]);
    assert!(leftover.proven);

    let without_reference = verify(&[unreadable(false), whole], 0, 5, None);
    assert_eq!(verdicts(&without_reference), [Verdict::Unreadable, Verdict::Unreadable]);
    assert!(!without_reference.proven);
}
