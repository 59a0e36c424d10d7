//! Variant columns as JSON text.

use datafusion::arrow::array::{Array, AsArray, BinaryArray, StringViewArray, StringViewBuilder, StructArray};
use datafusion::arrow::datatypes::DataType;
use parquet::errors::{ParquetError, Result};
use parquet_variant::Variant;
use parquet_variant_json::VariantToJson as _;

const METADATA: &str = "metadata";
const VALUE: &str = "value";

/// Whether a Parquet column of this type is an (unshredded) variant.
pub(crate) fn is_variant(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else { return false };
    fields.len() == 2
        && [METADATA, VALUE]
            .iter()
            .all(|name| fields.find(name).is_some_and(|(_, f)| *f.data_type() == DataType::Binary))
}

/// A variant column as JSON text.
///
/// A null row and a variant that holds null are both SQL null: HypAware writes either for a JSON column without a
/// value, and its own reader tells no difference.
///
/// # Errors
/// Bytes that are no variant.
pub(crate) fn to_json(variants: &StructArray) -> Result<StringViewArray> {
    let (metadata, values) = (bytes(variants, METADATA)?, bytes(variants, VALUE)?);
    let mut json = StringViewBuilder::with_capacity(variants.len());
    for row in 0..variants.len() {
        if variants.is_null(row) || metadata.is_null(row) || values.is_null(row) {
            json.append_null();
            continue;
        }
        match Variant::try_new(metadata.value(row), values.value(row)).map_err(invalid)? {
            Variant::Null => json.append_null(),
            variant => json.append_value(variant.to_json_string().map_err(invalid)?),
        }
    }
    Ok(json.finish())
}

fn invalid(error: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("a variant value does not decode: {error}"))
}

/// One of the two children of a variant column.
fn bytes<'a>(variants: &'a StructArray, name: &str) -> Result<&'a BinaryArray> {
    let bytes = variants.column_by_name(name).and_then(|column| column.as_binary_opt());
    bytes.ok_or_else(|| {
        ParquetError::General(format!("a variant column has a binary child `{name}`, this one does not"))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::{Field, Fields};
    use parquet_variant::VariantBuilder;
    use parquet_variant_json::JsonToVariant as _;

    /// Metadata and value.
    type Encoded = (Vec<u8>, Option<Vec<u8>>);

    fn column(values: Vec<Option<Encoded>>) -> StructArray {
        let nulls: NullBuffer = values.iter().map(Option::is_some).collect();
        let (metadata, value): (Vec<_>, Vec<_>) =
            values.into_iter().map(|pair| pair.map_or((Vec::new(), None), |pair| pair)).unzip();
        let fields = Fields::from(vec![
            Field::new(METADATA, DataType::Binary, false),
            Field::new(VALUE, DataType::Binary, true),
        ]);
        let metadata: BinaryArray = metadata.into_iter().map(Some).collect();
        let value: BinaryArray = value.into_iter().collect();
        StructArray::new(fields, vec![Arc::new(metadata), Arc::new(value)], Some(nulls))
    }

    fn encoded(json: &str) -> Encoded {
        let mut builder = VariantBuilder::new();
        builder.append_json(json).unwrap();
        let (metadata, value) = builder.finish();
        (metadata, Some(value))
    }

    #[test]
    fn values_come_as_their_json_text() {
        for json in [
            r#"{"a":[1,2.5,"x"],"b":{"c":true}}"#,
            r#""a \"quoted\" string""#,
            "9007199254740993",
            "-9223372036854775808",
            "0.1",
            "1e300",
            "[]",
            "false",
        ] {
            let text = to_json(&column(vec![Some(encoded(json))])).unwrap();
            let parsed = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(parsed(text.value(0)), parsed(json));
        }
    }

    #[test]
    fn nulls_of_every_kind_are_null() {
        let without_value = (encoded("1").0, None);
        let rows = vec![None, Some(encoded("null")), Some(without_value), Some(encoded("1"))];
        let text = to_json(&column(rows)).unwrap();
        assert_eq!(text.iter().collect::<Vec<_>>(), [None, None, None, Some("1")]);
    }

    #[test]
    fn bytes_that_are_no_variant_are_an_error() {
        let (metadata, value) = encoded(r#"{"a":"some text"}"#);
        let cut = value.map(|value| value[..value.len() - 3].to_vec());
        let error = to_json(&column(vec![Some((metadata, cut))])).unwrap_err();
        assert!(error.to_string().contains("a variant value does not decode"), "{error}");
    }

    #[test]
    fn only_groups_of_metadata_and_value_are_variants() {
        let group = |fields: &[(&str, DataType)]| {
            DataType::Struct(
                fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect(),
            )
        };
        assert!(is_variant(&group(&[(VALUE, DataType::Binary), (METADATA, DataType::Binary)])));
        assert!(!is_variant(&group(&[(METADATA, DataType::Binary), (VALUE, DataType::Utf8)])));
        let shredded = [(METADATA, DataType::Binary), (VALUE, DataType::Binary), ("typed_value", DataType::Int64)];
        assert!(!is_variant(&group(&shredded)));
        assert!(!is_variant(&DataType::Binary));
    }
}
