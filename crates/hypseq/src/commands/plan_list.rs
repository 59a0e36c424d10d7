//! `plan list`: the receipts of a home, with what became of each rewind as far as it can be told by now.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hypseq_cache::Home;
use hypseq_plan::{AttemptState, Consumer, Outcome, Receipt, Swap, TickVerdict, Time, WatermarkPath, receipts};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::Global;
use crate::commands::plan_apply::state_root;
use crate::exit::ExitStatus;
use crate::fleet;
use crate::grid::Grid;
use crate::judging::{judge_swap, word};
use crate::printer::{Printer, Report};
use crate::refusal::chain;
use crate::select;
use crate::sentence::count;
use crate::world::CacheWorld;

pub fn run(global: &Global, printer: &Printer) -> Result<ExitStatus> {
    let homes = select::homes(global)?;
    let (homes, mut status) = fleet::opened(&homes, printer)?;
    let mut rewinds = Rewinds { several: homes.len() > 1, entries: Vec::new() };
    for home in homes {
        let root = state_root(home).context("a bare cache root has no receipts; name the whole home with --home")?;
        let mut list = Vec::new();
        for file in receipts(root).context("the receipts cannot be listed")? {
            match file.receipt {
                Ok(receipt) => list.push((file.path, receipt)),
                Err(error) => {
                    printer.error(&chain(&error));
                    status = ExitStatus::CouldNotTell;
                }
            }
        }
        rewinds.entries.extend(entries(home, root, list));
    }
    printer.report(&rewinds)?;
    Ok(status)
}

struct Rewinds {
    /// Homes were several, so each entry names its own.
    several: bool,
    entries: Vec<Entry>,
}

/// One watermark of one receipt.
struct Entry {
    home: String,
    path: PathBuf,
    receipt: Receipt,
    swap: Swap,
    verdict: &'static str,
    detail: String,
}

fn entries(home: &Home, root: &Path, list: Vec<(PathBuf, Receipt)>) -> Vec<Entry> {
    let world = CacheWorld::new(home);
    let consumer = Consumer::new(root, &world);
    // A watermark that was set again says nothing about the rewind before.
    let mut latest: BTreeMap<WatermarkPath, Time> = BTreeMap::new();
    for (_, receipt) in &list {
        for attempt in &receipt.attempts {
            for swap in &attempt.swaps {
                let at = latest.entry(swap.watermark.clone()).or_insert(attempt.begun_at);
                *at = attempt.begun_at.max(*at);
            }
        }
    }
    let undone: HashMap<Uuid, Uuid> =
        list.iter().filter(|(_, r)| r.is_applied()).filter_map(|(_, r)| Some((r.undoes?, r.id))).collect();
    let mut entries = Vec::new();
    for (path, receipt) in list {
        for swap in receipt.latest_swaps().into_iter().cloned() {
            let begun = receipt.attempts.iter().rev().find(|a| a.swaps.contains(&swap)).map(|a| a.begun_at);
            let is_latest = begun >= latest.get(&swap.watermark).copied();
            let (verdict, detail) = match undone.get(&receipt.id) {
                Some(inverse) => ("taken-back", format!("by the inverse plan {inverse}")),
                None => verdict(&consumer, home, &receipt, &swap, is_latest),
            };
            let home = home.name().to_owned();
            entries.push(Entry { home, path: path.clone(), receipt: receipt.clone(), swap, verdict, detail });
        }
    }
    entries
}

/// What the receipt says, and where it leaves that open, what the watermark says by now.
fn verdict(
    consumer: &Consumer<'_>,
    home: &Home,
    receipt: &Receipt,
    swap: &Swap,
    is_latest: bool,
) -> (&'static str, String) {
    let recorded = swap.judgement.as_ref().filter(|j| j.verdict != TickVerdict::Pending);
    match (swap.outcome, recorded) {
        (Outcome::Open, _) => {
            ("unfinished", "the run did not end; apply the plan again to finish it or take it back".to_owned())
        }
        (Outcome::Unchanged, _) => ("not-applied", "not set, or taken back".to_owned()),
        (_, Some(judgement)) => (word(judgement.verdict), format!("by the tick before {}", judgement.at)),
        _ if receipt.undoes.is_some() => ("undone", "set back to where it stood before the rewind".to_owned()),
        _ if !is_latest => ("superseded", "the watermark was set again by a later plan".to_owned()),
        _ => match judge_swap(consumer, home, &receipt.sink, swap) {
            Ok(judged) => (word(judged.judgement.verdict), judged.detail),
            Err(why) => ("unknown", why),
        },
    }
}

fn state(receipt: &Receipt) -> &'static str {
    match receipt.attempts.last().map(|a| a.state) {
        Some(AttemptState::Intent) => "intent",
        Some(AttemptState::Swapping) => "swapping",
        Some(AttemptState::Applied) => "applied",
        Some(AttemptState::Partial) => "partial",
        None => "empty",
    }
}

impl Report for Rewinds {
    fn json(&self) -> Value {
        let entry = |entry: &Entry| {
            let Entry { receipt, swap, .. } = entry;
            let first = receipt.attempts.first();
            let mut value = json!({
                "id": receipt.id,
                "undoes": receipt.undoes,
                "plugin": receipt.sink.plugin,
                "instance": receipt.sink.instance,
                "dataset": swap.dataset,
                "partition": swap.partition,
                "reason": receipt.reason,
                "state": state(receipt),
                "applied_at": first.map(|a| a.begun_at),
                "attempts": receipt.attempts.len(),
                "observed_seq": swap.before.seq,
                "target_seq": swap.to,
                "verdict": entry.verdict,
                "detail": entry.detail,
                "receipt": entry.path,
            });
            if let (true, Value::Object(fields)) = (self.several, &mut value) {
                fields.insert("home".to_owned(), json!(entry.home));
            }
            value
        };
        self.entries.iter().map(entry).collect()
    }

    fn text(&self, printer: &Printer) -> String {
        let mut text = String::new();
        if self.entries.is_empty() {
            text.push_str("No plan was applied here\n");
            return text;
        }
        let _ = writeln!(text, "{}", printer.strong(&count(self.entries.len() as u64, "rewind")));
        for entry in &self.entries {
            let Entry { receipt, swap, .. } = entry;
            let name = if swap.partition.is_empty() {
                swap.dataset.clone()
            } else {
                format!("{} {}", swap.dataset, swap.partition)
            };
            let verb = if receipt.undoes.is_some() { "undo" } else { "rewind" };
            let at = receipt.attempts.first().map_or_else(String::new, |a| format!(", {}", a.begun_at));
            let home = if self.several { format!("{}: ", entry.home) } else { String::new() };
            let _ = write!(
                text,
                "\n{home}{}  {}{at}\n  {name}, sink {}: {} → {}, set {}\n  {}: {}\n",
                receipt.id,
                verb,
                receipt.sink.instance,
                swap.before.seq,
                swap.to,
                match receipt.attempts.len() {
                    1 => "once".to_owned(),
                    n => format!("{n} times"),
                },
                printer.strong(entry.verdict),
                entry.detail
            );
            let _ = writeln!(text, "  reason: {}", receipt.reason);
        }
        text
    }

    fn grid(&self) -> Grid {
        let mut headers = vec![
            "id",
            "instance",
            "dataset",
            "partition",
            "applied at",
            ">attempts",
            ">observed seq",
            ">target seq",
            "verdict",
        ];
        if self.several {
            headers.insert(0, "home");
        }
        let mut grid = Grid::new(&headers);
        for Entry { home, receipt, swap, verdict, .. } in &self.entries {
            let mut cells = vec![
                receipt.id.to_string(),
                receipt.sink.instance.clone(),
                swap.dataset.clone(),
                swap.partition.clone(),
                receipt.attempts.first().map_or_else(String::new, |a| a.begun_at.to_string()),
                receipt.attempts.len().to_string(),
                swap.before.seq.to_string(),
                swap.to.to_string(),
                (*verdict).to_owned(),
            ];
            if self.several {
                cells.insert(0, home.clone());
            }
            grid.row(cells);
        }
        grid
    }
}
