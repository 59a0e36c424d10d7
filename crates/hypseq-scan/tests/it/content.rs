//! Content hashes: the same for a row and its copies, another when any cell differs.

use std::collections::BTreeMap;

use hypseq_iceberg::Table;
use hypseq_scan::content_hashes;

use crate::support::{CORPORA, Copy, NEUTRAL, WHOLE_FILE, generations, longs, open, testdata, texts};

fn hashes(dir: &std::path::Path) -> BTreeMap<i64, [u8; 32]> {
    let (table, files) = open(dir);
    let (rows, problems) = content_hashes(&table, &files);
    assert_eq!(problems, []);
    assert!(rows.is_sorted());
    rows.into_iter().map(|row| (row.seq, row.hash)).collect()
}

#[test]
fn copies_of_a_row_have_the_same_hash_in_every_generation() {
    let mut compared = 0;
    for corpus in CORPORA {
        let mut partitions: BTreeMap<_, BTreeMap<i64, [u8; 32]>> = BTreeMap::new();
        for generation in generations(corpus) {
            if generation.figures["has_metadata"] == false {
                continue;
            }
            let known = partitions.entry(generation.dir.parent().unwrap().to_owned()).or_default();
            for (seq, hash) in hashes(&generation.dir) {
                if let Some(known) = known.insert(seq, hash) {
                    assert_eq!(known, hash, "seq {seq} in {}", generation.dir.display());
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 6362);
}

#[test]
fn different_rows_have_different_hashes() {
    let hashes = hashes(&testdata().join(NEUTRAL));
    assert_eq!(hashes.len(), 900);
    let distinct: std::collections::BTreeSet<_> = hashes.values().collect();
    assert_eq!(distinct.len(), 900);
}

#[test]
fn a_null_column_changes_nothing_and_a_value_does() {
    let copy = Copy::of(NEUTRAL);
    let hash = |columns: &[(&str, arrow::array::ArrayRef)]| {
        copy.replace(WHOLE_FILE, columns, 1000);
        hashes(&copy.path(""))[&5001]
    };
    let seqs = || ("_hyp_ingest_seq", longs((0..19).map(|i| Some(5000 + i))));
    let plain = hash(&[seqs()]);
    assert_eq!(hash(&[("added", texts([None; 19])), seqs()]), plain);
    assert_eq!(hash(&[seqs(), ("added", texts([None; 19]))]), plain);
    let a = hash(&[seqs(), ("added", texts([Some("x"); 19]))]);
    let b = hash(&[seqs(), ("added", texts([Some("y"); 19]))]);
    let c = hash(&[seqs(), ("other", texts([Some("x"); 19]))]);
    assert!(plain != a && a != b && a != c && b != c);
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem() {
    let copy = Copy::of(NEUTRAL);
    std::fs::write(copy.path(WHOLE_FILE), b"").unwrap();
    let table = Table::open(&copy.path("")).unwrap();
    let files = table.files(table.metadata.current_snapshot().unwrap()).unwrap();
    let (rows, problems) = content_hashes(&table, &files);
    assert_eq!((rows.len(), problems.len()), (900 - 19, 1));
    assert_eq!(problems[0].path, copy.path(WHOLE_FILE));
}
