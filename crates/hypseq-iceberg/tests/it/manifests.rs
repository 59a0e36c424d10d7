//! What manifest lists and manifests may say, one table made by hand for each.

use crate::support::{Entry, LOCATION, Manifest, SNAPSHOT, TestTable, url};
use hypseq_iceberg::{Bounds, DataFile};

fn assert_problem(manifest: Manifest, expected: &str) {
    let good = Manifest::data(1, &[Entry::data("data/good.parquet")]);
    let table = TestTable::new(&[manifest, good]);
    assert_eq!(table.problems(), [expected]);
    let urls: Vec<_> = table.files().data.into_iter().map(|f| f.url).collect();
    assert_eq!(urls, [url("data/good.parquet")], "the rest stands");
}

#[test]
fn every_codec() {
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let entries = [Entry::data("data/a.parquet"), Entry { record_count: 7, ..Entry::data("data/b.parquet") }];
        let table = TestTable::new(&[Manifest { codec, ..Manifest::data(1, &entries) }]);
        let files = table.files();
        assert_eq!(files.problems, [], "{codec}");
        let rows: Vec<_> = files.data.iter().map(|f| (f.path.clone(), f.record_count)).collect();
        assert_eq!(rows, [(table.path("data/a.parquet"), 100), (table.path("data/b.parquet"), 7)], "{codec}");
    }
}

#[test]
fn an_unknown_codec_is_a_problem() {
    assert_problem(
        Manifest { codec: "bzip2", ..Manifest::data(1, &[Entry::data("data/a.parquet")]) },
        "`metadata/m0.avro`: expected codec null, deflate, snappy or zstandard, found `bzip2`",
    );
}

#[test]
fn added_entries_inherit_and_deleted_ones_are_gone() {
    let table = TestTable::new(&[Manifest::data(
        5,
        &[
            Entry::data("data/added.parquet"),
            Entry {
                status: 0,
                sequence_number: Some(3),
                snapshot_id: Some(30),
                ..Entry::data("data/existing.parquet")
            },
            Entry { status: 2, url: "file:///elsewhere".to_owned(), ..Entry::data("") },
        ],
    )]);
    let files = table.files();
    assert_eq!(files.problems, []);
    let inherited: Vec<_> = files.data.iter().map(|f| (f.sequence_number, f.snapshot_id)).collect();
    assert_eq!(inherited, [(5, Some(SNAPSHOT)), (3, Some(30))]);
}

#[test]
fn only_an_added_entry_inherits_its_sequence_number() {
    assert_problem(
        Manifest::data(5, &[Entry { status: 0, ..Entry::data("data/a.parquet") }]),
        "`metadata/m0.avro`: expected a sequence number for `file:///home/op/t/data/a.parquet`, \
         found null in an entry that was not added with its manifest",
    );
    assert_problem(
        Manifest::data(5, &[Entry { sequence_number: Some(-1), ..Entry::data("data/a.parquet") }]),
        "`metadata/m0.avro`: expected a sequence number for `file:///home/op/t/data/a.parquet`, found -1",
    );
}

#[test]
fn bounds_are_of_long_and_timestamptz_columns_and_eight_bytes_long() {
    let eight = |value: i64| value.to_le_bytes().to_vec();
    let entry = Entry {
        nulls: vec![(1, 4), (2, -1), (3, 0)],
        lower: vec![(1, eight(-9)), (2, eight(1_785_000_000_000_000)), (3, b"eight by".to_vec())],
        upper: vec![(1, vec![1, 2, 3, 4]), (2, eight(i64::MAX)), (9, eight(1))],
        ..Entry::data("data/a.parquet")
    };
    let files = TestTable::new(&[Manifest::data(1, &[entry])]).files();
    let bounds: Vec<_> = files.data[0].bounds.clone().into_iter().collect();
    assert_eq!(
        bounds,
        [
            (1, Bounds { lower: Some(-9), upper: None, nulls: Some(4) }),
            (2, Bounds { lower: Some(1_785_000_000_000_000), upper: Some(i64::MAX), nulls: None }),
        ]
    );
}

#[test]
fn a_path_outside_is_refused() {
    let outside = |path: &str, url: &str| {
        format!(
            "`metadata/{path}` names `{url}`, which is outside the table's location `{LOCATION}`; it is not followed"
        )
    };
    let url = format!("{LOCATION}/../u/a.parquet");
    assert_problem(Manifest::data(1, &[Entry { url: url.clone(), ..Entry::data("") }]), &outside("m0.avro", &url));
    let url = format!("{LOCATION}2/metadata/m0.avro");
    assert_problem(Manifest { url: Some(url.clone()), ..Manifest::data(1, &[]) }, &outside("list.avro", &url));
}

#[test]
fn a_manifest_that_is_not_as_its_list_says() {
    let manifest = Manifest::data(1, &[Entry::data("data/a.parquet")]);
    let missing = TestTable::new(std::slice::from_ref(&manifest));
    std::fs::remove_file(missing.path("metadata/m0.avro")).unwrap();
    assert_eq!(missing.problems(), ["cannot read `metadata/m0.avro`: No such file or directory (os error 2)"]);

    let table = TestTable::new(&[Manifest { off_by: (1, 0), ..manifest.clone() }]);
    let length = std::fs::metadata(table.path("metadata/m0.avro")).unwrap().len();
    let expected =
        format!("`metadata/m0.avro`: expected {} bytes, as the manifest list says, found {length}", length + 1);
    assert_eq!(table.problems(), [expected]);

    assert_problem(
        Manifest { off_by: (0, 1), ..manifest.clone() },
        "`metadata/m0.avro`: expected 2 entries, as the manifest list says, found 1",
    );
}

#[test]
fn entries_of_the_wrong_kind() {
    let data = |entry: Entry| Manifest::data(1, &[entry]);
    let a = || Entry::data("data/a.parquet");
    let named = "`file:///home/op/t/data/a.parquet`";
    assert_problem(
        data(Entry { status: 3, ..a() }),
        "`metadata/m0.avro`: expected entry status 0, 1 or 2, found Some(3)",
    );
    assert_problem(
        data(Entry { content: 1, ..a() }),
        &format!("`metadata/m0.avro`: expected Parquet data files, found {named}, content 1, format `PARQUET`"),
    );
    assert_problem(
        data(Entry { format: "ORC", ..a() }),
        &format!("`metadata/m0.avro`: expected Parquet data files, found {named}, content 0, format `ORC`"),
    );
    assert_problem(
        data(Entry { record_count: -1, ..a() }),
        "`metadata/m0.avro`: expected `record_count` of 0 or more, found -1",
    );
    let list = TestTable::new(&[Manifest { content: 2, ..data(a()) }]);
    let table = hypseq_iceberg::Table::open(&list.path("")).unwrap();
    let error = table.files(table.metadata.current_snapshot().unwrap()).unwrap_err();
    assert_eq!(list.without_folder(&error), "`metadata/list.avro`: expected manifest content 0 or 1, found 2");
}

#[test]
fn a_data_file_that_is_named_twice_counts_once() {
    let entries = [Entry::data("data/a.parquet"), Entry::data("data//a.parquet")];
    let table = TestTable::new(&[Manifest::data(1, &entries)]);
    assert_eq!(
        table.problems(),
        [
            "`metadata/list.avro`: expected each data file once in the snapshot, found `file:///home/op/t/data//a.parquet` again"
        ]
    );
    assert_eq!(table.files().data.iter().map(|f: &DataFile| f.record_count).sum::<u64>(), 100);
}

#[test]
fn files_that_no_manifest_names() {
    let table = TestTable::new(&[Manifest::data(1, &[Entry::data("data/a.parquet")])]);
    std::fs::create_dir(table.path("data/date=2026-07-20")).unwrap();
    for name in [
        "data/a.parquet",
        "data/b.parquet",
        "data/date=2026-07-20/c.parquet",
        "data/d-deletes.parquet",
        "data/e-deletes.puffin",
        "data/f.parquet.tmp.4242.1796099999999.ab12cd",
        "data/g.tmp.1.parquet",
    ] {
        table.write(name, b"");
    }
    let opened = hypseq_iceberg::Table::open(&table.path("")).unwrap();
    assert_eq!(
        opened.unreferenced_files(&table.files()).unwrap(),
        [table.path("data/b.parquet"), table.path("data/date=2026-07-20/c.parquet")]
    );
    assert_eq!(
        hypseq_iceberg::unreferenced(&table.path("")).unwrap(),
        ["data/a.parquet", "data/b.parquet", "data/date=2026-07-20/c.parquet"].map(|name| table.path(name))
    );
}
