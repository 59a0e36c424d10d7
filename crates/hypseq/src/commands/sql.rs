//! `sql`: statements from options, files or stdin, all through one executor; or a shell.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, Result, bail};
use hypseq_cache::{Home, Problem, Severity};
use hypseq_engine::Engine;

use crate::cli::{Global, Memory, Sql};
use crate::executor;
use crate::exit::ExitStatus;
use crate::fleet;
use crate::memory;
use crate::printer::Printer;
use crate::select;
use crate::shell;
use crate::syntax::pointed;

pub fn run(global: &Global, args: &Sql, printer: &Printer) -> Result<ExitStatus> {
    let homes = select::homes(global)?;
    let scripts = scripts(args)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let (homes, opened) = fleet::opened(&homes, printer)?;
        let homes: Vec<Home> = homes.into_iter().cloned().collect();
        let (engine, status) = open(&homes, &args.memory, printer).await?;
        let Some(scripts) = scripts else {
            shell::run(&engine, &homes, printer).await?;
            // Whoever has read what was printed knows what could not be told.
            std::mem::forget(engine);
            return Ok(ExitStatus::Yes);
        };
        let mut statements = Vec::new();
        for script in &scripts {
            statements.extend(engine.parse(script).map_err(|error| pointed(error.into(), script))?);
        }
        if statements.is_empty() {
            bail!("no statement was given\n  hint: give one with -c, a file with -f, or pipe one in");
        }
        for statement in &statements {
            if let Err(error) = executor::print_all(engine.execute(statement), printer).await {
                finish(engine, status, printer);
                return Err(error);
            }
        }
        Ok(finish(engine, status, printer).max(opened))
    })
}

/// The statements that were given; none where they are yet to be typed.
fn scripts(args: &Sql) -> Result<Option<Vec<String>>> {
    let mut scripts = args.commands.clone();
    for file in &args.files {
        scripts.push(std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?);
    }
    if scripts.is_empty() {
        if io::stdin().is_terminal() {
            return Ok(None);
        }
        let mut script = String::new();
        io::stdin().read_to_string(&mut script).context("stdin is not text")?;
        scripts.push(script);
    }
    Ok(Some(scripts))
}

/// Opens the engine. Rows that could not be read make the status say that the answer is not whole; a partition whose
/// live generation is unknown is left out of `live`, and the error says so; no row of it is unreadable.
pub async fn open(homes: &[Home], memory: &Memory, printer: &Printer) -> Result<(Engine, ExitStatus)> {
    let (engine, problems) = Engine::open(homes, &memory::options(memory)).await?;
    let status = report(&problems, ExitStatus::Yes, printer);
    Ok((engine, status))
}

/// The status after the statements, which may have found more to be unreadable than was known before.
pub fn finish(engine: Engine, status: ExitStatus, printer: &Printer) -> ExitStatus {
    let status = report(&engine.problems(), status, printer);
    // The process ends: giving back what is known of thousands of files, piece by piece, would only take time.
    std::mem::forget(engine);
    status
}

fn report(problems: &[Problem], status: ExitStatus, printer: &Printer) -> ExitStatus {
    printer.problems(problems);
    let unreadable = |p: &Problem| p.severity == Severity::Error && !unknown_live(p);
    if problems.iter().any(unreadable) { ExitStatus::CouldNotTell } else { status }
}

/// A partition that is left out of `live`: no row of it is unreadable.
fn unknown_live(problem: &Problem) -> bool {
    problem.code.starts_with("cursor-") || problem.code.starts_with("live-")
}
