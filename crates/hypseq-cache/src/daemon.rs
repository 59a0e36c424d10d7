//! `run/hypaware.pid`: which daemon last claimed the home.

use std::path::Path;

use crate::Problem;
use crate::json::{self, Object};

/// The daemon that last claimed the home. It may be long gone: the file survives a crash and a copy, and
/// the process is not probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// Process id, on the machine that wrote the file.
    pub pid: u32,
    /// When it started, as written.
    pub started_at: Option<String>,
    /// The daemon's own name for this run.
    pub run_id: Option<String>,
    /// How it was started, such as `foreground`.
    pub mode: Option<String>,
}

pub(crate) fn read(path: &Path) -> Result<Option<Daemon>, Problem> {
    let Some(bytes) = json::read(path).map_err(|error| Problem::io(path, &error))? else {
        return Ok(None);
    };
    parse(&bytes).map(Some).map_err(|message| {
        Problem::warning(
            "daemon-unreadable",
            path,
            message,
            "whether a daemon runs is unknown: ask the machine itself, with `hyp daemon status`",
        )
    })
}

fn parse(bytes: &[u8]) -> Result<Daemon, String> {
    let map = json::parse(bytes)?;
    let file = Object::new(&map);
    Ok(Daemon {
        pid: file.required("pid", "a process id", |value| value.as_u64().and_then(|pid| u32::try_from(pid).ok()))?,
        started_at: file.optional_string("startedAt")?,
        run_id: file.optional_string("runId")?,
        mode: file.optional_string("mode")?,
    })
}
