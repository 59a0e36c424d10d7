//! One question to several homes.

use anyhow::Result;
use hypseq_cache::Home;
use serde_json::{Value, json};

use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Asks every home. Of several, one that cannot answer is reported and the others still do; the status is the worst.
pub fn ask<R>(
    homes: &[Home],
    printer: &Printer,
    question: impl Fn(&Home) -> Result<R>,
    status: impl Fn(&R) -> ExitStatus,
) -> Result<(Vec<R>, ExitStatus)> {
    let mut answers = Vec::new();
    let mut worst = ExitStatus::Yes;
    for home in homes {
        match question(home) {
            Ok(answer) => {
                worst = worst.max(status(&answer));
                answers.push(answer);
            }
            Err(error) if homes.len() > 1 => {
                printer.error(&format!("{}: {error:#}", home.name()));
                worst = worst.max(ExitStatus::CouldNotTell);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((answers, worst))
}

/// An answer that names its home, as every answer of a fleet does.
pub fn named(mut answer: Value, home: Option<&str>) -> Value {
    if let (Some(home), Some(fields)) = (home, answer.as_object_mut()) {
        fields.insert("home".to_owned(), json!(home));
    }
    answer
}
