//! The model of the daemon as a program: `hypseq-testkit-daemon SPEC.json` runs until it is ended.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use hypseq_testkit::daemon::{DaemonSpec, run};

/// Plays the daemon's sink over a real home, by seed, and logs all that it does.
#[derive(Parser)]
struct Args {
    /// A `DaemonSpec` as JSON
    spec: PathBuf,
}

fn main() -> Result<()> {
    let Args { spec } = Args::parse();
    let text = std::fs::read(&spec).with_context(|| format!("{}: cannot read", spec.display()))?;
    let spec: DaemonSpec = serde_json::from_slice(&text).with_context(|| format!("{}: no spec", spec.display()))?;
    Ok(run(spec)?)
}
