//! One value as text.

use std::borrow::Cow;
use std::fmt::Write;

use anyhow::{Context, Result};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Field, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult};

use crate::time::show;

/// A cell as text: times, those in lists and structs too, in UTC with milliseconds and a `Z`; none for null.
pub fn text(array: &ArrayRef, row: usize) -> Result<Option<String>> {
    if is_null(array, row) {
        return Ok(None);
    }
    if let Some(micros) = micros(array.as_ref(), row) {
        return Ok(Some(show(micros)));
    }
    let options = FormatOptions::default().with_display_error(false).with_formatter_factory(Some(&Times));
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    let value = formatter.value(row).try_to_string().context("a value cannot be shown")?;
    Ok(Some(value))
}

/// Whether a value is null; an array of nothing but nulls, as of `SELECT NULL`, does not say so of each.
pub fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || array.data_type() == &DataType::Null
}

/// A timestamp in microseconds; none for other types.
fn micros(array: &dyn Array, row: usize) -> Option<i64> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000),
        TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000)),
    }
}

/// Shows the times within a value. A format alone would show them in the zone of their type.
#[derive(Debug)]
struct Times;

impl ArrayFormatterFactory for Times {
    fn create_array_formatter<'a>(
        &self,
        array: &'a dyn Array,
        options: &FormatOptions<'a>,
        _: Option<&'a Field>,
    ) -> Result<Option<ArrayFormatter<'a>>, ArrowError> {
        let is_time = matches!(array.data_type(), DataType::Timestamp(..));
        Ok(is_time.then(|| ArrayFormatter::new(Box::new(TimesOf(array)), options.safe())))
    }
}

struct TimesOf<'a>(&'a dyn Array);

impl DisplayIndex for TimesOf<'_> {
    fn write(&self, index: usize, out: &mut dyn Write) -> FormatResult {
        if self.0.is_valid(index) {
            let micros = micros(self.0, index).ok_or(std::fmt::Error)?;
            write!(out, "{}", show(micros))?;
        }
        Ok(())
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
    use std::sync::Arc;

    use arrow::array::{ListArray, TimestampMicrosecondArray};
    use arrow::buffer::OffsetBuffer;

    use super::*;

    #[test]
    fn times_in_lists_are_shown_as_others_are() {
        let at = 1_784_682_000_000_000;
        for zone in [None, Some("UTC"), Some("+02:00")] {
            let times = TimestampMicrosecondArray::from(vec![Some(at), None, Some(at + 1)]);
            let times: ArrayRef = Arc::new(times.with_timezone_opt(zone));
            let item = Arc::new(Field::new_list_field(times.data_type().clone(), true));
            let list: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([3]), times, None));
            let shown = text(&list, 0).expect("shown");
            assert_eq!(shown.as_deref(), Some("[2026-07-22T01:00:00.000Z, , 2026-07-22T01:00:00.000001Z]"), "{zone:?}");
        }
    }

    #[test]
    fn what_a_terminal_would_act_upon_is_escaped() {
        assert_eq!(on_one_line("a\tb\r\nc\u{1b}[31m\u{9b}é"), r"a\tb\r\nc\u{1b}[31m\u{9b}é");
        assert_eq!(on_one_line("plain ∅"), "plain ∅");
    }
}
