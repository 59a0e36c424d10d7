//! What is wrong with one file is said, and the rest is scanned.

use std::fs;

use hypseq_cache::Problem;
use hypseq_scan::{Scan, content_hashes, scan_files};
use proptest::prelude::*;

use crate::support::{Copy, DELETED_FILE, NEUTRAL, VECTOR, WHOLE_FILE, longs, micros, open, texts};

const ROWS: u64 = 900;
const FILE_ROWS: usize = 19;

/// One file has the problem, and only its rows are missing.
fn assert_left_out(scan: &Scan, path: &std::path::Path, code: &str, visible_rows: u64, message: &str) {
    let [Problem { path: found, code: found_code, message: found_message, .. }] = &scan.problems[..] else {
        panic!("{:?}", scan.problems)
    };
    assert_eq!((found.as_path(), *found_code, found_message.as_str()), (path, code, message));
    assert!(!scan.complete());
    assert_eq!((scan.files_total - scan.files_read, scan.visible_rows), (1, visible_rows));
}

fn assert_whole_file_left_out(copy: &Copy, message: &str) {
    let left = ROWS - FILE_ROWS as u64;
    let message = format!("{message}; its rows are left out");
    assert_left_out(&copy.scan(), &copy.path(WHOLE_FILE), "data-file-unreadable", left, &message);
}

#[test]
fn a_file_that_is_not_parquet() {
    let copy = Copy::of(NEUTRAL);
    fs::write(copy.path(WHOLE_FILE), b"").unwrap();
    assert_whole_file_left_out(
        &copy,
        "expected a readable Parquet file, found EOF: Parquet file too small. Size is 0 but need 8",
    );
    fs::remove_file(copy.path(WHOLE_FILE)).unwrap();
    assert_whole_file_left_out(&copy, "expected a readable Parquet file, found No such file or directory (os error 2)");
}

#[test]
fn a_file_of_another_length() {
    let copy = Copy::of(NEUTRAL);
    fs::copy(copy.path(DELETED_FILE), copy.path(WHOLE_FILE)).unwrap();
    assert_whole_file_left_out(&copy, "expected 19 rows, as its manifest says, found 25");
}

#[test]
fn columns_of_another_type() {
    let copy = Copy::of(NEUTRAL);
    let replace = |columns: &[(&str, arrow::array::ArrayRef)]| copy.replace(WHOLE_FILE, columns, 1000);
    replace(&[("_hyp_ingest_seq", texts([Some("5"); FILE_ROWS]))]);
    assert_whole_file_left_out(&copy, "expected 64-bit integers in `_hyp_ingest_seq`, found Utf8");
    replace(&[("message_created_at", longs([Some(5); FILE_ROWS]))]);
    assert_whole_file_left_out(
        &copy,
        "expected times in UTC, at most microseconds fine, in `message_created_at`, found Int64",
    );
    replace(&[("part_id", longs([Some(5); FILE_ROWS]))]);
    assert_whole_file_left_out(&copy, "expected text in `part_id`, found Int64");
}

#[test]
fn seqs_below_one() {
    let copy = Copy::of(NEUTRAL);
    let seqs = (0..FILE_ROWS).map(|i| Some(i64::try_from(i).unwrap() - 7));
    copy.replace(WHOLE_FILE, &[("_hyp_ingest_seq", longs(seqs))], 1000);
    assert_whole_file_left_out(&copy, "expected seqs of 1 or more, found -7");
}

#[test]
fn absent_columns_read_as_null() {
    let copy = Copy::of(NEUTRAL);
    copy.replace(WHOLE_FILE, &[("other", longs([None; FILE_ROWS]))], 1000);
    let scan = copy.scan();
    assert!(scan.complete());
    assert_eq!((scan.visible_rows, scan.legacy_rows, scan.null_time_rows, scan.legacy_times), (900, 19, 19, None));
}

#[test]
fn columns_are_found_by_field_id_before_name() {
    let copy = Copy::of(NEUTRAL);
    let field = |name: &str, id: &str, data_type: &arrow::datatypes::DataType| {
        let id = [("PARQUET:field_id".to_owned(), id.to_owned())].into();
        arrow::datatypes::Field::new(name, data_type.clone(), true).with_metadata(id)
    };
    let columns = [
        ("_hyp_ingest_seq", "900", longs([Some(-1); FILE_ROWS])),
        ("renamed", "57", longs([Some(5000); FILE_ROWS])),
        ("when", "34", micros([Some(77); FILE_ROWS])),
    ];
    let fields: Vec<_> = columns.iter().map(|(name, id, c)| field(name, id, c.data_type())).collect();
    let batch = arrow::array::RecordBatch::try_new(
        std::sync::Arc::new(arrow::datatypes::Schema::new(fields)),
        columns.into_iter().map(|(_, _, column)| column).collect(),
    )
    .unwrap();
    let file = fs::File::create(copy.path(WHOLE_FILE)).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let scan = copy.scan();
    assert_eq!(scan.problems, []);
    let rows = scan.visible.with_seq(5000);
    assert_eq!(rows.len(), 19);
    assert!(rows.iter().all(|row| row.time == Some(77) && row.id.is_none()));
}

#[test]
fn deletes_count_over_the_whole_file_not_over_a_row_group() {
    let copy = Copy::of(NEUTRAL);
    // The vector deletes positions 0 to 24, all that the file has: give it 40 rows, in row groups of 7.
    copy.replace(DELETED_FILE, &[("_hyp_ingest_seq", longs((7000..7040).map(Some)))], 7);
    copy.set_record_count(DELETED_FILE, 25, 40);
    let scan = copy.scan();
    assert_eq!(scan.problems, []);
    assert_eq!((scan.visible_rows, scan.deleted_rows), (915, 105));
    let deleted: Vec<i64> = scan.deleted.iter().map(|d| d.row.seq).filter(|seq| *seq >= 7000).collect();
    let visible: Vec<i64> = scan.visible.above(6999).iter().map(|row| row.seq).collect();
    assert_eq!((deleted, visible), ((7000..7025).collect(), (7025..7040).collect()));
    let (table, files) = open(&copy.path(""));
    let (contents, _) = content_hashes(&table, &files);
    let hashed: Vec<i64> = contents.iter().map(|row| row.seq).filter(|seq| *seq >= 7000).collect();
    assert_eq!(hashed, (7025..7040).collect::<Vec<_>>());
}

#[test]
fn a_deletion_vector_with_a_bad_checksum() {
    let copy = Copy::of(NEUTRAL);
    let mut vector = fs::read(copy.path(VECTOR)).unwrap();
    vector[93] ^= 1;
    fs::write(copy.path(VECTOR), &vector).unwrap();
    let path = copy.path(VECTOR);
    let message = format!(
        "`{}`: expected a deletion vector with CRC-32 c7cb834d, found c7cb834c; the rows of 1 data file are left out, \
         as any of them may be deleted",
        path.display()
    );
    assert_left_out(&copy.scan(), &path, "deletes-unreadable", ROWS, &message);
}

#[test]
fn an_unreadable_delete_manifest_is_one_problem_for_all_the_files_that_it_may_concern() {
    let copy = Copy::of(NEUTRAL);
    let manifest = copy.path("metadata/aad4cec1-c002-4f17-985f-0af717ca1f1b-m0.avro");
    fs::write(&manifest, b"").unwrap();
    let scan = copy.scan();
    let [problem] = &scan.problems[..] else { panic!("{:?}", scan.problems) };
    assert_eq!((&problem.path, problem.code), (&manifest, "deletes-unreadable"));
    assert!(problem.message.contains("the rows of 42 data files are left out"), "{}", problem.message);
    assert_eq!((scan.files_total, scan.files_read, scan.snapshot_problems), (48, 6, 1));
    assert_eq!(scan.visible_rows, 80, "only what was added after those deletes");
}

#[test]
fn an_unreadable_data_manifest_makes_the_scan_incomplete() {
    let copy = Copy::of(NEUTRAL);
    fs::write(copy.path("metadata/0ea8d0be-e407-4007-a68c-006606fce57a-m0.avro"), b"").unwrap();
    let scan = copy.scan();
    assert!(!scan.complete());
    assert_eq!((scan.problems, scan.snapshot_problems), (Vec::new(), 1));
}

#[test]
fn files_without_metadata_that_cannot_be_read() {
    let copy = Copy::of(NEUTRAL);
    fs::write(copy.path("data/bad.parquet"), b"PAR1").unwrap();
    let scan = scan_files(&[copy.path(WHOLE_FILE), copy.path("data/bad.parquet")]);
    assert!(!scan.complete());
    assert_eq!((scan.files_total, scan.files_read, scan.raw_rows), (2, 1, 19));
    assert_eq!(scan.problems[0].path, copy.path("data/bad.parquet"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Without a checksum a changed value cannot be seen; whatever else happens to a file, the scan returns.
    #[test]
    fn a_damaged_data_file_is_read_or_left_out(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let copy = Copy::of("crashed/hypaware/cache/datasets/ai_gateway_messages/source=codex/table");
        let path = copy.only_data_file();
        let mut bytes = fs::read(&path).unwrap();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        fs::write(&path, &bytes).unwrap();
        let scan = copy.scan();
        prop_assert_eq!((scan.complete(), scan.raw_rows), if scan.problems.is_empty() { (true, 10) } else { (false, 0) });
        let (table, files) = open(&copy.path(""));
        content_hashes(&table, &files);
    }
}
