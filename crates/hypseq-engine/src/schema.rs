//! The columns of a dataset: the union of the schemas that its generations have.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use hypseq_iceberg::{FieldType, Schema};

/// The zone of every timestamp column with one.
pub(crate) const UTC: &str = "UTC";

/// Two generations give one column types of which neither holds the other's values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub column: String,
    pub types: [FieldType; 2],
    /// Which of the schemas they are in, by place in the input.
    pub schemas: [usize; 2],
}

/// The union of schemas, newest first: the first one's columns in its order, then those that only later ones have.
///
/// Columns are the same when their names are. Field ids do not count here: each compaction makes a new table, and
/// its ids have nothing to do with those of the table before. A column that is `int` here and `long` there is
/// `long`, and likewise `float` and `double`. Columns of types that are not interpreted are left out.
pub(crate) fn union<'a>(schemas: impl IntoIterator<Item = &'a Schema>) -> Result<Vec<(String, FieldType)>, Conflict> {
    let mut columns: Vec<(String, FieldType)> = Vec::new();
    let mut places: HashMap<&str, (usize, usize)> = HashMap::new();
    for (schema_index, schema) in schemas.into_iter().enumerate() {
        for field in schema.fields.iter().filter(|field| field.field_type != FieldType::Other) {
            let Some(&(place, first_schema)) = places.get(field.name.as_str()) else {
                places.insert(&field.name, (columns.len(), schema_index));
                columns.push((field.name.clone(), field.field_type));
                continue;
            };
            if let Some((_, column_type)) = columns.get_mut(place) {
                *column_type = wider(*column_type, field.field_type).ok_or_else(|| Conflict {
                    column: field.name.clone(),
                    types: [*column_type, field.field_type],
                    schemas: [first_schema, schema_index],
                })?;
            }
        }
    }
    Ok(columns)
}

/// The one of two types that holds the values of both.
fn wider(a: FieldType, b: FieldType) -> Option<FieldType> {
    match (a, b) {
        _ if a == b => Some(a),
        (FieldType::Int | FieldType::Long, FieldType::Int | FieldType::Long) => Some(FieldType::Long),
        (FieldType::Float | FieldType::Double, FieldType::Float | FieldType::Double) => Some(FieldType::Double),
        _ => None,
    }
}

/// A column as SQL sees it. Every column may be null: an older file may lack it.
pub(crate) fn arrow_field(name: &str, field_type: FieldType) -> Field {
    let data_type = match field_type {
        FieldType::String | FieldType::Variant => DataType::Utf8View,
        FieldType::Int => DataType::Int32,
        FieldType::Long => DataType::Int64,
        FieldType::Float => DataType::Float32,
        FieldType::Double => DataType::Float64,
        FieldType::Boolean => DataType::Boolean,
        FieldType::Date => DataType::Date32,
        FieldType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        FieldType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        FieldType::Binary => DataType::Binary,
        FieldType::Other => DataType::Null,
    };
    let field = Field::new(name, data_type, true);
    if field_type == FieldType::Variant { field.with_metadata(json_extension()) } else { field }
}

/// Marks a text column as JSON: the canonical extension type `arrow.json` of the Arrow columnar format.
fn json_extension() -> HashMap<String, String> {
    [("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &[(&str, FieldType)]) -> Schema {
        let fields = fields.iter().zip(1..).map(|(&(name, field_type), id)| hypseq_iceberg::Field {
            id,
            name: name.to_owned(),
            required: false,
            field_type,
        });
        Schema { id: 0, fields: fields.collect() }
    }

    fn named(columns: &[(&str, FieldType)]) -> Vec<(String, FieldType)> {
        columns.iter().map(|&(name, field_type)| (name.to_owned(), field_type)).collect()
    }

    #[test]
    fn newest_order_comes_first_and_older_columns_follow() {
        let newest = schema(&[("b", FieldType::String), ("a", FieldType::Boolean)]);
        let older = schema(&[("a", FieldType::Boolean), ("gone", FieldType::Variant), ("b", FieldType::String)]);
        assert_eq!(
            union([&newest, &older]),
            Ok(named(&[("b", FieldType::String), ("a", FieldType::Boolean), ("gone", FieldType::Variant)]))
        );
    }

    #[test]
    fn numbers_widen() {
        let narrow = schema(&[("n", FieldType::Int), ("x", FieldType::Float)]);
        let wide = schema(&[("n", FieldType::Long), ("x", FieldType::Double)]);
        let widened = named(&[("n", FieldType::Long), ("x", FieldType::Double)]);
        assert_eq!(union([&narrow, &wide]), Ok(widened.clone()));
        assert_eq!(union([&wide, &narrow]), Ok(widened));
    }

    #[test]
    fn types_that_are_not_interpreted_are_left_out() {
        let nested = schema(&[("list", FieldType::Other), ("n", FieldType::Int)]);
        assert_eq!(union([&nested]), Ok(named(&[("n", FieldType::Int)])));
    }

    #[test]
    fn other_types_conflict() {
        let one = schema(&[("a", FieldType::Boolean), ("n", FieldType::Int)]);
        let other = schema(&[("n", FieldType::String)]);
        assert_eq!(
            union([&one, &schema(&[]), &other]),
            Err(Conflict { column: "n".to_owned(), types: [FieldType::Int, FieldType::String], schemas: [0, 2] })
        );
    }
}
