//! `hypseq-testkit`: writes generated caches from the command line.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use hypseq_testkit::{Incident, RowTruth, generate, generate_streaming, incident, small_spec};
use serde_json::json;

/// Writes caches like HypAware's, and the truth about them as JSON beside them
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The incident as reported, or one in proportion
    Incident {
        /// Rows of the partition that it is about
        #[arg(long, default_value_t = 488_088)]
        rows: u64,
        /// The home to write; it must not exist. The truth goes to `<OUT>.truth.json`
        #[arg(long)]
        out: PathBuf,
        /// Another seed gives other rows with the same figures
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Mean length of the captured texts
        #[arg(long, default_value_t = 160)]
        text_bytes: usize,
        /// Rows per row group; without it a file has one
        #[arg(long)]
        row_group_rows: Option<usize>,
        /// Make a file that is the same in several generations one file with several names
        #[arg(long)]
        link: bool,
        /// Write every row's truth to `<OUT>.rows.ndjson` as well
        #[arg(long)]
        row_truth: bool,
    },
    /// A small cache of random shape, as property tests use it
    Small {
        /// The home to write; it must not exist. The truth goes to `<OUT>.truth.json`
        #[arg(long)]
        out: PathBuf,
        /// Which one
        #[arg(long)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Incident { rows, out, seed, text_bytes, row_group_rows, link, row_truth } => {
            let mut incident = incident(rows, seed);
            incident.spec.text_bytes = text_bytes;
            incident.spec.row_group_rows = row_group_rows;
            incident.spec.link_same_files = link;
            write_incident(&incident, &out, row_truth)
        }
        Command::Small { out, seed } => {
            create(&out)?;
            let truth = generate(&small_spec(seed), &out)?;
            write_json(&beside(&out, "truth.json"), &json!({"cache": truth}))
        }
    }
}

fn write_incident(incident: &Incident, out: &Path, row_truth: bool) -> anyhow::Result<()> {
    create(out)?;
    let rows_file = beside(out, "rows.ndjson");
    let mut rows = if row_truth { Some(BufWriter::new(File::create(&rows_file)?)) } else { None };
    let mut failed = None;
    let mut write_row = |partition: usize, row: RowTruth| {
        if let Some(out) = rows.as_mut().filter(|_| failed.is_none()) {
            let line = json!({"partition": partition, "seq": row.seq, "time_ms": row.time_ms, "id": row.id,
                "visible": row.visible, "deleted": row.deleted});
            failed = writeln!(out, "{line}").err();
        }
    };
    let truth = generate_streaming(&incident.spec, out, &mut write_row)?;
    if let Some(mut rows) = rows {
        failed.map_or_else(|| rows.flush(), Err).with_context(|| format!("cannot write `{}`", rows_file.display()))?;
    }
    write_json(&beside(out, "truth.json"), &json!({"incident": incident, "cache": truth}))
}

fn create(out: &Path) -> anyhow::Result<()> {
    ensure!(!out.exists(), "`{}` exists: expected a folder to be made", out.display());
    fs::create_dir_all(out).with_context(|| format!("cannot make `{}`", out.display()))
}

/// A file beside a folder, whose name begins with the folder's.
fn beside(out: &Path, suffix: &str) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    out.with_file_name(name)
}

fn write_json(path: &Path, json: &serde_json::Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(json)?;
    text.push('\n');
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
