//! `completions`: a script that completes commands and options in a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::exit::ExitStatus;
use crate::printer::Printer;

pub fn run(args: &Completions, printer: &Printer) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hypseq", &mut script);
    printer.text(&String::from_utf8(script)?)?;
    Ok(ExitStatus::Yes)
}
