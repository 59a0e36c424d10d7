//! Times as they are typed, and as they are shown.

use anyhow::{Result, anyhow, bail};
use chrono::{DateTime, Duration, Local, LocalResult, NaiveDate, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;

/// A time as the operator typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// Microseconds since 1970, UTC.
    pub at: i64,
    /// As typed, with the zone that was given beside it.
    pub typed: String,
    /// The unit that it was given to, when that is coarser than the milliseconds of the cache.
    pub unit: Option<Unit>,
}

/// A unit coarser than a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Second,
    Minute,
    Day,
}

impl Unit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }

    pub fn micros(self) -> i64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Day => 86_400,
        };
        seconds * 1_000_000
    }
}

/// What a consumer of the cache sees: RFC 3339, UTC, milliseconds (microseconds where there are any).
pub fn show(micros: i64) -> String {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) if micros % 1000 == 0 => time.to_rfc3339_opts(SecondsFormat::Millis, true),
        Some(time) => time.to_rfc3339_opts(SecondsFormat::Micros, true),
        None => format!("{micros} µs since 1970 (beyond the calendar)"),
    }
}

const FORMS: &str = "RFC 3339 with a zone (2026-07-28T21:00:00Z), @ and epoch seconds or milliseconds (@1786495847), \
                     or an age (2h ago)";

/// Reads a time. `zone` is what `--tz` says.
pub fn parse(typed: &str, zone: Option<&str>) -> Result<When> {
    let text = typed.trim();
    if let Some(digits) = text.strip_prefix('@') {
        return epoch(typed, digits);
    }
    if let Some(age) = text.strip_suffix("ago") {
        let ago =
            age_micros(age.trim()).ok_or_else(|| anyhow!("`{typed}` is not an age; expected such as `2h ago`"))?;
        let now = Utc::now().timestamp_millis() * 1000;
        return Ok(When { at: now.saturating_sub(ago), typed: typed.to_owned(), unit: None });
    }
    let (naive, unit, offset) =
        calendar(text).ok_or_else(|| anyhow!("`{typed}` is not a time\n  hint: give {FORMS}"))?;
    let (at, typed) = match (offset, zone) {
        (Some(offset_seconds), _) => {
            let utc = naive.checked_sub_signed(Duration::seconds(offset_seconds));
            (utc.ok_or_else(|| anyhow!("`{typed}` is beyond the calendar"))?.and_utc(), typed.to_owned())
        }
        (None, Some(zone)) => (in_zone(typed, naive, zone)?, format!("{typed} ({zone})")),
        (None, None) => {
            let local = match Local.from_local_datetime(&naive) {
                LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => show(time.timestamp_micros()),
                LocalResult::None => "no such time".to_owned(),
            };
            bail!(
                "`{typed}` has no zone\n  as UTC it is {}, as this machine's local time {local}\n  hint: add a zone \
                 (such as Z or +02:00), or say --tz UTC",
                show(naive.and_utc().timestamp_micros()),
            );
        }
    };
    Ok(When { at: at.timestamp_micros(), typed, unit })
}

fn epoch(typed: &str, digits: &str) -> Result<When> {
    let expected = || anyhow!("`{typed}` is not an epoch time; expected @ and seconds or milliseconds since 1970");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(expected());
    }
    let number: i64 = digits.parse().map_err(|_| expected())?;
    if digits.len() > 13 {
        return Err(expected());
    }
    let (scale, unit) = if digits.len() <= 10 { (1_000_000, Some(Unit::Second)) } else { (1000, None) };
    let at = number.checked_mul(scale).ok_or_else(expected)?;
    Ok(When { at, typed: typed.to_owned(), unit })
}

fn age_micros(age: &str) -> Option<i64> {
    let split = age.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = age.split_at(split);
    let seconds: i64 = match unit.trim() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(seconds)?.checked_mul(1_000_000)
}

/// Splits a calendar time into its parts: the clock reading, the unit it was given to, and its offset in seconds.
fn calendar(text: &str) -> Option<(NaiveDateTime, Option<Unit>, Option<i64>)> {
    let (clock, offset) = split_offset(text)?;
    if let Ok(day) = NaiveDate::parse_from_str(clock, "%Y-%m-%d") {
        return Some((day.and_hms_opt(0, 0, 0)?, Some(Unit::Day), offset));
    }
    let clock = clock.replacen(['t', ' '], "T", 1);
    if let Ok(time) = NaiveDateTime::parse_from_str(&clock, "%Y-%m-%dT%H:%M") {
        return Some((time, Some(Unit::Minute), offset));
    }
    let time = NaiveDateTime::parse_from_str(&clock, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let fraction_digits = clock.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
    let unit = (fraction_digits < 3).then_some(Unit::Second);
    Some((time, unit, offset))
}

fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), Some(0)));
    }
    if let Some(start) = text.len().checked_sub(6).filter(|s| text.is_char_boundary(*s)) {
        let (clock, tail) = text.split_at(start);
        let mut signs = tail.chars();
        let sign = match signs.next() {
            Some('+') => 1,
            Some('-') if clock.contains(':') => -1,
            _ => return Some((text, None)),
        };
        let (hours, minutes) = signs.as_str().split_once(':')?;
        let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let valid = (0..24).contains(&hours) && (0..60).contains(&minutes);
        return valid.then_some((clock.trim_end(), Some(sign * (hours * 3600 + minutes * 60))));
    }
    Some((text, None))
}

fn in_zone(typed: &str, naive: NaiveDateTime, zone: &str) -> Result<DateTime<Utc>> {
    let tz: Tz = zone
        .parse()
        .map_err(|_| anyhow!("`{zone}` is not a time zone\n  hint: give a name such as UTC or Europe/Berlin"))?;
    match tz.from_local_datetime(&naive) {
        LocalResult::Single(time) => Ok(time.to_utc()),
        LocalResult::Ambiguous(first, second) => bail!(
            "`{typed}` occurs twice in {zone}: {} and {}\n  hint: give it with an offset",
            show(first.timestamp_micros()),
            show(second.timestamp_micros())
        ),
        LocalResult::None => bail!("`{typed}` does not exist in {zone}: the clocks were put forward"),
    }
}

/// Reads `FROM..TO`; either end may be empty.
pub fn parse_range(typed: &str, zone: Option<&str>) -> Result<(Option<i64>, Option<i64>)> {
    let (from, to) = typed
        .split_once("..")
        .ok_or_else(|| anyhow!("`{typed}` is not a range of times\n  hint: give FROM..TO, either end may be empty"))?;
    let end = |text: &str| (!text.trim().is_empty()).then(|| parse(text, zone)).transpose();
    let (from, to) = (end(from)?.map(|w| w.at), end(to)?.map(|w| w.at));
    match (from, to) {
        (None, None) => bail!("`{typed}` leaves out nothing\n  hint: give FROM..TO, either end may be empty"),
        (Some(from), Some(to)) if from > to => bail!("`{typed}` ends before it starts"),
        range => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &str) -> (String, Option<Unit>) {
        let when = parse(typed, None).unwrap_or_else(|e| panic!("{typed}: {e:#}"));
        (show(when.at), when.unit)
    }

    fn refusal(typed: &str, zone: Option<&str>) -> String {
        format!("{:#}", parse(typed, zone).expect_err(typed))
    }

    #[test]
    fn every_form() {
        for (typed, shown, unit) in [
            ("2026-07-28T21:00:00.000Z", "2026-07-28T21:00:00.000Z", None),
            ("2026-07-28T21:00:00.123456Z", "2026-07-28T21:00:00.123456Z", None),
            ("2026-07-28T21:00:00Z", "2026-07-28T21:00:00.000Z", Some(Unit::Second)),
            ("2026-07-28T21:00:00.5Z", "2026-07-28T21:00:00.500Z", Some(Unit::Second)),
            ("2026-07-28T21:00Z", "2026-07-28T21:00:00.000Z", Some(Unit::Minute)),
            ("2026-07-28 21:00:00+02:00", "2026-07-28T19:00:00.000Z", Some(Unit::Second)),
            ("2026-07-28T21:00:00-05:30", "2026-07-29T02:30:00.000Z", Some(Unit::Second)),
            ("2026-07-28Z", "2026-07-28T00:00:00.000Z", Some(Unit::Day)),
            ("@1786495847", "2026-08-12T00:50:47.000Z", Some(Unit::Second)),
            ("@1786495847123", "2026-08-12T00:50:47.123Z", None),
        ] {
            assert_eq!(read(typed), (shown.to_owned(), unit), "{typed}");
        }
    }

    #[test]
    fn an_age_counts_from_now() {
        let when = parse("2h ago", None).expect("an age");
        let expected = Utc::now().timestamp_micros() - 2 * 3600 * 1_000_000;
        assert!((expected - when.at).abs() < 60_000_000);
        assert_eq!(when.unit, None);
    }

    #[test]
    fn without_a_zone_both_readings_are_shown() {
        let refusal = refusal("2026-07-28T21:00:00", None);
        assert!(refusal.contains("as UTC it is 2026-07-28T21:00:00.000Z"), "{refusal}");
        assert!(refusal.contains("as this machine's local time "), "{refusal}");
    }

    #[test]
    fn a_zone_can_be_given_beside_the_time() {
        let when = parse("2026-07-28T21:00:00", Some("Europe/Berlin")).expect("a zone");
        assert_eq!(show(when.at), "2026-07-28T19:00:00.000Z");
        assert_eq!(when.typed, "2026-07-28T21:00:00 (Europe/Berlin)");
    }

    #[test]
    fn times_that_the_clocks_repeat_or_skip_are_refused() {
        assert!(refusal("2026-10-25T02:30:00", Some("Europe/Berlin")).contains("occurs twice"));
        assert!(refusal("2026-03-29T02:30:00", Some("Europe/Berlin")).contains("does not exist"));
        assert!(refusal("2026-03-29T02:30:00", Some("Mars/Olympus")).contains("is not a time zone"));
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for typed in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "@",
            "@-5",
            "@12x",
            "@1785272400000000",
            "2x ago",
            "ago",
            "2026-07-28T25:00Z",
        ] {
            assert!(parse(typed, None).is_err(), "{typed}");
        }
        assert!(parse("@99999999999999999999", None).is_err());
        assert!(parse("9999999999999d ago", None).is_err());
        assert!(parse("é026-07", None).is_err());
    }

    #[test]
    fn ranges() {
        let day = 86_400_000_000;
        assert_eq!(parse_range("1970-01-02Z..1970-01-03Z", None).expect("both"), (Some(day), Some(2 * day)));
        assert_eq!(parse_range("1970-01-02Z..", None).expect("from"), (Some(day), None));
        assert_eq!(parse_range("..1970-01-02Z", None).expect("to"), (None, Some(day)));
        assert!(parse_range("..", None).is_err());
        assert!(parse_range("1970-01-03Z..1970-01-02Z", None).is_err());
        assert!(parse_range("1970-01-03Z", None).is_err());
    }
}
