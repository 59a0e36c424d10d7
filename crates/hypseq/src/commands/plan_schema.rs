//! `plan schema`: the JSON Schema of plans.

use anyhow::Result;

use crate::exit::ExitStatus;
use crate::printer::Printer;

pub fn run(printer: &Printer) -> Result<ExitStatus> {
    printer.text(&format!("{}\n", serde_json::to_string_pretty(&hypseq_plan::plan_schema())?))?;
    Ok(ExitStatus::Yes)
}
