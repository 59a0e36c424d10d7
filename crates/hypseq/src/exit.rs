//! What the exit status says.

use std::io;
use std::process::ExitCode;

/// The four answers that a script can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// Done, and the answer is yes.
    Yes = 0,
    /// Done, and the answer is no: not proven, nothing to do.
    No = 1,
    /// Could not tell: bad usage, unreadable input, refused statement.
    CouldNotTell = 2,
    /// Refused for safety; the flag that would accept it was named.
    Refused = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Whether the reader of our output went away, as `head` does: that is no failure.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().or_else(|| match cause.downcast_ref::<csv::Error>()?.kind() {
            csv::ErrorKind::Io(error) => Some(error),
            _ => None,
        });
        io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
