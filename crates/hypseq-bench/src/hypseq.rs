//! The program `hypseq`, as a user runs it: a process from its start to its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cache::Cache;

/// The program.
#[derive(Debug, Clone)]
pub struct Hypseq {
    binary: PathBuf,
}

impl Hypseq {
    /// The program at a path, or else beside this one.
    pub fn find(path: Option<PathBuf>) -> Result<Self> {
        let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("hypseq"));
        let binary = path.map_or_else(beside, Ok)?;
        ensure!(binary.is_file(), "`{}` is not there\n  hint: crates/hypseq-bench/run builds it", binary.display());
        Ok(Self { binary })
    }

    /// What it says of its version.
    pub fn version(&self) -> Result<String> {
        let output = Command::new(&self.binary).arg("--version").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The words of a command line over a cache, the program's name first.
    pub fn words(&self, cache: &Cache, format: &str, arguments: &[String]) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not text");
        let global = ["--home".to_owned(), text(&cache.home)?, "--format".to_owned(), format.to_owned()];
        Ok([text(&self.binary)?].into_iter().chain(global).chain(arguments.iter().cloned()).collect())
    }

    /// Runs it over a cache: the milliseconds from start to end, and what it wrote to stdout.
    pub fn run(&self, cache: &Cache, format: &str, arguments: &[String]) -> Result<(f64, Vec<u8>)> {
        let words = self.words(cache, format, arguments)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let began = Instant::now();
        let output = command.output().with_context(|| format!("cannot start `{}`", self.binary.display()))?;
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        if !output.status.success() {
            bail!("{}: {}\n{}", words.join(" "), output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok((ms, output.stdout))
    }
}
