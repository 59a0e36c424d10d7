//! What a manifest says about a data file's columns: counts, and the least and greatest value of each.

use arrow::array::{Array, AsArray as _, RecordBatch};
use arrow::compute::{max, max_boolean, max_string, min, min_boolean, min_string};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType};

use crate::schema::TableSchema;
use crate::variants;

/// Counts and bounds by field id. Variant columns have no bounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    pub values: Vec<(i32, i64)>,
    pub nulls: Vec<(i32, i64)>,
    pub lower: Vec<(i32, Vec<u8>)>,
    pub upper: Vec<(i32, Vec<u8>)>,
}

impl Metrics {
    pub(crate) fn of(schema: &TableSchema, batch: &RecordBatch) -> Self {
        let mut metrics = Self::default();
        for (column, array) in schema.fields.iter().zip(batch.columns()) {
            let nulls = array.as_struct_opt().map_or_else(|| array.null_count(), variants::null_count);
            metrics.values.push((column.id, as_long(array.len())));
            metrics.nulls.push((column.id, as_long(nulls)));
            if let Some((lower, upper)) = bounds(array) {
                metrics.lower.push((column.id, lower));
                metrics.upper.push((column.id, upper));
            }
        }
        metrics
    }
}

pub(crate) fn as_long(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// None where there is no value, or no bound for values of that type.
fn bounds(array: &dyn Array) -> Option<(Vec<u8>, Vec<u8>)> {
    let bounds = match array.data_type() {
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            (truncated_below(min_string(texts)?), truncated_above(max_string(texts)?))
        }
        DataType::Int32 => {
            let ints = array.as_primitive::<Int32Type>();
            (min(ints)?.to_le_bytes().to_vec(), max(ints)?.to_le_bytes().to_vec())
        }
        DataType::Int64 => {
            let longs = array.as_primitive::<Int64Type>();
            (min(longs)?.to_le_bytes().to_vec(), max(longs)?.to_le_bytes().to_vec())
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let times = array.as_primitive::<TimestampMicrosecondType>();
            (min(times)?.to_le_bytes().to_vec(), max(times)?.to_le_bytes().to_vec())
        }
        DataType::Boolean => {
            let flags = array.as_boolean();
            (vec![u8::from(min_boolean(flags)?)], vec![u8::from(max_boolean(flags)?)])
        }
        _ => return None,
    };
    Some(bounds)
}

/// Strings are cut to so many code points.
const CODE_POINTS: usize = 16;

pub(crate) fn truncated_below(text: &str) -> Vec<u8> {
    text.chars().take(CODE_POINTS).collect::<String>().into_bytes()
}

/// Cut, and then the last code point that has a next one raised, so that it is still above.
pub(crate) fn truncated_above(text: &str) -> Vec<u8> {
    if text.chars().nth(CODE_POINTS).is_none() {
        return text.as_bytes().to_vec();
    }
    let mut kept: Vec<char> = text.chars().take(CODE_POINTS).collect();
    while let Some(last) = kept.pop() {
        if let Some(next) = char::from_u32(u32::from(last) + 1) {
            kept.push(next);
            break;
        }
    }
    kept.into_iter().collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_to_sixteen_code_points_and_stay_bounds() {
        assert_eq!(truncated_below("78380ea4-af9f-4b39-a78a"), b"78380ea4-af9f-4b");
        assert_eq!(truncated_above("78380ea4-af9f-4b39-a78a"), b"78380ea4-af9f-4c");
        assert_eq!(truncated_above("watermark gatewa"), b"watermark gatewa");
        assert_eq!(
            truncated_above(&format!("{}\u{10ffff}x", "é".repeat(15))),
            "é".repeat(14).into_bytes().into_iter().chain("ê".bytes()).collect::<Vec<u8>>()
        );
    }
}
