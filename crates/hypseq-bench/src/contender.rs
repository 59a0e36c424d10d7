//! A contender: a process that answers SQL, one JSON text in, one JSON object out, line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::answer::Answer;

/// One answer, and how long it took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Milliseconds.
    pub ms: f64,
    /// What was answered.
    pub rows: Answer,
}

/// What a contender says to a statement.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// It answers.
    Answer(Run),
    /// It cannot.
    Failure {
        /// Why.
        error: String,
    },
}

/// A running contender.
pub struct Contender {
    process: Child,
    questions: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Contender {
    /// Starts one.
    pub fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_owned();
        let starting = || format!("cannot start `{}`", program.display());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(starting)?;
        let questions = process.stdin.take().with_context(starting)?;
        let replies = BufReader::new(process.stdout.take().with_context(starting)?);
        Ok(Self { process, questions, replies })
    }

    /// Has a statement answered. The time is the one that the contender took itself.
    pub fn ask(&mut self, sql: &str) -> Result<Run> {
        writeln!(self.questions, "{}", serde_json::to_string(sql)?).context("a contender has ended")?;
        let mut reply = String::new();
        self.replies.read_line(&mut reply)?;
        match serde_json::from_str(&reply).context("a contender has ended, or made no sense")? {
            Reply::Answer(run) => Ok(run),
            Reply::Failure { error } => bail!("{error}\n  in: {sql}"),
        }
    }

    /// Ends it, and waits until it has ended.
    pub fn end(self) -> Result<()> {
        let Self { mut process, questions, replies } = self;
        drop((questions, replies));
        let status = process.wait()?;
        if status.success() { Ok(()) } else { bail!("a contender ended with {status}") }
    }
}
