//! Rows as CSV and as a Markdown table.

use std::io::Write;

use anyhow::Result;
use arrow::array::RecordBatch;
use unicode_width::UnicodeWidthStr;

use super::cell::{on_one_line, text};
use super::{Room, Source, each_line};

/// Comma-separated values with a header.
pub async fn csv(source: &mut Source<'_>, room: &mut Room, out: &mut impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let schema = source.schema();
    if !schema.fields().is_empty() {
        writer.write_record(schema.fields().iter().map(|f| f.name()))?;
    }
    let rows = each_line(source, room, |batch, row| {
        let cells = batch.columns().iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>()?;
        Ok(writer.write_record(cells.iter().map(|cell| cell.as_deref().unwrap_or_default()))?)
    });
    rows.await?;
    writer.flush()?;
    Ok(())
}

/// A Markdown table, its columns aligned.
pub async fn markdown(source: &mut Source<'_>, room: &mut Room, out: &mut impl Write) -> Result<()> {
    let schema = source.schema();
    if schema.fields().is_empty() {
        return Ok(());
    }
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().replace('|', "\\|")).collect();
    let right: Vec<bool> = schema.fields().iter().map(|f| f.data_type().is_numeric()).collect();
    let mut widths: Vec<usize> = names.iter().map(|n| n.width()).collect();
    for batch in source.peek(room.preview()).await? {
        for row in 0..batch.num_rows() {
            for (width, cell) in widths.iter_mut().zip(cells(batch, row)?) {
                *width = (*width).max(cell.width());
            }
        }
    }
    let line = |out: &mut dyn Write, cells: &[String]| {
        let padded = cells.iter().zip(&widths).zip(&right).map(|((cell, width), right)| {
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            if *right { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        writeln!(out, "| {} |", padded.collect::<Vec<_>>().join(" | "))
    };
    line(out, &names)?;
    let rule = |(width, right): (&usize, &bool)| {
        if *right { format!("{}:", "-".repeat(width + 1)) } else { "-".repeat(width + 2) }
    };
    writeln!(out, "|{}|", widths.iter().zip(&right).map(rule).collect::<Vec<_>>().join("|"))?;
    each_line(source, room, |batch, row| Ok(line(out, &cells(batch, row)?)?)).await
}

fn cells(batch: &RecordBatch, row: usize) -> Result<Vec<String>> {
    let cell = |column| Ok(on_one_line(&text(column, row)?.unwrap_or_default()).replace('|', "\\|"));
    batch.columns().iter().map(cell).collect()
}
