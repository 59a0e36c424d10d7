//! A digest of every visible row's whole content, to compare copies of a row between generations.

use arrow::array::{Array as _, ArrayRef};
use arrow::row::{RowConverter, Rows, SortField};
use hypseq_cache::Problem;
use hypseq_iceberg::{DataFile, DeletedRows, Schema, SnapshotFiles, Table};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::columns::SEQ;
use crate::data_file::{Column, Unusable, position, read, verify_row_count};
use crate::problems::{Failure, report};
use crate::rows::seqs;

/// The content of one visible row that has a seq.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowContent {
    /// Its seq.
    pub seq: i64,
    /// SHA-256 over its non-null columns, each with its name and value, in the order of their names. A column that was
    /// added later, and is null in the row, changes nothing. Names are the table's own of today: field ids are numbered
    /// anew by a compaction. Comparable within one version of this program only.
    pub hash: [u8; 32],
}

/// The content of every visible row with a seq, in seq order, and the files that could not be read.
pub fn content_hashes(table: &Table, files: &SnapshotFiles) -> (Vec<RowContent>, Vec<Problem>) {
    let schema = table.metadata.current_schema();
    let read = |file: &DataFile| {
        let deleted = file.deleted_rows().map_err(Failure::Deletes)?;
        hash_file(file, &deleted, schema).map_err(|why| Failure::data(file, why))
    };
    let results: Vec<Result<Vec<RowContent>, Failure>> = files.data.par_iter().map(read).collect();
    let mut contents = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok(rows) => contents.extend(rows),
            Err(failure) => failures.push(failure),
        }
    }
    contents.sort_unstable();
    (contents, report(failures))
}

fn hash_file(file: &DataFile, deleted: &DeletedRows, schema: &Schema) -> Result<Vec<RowContent>, Unusable> {
    read(&file.path, |reader| {
        verify_row_count(reader.rows()?, file.record_count)?;
        let columns = reader.columns();
        let Some(seq) = position(&columns, schema, SEQ) else {
            return Ok(Vec::new());
        };
        let mut names: Vec<(&str, usize)> =
            columns.iter().zip(0..).map(|(c, i)| (name_of_today(c, schema), i)).collect();
        names.sort_unstable();
        let mut contents = Vec::new();
        let mut pos = 0;
        for batch in reader.batches(0..columns.len())? {
            let batch = batch?;
            let seqs = seqs(batch.column(seq), SEQ)?;
            let encoded = names.iter().map(|(name, i)| Encoded::new(name, batch.column(*i)));
            let encoded: Vec<Encoded> = encoded.collect::<Result<_, _>>()?;
            for (i, seq) in seqs.iter().enumerate() {
                if let Some(seq) = seq.filter(|_| !deleted.contains(pos)) {
                    contents.push(RowContent { seq, hash: hash_row(&encoded, i) });
                }
                pos += 1;
            }
        }
        verify_row_count(pos, file.record_count)?;
        Ok(contents)
    })
}

fn name_of_today<'a>(column: &'a Column, schema: &'a Schema) -> &'a str {
    let field = column.id.and_then(|id| schema.fields.iter().find(|f| f.id == id));
    field.map_or(&column.name, |f| &f.name)
}

/// A column of a batch, with its values as bytes that are equal where the values are.
struct Encoded<'a> {
    name: &'a str,
    column: &'a ArrayRef,
    values: Rows,
}

impl<'a> Encoded<'a> {
    fn new(name: &'a str, column: &'a ArrayRef) -> Result<Self, Unusable> {
        let encode = || {
            let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())])?;
            converter.convert_columns(std::slice::from_ref(column))
        };
        let values = encode().map_err(|e| Unusable::new(format!("values that can be compared in `{name}`"), &e))?;
        Ok(Self { name, column, values })
    }
}

fn hash_row(columns: &[Encoded], i: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    for Encoded { name, column, values } in columns {
        if column.is_valid(i) {
            for part in [name.as_bytes(), values.row(i).as_ref()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
    }
    hash.finalize().into()
}
