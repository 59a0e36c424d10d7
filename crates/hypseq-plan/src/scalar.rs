//! The scalar types of a plan: sequence numbers, times and SHA-256 digests, each with exactly one spelling
//! in JSON. Another spelling of the same value is an error, so that a plan has one canonical form.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest, Sha256 as Hasher};

/// Why a text is not a [`Seq`], [`Time`] or [`Sha256`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// Not a canonical decimal between 0 and `i64::MAX`.
    #[error("expected a seq as a decimal string from 0 to 9223372036854775807 without leading zeros, found {0:?}")]
    Seq(String),
    /// Not a time of the one accepted form, or outside the years 0000 to 9999.
    #[error("expected a UTC time such as 2026-07-28T21:00:00.000Z, found {0:?}")]
    Time(String),
    /// Not a digest of the one accepted form.
    #[error("expected sha256: and 64 lower-case hexadecimal digits, found {0:?}")]
    Sha256(String),
}

/// A sequence number, or the position of a watermark: 0 to `i64::MAX`.
///
/// In JSON it is a decimal **string** (`"722"`): JSON numbers lose digits beyond 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(i64);

impl Seq {
    /// The greatest seq.
    pub const MAX: Self = Self(i64::MAX);
    /// The position before every row.
    pub const ZERO: Self = Self(0);

    /// A seq from a number; none when it is negative.
    pub const fn new(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl FromStr for Seq {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        let canonical = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        match text.parse() {
            Ok(value) if canonical => Ok(Self(value)),
            _ => Err(ScalarError::Seq(text.to_owned())),
        }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time in UTC at millisecond precision, years 0000 to 9999.
///
/// In JSON it is `2026-07-28T21:00:00.000Z`, which is what JavaScript's `toISOString` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(DateTime<Utc>);

impl Time {
    /// The present time.
    pub fn now() -> Self {
        let now = Utc::now();
        Self(now.with_nanosecond(now.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(now))
    }

    /// A time from milliseconds since 1970; none outside the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Option<Self> {
        let time = DateTime::from_timestamp_millis(millis)?;
        (0..=9999).contains(&time.year()).then_some(Self(time))
    }

    /// A time from microseconds since 1970, the unit of a cache's timestamp columns, cut down to the
    /// millisecond at or before it; none outside the years 0000 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        Self::from_millis(micros.div_euclid(1000))
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// This time moved by `delta`; none when that leaves the years 0000 to 9999.
    pub fn plus(self, delta: chrono::Duration) -> Option<Self> {
        Self::from_millis(self.millis().checked_add(delta.num_milliseconds())?)
    }
}

impl From<Time> for DateTime<Utc> {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl FromStr for Time {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        // Written again and compared: chrono's parser is lenient about widths, signs and leap seconds.
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.3fZ")
            .ok()
            .and_then(|t| Self::from_millis(t.and_utc().timestamp_millis()))
            .filter(|t| t.to_string() == text)
            .ok_or_else(|| ScalarError::Time(text.to_owned()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%Y-%m-%dT%H:%M:%S%.3fZ").fmt(f)
    }
}

/// A SHA-256 digest; in JSON `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }
}

impl FromStr for Sha256 {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        let parse = || {
            let hex = text.strip_prefix("sha256:")?;
            let canonical = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let mut digest = [0; 32];
            for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
                *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
            }
            canonical.then_some(Self(digest))
        };
        parse().ok_or_else(|| ScalarError::Sha256(text.to_owned()))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// JSON as a string through `Display` and `FromStr`; the schema is a string with a pattern.
macro_rules! string_in_json {
    ($name:ident, $expecting:literal, $pattern:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $expecting, "pattern": $pattern })
            }
        }
    };
}

string_in_json!(Seq, "a seq as a decimal string, 0 to 9223372036854775807", "^(0|[1-9][0-9]{0,18})$");
string_in_json!(
    Time,
    "a UTC time with milliseconds, such as 2026-07-28T21:00:00.000Z",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
);
string_in_json!(Sha256, "sha256: and 64 lower-case hexadecimal digits", "^sha256:[0-9a-f]{64}$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seq_has_one_spelling() {
        for good in ["0", "7", "9007199254740993", "9223372036854775807"] {
            assert_eq!(good.parse::<Seq>().unwrap().to_string(), good);
        }
        for bad in ["", "-1", "+1", "00", "01", " 1", "1 ", "1.0", "1e3", "0x1", "٣", "9223372036854775808"] {
            assert_eq!(bad.parse::<Seq>(), Err(ScalarError::Seq(bad.to_owned())), "{bad}");
        }
        assert_eq!(Seq::new(-1), None);
    }

    #[test]
    fn a_seq_is_a_string_in_json_and_never_a_number() {
        assert_eq!(serde_json::to_string(&Seq::MAX).unwrap(), "\"9223372036854775807\"");
        let error = serde_json::from_str::<Seq>("722").unwrap_err().to_string();
        assert!(error.starts_with("invalid type: integer `722`, expected a seq as a decimal string"), "{error}");
    }

    #[test]
    fn a_time_has_one_spelling() {
        for good in ["2026-07-28T21:00:00.000Z", "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"] {
            assert_eq!(good.parse::<Time>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "2026-07-28T21:00:00Z",
            "2026-07-28T21:00:00.00Z",
            "2026-07-28T21:00:00.0000Z",
            "2026-07-28T21:00:00.000",
            "2026-07-28T21:00:00.000+00:00",
            "2026-07-28 21:00:00.000Z",
            "2026-07-28t21:00:00.000z",
            "2026-7-28T21:00:00.000Z",
            "2026-02-29T21:00:00.000Z",
            "2026-07-28T24:00:00.000Z",
            "2026-07-28T23:59:60.000Z",
            "+10000-01-01T00:00:00.000Z",
            "-0001-01-01T00:00:00.000Z",
        ] {
            assert_eq!(bad.parse::<Time>(), Err(ScalarError::Time(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn microseconds_are_cut_towards_the_past() {
        assert_eq!(Time::from_micros(1_999).unwrap().millis(), 1);
        assert_eq!(Time::from_micros(-1).unwrap().to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Time::from_micros(i64::MAX), None);
    }

    #[test]
    fn now_is_at_millisecond_precision() {
        let now = Time::now();
        assert_eq!(now.to_string().parse(), Ok(now));
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), text);
        assert_eq!(text.parse(), Ok(Sha256::of(b"")));
        for bad in [&text[7..], &text[..70], &text.to_uppercase(), &format!("{text}0"), &text.replace("e3", "+3")] {
            assert_eq!(bad.parse::<Sha256>(), Err(ScalarError::Sha256((*bad).to_owned())), "{bad}");
        }
    }
}
