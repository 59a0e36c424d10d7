//! Rows as a table for people.
//!
//! Columns stand side by side where they fit the terminal. Where they do not, only long ones (wider than [`LONG`]) give
//! way: they share what the others leave, and their values are cut, with a `…` at the end; so ids, times and numbers are
//! always whole. Where that would leave a long column less than [`FLOOR`], there is one column per line, and values wrap
//! below themselves. So there is for the plans of EXPLAIN, which have lines of their own. Where there is no terminal,
//! lines are as long as they need to be.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::Fields;
use textwrap::{WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cell::{on_one_line, text};
use super::{Expanded, Room, Source, Style};

/// Columns up to this width are never cut; the widest ids, UUIDs, have 36.
const LONG: usize = 40;
/// A long column that is cut keeps at least this much.
const FLOOR: usize = 24;
/// Blanks between columns.
const GAP: usize = 2;
/// What stands for null; dimmed where there is colour, so that it is no text.
const NULL: &str = "NULL";

/// Writes a table. Says whether a value was cut.
pub async fn write(source: &mut Source<'_>, room: &mut Room, style: &Style, out: &mut impl Write) -> Result<bool> {
    let schema = source.schema();
    if schema.fields().is_empty() {
        return Ok(false);
    }
    let names: Vec<String> = schema.fields().iter().map(|f| on_one_line(f.name()).into_owned()).collect();
    let mut widths: Vec<usize> = names.iter().map(|n| n.width()).collect();
    for batch in source.peek(room.preview()).await? {
        for row in 0..batch.num_rows() {
            for (width, column) in widths.iter_mut().zip(batch.columns()) {
                let cell = text(column, row)?;
                *width = (*width).max(cell.as_deref().map_or(NULL.len(), |c| on_one_line(c).width()));
            }
        }
    }
    if source.is_cancelled() {
        return Ok(false);
    }
    let fitting = fit(&widths, &names, style.printer.width);
    let expanded = match style.expanded {
        Expanded::On => true,
        Expanded::Off => false,
        Expanded::Auto => fitting.is_none() || names == ["plan_type", "plan"],
    };
    if expanded {
        records(source, room, style, &names, out).await?;
        return Ok(false);
    }
    // Forced side by side, lines run over the margin.
    let fitting = fitting.unwrap_or_else(|| widths.iter().map(|w| if *w > LONG { FLOOR } else { *w }).collect());
    // Rows beyond those that were looked at may have longer values.
    let most = |(natural, fitting): (&usize, &usize)| if *natural > LONG { *fitting } else { LONG };
    let most = style.printer.width.map(|_| widths.iter().zip(&fitting).map(most).collect());
    let mut columns = Columns { style, right: right(schema.fields()), widths: fitting, most, cut: false };
    columns.header(&names, out)?;
    let rows = source.each(|batch, row| {
        if !room.take(1) {
            return Ok(ControlFlow::Break(()));
        }
        writeln!(out, "{}", columns.line(batch, row)?)?;
        Ok(ControlFlow::Continue(()))
    });
    rows.await?;
    Ok(columns.cut)
}

fn right(fields: &Fields) -> Vec<bool> {
    fields.iter().map(|f| f.data_type().is_numeric()).collect()
}

/// The widths with which columns fit side by side, long ones cut; none where they do not fit.
fn fit(natural: &[usize], names: &[String], width: Option<usize>) -> Option<Vec<usize>> {
    let Some(width) = width else { return Some(natural.to_vec()) };
    let gaps = GAP * natural.len().saturating_sub(1);
    let short: usize = natural.iter().filter(|w| **w <= LONG).sum();
    let mut left = width.checked_sub(gaps + short)?;
    let mut long: Vec<usize> = (0..natural.len()).filter(|i| natural[*i] > LONG).collect();
    long.sort_by_key(|i| natural[*i]);
    let mut fitting = natural.to_vec();
    // The less wide ones first: what they do not need is for the wider ones.
    for (index, column) in long.iter().enumerate() {
        let share = (left / (long.len() - index)).min(natural[*column]);
        if share < FLOOR.max(names[*column].width()) {
            return None;
        }
        fitting[*column] = share;
        left -= share;
    }
    Some(fitting)
}

/// Columns side by side.
struct Columns<'a> {
    style: &'a Style,
    right: Vec<bool>,
    widths: Vec<usize>,
    /// Where each column's values are cut, if they are.
    most: Option<Vec<usize>>,
    cut: bool,
}

impl Columns<'_> {
    fn header(&self, names: &[String], out: &mut impl Write) -> Result<()> {
        let names =
            names.iter().enumerate().map(|(index, name)| self.pad(index, name, self.style.printer.strong(name)));
        writeln!(out, "{}", names.collect::<Vec<_>>().join("  ").trim_end())?;
        let rules: Vec<String> = self.widths.iter().map(|w| "─".repeat(*w)).collect();
        writeln!(out, "{}", rules.join("  "))?;
        Ok(())
    }

    fn line(&mut self, batch: &RecordBatch, row: usize) -> Result<String> {
        let mut line = String::new();
        for (index, column) in batch.columns().iter().enumerate() {
            if index > 0 {
                line.push_str("  ");
            }
            let Some(cell) = text(column, row)? else {
                line.push_str(&self.pad(index, NULL, self.style.printer.faint(NULL)));
                continue;
            };
            let cell = on_one_line(&cell);
            match self.most.as_ref().and_then(|most| cut(&cell, most[index])) {
                Some(cut) => {
                    self.cut = true;
                    line.push_str(&self.pad(index, &cut, cut.clone()));
                }
                None => line.push_str(&self.pad(index, &cell, cell.to_string())),
            }
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// A cell in its column; `painted` is the same with colour.
    fn pad(&self, index: usize, cell: &str, painted: String) -> String {
        let pad = " ".repeat(self.widths[index].saturating_sub(cell.width()));
        if self.right[index] { pad + &painted } else { painted + &pad }
    }
}

/// The beginning of text that is wider than `width`; none where it is not.
fn cut(text: &str, width: usize) -> Option<String> {
    if text.width() <= width {
        return None;
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    Some(kept)
}

/// One column per line.
async fn records(
    source: &mut Source<'_>,
    room: &mut Room,
    style: &Style,
    names: &[String],
    out: &mut impl Write,
) -> Result<()> {
    let printer = &style.printer;
    let indent = names.iter().map(|n| n.width()).max().unwrap_or(0) + GAP;
    let mut count = 0u64;
    let rows = source.each(|batch, row| {
        count += 1;
        let mut lines = vec![printer.faint(&format!("── row {count} ──"))];
        for (name, column) in names.iter().zip(batch.columns()) {
            let values = match text(column, row)? {
                Some(cell) => wrapped(&cell, printer.width.map(|w| w.saturating_sub(indent).max(FLOOR))),
                None => vec![printer.faint(NULL)],
            };
            let label = printer.strong(name) + &" ".repeat(indent - name.width());
            let labels = std::iter::once(label).chain(std::iter::repeat(" ".repeat(indent)));
            lines.extend(labels.zip(&values).map(|(label, value)| format!("{label}{value}").trim_end().to_owned()));
        }
        if !room.take(lines.len() as u64) {
            return Ok(ControlFlow::Break(()));
        }
        writeln!(out, "{}", lines.join("\n"))?;
        Ok(ControlFlow::Continue(()))
    });
    rows.await
}

/// A value in lines of its own, broken where it is broken itself and where the width ends.
fn wrapped(value: &str, width: Option<usize>) -> Vec<String> {
    let lines = value.split('\n').map(on_one_line);
    let Some(width) = width else { return lines.map(std::borrow::Cow::into_owned).collect() };
    let options = textwrap::Options::new(width)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_splitter(WordSplitter::NoHyphenation);
    let mut wrapped = Vec::new();
    for line in lines {
        let parts = textwrap::wrap(&line, &options);
        wrapped.extend(parts.into_iter().map(std::borrow::Cow::into_owned));
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(natural: &[usize], width: usize) -> Option<Vec<usize>> {
        fit(natural, &vec!["name".to_owned(); natural.len()], Some(width))
    }

    #[test]
    fn what_fits_stays() {
        assert_eq!(fitted(&[10, 30], 42), Some(vec![10, 30]));
        assert_eq!(fit(&[10, 5000], &[String::new(), String::new()], None), Some(vec![10, 5000]));
    }

    #[test]
    fn long_columns_share_what_is_left() {
        assert_eq!(fitted(&[15, 24, 5000], 80), Some(vec![15, 24, 37]));
        assert_eq!(fitted(&[5000, 41, 5000], 200), Some(vec![77, 41, 78]));
    }

    #[test]
    fn short_columns_are_never_cut_and_long_ones_keep_a_floor() {
        assert_eq!(fitted(&[40, 40], 81), None);
        assert_eq!(fitted(&[15, 36, 5000], 79), Some(vec![15, 36, 24]));
        assert_eq!(fitted(&[15, 36, 5000], 78), None);
        let wide_name = "a_name_that_is_thirty_wide____".to_owned();
        assert_eq!(fit(&[50, 50], &["a".to_owned(), wide_name], Some(60)), None);
    }

    #[test]
    fn cut_text_has_the_width_and_says_so() {
        assert_eq!(cut("abcdef", 4).as_deref(), Some("abc…"));
        assert_eq!(cut("漢字漢字", 4).as_deref(), Some("漢…"));
        assert_eq!(cut("abcd", 4), None);
    }

    #[test]
    fn values_wrap_at_words_at_line_ends_and_within_what_is_too_long() {
        assert_eq!(wrapped("one two\nthree", Some(5)), ["one", "two", "three"]);
        assert_eq!(wrapped("abcdefg", Some(3)), ["abc", "def", "g"]);
        assert_eq!(wrapped("a\n\nb\tc", None), ["a", "", r"b\tc"]);
    }
}
