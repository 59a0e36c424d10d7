//! Where contenders meet: one cache, and the ways in which each is asked a question of it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::answer;
use crate::cache::Cache;
use crate::contender::{Contender, Run};
use crate::hypseq::Hypseq;
use crate::python::DUCKDB_CONTENDER;
use crate::question::{Asked, Dialect, Question};

/// A contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// hypseq: the program, or its engine as a library.
    Hypseq,
    /// DuckDB from Python.
    Duckdb,
    /// DataFusion as it comes.
    Datafusion,
}

/// How often the work of starting is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A process for each question. hypseq and DataFusion are timed from their start to their end; of DuckDB only the
    /// statement is, not the start of Python, of the module and of the connection.
    Whole,
    /// One session for all questions, of which only the statements are timed.
    Warm,
}

/// One cache, and what is needed to ask about it.
pub struct Arena<'a> {
    /// The cache.
    pub cache: &'a Cache,
    /// hypseq.
    pub hypseq: &'a Hypseq,
    /// Python with DuckDB.
    pub python: &'a Path,
    /// A folder for exports.
    pub exports: &'a Path,
    /// Threads of DuckDB; the others take as many as there are cores.
    pub threads: usize,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hypseq => "hypseq",
            Self::Duckdb => "DuckDB",
            Self::Datafusion => "DataFusion",
        })
    }
}

impl Arena<'_> {
    /// Who can be asked a question in a mode.
    pub fn sides(question: &Question, mode: Mode) -> &'static [Side] {
        match (question.asked, mode) {
            (Asked::Sql(_), _) => &[Side::Hypseq, Side::Duckdb, Side::Datafusion],
            (Asked::Command(_), Mode::Whole) => &[Side::Hypseq, Side::Duckdb],
            // A command is a process: there is no session that it could be asked in again.
            (Asked::Command(_), Mode::Warm) => &[Side::Duckdb],
        }
    }

    /// Starts a contender that answers SQL.
    pub fn start(&self, side: Side) -> Result<Contender> {
        let mut process;
        match side {
            Side::Hypseq => {
                process = Process::new(std::env::current_exe()?);
                process.args(["serve", "engine"]).arg(&self.cache.home);
            }
            Side::Datafusion => {
                process = Process::new(std::env::current_exe()?);
                process.args(["serve", "datafusion"]).args(self.cache.live_folders());
            }
            Side::Duckdb => {
                process = Process::new(self.python);
                process.args(["-c", DUCKDB_CONTENDER, &self.threads.to_string()]);
            }
        }
        Contender::start(&mut process)
    }

    /// Asks with a process of its own.
    pub fn whole(&self, side: Side, question: &Question) -> Result<Run> {
        let run = match (question.asked, side) {
            (Asked::Command(command), Side::Hypseq) => {
                let (ms, stdout) = self.hypseq.run(self.cache, "json", &(command.arguments)(self.cache))?;
                let json = serde_json::from_slice(&stdout).context("hypseq's answer is not JSON")?;
                Run { ms, rows: command.figures(&json) }
            }
            (Asked::Sql(sql), Side::Hypseq) => {
                let sql = self.dialect(side)?.put(sql, self.cache);
                let arguments = ["sql".to_owned(), "-c".to_owned(), sql];
                let (ms, stdout) = self.hypseq.run(self.cache, "csv", &arguments)?;
                Run { ms, rows: answer::of_csv(&stdout)? }
            }
            _ => {
                let began = Instant::now();
                let mut contender = self.start(side)?;
                let mut run = contender.ask(&self.put(side, question)?)?;
                contender.end()?;
                if side == Side::Datafusion {
                    run.ms = began.elapsed().as_secs_f64() * 1000.0;
                }
                run
            }
        };
        self.with_export(run, side)
    }

    /// Asks a contender that is running.
    pub fn warm(&self, contender: &mut Contender, side: Side, question: &Question) -> Result<Run> {
        let run = contender.ask(&self.put(side, question)?)?;
        self.with_export(run, side)
    }

    /// Asks hypseq's engine for the same over physical rows, those that are deleted included.
    pub fn raw(&self, engine: &mut Contender, sql: &str) -> Result<Run> {
        let dialect = Dialect::hypseq_raw(self.export_text(Side::Hypseq)?);
        let run = engine.ask(&dialect.put(sql, self.cache))?;
        self.with_export(run, Side::Hypseq)
    }

    fn put(&self, side: Side, question: &Question) -> Result<String> {
        match (question.asked, side) {
            (Asked::Sql(sql), _) => Ok(self.dialect(side)?.put(sql, self.cache)),
            (Asked::Command(command), Side::Duckdb) => Ok((command.duckdb)(self.cache)),
            (Asked::Command(_), _) => bail!("{side} has no SQL for `{}`", question.name),
        }
    }

    fn dialect(&self, side: Side) -> Result<Dialect> {
        let file = self.export_text(side)?;
        Ok(match side {
            Side::Hypseq => Dialect::hypseq(file),
            Side::Duckdb => Dialect::duckdb(self.cache, file),
            Side::Datafusion => Dialect::datafusion(file),
        })
    }

    /// What was exported is the answer, and makes room for the next export.
    fn with_export(&self, run: Run, side: Side) -> Result<Run> {
        let file = self.export(side);
        if !file.exists() {
            return Ok(run);
        }
        let rows = answer::of_parquet(&file)?;
        fs::remove_file(&file)?;
        Ok(Run { rows, ..run })
    }

    fn export(&self, side: Side) -> PathBuf {
        self.exports.join(format!("{side}.parquet"))
    }

    fn export_text(&self, side: Side) -> Result<String> {
        self.export(side).to_str().map(str::to_owned).context("the work folder's name is not text")
    }
}
