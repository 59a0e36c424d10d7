//! Bounds first against the full scan: every answer the same, on the corpora and on generated caches.

use std::fs;
use std::path::Path;

use hypseq_boundary::{
    Counted as _, GenerationView, Order as _, Row, RowSet, Source as _, Tally, resolve, safe_seq, verify,
};
use hypseq_cache::Home;
use hypseq_iceberg::{Bounds, SnapshotFiles, Table};
use hypseq_scan::{Columns, Figures, LazyScan, Scan, scan_generation};
use hypseq_testkit::small;

use crate::support::{CORPORA, Copy, NEUTRAL, WHOLE_FILE, open, testdata};

/// A generation, opened, with its full scan.
struct Generation {
    name: String,
    table: Table,
    files: SnapshotFiles,
    columns: Columns,
    scan: Scan,
}

impl Generation {
    fn open(dataset: &str, dir: &Path) -> Self {
        let (table, files) = open(dir);
        let columns = Columns::of(dataset, table.metadata.current_schema());
        let scan = scan_generation(&table, &files, &columns);
        assert!(scan.complete(), "{:?}", scan.problems);
        assert_eq!(scan.doubts, []);
        Self { name: dir.file_name().unwrap().to_string_lossy().into_owned(), table, files, columns, scan }
    }

    fn lazy(&self) -> LazyScan<'_> {
        LazyScan::new(&self.table, &self.files, &self.columns).unwrap()
    }

    fn rows(&self) -> &RowSet {
        &self.scan.visible
    }
}

/// The generations of each partition that have metadata, oldest first.
fn partitions(home: &Path) -> Vec<Vec<Generation>> {
    let found = Home::open(home).unwrap().partitions();
    let generations = |partition: &hypseq_cache::Partition| {
        let whole = partition.generations.iter().filter(|g| g.has_metadata);
        whole.map(|g| Generation::open(&partition.id.dataset, &g.dir)).collect()
    };
    found.value.iter().map(generations).collect()
}

/// About ten times: rows' own and those right before them, the ends, and beyond.
fn times(rows: &RowSet) -> Vec<i64> {
    let mut times: Vec<i64> = rows.rows().iter().filter_map(|r| r.time).collect();
    times.sort_unstable();
    let step = (times.len() / 4).max(1);
    let near = |time: &i64| [*time - 1, *time];
    let last = times.last().map(|t| t + 1);
    times.iter().step_by(step).flat_map(near).chain(last).chain([0, i64::MAX]).collect()
}

fn seqs(rows: &RowSet) -> Vec<i64> {
    let step = (rows.rows().len() / 4).max(1);
    let near = |row: &Row| [row.seq - 1, row.seq];
    rows.rows().iter().step_by(step).flat_map(near).chain(rows.max_seq()).chain([0, i64::MAX]).collect()
}

fn assert_same(generation: &Generation) {
    let (rows, kept) = (generation.rows(), generation.lazy());
    let context = |question: &str| format!("{question} of {}", generation.table.dir.display());
    for at in times(rows) {
        let fresh = generation.lazy();
        let Ok(expected) = resolve(rows, rows, at);
        assert_eq!(resolve(&fresh, &fresh, at).as_ref(), Ok(&expected), "{}", context(&format!("time {at}")));
        assert_eq!(resolve(&kept, &kept, at).as_ref(), Ok(&expected), "{}", context(&format!("time {at}, again")));

        let window = |row: &Row| {
            row.time.is_none_or(|t| (at.saturating_sub(7_200_000_000)..at.saturating_add(3_600_000_000)).contains(&t))
        };
        let Ok(expected) = resolve(rows, &rows.filtered(window), at.saturating_sub(1_000_000));
        let found = resolve(&kept, &kept.considering(window), at.saturating_sub(1_000_000));
        assert_eq!(found, Ok(expected), "{}", context(&format!("window around {at}")));

        let minute = (at, at.saturating_add(60_000_000));
        let Ok(expected) = rows.seqs_within(minute.0, minute.1);
        assert_eq!(generation.lazy().seqs_within(minute.0, minute.1), Ok(expected));
        for seq in seqs(rows).into_iter().step_by(5) {
            let Ok(expected) = rows.cost(at, seq);
            assert_eq!(generation.lazy().cost(at, seq), Ok(expected), "{}", context(&format!("cost {at} {seq}")));
        }
    }
    let deleted = &generation.scan.deleted;
    for seq in seqs(rows) {
        let lazy = generation.lazy();
        let Ok((last, next, timed)) = (|| {
            Ok::<_, std::convert::Infallible>((
                rows.last_at_or_below(seq)?,
                rows.next_above(seq)?,
                rows.last_timed(seq)?,
            ))
        })();
        assert_eq!(lazy.last_at_or_below(seq), Ok(last), "{}", context(&format!("last row at {seq}")));
        assert_eq!(lazy.next_above(seq), Ok(next), "{}", context(&format!("next row at {seq}")));
        assert_eq!(lazy.last_timed(seq), Ok(timed));
        assert_eq!(lazy.visible_up_to(seq), Ok(rows.at_or_below(seq).len() as u64));
        let below = deleted.iter().filter(|d| d.row.seq <= seq);
        let physical = rows.at_or_below(seq).len() + below.count();
        assert_eq!(generation.lazy().physical_up_to(seq), Ok(physical as u64));
    }
    let mut physical: Vec<i64> = rows.rows().iter().chain(deleted.iter().map(|d| &d.row)).map(|row| row.seq).collect();
    physical.sort_unstable();
    for rank in (1..=physical.len()).step_by((physical.len() / 7).max(1)).chain([physical.len(), physical.len() + 1]) {
        let expected = rank.checked_sub(1).and_then(|place| physical.get(place).copied());
        assert_eq!(
            generation.lazy().physical_seq_at(rank as u64),
            Ok(expected),
            "{}",
            context(&format!("rank {rank}"))
        );
    }
    let max = rows.max_seq().max(deleted.iter().map(|d| d.row.seq).max());
    assert_eq!(kept.max_physical_seq(), Ok(max));
    let Scan { visible_rows, raw_rows, deleted_rows, legacy_rows, null_time_rows, times, .. } = generation.scan;
    let expected = Figures {
        visible_rows,
        raw_rows,
        deleted_rows,
        legacy_rows,
        null_time_rows,
        seqs: generation.scan.seqs(),
        times,
    };
    assert_eq!(generation.lazy().figures(), Ok(expected), "{}", context("figures"));
    assert_eq!((kept.files_total(), kept.bytes), (generation.scan.files_total, generation.scan.bytes));
}

/// Compares the counts' verdicts with the rows', and says whether the counts added up.
fn assert_same_verdicts(generations: &[Generation]) -> bool {
    let lazy: Vec<LazyScan<'_>> = generations.iter().map(Generation::lazy).collect();
    let named = generations.iter().zip(&lazy).map(|(generation, lazy)| (generation.name.as_str(), Ok(lazy)));
    let tally = Tally::new(named).unwrap();
    let deleted: Vec<Vec<hypseq_boundary::Deleted>> = generations
        .iter()
        .map(|g| {
            let deleted = g.scan.deleted.iter();
            deleted.map(|d| hypseq_boundary::Deleted { row: d.row.clone(), by: d.by_names() }).collect()
        })
        .collect();
    let views: Vec<GenerationView<'_>> = generations
        .iter()
        .zip(&deleted)
        .map(|(g, deleted)| GenerationView { name: &g.name, rows: Ok(g.rows()), leftover: false, deleted })
        .collect();
    let mut added_up = true;
    for watermark in generations.iter().flat_map(|g| seqs(g.rows())) {
        let mut expected = verify(&views, views.len() - 1, watermark, None);
        for comparison in &mut expected.generations {
            comparison.differences.clear();
        }
        match tally.verify(views.len() - 1, watermark).unwrap() {
            Some(found) => assert_eq!(found, expected, "at {watermark} of {}", generations[0].table.dir.display()),
            None => added_up = false,
        }
    }
    added_up
}

#[test]
fn the_corpora_give_the_same_answers() {
    for corpus in CORPORA {
        for generations in partitions(&testdata().join(corpus)) {
            generations.iter().for_each(assert_same);
            assert_same_verdicts(&generations);
        }
    }
}

#[test]
fn generated_caches_give_the_same_answers() {
    let mut added_up = 0;
    for seed in 0..12 {
        let home = tempfile::tempdir().unwrap();
        small(seed, home.path()).unwrap();
        for generations in partitions(home.path()) {
            generations.iter().for_each(assert_same);
            added_up += usize::from(assert_same_verdicts(&generations));
        }
    }
    assert!(added_up >= 12, "{added_up} partitions only whose counts add up");
}

#[test]
fn few_files_are_read() {
    let generation = Generation::open("ai_gateway_messages", &testdata().join(NEUTRAL));
    let lazy = generation.lazy();
    let at = 1_785_272_400_000_000;
    assert_eq!(safe_seq(&lazy, at), Ok(Some(722)));
    assert_eq!((lazy.files_read(), lazy.files_total()), (2, 48));
}

#[test]
fn a_file_of_another_size_is_doubted() {
    let copy = Copy::of(NEUTRAL);
    let path = copy.path(WHOLE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let size = bytes.len();
    bytes.push(0);
    fs::write(&path, bytes).unwrap();
    let (table, files) = open(&copy.path(""));
    let columns = Columns::of("ai_gateway_messages", table.metadata.current_schema());
    let doubt = LazyScan::new(&table, &files, &columns).unwrap_err();
    assert_eq!(doubt.to_string(), format!("`{}`: its manifest says {size} bytes, found {}", path.display(), size + 1));

    fs::remove_file(&path).unwrap();
    assert_eq!(LazyScan::new(&table, &files, &columns).unwrap_err().path, path);
}

#[test]
fn a_manifest_that_contradicts_itself_is_doubted() {
    let (table, whole) = open(&testdata().join(NEUTRAL));
    let columns = Columns::of("ai_gateway_messages", table.metadata.current_schema());
    let field = table.metadata.current_schema().field("_hyp_ingest_seq").unwrap().id;
    let rows = whole.data[0].record_count;
    let doubt = |lower: i64, upper: i64, nulls: u64| {
        let mut files = whole.clone();
        files.data[0].bounds.insert(field, Bounds { lower: Some(lower), upper: Some(upper), nulls: Some(nulls) });
        LazyScan::new(&table, &files, &columns).map(drop).map_err(|doubt| doubt.message())
    };
    let says = |expected: &str, found: &str| Err(format!("its manifest says {expected}, found {found}"));
    assert_eq!(doubt(1, 2_000, 0), Ok(()));
    assert_eq!(doubt(200, 100, 0), says("values from 200 to 100 in `_hyp_ingest_seq`", "no such values"));
    assert_eq!(doubt(100, 200, rows), says("values from 100 to 200 in `_hyp_ingest_seq`", "no such values"));
    let nulls = format!("{} nulls in `_hyp_ingest_seq`", rows + 1);
    assert_eq!(doubt(100, 200, rows + 1), says(&nulls, &format!("{rows} rows")));
    assert_eq!(doubt(0, 200, 0), says("seqs from 0", "that they begin at 1"));
}

#[test]
fn a_row_outside_of_its_bounds_is_doubted_by_both_scans() {
    let (table, mut files) = open(&testdata().join(NEUTRAL));
    let columns = Columns::of("ai_gateway_messages", table.metadata.current_schema());
    let field = table.metadata.current_schema().field("_hyp_ingest_seq").unwrap().id;
    let last = files.data.iter_mut().find(|file| file.bounds[&field].upper == Some(1495)).unwrap();
    let path = last.path.clone();
    last.bounds.get_mut(&field).unwrap().upper = Some(1494);
    let doubt = LazyScan::new(&table, &files, &columns).unwrap().between(1, i64::MAX).unwrap_err();
    assert_eq!(doubt.path, path);
    let scan = scan_generation(&table, &files, &columns);
    assert!(scan.complete(), "its rows can be read");
    assert_eq!(scan.doubts, [doubt]);
}
