//! A resolved boundary in words: the answer, why, and what to do next.

use std::fmt::Write as _;

use hypseq_boundary::{Boundary, Cause, CauseKind, Row};
use hypseq_cache::{Generation, Home, PartitionId};

use crate::answer::Answer;
use crate::boundary::{Point, Resolved};
use crate::grid::Grid;
use crate::hole::Hole;
use crate::printer::Printer;
use crate::select;
use crate::sentence::{count, grouped, range};
use crate::time::show;

/// The option that names a home, as it can be typed again.
pub fn home_flag(home: &Home) -> String {
    let flag = if home.state_root().is_some() { "--home" } else { "--cache" };
    format!("{flag} {}", select::quote(&home.root().to_string_lossy()))
}

/// The home's only sink, or a placeholder where there are several or none.
pub fn sink_name(home: &Home) -> String {
    let mut sinks: Vec<String> = home.watermarks().value.into_iter().map(|w| w.instance).collect();
    sinks.dedup();
    match sinks.as_slice() {
        [one] => select::quote(one),
        _ => "SINK".to_owned(),
    }
}

/// A watermark that could be chosen.
pub struct Choice {
    pub name: &'static str,
    pub seq: i64,
    pub row: Option<Row>,
    /// Rows lost and resent; none for a row that is no choice.
    pub cost: Option<(u64, u64)>,
}

/// The rows on both sides of each answer, in seq order.
pub fn choices(resolved: &Resolved) -> Vec<Choice> {
    let row = |name, row: &Row, cost| Choice { name, seq: row.seq, row: Some(row.clone()), cost };
    let mut choices = Vec::new();
    let (Some(boundary), None) = (&resolved.boundary, resolved.position) else {
        choices.extend(resolved.last_row.as_ref().map(|last| row("last", last, None)));
        choices.extend(resolved.next_row.as_ref().map(|next| row("next", next, None)));
        return choices;
    };
    let inverted = boundary.inversion();
    let safe_cost = Some((boundary.cost_at_safe.lost, boundary.cost_at_safe.resent));
    match (&boundary.last_row, boundary.safe_seq) {
        (Some(last), Some(_)) => choices.push(row(if inverted { "safe" } else { "last" }, last, safe_cost)),
        _ if boundary.next_row.is_some() => {
            choices.push(Choice { name: "none", seq: 0, row: None, cost: safe_cost });
        }
        _ => {}
    }
    choices.extend(boundary.next_row.as_ref().map(|next| row("next", next, None)));
    if let (true, Some(tight)) = (inverted, &boundary.tight_row) {
        let cost = Some((boundary.cost_at_tight.lost, boundary.cost_at_tight.resent));
        choices.push(row("tight", tight, cost));
    }
    choices
}

/// All that the text speaks of.
pub struct Context<'a> {
    pub home_flag: &'a str,
    pub id: &'a PartitionId,
    pub generation: &'a Generation,
    pub point: &'a Point,
    pub answer: &'a Answer,
    pub hole: Option<&'a Hole>,
    /// The sink, where there is only one.
    pub sink: &'a str,
}

impl Context<'_> {
    pub fn text(&self, printer: &Printer) -> String {
        let mut text = format!(
            "{}, generation {} ({}), {} visible\n\n",
            select::name(self.id),
            self.generation.name,
            serde_json::json!(self.generation.state).as_str().unwrap_or_default(),
            count(self.answer.visible_rows, "row")
        );
        let _ = writeln!(text, "  {}\n", printer.strong(&self.headline()));
        text.push_str(&self.table(printer));
        self.why(printer, &mut text);
        self.remarks(printer, &mut text);
        self.next(&mut text);
        text
    }

    fn headline(&self) -> String {
        let legacy = self.answer.legacy_rows;
        if legacy > 0 && self.answer.visible_rows == legacy {
            return format!(
                "No watermark reaches these rows: {} without a seq, and none with one",
                count(legacy, "row")
            );
        }
        match (self.point, &self.answer.resolved.boundary) {
            (Point::At(when), Some(boundary)) => {
                let at = show(when.at);
                match (boundary.tight_seq, boundary.first_seq_after) {
                    (None, None) => "There are no rows with a seq and a time here".to_owned(),
                    (None, Some(_)) => format!("{at} lies before the first row: everything would be sent"),
                    (Some(_), None) if boundary.sides.rows_after > 0 => {
                        format!("Every row younger than {at} was left out of the resolution")
                    }
                    (Some(_), None) => {
                        format!("No row of this generation is younger than {at}: nothing to rewind for here")
                    }
                    (Some(_), Some(_)) if boundary.inversion() => format!("{at} has two answers here"),
                    (Some(tight), Some(_)) => match boundary.safe_seq {
                        Some(safe) => format!("{at} is seq {safe}: the last row at or before it"),
                        None => format!("{at} is seq {tight}"),
                    },
                }
            }
            (Point::Seq(seq), _) => match (&self.answer.resolved.last_row, &self.answer.resolved.next_row) {
                (Some(last), _) if last.seq == *seq => format!("Seq {seq} is a row here"),
                (Some(last), Some(_)) => {
                    format!("Seq {seq} is no visible row here; the last one below it is {}", last.seq)
                }
                (Some(last), None) => format!("Seq {seq} is above the last row here, {}", last.seq),
                (None, Some(_)) => format!("Seq {seq} is below the first row: everything would be sent"),
                (None, None) => "There are no rows with a seq here".to_owned(),
            },
            (Point::Id(id), _) => format!("{id} is seq {}", self.answer.resolved.position.unwrap_or_default()),
            (Point::At(_), None) => "There is no answer".to_owned(),
        }
    }

    fn table(&self, printer: &Printer) -> String {
        let choices = choices(&self.answer.resolved);
        if choices.is_empty() {
            return String::new();
        }
        let costed = choices.iter().any(|c| c.cost.is_some());
        let mut headers = vec!["", ">seq", "time", "id"];
        if costed {
            headers.extend([">rows lost", ">rows resent"]);
        }
        let mut grid = Grid::new(&headers);
        for choice in &choices {
            let time = choice.row.as_ref().and_then(|r| r.time).map_or_else(|| "–".to_owned(), show);
            let id = choice.row.as_ref().and_then(|r| r.id.as_deref()).unwrap_or("–").to_owned();
            let mut cells = vec![choice.name.to_owned(), choice.seq.to_string(), time, id];
            if costed {
                let (lost, resent) = choice.cost.map(|(l, r)| (grouped(l), grouped(r))).unwrap_or_default();
                cells.extend([lost, resent]);
            }
            grid.row(cells);
        }
        grid.aligned(2, printer.width)
    }

    fn why(&self, printer: &Printer, text: &mut String) {
        let (Some(boundary), Point::At(_)) = (&self.answer.resolved.boundary, self.point) else {
            self.position_cost(text);
            return;
        };
        if !boundary.inversion() {
            return;
        }
        if let Some(cause) = &boundary.cause {
            text.push('\n');
            text.push_str(&printer.paragraph(2, &format!("Why: {}", cause_sentence(cause))));
        }
        text.push_str(&printer.paragraph(2, &Self::consequences(boundary)));
        if boundary.curve.len() > 2 {
            let _ = write!(text, "\n  Between them, rows lost and rows resent as the watermark goes up:\n\n");
            text.push_str(&curve_table(boundary));
        }
        if let Some(hint) = self.outlier_hint(boundary) {
            text.push_str(&hint);
        }
    }

    /// What a seq or an id means against the time of its own row.
    fn position_cost(&self, text: &mut String) {
        let Some(boundary) = self.answer.resolved.boundary.as_ref().filter(|b| b.inversion()) else { return };
        let at = show(boundary.at);
        let _ = write!(
            text,
            "\n  Rows are out of time order here. By the last row's own time, {at}, the answers would be {} (safe) and {} \
             (tight).\n  See: hypseq {} resolve {} --at {at}\n",
            boundary.safe_seq.map_or_else(|| "none".to_owned(), |s| s.to_string()),
            boundary.tight_seq.map_or_else(|| "none".to_owned(), |s| s.to_string()),
            self.home_flag,
            select::flags(self.id),
        );
    }

    fn consequences(boundary: &Boundary) -> String {
        let mut text = String::new();
        if let Some(tight) = boundary.tight_seq {
            let _ = write!(
                text,
                "The naive answer, the last row at or before the time, is {tight}: rewinding there would lose {}. ",
                count(boundary.cost_at_tight.lost, "row")
            );
        }
        let resent = match boundary.cost_at_safe.resent {
            0 => "and sends nothing twice".to_owned(),
            n => format!("and sends {} again (of that time or older; twice if they had landed)", count(n, "row")),
        };
        let lost = match boundary.cost_at_safe.lost {
            0 => "loses nothing".to_owned(),
            n => format!("loses {} that you left out of the resolution", count(n, "row")),
        };
        let _ = match boundary.safe_seq {
            Some(safe) => write!(text, "Rewinding to {safe} {lost} {resent}."),
            None => write!(text, "No row's seq is safe: even the first row is younger than the time."),
        };
        text
    }

    /// What leaving out the outliers would come to.
    fn outlier_hint(&self, boundary: &Boundary) -> Option<String> {
        let cause = boundary.cause.as_ref()?;
        let outlier = self.answer.outlier.as_ref()?;
        let mut text = String::new();
        if let Some(rows) = few(cause) {
            let _ = write!(text, "\n  The {} in the way:\n\n", count(cause.rows.len() as u64, "row"));
            text.push_str(&rows);
        }
        let end = |time: Option<i64>| time.map(show).unwrap_or_default();
        let _ = write!(
            text,
            "\n  Without {}: --ignore-times-outside {}..{}\n  leaves one answer, {}, which loses {} and sends {} again.\n",
            if cause.rows.len() == 1 { "it" } else { "them" },
            end(outlier.window.0),
            end(outlier.window.1),
            outlier.safe_seq,
            count(outlier.lost, "row"),
            count(outlier.resent, "row"),
        );
        Some(text)
    }

    fn remarks(&self, printer: &Printer, text: &mut String) {
        let Answer { resolved, legacy_rows, visible_rows, .. } = self.answer;
        let mut remark = |sentence: String| {
            text.push('\n');
            text.push_str(&printer.paragraph(2, &sentence));
        };
        if let (Some(hole), Point::Seq(seq)) = (self.hole, self.point) {
            remark(format!("Why {seq} is no row here: {}.", hole.sentence()));
        }
        if let Some((unit, seqs)) = &self.answer.ambiguous {
            let ends = seqs.first().copied().zip(seqs.last().copied());
            remark(format!(
                "The time is given to the {unit}: {} in that {unit}, seq {}. Rows with exactly the time count as before it; \
                 give milliseconds to be exact.",
                if seqs.len() == 1 {
                    "1 row lies".to_owned()
                } else {
                    format!("{} rows lie", grouped(seqs.len() as u64))
                },
                range(ends)
            ));
        }
        if resolved.excluded_rows > 0 {
            remark(format!(
                "Left out of the resolution as you asked, and still counted as lost or resent: {}.",
                count(resolved.excluded_rows, "row")
            ));
        }
        if let Some(boundary) = resolved.boundary.as_ref().filter(|b| b.sides.null_time_rows > 0) {
            remark(format!(
                "{} without a time are neither before nor after; {} of them would be sent again from the first answer.",
                count(boundary.sides.null_time_rows, "row"),
                grouped(boundary.cost_at_safe.null_time_resent)
            ));
        }
        if let Some(repeated) = self.answer.repeated_ids.filter(|repeated| *repeated > 0) {
            remark(format!(
                "{} {} under more than one seq (flushed again after a crash); every copy is counted.",
                count(repeated, "part_id"),
                if repeated == 1 { "stands" } else { "stand" }
            ));
        }
        if *legacy_rows > 0 && visible_rows > legacy_rows {
            remark(format!(
                "{} have no seq (written before the column existed); no watermark reaches them.",
                count(*legacy_rows, "row")
            ));
        }
    }

    fn next(&self, text: &mut String) {
        let flags = format!("{} {}", self.home_flag, select::flags(self.id));
        let Some(boundary) = &self.answer.resolved.boundary else { return };
        match self.point {
            Point::At(when) => match (boundary.safe_seq, boundary.first_seq_after) {
                (Some(safe), Some(_)) => {
                    let _ = write!(
                        text,
                        "\n  Next: hypseq verify {flags} --seq {safe}\n          is it the same in every generation?\n        \
                         hypseq plan rewind {flags} --sink {} --since {} --reason '…'\n          what would be sent? (a dry run)\n",
                        self.sink,
                        select::quote(&show(when.at))
                    );
                }
                (None, Some(_)) => {
                    let _ = write!(
                        text,
                        "\n  Next: check the time. To send everything again on purpose: plan rewind --to-seq 0 \
                         --accept-full-resend\n"
                    );
                }
                _ => {}
            },
            Point::Seq(_) | Point::Id(_) => {
                if let Some(last) = &self.answer.resolved.last_row {
                    let _ = write!(text, "\n  Next: hypseq verify {flags} --seq {}\n", last.seq);
                }
            }
        }
    }
}

fn cause_sentence(cause: &Cause) -> String {
    let rows = count(cause.rows.len() as u64, "row");
    let seqs = range(cause.seq_range());
    let one = cause.rows.len() == 1;
    match cause.kind {
        CauseKind::FlushedLate => format!(
            "{rows} with seq {seqs} {} older than the time asked for; {} flushed late (a backfill, or jitter).",
            if one { "is" } else { "are" },
            if one { "it was" } else { "they were" },
        ),
        CauseKind::TimeAhead => format!(
            "{rows} with seq {seqs} {} younger than the time asked for, among older ones; {} ahead (a clock, or jitter).",
            if one { "is" } else { "are" },
            if one { "its time is" } else { "their times are" },
        ),
    }
}

/// The rows themselves, when they are few enough to look at.
fn few(cause: &Cause) -> Option<String> {
    if cause.rows.len() > 10 {
        return None;
    }
    let mut grid = Grid::new(&[">seq", "time", "id"]);
    for row in &cause.rows {
        let time = row.time.map_or_else(|| "–".to_owned(), show);
        grid.row([row.seq.to_string(), time, row.id.as_deref().unwrap_or("–").to_owned()]);
    }
    Some(grid.aligned(4, None))
}

/// Corner points; the middle is left out when there are many.
fn curve_table(boundary: &Boundary) -> String {
    const SHOWN: usize = 12;
    let mut grid = Grid::new(&[">seq", ">rows lost", ">rows resent"]);
    let points = &boundary.curve;
    let cut = points.len() > SHOWN;
    for (index, point) in points.iter().enumerate() {
        if cut && index == SHOWN / 2 {
            grid.row(["…", "…", "…"]);
        }
        if !cut || index < SHOWN / 2 || index >= points.len() - SHOWN / 2 {
            grid.row([point.seq.to_string(), grouped(point.lost), grouped(point.resent)]);
        }
    }
    grid.aligned(4, None)
}
