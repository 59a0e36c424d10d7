//! How time and memory grow with the cache.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command as Process;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cache::{Cache, Size};
use crate::command::{RESOLVE, STATUS, VERIFY};
use crate::hypseq::Hypseq;
use crate::machine::Machine;
use crate::progress;
use crate::python::PEAK_MEMORY;
use crate::question::{Dialect, TOP_SESSIONS};
use crate::report::cell;
use crate::stats::Times;

/// A command, on each of the caches.
#[derive(Debug, Serialize)]
pub struct Growth {
    /// The command.
    pub name: &'static str,
    /// From the smallest cache to the largest.
    pub at: Vec<Point>,
}

/// A command on one cache.
#[derive(Debug, Serialize)]
pub struct Point {
    /// What the command is about.
    pub size: Size,
    /// Data files that it opened, where it says so.
    pub files_read: Option<u64>,
    /// The times.
    pub times_ms: Times,
    /// The greatest peak of resident memory, in KiB.
    pub peak_kib: u64,
}

/// What `peak_memory.py` says.
#[derive(Deserialize)]
struct Measured {
    ms: f64,
    peak_kib: u64,
    status: i32,
    stdout: String,
}

/// Runs every command so many times on every cache.
pub fn scale(caches: &[Cache], hypseq: &Hypseq, python: &Path, runs: usize) -> Result<Vec<Growth>> {
    let mut growths = Vec::new();
    for (name, command) in [("resolve", RESOLVE), ("verify", VERIFY), ("status", STATUS)] {
        let of = |cache: &Cache| {
            let words = hypseq.words(cache, "json", &(command.arguments)(cache))?;
            point(name, python, &words, (command.among)(cache), runs)
        };
        growths.push(Growth { name, at: caches.iter().map(of).collect::<Result<_>>()? });
    }
    let name = "sql, GROUP BY session_id";
    let of = |cache: &Cache| {
        let sql = Dialect::hypseq(String::new()).put(TOP_SESSIONS, cache);
        let words = hypseq.words(cache, "json", &["sql".to_owned(), "-c".to_owned(), sql])?;
        point(name, python, &words, cache.live_size(), runs)
    };
    growths.push(Growth { name, at: caches.iter().map(of).collect::<Result<_>>()? });
    Ok(growths)
}

fn point(name: &str, python: &Path, words: &[String], size: Size, runs: usize) -> Result<Point> {
    let (mut runs_ms, mut peak_kib, mut files_read) = (Vec::new(), 0, None);
    for run in 0..=runs {
        progress(&format!("{name}, {} rows, run {run} of {runs}", size.rows));
        let output = Process::new(python).args(["-c", PEAK_MEMORY]).args(words).output()?;
        let measured: Measured = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        ensure!(measured.status == 0, "{} ended with {}", words.join(" "), measured.status);
        peak_kib = measured.peak_kib.max(peak_kib);
        // The first run warms the page cache.
        if run > 0 {
            runs_ms.push(measured.ms);
        }
        let answer: Value = serde_json::from_str(&measured.stdout)?;
        files_read = answer.get("files_read").and_then(Value::as_u64);
    }
    Ok(Point { size, files_read, times_ms: Times::of(runs_ms), peak_kib })
}

/// The growth as a Markdown table; the last column says by what a figure grew from the first cache to the last.
pub fn markdown(growths: &[Growth], machine: &Machine) -> String {
    let mut out = format!(
        "{}, {} cores, {} GiB, Linux {}; commit {}.\n\n| command | rows | files | files read | ms | peak MiB |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        machine.cpu, machine.cores, machine.memory_gib, machine.kernel, machine.commit
    );
    for growth in growths {
        for point in &growth.at {
            let read = point.files_read.map_or_else(|| "–".to_owned(), |files| files.to_string());
            let Size { rows, files, .. } = point.size;
            let [ms, peak] = [point.times_ms.median, mib(point.peak_kib)].map(|value| cell(Some(value), ""));
            let _ = writeln!(out, "| {} | {rows} | {files} | {read} | {ms} | {peak} |", growth.name);
        }
        if let [first, .., last] = growth.at.as_slice() {
            let times = |of: fn(&Point) -> f64| cell(Some(of(last) / of(first)), " ×");
            let [rows, files] = [times(|p| float(p.size.rows)), times(|p| float(p.size.files))];
            let [ms, peak] = [times(|p| p.times_ms.median), times(|p| float(p.peak_kib))];
            let _ = writeln!(out, "| {}, growth | {rows} | {files} | | {ms} | {peak} |", growth.name);
        }
    }
    out
}

fn mib(kib: u64) -> f64 {
    float(kib) / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn float(value: u64) -> f64 {
    value as f64
}
