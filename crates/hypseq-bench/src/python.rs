//! Python with DuckDB in it, in a virtual environment below the work folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::progress;

/// The version that hypseq is compared with.
pub const DUCKDB: &str = "2.0.1";
/// DuckDB gives times with a zone to Python by this.
const PYTZ: &str = "2026.1";

/// The program that answers SQL with DuckDB; its argument is the number of threads.
pub const DUCKDB_CONTENDER: &str = include_str!("../python/duckdb_contender.py");
/// The program that measures the memory of another, whose words are its arguments.
pub const PEAK_MEMORY: &str = include_str!("../python/peak_memory.py");

/// Python of a virtual environment that has DuckDB; made and filled where it is not there yet.
pub fn with_duckdb(work: &Path, python: &Path) -> Result<PathBuf> {
    let venv = work.join(format!("venv-duckdb-{DUCKDB}"));
    let own = venv.join("bin/python");
    if !has_duckdb(&own) {
        progress(&format!("installing DuckDB {DUCKDB} into {}", venv.display()));
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
        let packages = [format!("duckdb=={DUCKDB}"), format!("pytz=={PYTZ}")];
        run(Command::new(&own)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(packages))?;
    }
    Ok(own)
}

fn has_duckdb(python: &Path) -> bool {
    let output = Command::new(python).args(["-c", "import duckdb, pytz; print(duckdb.__version__)"]).output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == DUCKDB.as_bytes())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
