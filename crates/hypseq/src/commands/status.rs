//! `status`: what is in the cache, and how far each sink believes it has sent.

use std::cmp::Reverse;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use hypseq_cache::{Allocator, Home, Partition, Problem, Severity, Watermark, WatermarkFile};
use hypseq_scan::Figures;
use serde_json::{Value, json};

use crate::answer::Reading;
use crate::cli::{Global, Status};
use crate::exit::ExitStatus;
use crate::explain::home_flag;
use crate::figures::{GenerationFigures, PartitionFigures};
use crate::fleet;
use crate::grid::Grid;
use crate::json;
use crate::printer::{Printer, Report, describe};
use crate::select;
use crate::sentence::{bytes, count, grouped, range};
use crate::time::show;
use crate::watermarks::{SinkFigures, incomplete, resent_before, unsent};

pub fn run(global: &Global, args: &Status, printer: &Printer) -> Result<ExitStatus> {
    let progress = printer.progress("reading every generation");
    let homes = select::homes(global)?;
    let (reports, status) = fleet::ask(&homes, printer, |home, _| HomeStatus::read(home, args), HomeStatus::status)?;
    drop(progress);
    printer.reports(&reports, homes.len() > 1)?;
    Ok(status)
}

struct HomeStatus {
    home: String,
    home_flag: String,
    has_sinks: bool,
    allocator: Option<Allocator>,
    partitions: Vec<PartitionStatus>,
    problems: Vec<Problem>,
}

struct PartitionStatus {
    name: String,
    dataset: String,
    path: String,
    live: Option<String>,
    spool_rows: u64,
    generations: Vec<GenerationStatus>,
    watermarks: Vec<WatermarkStatus>,
}

struct GenerationStatus {
    name: String,
    state: Value,
    snapshot_id: Option<i64>,
    has_metadata: bool,
    complete: bool,
    visible_rows: u64,
    raw_rows: u64,
    deleted_rows: u64,
    legacy_rows: u64,
    null_time_rows: u64,
    seqs: Option<(i64, i64)>,
    times: Option<(i64, i64)>,
    data_files: u64,
    files_read: u64,
    bytes: u64,
}

struct WatermarkStatus {
    plugin: String,
    instance: String,
    figures: Option<(Watermark, SinkFigures)>,
}

impl HomeStatus {
    fn status(&self) -> ExitStatus {
        let mut generations = self.partitions.iter().flat_map(|p| &p.generations);
        let whole = generations.all(|g| g.complete || !g.has_metadata);
        if whole { ExitStatus::Yes } else { ExitStatus::CouldNotTell }
    }

    fn read(home: &Home, args: &Status) -> Result<Self> {
        let found = home.partitions();
        let mut problems = found.problems;
        let wanted: Vec<&Partition> =
            select::partitions(&found.value, args.dataset.as_deref(), args.partition.as_deref()).collect();
        if wanted.is_empty() && (args.dataset.is_some() || args.partition.is_some()) {
            select::one_partition(&found.value, args.dataset.as_deref(), args.partition.as_deref())?;
        }
        if wanted.is_empty() && problems.is_empty() {
            bail!("`{}` holds no partition", home.root().display());
        }
        let allocator = home.allocator().unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let watermarks = home.watermarks();
        let spool = home.spool();
        let of_others = |p: &Problem| {
            watermarks.value.iter().any(|w| w.path == p.path && !wanted.iter().any(|wanted| w.is_for(&wanted.id)))
        };
        let all = wanted.len() == found.value.len();
        problems.extend(watermarks.problems.iter().filter(|p| all || !of_others(p)).cloned());
        problems.extend(spool.problems);
        problems.extend(home.policy().problems);
        let mut max_seq = None;
        let mut partitions = Vec::new();
        for partition in wanted {
            let mine: Vec<&WatermarkFile> = watermarks.value.iter().filter(|w| w.is_for(&partition.id)).collect();
            let seqs: Vec<i64> = mine.iter().filter_map(|w| w.state.as_ref().ok()).map(|w| w.seq).collect();
            let reading = if args.full_scan { Reading::Full } else { Reading::Bounds };
            let figures = PartitionFigures::read(partition, None, &seqs, reading)?;
            problems.extend(figures.problems.iter().cloned());
            max_seq = max_seq.max(figures.max_seq);
            let spool_rows = crate::watermarks::spooled(&spool.value, &partition.id);
            partitions.push(PartitionStatus::of(home, partition, &figures, spool_rows, &mine)?);
        }
        problems.extend(check_allocator(home, allocator.as_ref(), max_seq));
        if all {
            problems.extend(strays(&watermarks.value, &found.value));
        }
        problems.sort_by_key(|p| Reverse(p.severity));
        Ok(Self {
            home: home.name().to_owned(),
            home_flag: home_flag(home),
            has_sinks: home.state_root().is_some(),
            allocator,
            partitions,
            problems,
        })
    }
}

/// Next seq below one that was stamped: the allocator regressed, and seqs will be given out twice.
fn check_allocator(home: &Home, allocator: Option<&Allocator>, max_seq: Option<i64>) -> Option<Problem> {
    let (next, max) = allocator.map(|a| a.next_seq).zip(max_seq)?;
    (next <= max).then(|| Problem {
        severity: Severity::Error,
        code: "allocator-regressed",
        path: home.cache_root().join("_hyp_ingest_seq.json"),
        message: format!("the allocator's next seq is {next}, but seq {max} is stamped already"),
        advice: "stop the daemon before it stamps a seq twice, and report it".to_owned(),
    })
}

/// Watermarks of partitions that are not in the cache.
fn strays(watermarks: &[WatermarkFile], partitions: &[Partition]) -> Vec<Problem> {
    let known = |w: &WatermarkFile| partitions.iter().any(|p| w.is_for(&p.id));
    let stray = watermarks.iter().filter(|w| !known(w));
    stray
        .map(|w| Problem {
            severity: Severity::Warning,
            code: "watermark-without-partition",
            path: w.path.clone(),
            message: format!(
                "sink {} has a watermark for {} {}, which is not in the cache",
                w.instance, w.dataset, w.partition
            ),
            advice: "nothing to do, unless the partition was removed by mistake".to_owned(),
        })
        .collect()
}

impl PartitionStatus {
    fn of(
        home: &Home,
        partition: &Partition,
        figures: &PartitionFigures,
        spool_rows: u64,
        watermarks: &[&WatermarkFile],
    ) -> Result<Self> {
        let sink = |file: &WatermarkFile| -> Result<WatermarkStatus> {
            let known = file.state.as_ref().ok().and_then(|w| Some((w, *figures.at_or_below.get(&w.seq)?)));
            let figures = known.map(|(watermark, rows)| {
                if !figures.complete {
                    return Ok((watermark.clone(), incomplete(rows)));
                }
                let resent = resent_before(home, file)?;
                anyhow::Ok((watermark.clone(), unsent(watermark, rows, figures.legacy_rows, resent)))
            });
            Ok(WatermarkStatus {
                plugin: file.plugin.clone(),
                instance: file.instance.clone(),
                figures: figures.transpose()?,
            })
        };
        Ok(Self {
            name: select::name(&partition.id),
            dataset: partition.id.dataset.clone(),
            path: partition.id.path.clone(),
            live: partition.live().map(|g| g.name.clone()),
            spool_rows,
            generations: figures.generations.iter().map(GenerationStatus::of).collect(),
            watermarks: watermarks.iter().map(|file| sink(file)).collect::<Result<_>>()?,
        })
    }
}

impl GenerationStatus {
    fn of(read: &GenerationFigures) -> Self {
        let Figures { visible_rows, raw_rows, deleted_rows, legacy_rows, null_time_rows, seqs, times } = read.figures;
        Self {
            name: read.generation.name.clone(),
            state: json!(read.generation.state),
            snapshot_id: read.snapshot_id,
            has_metadata: read.generation.has_metadata,
            complete: read.complete,
            visible_rows,
            raw_rows,
            deleted_rows,
            legacy_rows,
            null_time_rows,
            seqs,
            times,
            data_files: read.data_files,
            files_read: read.files_read,
            bytes: read.bytes,
        }
    }
}

impl Report for HomeStatus {
    fn json(&self) -> Value {
        json!({
            "home": self.home,
            "allocator": self.allocator.as_ref().map(|a| json!({ "next_seq": json::seq(Some(a.next_seq)) })),
            "partitions": self.partitions.iter().map(PartitionStatus::json).collect::<Vec<_>>(),
            "problems": self.problems,
        })
    }

    fn text(&self, printer: &Printer) -> String {
        let mut text = format!("{}: {}", printer.strong(&self.home), count(self.partitions.len() as u64, "partition"));
        if let Some(allocator) = &self.allocator {
            let _ = write!(text, ", next seq to be given out {}", allocator.next_seq);
        }
        text.push('\n');
        for partition in &self.partitions {
            partition.text(printer, self.has_sinks, &mut text);
        }
        self.advice(printer, &mut text);
        for problem in self.problems.iter().filter(|p| p.severity > Severity::Info) {
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            let _ = write!(text, "\n{severity}: {}\n", describe(problem));
        }
        text
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            "home",
            "dataset",
            "partition",
            "generation",
            "state",
            ">visible rows",
            ">raw rows",
            ">deleted rows",
            ">legacy rows",
            ">null time rows",
            ">min seq",
            ">max seq",
            "min time",
            "max time",
            ">data files",
            ">bytes",
        ]);
        let or_empty = |seq: Option<i64>| seq.map_or_else(String::new, |s| s.to_string());
        let time = |t: Option<i64>| t.map_or_else(String::new, show);
        for partition in &self.partitions {
            for g in &partition.generations {
                grid.row([
                    self.home.clone(),
                    partition.dataset.clone(),
                    partition.path.clone(),
                    g.name.clone(),
                    g.state.as_str().unwrap_or_default().to_owned(),
                    g.visible_rows.to_string(),
                    g.raw_rows.to_string(),
                    g.deleted_rows.to_string(),
                    g.legacy_rows.to_string(),
                    g.null_time_rows.to_string(),
                    or_empty(g.seqs.map(|s| s.0)),
                    or_empty(g.seqs.map(|s| s.1)),
                    time(g.times.map(|t| t.0)),
                    time(g.times.map(|t| t.1)),
                    g.data_files.to_string(),
                    g.bytes.to_string(),
                ]);
            }
        }
        grid
    }
}

impl HomeStatus {
    /// What to do about suspected gaps.
    fn advice(&self, printer: &Printer, text: &mut String) {
        let gaps = self.partitions.iter().flat_map(|p| {
            let unsent = |w: &WatermarkStatus| w.figures.as_ref().and_then(|(_, f)| f.suspected_unsent).unwrap_or(0);
            p.watermarks.iter().filter(move |w| unsent(w) > 0).map(move |w| (p, w, unsent(w)))
        });
        for (partition, watermark, unsent) in gaps {
            let sentence = format!(
                "Suspected gap: sink {} has moved past {} of {} without sending them.",
                watermark.instance,
                count(unsent, "row"),
                partition.name
            );
            text.push('\n');
            text.push_str(&printer.paragraph(0, &sentence));
            let _ = writeln!(
                text,
                "  Next: hypseq {} resolve --dataset {} --partition {} --at TIME\n        TIME: that of the last row which the \
                 server has",
                self.home_flag,
                select::quote(&partition.dataset),
                select::quote(&partition.path),
            );
        }
    }
}

impl PartitionStatus {
    fn json(&self) -> Value {
        json!({
            "dataset": self.dataset,
            "partition": self.path,
            "live_generation": self.live,
            "spool_rows": self.spool_rows,
            "generations": self.generations.iter().map(GenerationStatus::json).collect::<Vec<_>>(),
            "watermarks": self.watermarks.iter().map(WatermarkStatus::json).collect::<Vec<_>>(),
        })
    }

    fn text(&self, printer: &Printer, has_sinks: bool, text: &mut String) {
        let live = self.generations.iter().find(|g| Some(&g.name) == self.live.as_ref());
        let rows = match live {
            Some(live) => format!("{} visible in the live generation", count(live.visible_rows, "row")),
            None => "the live generation is unknown".to_owned(),
        };
        let spool = match self.spool_rows {
            0 => String::new(),
            n => format!(", {} in the spool", count(n, "row")),
        };
        let _ = write!(text, "\n{}: {rows}{spool}\n", printer.strong(&self.name));
        let wide = printer.width.is_none_or(|w| w >= 120);
        let mut grid = Grid::new(&[
            "generation",
            "state",
            ">visible",
            ">deleted",
            ">legacy",
            ">no time",
            "seq",
            "time (UTC)",
            ">files",
            ">size",
        ]);
        for g in &self.generations {
            grid.row([
                g.name.clone(),
                g.state.as_str().unwrap_or_default().to_owned(),
                match (g.has_metadata, g.complete) {
                    (false, _) => "no metadata".to_owned(),
                    (true, false) => format!("{} (not all)", grouped(g.visible_rows)),
                    (true, true) => grouped(g.visible_rows),
                },
                grouped(g.deleted_rows),
                grouped(g.legacy_rows),
                grouped(g.null_time_rows),
                range(g.seqs),
                if wide { range(g.times.map(|(from, to)| (show(from), show(to)))) } else { days(g.times) },
                grouped(g.data_files),
                bytes(g.bytes),
            ]);
        }
        let grid = grid.without_idle_columns(&["deleted", "legacy", "no time"], "0");
        let grid = if wide { grid } else { grid.without_columns(&["files", "size"]) };
        text.push_str(&grid.aligned(2, printer.width));
        if !has_sinks {
            return;
        }
        if self.watermarks.is_empty() {
            text.push_str("  no sink has a watermark here\n");
            return;
        }
        let mut grid =
            Grid::new(&["sink", ">watermark seq", ">rows at or below", ">exported", ">suspected unsent", "moved"]);
        for w in &self.watermarks {
            match &w.figures {
                Some((watermark, figures)) => grid.row([
                    w.instance.clone(),
                    watermark.seq.to_string(),
                    grouped(figures.rows_at_or_below),
                    grouped(watermark.exported_row_count),
                    figures.suspected_unsent.map_or_else(|| "unknown".to_owned(), grouped),
                    moved(&watermark.updated_at, wide),
                ]),
                None => grid.row([w.instance.as_str(), "unreadable", "–", "–", "unknown", "–"]),
            }
        }
        text.push('\n');
        text.push_str(&grid.aligned(2, printer.width));
        for w in &self.watermarks {
            if let Some(note) = w.figures.as_ref().and_then(|(_, f)| f.note.as_ref()) {
                let _ = writeln!(text, "  {}: {note}", w.instance);
            }
        }
    }
}

/// The days of a range, for a narrow terminal; the year of the last one only where it is another.
fn days(times: Option<(i64, i64)>) -> String {
    let day = |t: i64| show(t).chars().take(10).collect::<String>();
    range(times.map(|(from, to)| {
        let (from, to) = (day(from), day(to));
        let same_year = from.get(..5) == to.get(..5) && from != to;
        let to = if same_year { to.get(5..).unwrap_or_default().to_owned() } else { to };
        (from, to)
    }))
}

/// When the watermark moved, as written; to the second on a narrow terminal.
fn moved(updated_at: &str, wide: bool) -> String {
    match updated_at.split_once('.') {
        Some((seconds, "")) => seconds.to_owned(),
        Some((seconds, _)) if !wide => format!("{seconds}Z"),
        _ => updated_at.to_owned(),
    }
}

impl GenerationStatus {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "state": self.state,
            "snapshot_id": self.snapshot_id.map(|id| id.to_string()),
            "visible_rows": self.visible_rows,
            "raw_rows": self.raw_rows,
            "deleted_rows": self.deleted_rows,
            "legacy_rows": self.legacy_rows,
            "null_time_rows": self.null_time_rows,
            "min_seq": json::seq(self.seqs.map(|s| s.0)),
            "max_seq": json::seq(self.seqs.map(|s| s.1)),
            "min_time": json::time(self.times.map(|t| t.0)),
            "max_time": json::time(self.times.map(|t| t.1)),
            "data_files": self.data_files,
            "files_read": self.files_read,
            "bytes": self.bytes,
            "complete": self.complete,
        })
    }
}

impl WatermarkStatus {
    fn json(&self) -> Value {
        let figures = self.figures.as_ref();
        json!({
            "plugin": self.plugin,
            "instance": self.instance,
            "seq": json::seq(figures.map(|(w, _)| w.seq)),
            "exported_row_count": figures.map(|(w, _)| w.exported_row_count),
            "updated_at": figures.map(|(w, _)| &w.updated_at),
            "rows_at_or_below": figures.map(|(_, f)| f.rows_at_or_below),
            "suspected_unsent_rows": figures.and_then(|(_, f)| f.suspected_unsent),
            "state": if figures.is_some() { "ok" } else { "unreadable" },
            "note": figures.and_then(|(_, f)| f.note.as_deref()),
        })
    }
}
