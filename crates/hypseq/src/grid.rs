//! A small table: aligned columns for people, CSV and Markdown for everything else.

use anyhow::Result;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use unicode_width::UnicodeWidthStr;

/// Headers and rows of text.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    headers: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Columns by header; a header that starts with `>` is right-aligned.
    pub fn new(headers: &[&str]) -> Self {
        let right = headers.iter().map(|h| h.starts_with('>')).collect();
        let headers = headers.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        Self { headers, right, rows: Vec::new() }
    }

    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The rows of both; the headers are the same.
    #[must_use]
    pub fn append(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        self
    }

    /// Without those of the named columns in which every cell is `idle`.
    #[must_use]
    pub fn without_idle_columns(self, headers: &[&str], idle: &str) -> Self {
        let is_idle = |index: usize| self.rows.iter().all(|r| r.get(index).is_none_or(|c| c == idle));
        let kept = |(index, header): (usize, &String)| !headers.contains(&header.as_str()) || !is_idle(index);
        let kept: Vec<bool> = self.headers.iter().enumerate().map(kept).collect();
        self.keep(&kept)
    }

    /// Without the named columns.
    #[must_use]
    pub fn without_columns(self, headers: &[&str]) -> Self {
        let kept: Vec<bool> = self.headers.iter().map(|h| !headers.contains(&h.as_str())).collect();
        self.keep(&kept)
    }

    fn keep(self, kept: &[bool]) -> Self {
        fn pick<T>(cells: Vec<T>, kept: &[bool]) -> Vec<T> {
            cells.into_iter().zip(kept).filter_map(|(cell, keep)| keep.then_some(cell)).collect()
        }
        Self {
            headers: pick(self.headers, kept),
            right: pick(self.right, kept),
            rows: self.rows.into_iter().map(|row| pick(row, kept)).collect(),
        }
    }

    /// Aligned columns, indented; cells wrap where the width does not do.
    pub fn aligned(&self, indent: usize, width: Option<usize>) -> String {
        let mut table = self.table();
        table.load_preset(presets::NOTHING);
        match width {
            Some(width) => {
                let width = u16::try_from(width.saturating_sub(indent)).unwrap_or(u16::MAX);
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            }
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        // Text may wrap between words; a time or an id that is cut in two cannot be read or copied.
        let needed = |index: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(index)).chain(self.headers.get(index));
            cells.flat_map(|c| c.split(' ')).map(UnicodeWidthStr::width).max().unwrap_or(0)
        };
        let least: usize = (0..self.headers.len()).map(|index| needed(index) + 2).sum();
        // Two blanks between columns, and one where the room does not do.
        let before = u16::from(width.is_none_or(|width| indent + least <= width + 2));
        for (index, column) in table.column_iter_mut().enumerate() {
            let before = if index > 0 { before } else { 0 };
            column.set_padding((before, 1));
            let padded = u16::try_from(needed(index) + 1).unwrap_or(u16::MAX).saturating_add(before);
            column.set_constraint(ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(padded)));
        }
        let margin = " ".repeat(indent);
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(format!("{margin}{line}").trim_end());
            text.push('\n');
        }
        text
    }

    pub fn markdown(&self) -> String {
        let mut table = self.table();
        table.load_preset(presets::ASCII_MARKDOWN);
        format!("{table}\n")
    }

    pub fn csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.headers.iter().map(|h| h.replace(' ', "_")))?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.set_header(&self.headers);
        table.add_rows(&self.rows);
        for (column, right) in table.column_iter_mut().zip(&self.right) {
            if *right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&["name", ">rows", ">legacy"]);
        grid.row(["table", "482", "0"]);
        grid.row(["a, \"b\"", "9", "0"]);
        grid
    }

    #[test]
    fn columns_are_aligned_and_have_no_trailing_blanks() {
        assert_eq!(
            grid().aligned(2, None),
            "  name    rows  legacy\n  table    482       0\n  a, \"b\"     9       0\n"
        );
    }

    #[test]
    fn columns_move_together_before_a_cell_is_cut() {
        let mut grid = Grid::new(&["id", "time", ">rows"]);
        grid.row(["msg_1#0", "2026-07-28T21:00:00.000Z", "50"]);
        let widths = |width| grid.aligned(2, Some(width)).lines().map(str::len).max();
        assert_eq!(widths(41), Some(41));
        assert_eq!(widths(40), Some(39));
        assert!(grid.aligned(2, Some(39)).contains("msg_1#0 2026-07-28T21:00:00.000Z   50\n"));
    }

    #[test]
    fn idle_columns_go_only_where_every_cell_is_idle() {
        let mut grid = grid().without_idle_columns(&["rows", "legacy"], "0");
        assert_eq!(grid.headers, ["name", "rows"]);
        grid.row(["c", "0"]);
        assert_eq!(grid.clone().without_idle_columns(&["rows"], "0").headers, ["name", "rows"]);
    }

    #[test]
    fn csv_quotes() {
        assert_eq!(grid().csv().expect("csv"), "name,rows,legacy\ntable,482,0\n\"a, \"\"b\"\"\",9,0\n");
    }

    #[test]
    fn markdown_has_a_rule() {
        assert!(
            grid().markdown().starts_with("| name   | rows | legacy |\n|--------|-----:|-------:|\n")
                || grid().markdown().contains("|---")
        );
    }
}
