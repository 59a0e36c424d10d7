//! Spans of time as they are typed: `500ms`, `30s`, `10m`, `1h`.

use std::time::Duration;

/// Reads a span; clap shows the message.
pub fn parse(typed: &str) -> Result<Duration, String> {
    let expected = || format!("`{typed}` is not a span of time; expected such as 30s, 10m or 1h");
    let split = typed.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = typed.split_at(split);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let span = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis)).ok_or_else(expected)?;
    if span > MAX_MILLIS {
        Err(format!("`{typed}` is too long; at most a week"))
    } else {
        Ok(Duration::from_millis(span))
    }
}

/// A week: nobody watches longer, and an end beyond the clock's range cannot be computed.
const MAX_MILLIS: u64 = 7 * 24 * 3_600_000;

/// A span as it would be typed, rounded down to what a person cares for.
pub fn show(span: Duration) -> String {
    match span.as_millis() {
        millis @ 0..1000 => format!("{millis}ms"),
        millis @ 1000..120_000 => format!("{}s", millis / 1000),
        millis @ 120_000..7_200_000 => format!("{}m", millis / 60_000),
        millis => format!("{}h", millis / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        for (typed, millis) in [("0s", 0), ("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(parse(typed), Ok(Duration::from_millis(millis)));
        }
        for typed in
            ["", "10", "m", "-1s", "1.5s", "1 m", "1d", "10M", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(parse(typed).is_err(), "{typed}");
        }
        assert!(parse("169h").is_err_and(|e| e.contains("a week")));
    }

    #[test]
    fn spans_are_shown_as_typed() {
        for typed in ["0ms", "500ms", "30s", "10m", "2h"] {
            assert_eq!(parse(typed).map(show).as_deref(), Ok(typed));
        }
    }
}
