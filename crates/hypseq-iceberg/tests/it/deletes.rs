//! Which rows deletes remove, and each thing that can be wrong with a delete file.

use std::sync::Arc;

use crate::support::{Entry, Manifest, TestTable, blob, position_deletes, puffin, sealed, url, write_parquet};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use hypseq_iceberg::{DataFile, DeleteKind};

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// Data files `a` and `b` of 100 rows, `b` added later, with these deletes committed in between.
fn table(deletes: &[Entry]) -> TestTable {
    TestTable::new(&[
        Manifest::data(1, &[Entry::data("data/a.parquet")]),
        Manifest::deletes(2, deletes),
        Manifest::data(3, &[Entry::data("data/b.parquet")]),
    ])
}

fn deleted(file: &DataFile) -> Vec<u64> {
    let rows = file.deleted_rows().unwrap();
    assert_eq!(file.deleted_count(), Some(rows.len()));
    let positions: Vec<u64> = rows.0.iter().collect();
    assert_eq!(rows.is_empty(), positions.is_empty());
    assert_eq!((0..100).filter(|pos| rows.contains(*pos)).count(), positions.iter().filter(|pos| **pos < 100).count());
    positions
}

#[test]
fn a_deletion_vector_applies_to_its_own_older_file_only() {
    let blob = blob([0, 7, 99]);
    let table = table(&[
        Entry::vector("data/1.puffin", "data/a.parquet", &blob, 3),
        Entry::vector("data/2.puffin", "data/b.parquet", &blob, 3),
        Entry::vector("data/3.puffin", "data/gone.parquet", &blob, 3),
    ]);
    table.write("data/1.puffin", &puffin(&blob));
    let files = table.files();
    assert_eq!(files.problems, []);
    assert_eq!(deleted(&files.data[0]), [0, 7, 99]);
    assert_eq!(deleted(&files.data[1]), [] as [u64; 0]);
    assert_eq!(files.data[0].deletes().len(), 1);
    assert_eq!(files.data[0].deletes()[0].path, table.path("data/1.puffin"));
}

#[test]
fn a_deletion_vector_beyond_32_bits() {
    let positions = [0, u64::from(u32::MAX), 5_000_000_000];
    let blob = blob(positions);
    let data = Entry { record_count: 5_000_000_001, ..Entry::data("data/a.parquet") };
    let vector = Entry::vector("data/1.puffin", "data/a.parquet", &blob, 3);
    let table = TestTable::new(&[Manifest::data(1, &[data]), Manifest::deletes(1, &[vector])]);
    table.write("data/1.puffin", &puffin(&blob));
    assert_eq!(deleted(&table.files().data[0]), positions);
}

/// The error of a file's deletes, when the vector's blob and file are these.
fn vector_error(blob: &[u8], file: &[u8], rows: i64) -> String {
    let table = table(&[Entry::vector("data/1.puffin", "data/a.parquet", blob, rows)]);
    table.write("data/1.puffin", file);
    let files = table.files();
    assert_eq!(files.problems, [], "the vector is not opened");
    table.without_folder(&files.data[0].deleted_rows().unwrap_err())
}

fn assert_blob_rejected(blob: &[u8], rows: i64, message: &str) {
    assert_eq!(vector_error(blob, &puffin(blob), rows), format!("`data/1.puffin`: {message}"));
}

#[test]
fn rejects_bad_puffin_magic() {
    let blob = blob([1]);
    let mut file = puffin(&blob);
    file[0] = b'X';
    assert_eq!(
        vector_error(&blob, &file, 1),
        "`data/1.puffin`: expected Puffin magic `PFA1` at its start, found 58 46 41 31"
    );
    let mut file = puffin(&blob);
    *file.last_mut().unwrap() = b'2';
    assert_eq!(
        vector_error(&blob, &file, 1),
        "`data/1.puffin`: expected Puffin magic `PFA1` at its end, found 50 46 41 32"
    );
}

#[test]
fn rejects_a_blob_that_is_not_inside_the_file() {
    let blob = blob([1]);
    let message = |size: usize| {
        format!(
            "`data/1.puffin`: expected a Puffin file with a blob of {} bytes at 4, found a file of {size} bytes",
            blob.len()
        )
    };
    assert_eq!(vector_error(&blob, b"", 1), message(0));
    let short = &puffin(&blob)[..blob.len() + 4];
    assert_eq!(vector_error(&blob, short, 1), message(short.len()));
    for (offset, size) in [(Some(0), Some(20)), (Some(i64::MAX), Some(i64::MAX)), (Some(4), Some(i64::MAX))] {
        let vector = Entry { offset, size, ..Entry::vector("data/1.puffin", "data/a.parquet", &blob, 1) };
        let table = table(&[vector]);
        table.write("data/1.puffin", &puffin(&blob));
        let error = table.files().data[0].deleted_rows().unwrap_err().to_string();
        assert!(error.contains("expected a Puffin file with a blob of"), "{error}");
    }
}

#[test]
fn rejects_a_missing_file() {
    let table = table(&[Entry::vector("data/1.puffin", "data/a.parquet", &blob([1]), 1)]);
    let error = table.files().data[0].deleted_rows().unwrap_err();
    assert_eq!(table.without_folder(&error), "cannot read `data/1.puffin`: No such file or directory (os error 2)");
}

#[test]
fn rejects_a_blob_too_short_for_its_frame() {
    assert_blob_rejected(&[0; 3], 1, "expected a deletion vector, found a blob of 3 bytes");
    assert_blob_rejected(&[0; 11], 1, "expected a deletion vector, found a blob of 11 bytes");
}

#[test]
fn rejects_bad_length() {
    let mut blob = blob([1]);
    blob[3] += 1;
    let body = blob.len() - 8;
    assert_blob_rejected(
        &blob,
        1,
        &format!("expected a deletion vector of {body} bytes, found a stated length of {}", body + 1),
    );
}

#[test]
fn rejects_bad_magic() {
    let good = blob([1]);
    let mut body = good[4..good.len() - 4].to_vec();
    body[0] = 0xD0;
    assert_blob_rejected(&sealed(&body), 1, "expected deletion vector magic D1 D3 39 64, found D0 D3 39 64");
}

#[test]
fn rejects_bad_checksum() {
    let mut blob = blob([1]);
    let last = blob.len() - 1;
    blob[last] ^= 1;
    let stated = u32::from_be_bytes(blob[last - 3..].try_into().unwrap());
    assert_blob_rejected(
        &blob,
        1,
        &format!("expected a deletion vector with CRC-32 {stated:08x}, found {:08x}", stated ^ 1),
    );
}

#[test]
fn rejects_bad_bitmap() {
    let body = [&MAGIC[..], &1u64.to_le_bytes(), &0u32.to_le_bytes(), &0xdead_beef_u32.to_le_bytes()].concat();
    assert_blob_rejected(&sealed(&body), 1, "expected a 64-bit Roaring bitmap, found unknown cookie value");
    let body = [&MAGIC[..], &u64::MAX.to_le_bytes()].concat();
    assert_blob_rejected(&sealed(&body), 1, "expected a 64-bit Roaring bitmap, found failed to fill whole buffer");
}

#[test]
fn rejects_bytes_after_the_bitmap() {
    let good = blob([1]);
    let mut body = good[4..good.len() - 4].to_vec();
    body.extend([0, 0]);
    assert_blob_rejected(
        &sealed(&body),
        1,
        "expected the end of the deletion vector after its bitmap, found 2 more bytes",
    );
}

#[test]
fn rejects_bad_cardinality() {
    assert_blob_rejected(
        &blob([1, 2]),
        3,
        "expected a deletion vector of 3 rows, as its manifest says, found one of 2",
    );
}

#[test]
fn rejects_positions_beyond_the_data_file() {
    assert_blob_rejected(&blob([1, 100]), 2, "expected positions below 100, the data file's rows, found 100");
}

#[test]
fn rejects_two_vectors_for_one_file() {
    let blob = blob([1]);
    let table = table(&[
        Entry::vector("data/1.puffin", "data/a.parquet", &blob, 1),
        Entry::vector("data/2.puffin", "data/a.parquet", &blob, 1),
    ]);
    table.write("data/1.puffin", &puffin(&blob));
    table.write("data/2.puffin", &puffin(&blob));
    let files = table.files();
    let a = url("data/a.parquet");
    assert_eq!(
        table.problems(),
        [format!("`data/2.puffin`: expected one deletion vector for `{a}`, found a second one beside `data/1.puffin`")]
    );
    assert_eq!(files.data[0].deleted_rows().unwrap_err(), files.problems[0]);
    assert_eq!(files.data[0].deleted_count(), None);
    assert_eq!(files.data[1].deleted_count(), Some(0));
}

#[test]
fn rejects_a_vector_without_its_place() {
    let vector = || Entry::vector("data/1.puffin", "data/a.parquet", &blob([1]), 1);
    for (entry, message) in [
        (Entry { offset: None, ..vector() }, "expected `content_offset` of 0 or more, found none"),
        (Entry { size: Some(-1), ..vector() }, "expected `content_size_in_bytes` of 0 or more, found -1"),
    ] {
        let table = table(&[entry]);
        assert_eq!(table.problems(), [format!("`metadata/m1.avro`: {message}")]);
        assert!(table.files().data[0].deleted_rows().is_err());
        assert_eq!(table.files().data[1].deleted_count(), Some(0), "the manifest names the file that it concerns");
    }
    let table = table(&[Entry { referenced: None, ..vector() }]);
    assert_eq!(
        table.problems(),
        ["`metadata/m1.avro`: expected `referenced_data_file` for a deletion vector, found none"]
    );
}

#[test]
fn position_deletes_apply_by_url_to_older_files() {
    let a = url("data/a.parquet");
    let other_spelling = a.replace("file:///", "file:/");
    let table = table(&[Entry::positions("data/1-deletes.parquet", 5), Entry::positions("data/2-deletes.parquet", 1)]);
    let rows =
        [(a.as_str(), 3), (&other_spelling, 5), (&a, 3), (&url("data/b.parquet"), 1), (&url("data/gone.parquet"), 1)];
    position_deletes(&table.path("data/1-deletes.parquet"), &rows);
    position_deletes(&table.path("data/2-deletes.parquet"), &[(&a, 99)]);
    let files = table.files();
    assert_eq!(files.problems, []);
    assert_eq!(deleted(&files.data[0]), [3, 5, 99]);
    assert_eq!(deleted(&files.data[1]), [] as [u64; 0]);
    assert_eq!(files.data[0].deletes().len(), 2);
    assert!(files.data[0].deletes().iter().all(|d| d.kind == DeleteKind::Positions));
    let by = |pos| files.data[0].deleted_by(pos).iter().map(|d| d.path.clone()).collect::<Vec<_>>();
    assert_eq!(by(5), [table.path("data/1-deletes.parquet")]);
    assert_eq!(by(99), [table.path("data/2-deletes.parquet")]);
}

#[test]
fn a_deletion_vector_replaces_position_deletes() {
    let blob = blob([3, 4]);
    let table = table(&[
        Entry::positions("data/1-deletes.parquet", 1),
        Entry::vector("data/2.puffin", "data/a.parquet", &blob, 2),
    ]);
    position_deletes(&table.path("data/1-deletes.parquet"), &[(&url("data/a.parquet"), 3)]);
    table.write("data/2.puffin", &puffin(&blob));
    let files = table.files();
    assert_eq!(deleted(&files.data[0]), [3, 4]);
    assert_eq!(files.data[0].deletes(), files.data[0].deleted_by(3));
    assert_eq!(files.data[0].deletes()[0].path, table.path("data/2.puffin"));
}

/// A position-delete file that does not verify: older data files have unknown deletes, younger ones none.
fn assert_positions_rejected(record_count: i64, write: impl Fn(&std::path::Path), message: &str) {
    let table = table(&[Entry::positions("data/1-deletes.parquet", record_count)]);
    write(&table.path("data/1-deletes.parquet"));
    let files = table.files();
    assert_eq!(table.problems(), [format!("`data/1-deletes.parquet`: {message}")]);
    assert_eq!(files.data[0].deleted_rows().unwrap_err(), files.problems[0]);
    assert_eq!(files.data[0].deleted_count(), None);
    assert_eq!(files.data[1].deleted_count(), Some(0));
}

#[test]
fn rejects_position_deletes_that_do_not_verify() {
    let a = url("data/a.parquet");
    let text = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let longs = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let batch = |columns: [(&str, ArrayRef); 2]| {
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    };

    assert_positions_rejected(
        2,
        |path| position_deletes(path, &[(&a, 1)]),
        "expected a position-delete file of 2 rows, as its manifest says, found one of 1",
    );
    assert_positions_rejected(
        1,
        |path| position_deletes(path, &[(&a, -1)]),
        "expected a URL and a position in each row, found file:///home/op/t/data/a.parquet at -1",
    );
    assert_positions_rejected(
        1,
        |path| write_parquet(path, &batch([("file_path", text(vec![None])), ("pos", longs(vec![Some(1)]))])),
        "expected a URL and a position in each row, found null at 1",
    );
    assert_positions_rejected(
        1,
        |path| write_parquet(path, &batch([("file_path", text(vec![Some(&a)])), ("pos", longs(vec![None]))])),
        "expected a URL and a position in each row, found file:///home/op/t/data/a.parquet at null",
    );
    assert_positions_rejected(
        1,
        |path| write_parquet(path, &batch([("path", text(vec![Some(&a)])), ("pos", longs(vec![Some(1)]))])),
        "expected a position-delete file's columns, found no `file_path`",
    );
    assert_positions_rejected(
        1,
        |path| write_parquet(path, &batch([("file_path", text(vec![Some(&a)])), ("pos", text(vec![Some("1")]))])),
        "expected long in `pos`, found Utf8",
    );
    assert_positions_rejected(
        1,
        |path| std::fs::write(path, b"").unwrap(),
        "expected a Parquet file of position deletes, found EOF: Parquet file too small. Size is 0 but need 8",
    );
}

#[test]
fn rejects_position_deletes_beyond_the_data_file() {
    let a = url("data/a.parquet");
    let table = table(&[Entry::positions("data/1-deletes.parquet", 1)]);
    position_deletes(&table.path("data/1-deletes.parquet"), &[(&a, 100)]);
    assert_eq!(
        table.problems(),
        ["`data/1-deletes.parquet`: expected positions below 100, the data file's rows, found 100"]
    );
    assert!(table.files().data[0].deleted_rows().is_err());
}

#[test]
fn equality_deletes_are_never_ignored() {
    let table = table(&[Entry { content: 2, ..Entry::positions("data/1.parquet", 1) }]);
    assert_eq!(
        table.problems(),
        ["`metadata/m1.avro`: expected deletion vectors or position deletes only, found \
          `file:///home/op/t/data/1.parquet`, an equality-delete file, which cannot be applied here"]
    );
    assert!(table.files().data[0].deleted_rows().is_err());
    assert_eq!(table.files().data[1].deleted_count(), Some(0));
}

#[test]
fn an_unreadable_delete_manifest_leaves_older_files_undecided() {
    let table = table(&[Entry::vector("data/1.puffin", "data/a.parquet", &blob([1]), 1)]);
    table.write("metadata/m1.avro", b"");
    let files = table.files();
    assert_eq!(files.problems.len(), 1);
    assert_eq!(files.data[0].deleted_rows().unwrap_err(), files.problems[0]);
    assert_eq!(files.data[1].deleted_count(), Some(0));
}
