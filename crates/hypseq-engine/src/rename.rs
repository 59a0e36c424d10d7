//! Columns that a data file stores under other names than its table gives them today.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::{SchemaDescriptor, Type};

/// The footer as if its columns had been written under today's names, which are given with their field ids.
///
/// Columns are matched by field id first, then by name: one that was renamed goes by its new name, and one whose old
/// name is now that of another column goes by no name that a table has.
pub(crate) fn with_names_of_today(
    footer: ParquetMetaData,
    field_ids: &HashMap<String, i32>,
) -> Result<ParquetMetaData> {
    let names: HashMap<i32, &str> = field_ids.iter().map(|(name, id)| (*id, name.as_str())).collect();
    let name_of_today = |column: &Type| {
        let info = column.get_basic_info();
        let id = info.has_id().then(|| info.id())?;
        match names.get(&id) {
            Some(name) => (*name != info.name()).then(|| (*name).to_owned()),
            None => field_ids.contains_key(info.name()).then(|| format!("{} (field {id})", info.name())),
        }
    };
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    if !root.get_fields().iter().any(|column| name_of_today(column).is_some()) {
        return Ok(footer);
    }

    let columns = root.get_fields().iter().map(|column| match name_of_today(column) {
        Some(name) => Ok(Arc::new(renamed(column, &name)?)),
        None => Ok(Arc::clone(column)),
    });
    let root = Type::group_type_builder(root.name()).with_fields(columns.collect::<Result<_>>()?).build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let key_values = file.key_value_metadata().map(|entries| {
        // The Arrow schema that some writers leave there has the old names.
        entries.iter().filter(|entry| entry.key != parquet::arrow::ARROW_SCHEMA_META_KEY).cloned().collect()
    });
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        key_values,
        Arc::clone(&schema),
        file.column_orders().cloned(),
    );
    let row_group = |group: &RowGroupMetaData| {
        let mut builder = RowGroupMetaData::builder(Arc::clone(&schema))
            .set_num_rows(group.num_rows())
            .set_total_byte_size(group.total_byte_size())
            .set_column_metadata(group.columns().to_vec());
        if let Some(ordinal) = group.ordinal() {
            builder = builder.set_ordinal(ordinal);
        }
        builder.build()
    };
    let row_groups = footer.row_groups().iter().map(row_group).collect::<Result<_>>()?;
    Ok(ParquetMetaData::new(file, row_groups))
}

fn renamed(column: &Type, name: &str) -> Result<Type> {
    let info = column.get_basic_info();
    let id = info.has_id().then(|| info.id());
    match column {
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            Type::primitive_type_builder(name, *physical_type)
                .with_repetition(info.repetition())
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_length(*type_length)
                .with_precision(*precision)
                .with_scale(*scale)
                .with_id(id)
                .build()
        }
        Type::GroupType { fields, .. } => Type::group_type_builder(name)
            .with_repetition(info.repetition())
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_fields(fields.clone())
            .with_id(id)
            .build(),
    }
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::arrow::record_batch::RecordBatch;

    /// A footer of columns with these field ids; `g` is a group.
    fn footer(columns: &[(&str, Option<i32>)]) -> ParquetMetaData {
        let column = |(name, id): &(&str, Option<i32>)| {
            let array: ArrayRef = match *name {
                "g" => {
                    let child = Arc::new(Field::new("child", DataType::Int64, true));
                    Arc::new(StructArray::from(vec![(child, Arc::new(Int64Array::from(vec![1])) as ArrayRef)]))
                }
                _ => Arc::new(StringArray::from(vec!["x"])),
            };
            let metadata = id.map(|id| ("PARQUET:field_id".to_owned(), id.to_string())).into_iter().collect();
            (Field::new(*name, array.data_type().clone(), true).with_metadata(metadata), array)
        };
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.iter().map(column).unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes)).unwrap()
    }

    fn names(columns: &[(&str, Option<i32>)], today: &[(&str, i32)]) -> Vec<String> {
        let today = today.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
        let footer = with_names_of_today(footer(columns), &today).unwrap();
        let root = footer.row_group(0).schema_descr().root_schema_ptr();
        assert_eq!(&*root, footer.file_metadata().schema_descr().root_schema());
        root.get_fields().iter().map(|column| column.name().to_owned()).collect()
    }

    #[test]
    fn a_renamed_column_goes_by_its_new_name() {
        assert_eq!(names(&[("a", Some(1)), ("g", Some(2))], &[("b", 1), ("h", 2)]), ["b", "h"]);
    }

    #[test]
    fn two_columns_may_have_swapped_names() {
        assert_eq!(names(&[("a", Some(1)), ("b", Some(2))], &[("b", 1), ("a", 2)]), ["b", "a"]);
    }

    #[test]
    fn a_dropped_column_is_not_mistaken_for_a_new_one_of_its_name() {
        assert_eq!(names(&[("a", Some(1))], &[("a", 2)]), ["a (field 1)"]);
    }

    #[test]
    fn columns_that_are_as_they_were_and_columns_without_ids_keep_their_names() {
        assert_eq!(names(&[("a", Some(1)), ("b", None), ("c", Some(3))], &[("a", 1), ("b", 2)]), ["a", "b", "c"]);
    }
}
