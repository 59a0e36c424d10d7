//! Instruction counts of the hot paths: a guard against regressions that does not depend on the machine's load.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command as Process;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Kind};
use crate::command::{RESOLVE, VERIFY};
use crate::hypseq::Hypseq;
use crate::progress;

/// Rows of the incident that is asked about.
const ROWS: u64 = 20_000;
const SEED: u64 = 1;

/// Instructions by command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(BTreeMap<String, u64>);

/// Counts the instructions of the hot paths, on one thread each.
pub fn count(work: &Path, hypseq: &Hypseq) -> Result<Counts> {
    let cache = Cache::obtain(work, Kind::Incident, ROWS, SEED)?;
    let mut counts = BTreeMap::new();
    for (name, command) in [("resolve", RESOLVE), ("verify", VERIFY)] {
        progress(&format!("counting the instructions of {name}"));
        let words = hypseq.words(&cache, "json", &(command.arguments)(&cache))?;
        counts.insert(name.to_owned(), instructions(&work.join(format!("{name}.callgrind")), &words)?);
    }
    Ok(Counts(counts))
}

fn instructions(profile: &Path, words: &[String]) -> Result<u64> {
    let mut valgrind = Process::new("valgrind");
    valgrind
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .args(words);
    valgrind.envs([("RAYON_NUM_THREADS", "1"), ("TOKIO_WORKER_THREADS", "1")]);
    let output = valgrind.output().context("cannot start valgrind\n  hint: install it")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} under valgrind: {}\n{errors}", words.join(" "), output.status);
    let text = fs::read_to_string(profile).with_context(|| format!("cannot read `{}`", profile.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse().ok());
    total.with_context(|| format!("`{}` has no line `summary: N`", profile.display()))
}

impl Counts {
    /// Reads what was recorded.
    pub fn read(file: &Path) -> Result<Self> {
        let hint = || format!("cannot read `{}`\n  hint: --record writes it", file.display());
        Ok(serde_json::from_slice(&fs::read(file).with_context(hint)?)?)
    }

    /// Records.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
    }

    /// Both beside one another in words, and whether all are within so many percent above the recorded.
    pub fn against(&self, recorded: &Self, tolerance_percent: u64) -> (String, bool) {
        let (mut text, mut holds) = (String::new(), true);
        for (name, &now) in &self.0 {
            let then = recorded.0.get(name).copied().unwrap_or_default();
            let is_within = u128::from(now) * 100 <= u128::from(then) * u128::from(100 + tolerance_percent);
            let verdict = if is_within { "holds" } else { "REGRESSED" };
            let _ = writeln!(text, "{name}: {now} instructions, {then} recorded: {verdict}");
            holds &= is_within;
        }
        (text, holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(resolve: u64, verify: u64) -> Counts {
        Counts([("resolve".to_owned(), resolve), ("verify".to_owned(), verify)].into())
    }

    #[test]
    fn up_to_the_tolerance_is_no_regression() {
        let recorded = counts(1000, 1000);
        assert!(counts(1100, 10).against(&recorded, 10).1);
        let (text, holds) = counts(1101, 1000).against(&recorded, 10);
        assert!(!holds);
        assert_eq!(
            text,
            "resolve: 1101 instructions, 1000 recorded: REGRESSED\nverify: 1000 instructions, 1000 recorded: holds\n"
        );
    }

    #[test]
    fn what_was_never_recorded_has_regressed() {
        assert!(!counts(1, 1).against(&Counts(BTreeMap::new()), 10).1);
    }
}
