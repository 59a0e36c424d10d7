//! One value as text.

use std::borrow::Cow;

use anyhow::{Context, Result};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::time::show;

/// A cell as text: times in UTC with milliseconds and a `Z`; none for null.
pub fn text(array: &ArrayRef, row: usize) -> Result<Option<String>> {
    if is_null(array, row) {
        return Ok(None);
    }
    if let Some(micros) = micros(array, row) {
        return Ok(Some(show(micros)));
    }
    let options = FormatOptions::default().with_display_error(false);
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    let value = formatter.value(row).try_to_string().context("a value cannot be shown")?;
    Ok(Some(value))
}

/// Whether a value is null; an array of nothing but nulls, as of `SELECT NULL`, does not say so of each.
pub fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || array.data_type() == &DataType::Null
}

/// A timestamp in microseconds; none for other types.
fn micros(array: &ArrayRef, row: usize) -> Option<i64> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000),
        TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000)),
    }
}

/// Text on one line, with nothing in it that a terminal would act upon.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if c.is_control() => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_escaped() {
        assert_eq!(on_one_line("a\tb\r\nc\u{1b}[31m\u{9b}é"), r"a\tb\r\nc\u{1b}[31m\u{9b}é");
        assert_eq!(on_one_line("plain ∅"), "plain ∅");
    }
}
