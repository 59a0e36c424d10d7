//! One question to several homes.

use anyhow::{Result, bail};
use hypseq_cache::{Home, labels};
use serde_json::{Value, json};

use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::select::Candidate;

/// Asks every home, with what it is called. Of several, one that cannot answer is reported and the others still do; the
/// status is the worst.
pub fn ask<R>(
    homes: &[Candidate],
    printer: &Printer,
    question: impl Fn(&Home, &str) -> Result<R>,
    status: impl Fn(&R) -> ExitStatus,
) -> Result<(Vec<R>, ExitStatus)> {
    if let [Ok(home)] = homes {
        let answer = question(home, home.name())?;
        let status = status(&answer);
        return Ok((vec![answer], status));
    }
    let (opened, mut worst) = opened(homes, printer)?;
    let mut answers = Vec::new();
    for (home, label) in opened.iter().zip(labels(opened.iter().copied())) {
        match question(home, &label) {
            Ok(answer) => {
                worst = worst.max(status(&answer));
                answers.push(answer);
            }
            Err(error) => {
                printer.error(&format!("{label}: {error:#}"));
                worst = worst.max(ExitStatus::CouldNotTell);
            }
        }
    }
    Ok((answers, worst))
}

/// The homes that could be opened; the others are reported, and are an error where they are all.
pub fn opened<'a>(homes: &'a [Candidate], printer: &Printer) -> Result<(Vec<&'a Home>, ExitStatus)> {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for home in homes {
        match home {
            Ok(home) => good.push(home),
            Err(error) => bad.push(error.to_string()),
        }
    }
    if good.is_empty() {
        bail!(bad.join("\n"));
    }
    for error in &bad {
        printer.error(error);
    }
    Ok((good, if bad.is_empty() { ExitStatus::Yes } else { ExitStatus::CouldNotTell }))
}

/// An answer that names its home, as every answer of a fleet does.
pub fn named(mut answer: Value, home: Option<&str>) -> Value {
    if let (Some(home), Some(fields)) = (home, answer.as_object_mut()) {
        fields.insert("home".to_owned(), json!(home));
    }
    answer
}
