//! A plan in words: where the watermark goes, what that makes the sink do, and what it rests on.

use std::fmt::Write as _;

use hypseq_plan::{Counts, Plan, Policy, Rewind, Row};

use crate::grid::Grid;
use crate::printer::Printer;
use crate::sentence::{bytes, count, grouped};

pub fn text(plan: &Plan, printer: &Printer) -> String {
    let mut text = format!(
        "Rewind plan {}\n  sink {} ({}), {}\n  reason: {}\n  made {}, valid until {}\n",
        plan.id,
        plan.sink.instance,
        plan.sink.plugin,
        count(plan.rewinds.len() as u64, "partition"),
        plan.reason,
        plan.created_at,
        plan.expires_at
    );
    for rewind in &plan.rewinds {
        rewind_text(rewind, printer, &mut text);
    }
    text
}

fn rewind_text(rewind: &Rewind, printer: &Printer, text: &mut String) {
    let name = if rewind.partition.is_empty() {
        rewind.dataset.clone()
    } else {
        format!("{} {}", rewind.dataset, rewind.partition)
    };
    let _ = write!(
        text,
        "\n{name}\n  {}\n\n",
        printer.strong(&format!(
            "watermark {} goes back to {}: {} of the gap to be sent",
            rewind.observed.seq,
            rewind.target.last_exported_seq,
            count(rewind.counts.replayed, "row")
        ))
    );
    let mut grid = Grid::new(&["", ">seq", "time", "id"]);
    for (label, row) in [("last kept", &rewind.guard.last_row), ("first sent", &rewind.guard.next_row)] {
        grid.row(match row {
            Some(row) => cells(label, row),
            None => [label.to_owned(), "–".to_owned(), "–".to_owned(), "–".to_owned()],
        });
    }
    text.push_str(&grid.aligned(2, printer.width));
    text.push('\n');
    text.push_str(&counts(&rewind.counts).aligned(2, printer.width));
    text.push('\n');
    text.push_str(&printer.paragraph(2, &format!("Found by: {}", found_by(rewind))));
    for witness in &rewind.witnesses {
        let sentence = format!("Witness: exported count {}: {}", witness.value, witness.says);
        text.push_str(&printer.paragraph(2, &sentence));
    }
    let proof = if rewind.proven { "Proven" } else { "NOT proven" };
    let _ = write!(text, "\n  {proof} across {}:\n", count(rewind.evidence.len() as u64, "generation"));
    let mut grid = Grid::new(&["generation", "state", "verdict", ">rows"]);
    for evidence in &rewind.evidence {
        grid.row([
            evidence.generation.clone(),
            word(&evidence.state),
            word(&evidence.verdict),
            evidence.visible_rows.map_or_else(|| "–".to_owned(), grouped),
        ]);
    }
    text.push_str(&grid.aligned(2, printer.width));
    if let Some(accepted) = accepted(rewind) {
        let _ = write!(text, "\n  Accepted by name: {accepted}\n");
    }
}

fn cells(label: &str, row: &Row) -> [String; 4] {
    let time = row.time.map_or_else(|| "–".to_owned(), |t| t.to_string());
    [label.to_owned(), row.seq.to_string(), time, row.id.clone().unwrap_or_else(|| "–".to_owned())]
}

fn counts(counts: &Counts) -> Grid {
    let mut grid = Grid::new(&[">rows", "what"]);
    let optional = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), grouped);
    grid.row([grouped(counts.replayed), "of the gap: above the target, at or below the watermark".to_owned()]);
    grid.row([grouped(counts.pending), "above the watermark, which would be sent anyway".to_owned()]);
    grid.row([grouped(counts.spooled), "in the spool, which have no seq yet".to_owned()]);
    grid.row([
        optional(counts.resent),
        "of the time asked for or older, above the target: sent twice if they had landed".to_owned(),
    ]);
    grid.row([optional(counts.lost), "younger than the time asked for, at or below the target: never sent".to_owned()]);
    grid.row([grouped(counts.withheld), "withheld again by today's policy, as it stands".to_owned()]);
    grid.row([grouped(counts.unrecoverable), "of the gap in older generations only: no rewind sends them".to_owned()]);
    if counts.legacy > 0 {
        grid.row([grouped(counts.legacy), "without a seq: no watermark reaches them".to_owned()]);
    }
    if counts.null_time_lost + counts.null_time_resent > 0 {
        let parts = format!(
            "without a time: {} stay behind, {} are sent",
            grouped(counts.null_time_lost),
            grouped(counts.null_time_resent)
        );
        grid.row([grouped(counts.null_time_lost + counts.null_time_resent), parts]);
    }
    grid.row([String::new(), format!("about {} of NDJSON in {}", bytes(counts.bytes), count(counts.chunks, "chunk"))]);
    grid
}

fn found_by(rewind: &Rewind) -> String {
    let boundary = &rewind.boundary;
    let seq = |s: Option<hypseq_plan::Seq>| s.map_or_else(|| "none".to_owned(), |s| s.to_string());
    let at = boundary.at.map_or_else(String::new, |t| t.to_string());
    let mut text = match boundary.policy {
        Policy::Safe => format!("time {at} ({}), the safe answer", boundary.as_typed),
        Policy::Tight => format!("time {at} ({}), the tight answer", boundary.as_typed),
        Policy::Seq => format!("seq {}, as named", boundary.as_typed),
        Policy::ExportedCount => "the exported count".to_owned(),
    };
    if let Some(straddle) = &boundary.straddle {
        let _ = write!(
            text,
            "; safe {} sends {} of that time or older again, tight {} would lose {}",
            seq(boundary.safe_seq),
            count(straddle.resent_at_safe, "row"),
            seq(boundary.tight_seq),
            count(straddle.lost_at_tight, "row")
        );
    }
    if boundary.exclusions.rows > 0 {
        let _ = write!(text, "; {} left out of the resolution", count(boundary.exclusions.rows, "row"));
    }
    text
}

fn accepted(rewind: &Rewind) -> Option<String> {
    let accepted = &rewind.accepted;
    let mut parts = Vec::new();
    parts.extend(accepted.loss.map(|n| format!("the loss of {}", count(n, "row"))));
    parts.extend(accepted.withheld.then(|| "rows withheld again".to_owned()));
    parts.extend(accepted.unproven.then(|| "an unproven boundary".to_owned()));
    parts.extend(accepted.full_resend.then(|| "a full resend".to_owned()));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The name that a value has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::json!(value).as_str().unwrap_or_default().to_owned()
}

pub fn empty_grid() -> Grid {
    Grid::new(&[
        "sink",
        "dataset",
        "partition",
        ">observed seq",
        ">target seq",
        ">first replayed seq",
        ">replayed",
        ">pending",
        ">spooled",
        ">resent",
        ">lost",
        ">withheld",
        ">unrecoverable",
        "proven",
    ])
}

pub fn grid(plan: &Plan) -> Grid {
    let mut grid = empty_grid();
    let optional = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    for rewind in &plan.rewinds {
        grid.row([
            plan.sink.instance.clone(),
            rewind.dataset.clone(),
            rewind.partition.clone(),
            rewind.observed.seq.to_string(),
            rewind.target.last_exported_seq.to_string(),
            rewind.target.first_replayed_seq.map_or_else(String::new, |s| s.to_string()),
            rewind.counts.replayed.to_string(),
            rewind.counts.pending.to_string(),
            rewind.counts.spooled.to_string(),
            optional(rewind.counts.resent),
            optional(rewind.counts.lost),
            rewind.counts.withheld.to_string(),
            rewind.counts.unrecoverable.to_string(),
            rewind.proven.to_string(),
        ]);
    }
    grid
}
