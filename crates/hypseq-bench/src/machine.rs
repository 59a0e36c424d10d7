//! What the figures were measured on.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// A machine, as Linux describes it; what it does not tell is `unknown`.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// Threads that can run at once.
    pub cores: usize,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The commit of the working tree, if git knows one.
    pub commit: String,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: cores(),
            memory_gib: memory.map_or(0, |kib| (kib + 512 * 1024) / (1024 * 1024)),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |t| t.trim().to_owned()),
            commit: commit().unwrap_or_else(unknown),
        }
    }
}

/// Threads that can run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The first `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}
