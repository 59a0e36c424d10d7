//! How results are shown: what `\pset`, `\x` and `\timing` set.

use clap::ValueEnum;

use super::command::{Rows, Setting};
use crate::batches::{Expanded, Limit};
use crate::cli::Format;
use crate::grid::Grid;

/// Lines of the screen that are not for rows: the statement, the header with its rule, the footer, and the next prompt.
const LINES_AROUND: u64 = 5;

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    rows: Rows,
    pub format: Format,
    pub expanded: Expanded,
    pub timing: bool,
}

impl Settings {
    pub fn new(format: Format, is_terminal: bool) -> Self {
        let rows = if is_terminal { Rows::Screen } else { Rows::All };
        Self { rows, format, expanded: Expanded::Auto, timing: false }
    }

    pub fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Rows(rows) => self.rows = rows,
            Setting::Format(format) => self.format = format,
        }
    }

    /// How much of a result is shown on a screen of so many lines.
    pub fn limit(&self, lines: Option<u16>) -> Limit {
        match (self.rows, lines) {
            (Rows::Most(rows), _) => Limit::Rows(rows),
            (Rows::Screen, Some(lines)) => Limit::Lines(u64::from(lines).saturating_sub(LINES_AROUND)),
            (Rows::Screen, None) | (Rows::All, _) => Limit::All,
        }
    }

    /// What `\x` is.
    pub fn expanded(&self) -> &'static str {
        match self.expanded {
            Expanded::Auto => "auto",
            Expanded::On => "on",
            Expanded::Off => "off",
        }
    }

    /// Every setting with its value.
    pub fn text(&self) -> String {
        let rows = match self.rows {
            Rows::All => "all".to_owned(),
            Rows::Screen => "screen".to_owned(),
            Rows::Most(rows) => rows.to_string(),
        };
        let format = self.format.to_possible_value();
        let mut grid = Grid::new(&["setting", "value"]);
        grid.row(["rows", &rows]);
        grid.row(["format", format.as_ref().map_or("", |value| value.get_name())]);
        grid.row(["\\x", self.expanded()]);
        grid.row(["\\timing", if self.timing { "on" } else { "off" }]);
        grid.aligned(0, None)
    }
}
