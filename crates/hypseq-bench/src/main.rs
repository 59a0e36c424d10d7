//! `hypseq-bench`: hypseq beside DuckDB and DataFusion on generated caches, and how it grows with them.

mod answer;
mod arena;
mod cache;
mod command;
mod compare;
mod contender;
mod hypseq;
mod instructions;
mod machine;
mod python;
mod question;
mod report;
mod scale;
mod serve;
mod stats;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use datafusion::DATAFUSION_VERSION;
use serde_json::json;

use crate::arena::Arena;
use crate::cache::{Cache, Kind};
use crate::hypseq::Hypseq;
use crate::instructions::Counts;
use crate::machine::{Machine, cores};
use crate::report::{OfCache, Report, Versions};

/// hypseq beside DuckDB and DataFusion on generated caches
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ask hypseq, DuckDB and DataFusion the same questions, in turns
    Compare {
        #[command(flatten)]
        common: Common,
        /// Rows of the incident
        #[arg(long, default_value_t = 488_088)]
        rows: u64,
        /// Runs that are counted, of each contender for each question
        #[arg(long, default_value_t = 7, value_parser = at_least_one)]
        runs: usize,
        /// Write the figures here as well, every run of them
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Measure time and peak memory on a small cache and on a large one
    Scale {
        #[command(flatten)]
        common: Common,
        /// Rows of the large one
        #[arg(long, default_value_t = 50_000_000)]
        rows: u64,
        /// Rows of the small one
        #[arg(long, default_value_t = 488_088)]
        from_rows: u64,
        /// Runs that are counted
        #[arg(long, default_value_t = 3, value_parser = at_least_one)]
        runs: usize,
        /// Write the figures here as well, every run of them
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Count instructions under valgrind, and fail where they are more than was recorded
    Instructions {
        #[command(flatten)]
        common: Common,
        /// What was recorded
        #[arg(long, default_value = "crates/hypseq-bench/instructions.json")]
        baseline: PathBuf,
        /// How many percent more are no regression
        #[arg(long, default_value_t = 10)]
        tolerance: u64,
        /// Record instead of comparing
        #[arg(long)]
        record: bool,
    },
    /// Answer SQL from stdin, as one of the contenders
    #[command(hide = true)]
    Serve {
        #[command(subcommand)]
        side: serve::Side,
    },
}

/// What every measurement needs.
#[derive(Debug, Args)]
struct Common {
    /// A folder for caches, exports and DuckDB; what is there already is used again
    #[arg(long, default_value_os_t = std::env::temp_dir().join("hypseq-bench"))]
    work: PathBuf,
    /// The program hypseq; without it the one beside this program
    #[arg(long)]
    hypseq: Option<PathBuf>,
    /// Python 3 with `venv`
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

const SEED: u64 = 1;

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Compare { common, rows, runs, json } => {
            let report = compare(&common, rows, runs)?;
            write_json(json.as_deref(), &report)?;
            print(&report.markdown())?;
        }
        Command::Scale { common, rows, from_rows, runs, json } => {
            let (work, hypseq) = common.ready()?;
            let sizes = [from_rows, rows].map(|rows| Cache::obtain(&work, Kind::Incident, rows, SEED));
            let caches = sizes.into_iter().collect::<Result<Vec<_>>>()?;
            let growths = scale::scale(&caches, &hypseq, &common.python, runs)?;
            let machine = Machine::this();
            write_json(json.as_deref(), &json!({"machine": machine, "growth": growths}))?;
            print(&scale::markdown(&growths, &machine))?;
        }
        Command::Instructions { common, baseline, tolerance, record } => {
            let (work, hypseq) = common.ready()?;
            let counts = instructions::count(&work, &hypseq)?;
            if record {
                counts.write(&baseline)?;
            }
            let (text, holds) = counts.against(&Counts::read(&baseline)?, tolerance);
            print(&text)?;
            return Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Serve { side } => serve::serve(&side)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Common {
    fn ready(&self) -> Result<(PathBuf, Hypseq)> {
        let making = || format!("cannot make `{}`", self.work.display());
        fs::create_dir_all(&self.work).with_context(making)?;
        Ok((self.work.canonicalize()?, Hypseq::find(self.hypseq.clone())?))
    }
}

fn compare(common: &Common, rows: u64, runs: usize) -> Result<Report> {
    let (work, hypseq) = common.ready()?;
    let python = python::with_duckdb(&work, &common.python)?;
    let exports = tempfile::tempdir_in(&work)?;
    let mut caches = Vec::new();
    for kind in [Kind::Undeleted, Kind::Incident] {
        let cache = Cache::obtain(&work, kind, rows, SEED)?;
        let arena =
            Arena { cache: &cache, hypseq: &hypseq, python: &python, exports: exports.path(), threads: cores() };
        let measured = compare::compare(&arena, kind, runs)?;
        caches.push(OfCache::new(&cache, kind, measured));
    }
    let versions = Versions { hypseq: hypseq.version()?, duckdb: python::DUCKDB, datafusion: DATAFUSION_VERSION };
    Ok(Report { machine: Machine::this(), versions, runs, caches })
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected at least one".to_owned()),
        parsed => parsed.map_err(|error: std::num::ParseIntError| error.to_string()),
    }
}

fn write_json(file: Option<&Path>, value: &impl serde::Serialize) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
}

fn print(text: &str) -> Result<()> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Says what is going on, beside the answer.
fn progress(doing: &str) {
    // Nobody may be listening, and the work goes on all the same.
    let _ = writeln!(io::stderr(), "hypseq-bench: {doing}");
}
