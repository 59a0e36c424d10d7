//! How the columns of a table are found in a data file: by field id, then by name, and as which type.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr, Type};

use crate::variant::{is_variant, to_json};

/// The columns of a data file. Nearly all files of a table have the same.
#[derive(Debug)]
pub(crate) struct Shape {
    descriptor: SchemaDescPtr,
    /// Text as views into the decoded pages.
    fields: Fields,
    /// That of a file without rows.
    metadata: ParquetMetaData,
}

impl Shape {
    pub(crate) fn new(descriptor: SchemaDescPtr) -> Result<Self> {
        let schema = parquet_to_arrow_schema(&descriptor, None)?;
        let as_view = |field: &FieldRef| match field.data_type() {
            DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
            _ => Arc::clone(field),
        };
        let fields = schema.fields().iter().map(as_view).collect();
        let file = FileMetaData::new(1, 0, None, None, Arc::clone(&descriptor), None);
        Ok(Self { descriptor, fields, metadata: ParquetMetaData::new(file, Vec::new()) })
    }

    /// The metadata of a file of this shape without any rows.
    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// A leaf column.
    pub(crate) fn column(&self, leaf: usize) -> ColumnDescPtr {
        self.descriptor.column(leaf)
    }

    pub(crate) fn is_of(&self, descriptor: &SchemaDescPtr) -> bool {
        self.descriptor.root_schema() == descriptor.root_schema()
    }

    /// The file's columns under the names that its table gives them today, which are given with their field ids.
    ///
    /// A column that was renamed goes by its new name, and one whose old name is now that of another column goes by
    /// none.
    fn places<'a>(&'a self, ids: &'a HashMap<String, i32>) -> HashMap<&'a str, usize> {
        let names: HashMap<i32, &str> = ids.iter().map(|(name, id)| (*id, name.as_str())).collect();
        let name_of_today = |column: &'a Type| {
            let info = column.get_basic_info();
            if !info.has_id() {
                return Some(info.name());
            }
            let renamed = names.get(&info.id()).copied();
            renamed.or_else(|| (!ids.contains_key(info.name())).then(|| info.name()))
        };
        let columns = self.descriptor.root_schema().get_fields().iter().enumerate();
        columns.rev().filter_map(|(place, column)| Some((name_of_today(column)?, place))).collect()
    }
}

/// How some columns of a table are read from the files of one shape.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The file's columns that are read, by place among all leaf columns.
    pub leaves: Vec<usize>,
    /// How they are decoded.
    pub levels: FieldLevels,
    columns: Vec<Stored>,
}

/// A column of the table: the place among those that are decoded, none where the file lacks it.
#[derive(Debug)]
struct Stored {
    place: Option<usize>,
    wanted: DataType,
}

impl Reading {
    /// # Errors
    /// A column of the file has a type whose values the table's type does not hold.
    pub(crate) fn new(shape: &Shape, ids: &HashMap<String, i32>, wanted: &[FieldRef]) -> Result<Self> {
        let places = shape.places(ids);
        let mut roots: Vec<usize> =
            wanted.iter().filter_map(|field| places.get(field.name().as_str()).copied()).collect();
        roots.sort_unstable();
        roots.dedup();
        let stored = |field: &FieldRef| {
            let root = places.get(field.name().as_str());
            if let Some(stored) = root.and_then(|root| shape.fields.get(*root)) {
                verify_type(stored, field)?;
            }
            let place = root.and_then(|root| roots.binary_search(root).ok());
            Ok(Stored { place, wanted: field.data_type().clone() })
        };
        let columns = wanted.iter().map(stored).collect::<Result<_>>()?;
        let root_of = |leaf: &usize| shape.descriptor.get_column_root_idx(*leaf);
        let leaves = (0..shape.descriptor.num_columns()).filter(|leaf| roots.binary_search(&root_of(leaf)).is_ok());
        let mask = ProjectionMask::roots(&shape.descriptor, roots.iter().copied());
        let levels = parquet_to_arrow_field_levels(&shape.descriptor, mask, Some(&shape.fields))?;
        Ok(Self { leaves: leaves.collect(), levels, columns })
    }

    /// The table's columns out of those of the file.
    ///
    /// # Errors
    /// A value does not convert.
    pub(crate) fn convert(&self, decoded: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>> {
        let column = |column: &Stored| match column.place.and_then(|place| decoded.get(place)) {
            None => Ok(new_null_array(&column.wanted, rows)),
            Some(array) if *array.data_type() == column.wanted => Ok(Arc::clone(array)),
            Some(array) => match array.as_struct_opt() {
                Some(variants) => Ok(Arc::new(to_json(variants)?) as ArrayRef),
                None => Ok(cast(array, &column.wanted)?),
            },
        };
        self.columns.iter().map(column).collect()
    }
}

/// A file whose columns do not have the table's types is a file that cannot be read.
fn verify_type(stored: &Field, wanted: &Field) -> Result<()> {
    let is_json = is_variant(stored.data_type()) && *wanted.data_type() == DataType::Utf8View;
    if is_json || holds(wanted.data_type(), stored.data_type()) {
        return Ok(());
    }
    let (name, stored, wanted) = (stored.name(), stored.data_type(), wanted.data_type());
    Err(ParquetError::General(format!("column `{name}` has type {stored} here, and the table's type is {wanted}")))
}

/// Whether every value of the stored type has its like in the wanted one.
fn holds(wanted: &DataType, stored: &DataType) -> bool {
    match wanted {
        _ if wanted == stored => true,
        DataType::Int32 => matches!(stored, DataType::Int8 | DataType::Int16),
        DataType::Int64 => stored.is_signed_integer(),
        DataType::Float64 => matches!(stored, DataType::Float32),
        DataType::Utf8View => stored.is_string(),
        DataType::Timestamp(..) => matches!(stored, DataType::Timestamp(..)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowSchemaConverter;

    use super::*;
    use datafusion::arrow::datatypes::{Schema, TimeUnit};

    /// The shape of a file of columns of these types and with these field ids.
    fn shape(columns: &[(&str, DataType, Option<i32>)]) -> Shape {
        let field = |(name, data_type, id): &(&str, DataType, Option<i32>)| {
            let id = id.map(|id| ("PARQUET:field_id".to_owned(), id.to_string()));
            Field::new(*name, data_type.clone(), true).with_metadata(id.into_iter().collect())
        };
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        Shape::new(Arc::new(ArrowSchemaConverter::new().convert(&schema).unwrap())).unwrap()
    }

    /// The file's columns, by the names of today.
    fn places(columns: &[(&str, Option<i32>)], today: &[(&str, i32)]) -> Vec<(String, usize)> {
        let today = today.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
        let columns: Vec<_> = columns.iter().map(|(name, id)| (*name, DataType::Int64, *id)).collect();
        let shape = shape(&columns);
        let mut places: Vec<_> =
            shape.places(&today).into_iter().map(|(name, place)| (name.to_owned(), place)).collect();
        places.sort_unstable();
        places
    }

    fn named(places: &[(&str, usize)]) -> Vec<(String, usize)> {
        places.iter().map(|(name, place)| ((*name).to_owned(), *place)).collect()
    }

    #[test]
    fn a_renamed_column_goes_by_its_new_name() {
        assert_eq!(places(&[("a", Some(1)), ("g", Some(2))], &[("b", 1), ("h", 2)]), named(&[("b", 0), ("h", 1)]));
    }

    #[test]
    fn two_columns_may_have_swapped_names() {
        assert_eq!(places(&[("a", Some(1)), ("b", Some(2))], &[("b", 1), ("a", 2)]), named(&[("a", 1), ("b", 0)]));
    }

    #[test]
    fn a_dropped_column_is_not_mistaken_for_a_new_one_of_its_name() {
        assert_eq!(places(&[("a", Some(1))], &[("a", 2)]), named(&[]));
    }

    #[test]
    fn columns_that_are_as_they_were_and_columns_without_ids_keep_their_names() {
        let columns = [("a", Some(1)), ("b", None), ("c", Some(3))];
        assert_eq!(places(&columns, &[("a", 1), ("b", 2)]), named(&[("a", 0), ("b", 1), ("c", 2)]));
    }

    /// One column `c`, stored as one type and wanted as another: the type as which it comes.
    fn read(stored: DataType, wanted: &DataType) -> Result<DataType> {
        let shape = shape(&[("c", stored, None)]);
        let fields = [Arc::new(Field::new("c", wanted.clone(), true))];
        let reading = Reading::new(&shape, &HashMap::new(), &fields)?;
        let decoded = new_null_array(shape.fields[0].data_type(), 2);
        Ok(reading.convert(&[decoded], 2)?[0].data_type().clone())
    }

    #[test]
    fn narrower_values_are_widened() {
        let time = |unit| DataType::Timestamp(unit, Some("UTC".into()));
        let group = DataType::Struct(
            ["metadata", "value"].map(|name| Field::new(name, DataType::Binary, true)).into_iter().collect(),
        );
        for (stored, wanted) in [
            (DataType::Int32, DataType::Int64),
            (DataType::Float32, DataType::Float64),
            (time(TimeUnit::Millisecond), time(TimeUnit::Microsecond)),
            (DataType::Utf8, DataType::Utf8View),
            (group, DataType::Utf8View),
        ] {
            assert_eq!(read(stored, &wanted).unwrap(), wanted);
        }
    }

    #[test]
    fn a_column_that_the_file_lacks_is_null() {
        let fields = [Arc::new(Field::new("new", DataType::Int64, true))];
        let reading = Reading::new(&shape(&[("c", DataType::Int64, None)]), &HashMap::new(), &fields).unwrap();
        assert!(reading.leaves.is_empty());
        assert_eq!(reading.convert(&[], 3).unwrap()[0].null_count(), 3);
    }

    #[test]
    fn values_that_do_not_fit_are_an_error() {
        for (stored, wanted) in [
            (DataType::Int64, DataType::Int32),
            (DataType::Utf8, DataType::Int64),
            (DataType::Int64, DataType::Utf8View),
            (DataType::Float64, DataType::Int64),
        ] {
            let error = read(stored.clone(), &wanted).unwrap_err().to_string();
            assert!(error.contains("column `c` has type"), "{error}");
            assert!(error.contains(&format!("and the table's type is {wanted}")), "{error}");
        }
    }
}
