//! Where in a statement the parser stopped: the line below the message, and a mark below the place.

use anyhow::{Error, anyhow};
use unicode_width::UnicodeWidthStr;

/// Characters of a line that are shown before the place, and in all.
const BEFORE: usize = 40;
const SHOWN: usize = 72;

/// An error with the place that it names, if it names one.
pub fn pointed(error: Error, sql: &str) -> Error {
    let text = error.to_string();
    let Some((message, line, column)) = place(&text) else { return error };
    let Some(line) = sql.lines().nth(line.saturating_sub(1)) else { return error };
    let at = column.saturating_sub(1);
    let start = at.saturating_sub(BEFORE);
    let shown: String = line.replace('\t', " ").chars().skip(start).take(SHOWN).collect();
    let before: String = shown.chars().take(at - start).collect();
    anyhow!("{message}\n  {}\n  {}^", shown.trim_end(), " ".repeat(before.width()))
}

/// What the parser said, and of which line and column.
fn place(text: &str) -> Option<(&str, usize, usize)> {
    let (message, place) = text.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((message, line.parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: &'static str, sql: &str) -> String {
        pointed(anyhow!(error), sql).to_string()
    }

    #[test]
    fn the_place_is_marked() {
        let error = r#"Expected: ), found: "x" at Line: 2, Column: 8"#;
        let sql = "SELECT 1,\n  ('é' \"x\");";
        assert_eq!(shown(error, sql), "Expected: ), found: \"x\"\n    ('é' \"x\");\n         ^");
        let long = format!("{} x {}", "a".repeat(100), "b".repeat(100));
        let expected = format!("wrong\n  {} x {}\n  {}^", "a".repeat(39), "b".repeat(30), " ".repeat(40));
        assert_eq!(shown("wrong at Line: 1, Column: 102", &long), expected);
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        for error in ["no such table", "x at Line: one, Column: 2", "x at Line: 7, Column: 2"] {
            assert_eq!(shown(error, "SELECT 1"), error);
        }
    }
}
