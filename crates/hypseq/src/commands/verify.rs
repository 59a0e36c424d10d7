//! `verify`: is the boundary the same in every generation?

use std::fmt::Write as _;

use anyhow::Result;
use hypseq_boundary::Verdict;
use hypseq_cache::{Home, PartitionId};
use serde_json::{Value, json};

use crate::answer::Reading;
use crate::boundary::{Excluded, Point, block_on};
use crate::cli::{Global, Verify};
use crate::exit::ExitStatus;
use crate::explain;
use crate::fleet;
use crate::grid::Grid;
use crate::json;
use crate::printer::{Printer, Report};
use crate::proof::{Compared, Proof, name_row};
use crate::proving::{Claim, Proven};
use crate::select;
use crate::sentence::{count, grouped};
use crate::time::show;

pub fn run(global: &Global, args: &Verify, printer: &Printer) -> Result<ExitStatus> {
    let point = Point::parse(args.point.at.as_deref(), args.point.seq.as_deref(), None, &args.zone)?;
    let homes = select::homes(global)?;
    let progress = printer.progress("reading every generation");
    let question = |home: &Home, _: &str| verify_home(home, homes.len() > 1, &point, args, printer);
    let (reports, status) = fleet::ask(&homes, printer, question, Verified::status)?;
    drop(progress);
    printer.reports(&reports, homes.len() > 1)?;
    Ok(status)
}

fn verify_home(home: &Home, fleet: bool, point: &Point, args: &Verify, printer: &Printer) -> Result<Verified> {
    let found = home.partitions();
    printer.problems(&found.problems);
    let target = &args.target;
    let partition = select::one_partition(&found.value, target.dataset.as_deref(), target.partition.as_deref())?;
    let excluded = block_on(Excluded::read(&args.leave_out, &args.zone, home, partition))??;
    let claim = Claim {
        partition,
        generation: target.generation.as_deref(),
        time_column: target.time_column.as_deref(),
        point,
        excluded: &excluded,
        reading: if args.full_scan { Reading::Full } else { Reading::Bounds },
        deep: args.deep,
    };
    let Proven { proof, reference } = claim.prove(printer)?;
    Ok(Verified {
        home: home.name().to_owned(),
        fleet,
        home_flag: explain::home_flag(home),
        sink: explain::sink_name(home),
        id: partition.id.clone(),
        reference,
        at: if let Point::At(when) = point { Some(when.at) } else { None },
        proof,
    })
}

struct Verified {
    home: String,
    fleet: bool,
    home_flag: String,
    sink: String,
    id: PartitionId,
    reference: String,
    at: Option<i64>,
    proof: Proof,
}

impl Verified {
    fn status(&self) -> ExitStatus {
        if self.proof.proven { ExitStatus::Yes } else { ExitStatus::No }
    }
}

impl Report for Verified {
    fn json(&self) -> Value {
        let generations = self.proof.generations.iter().map(|w| {
            let answers = w.answers.as_ref();
            let differences = w.comparison.unexplained().take(100);
            json!({
                "name": w.name,
                "state": w.state,
                "covers": w.comparison.covers,
                "verdict": w.comparison.verdict.as_str(),
                "visible_rows": w.visible_rows,
                "max_seq": json::seq(w.max_seq),
                "tight_seq": json::seq(answers.and_then(|a| a.tight)),
                "safe_seq": json::seq(answers.and_then(|a| a.safe)),
                "first_seq_after": json::seq(answers.and_then(|a| a.first_after)),
                "last_row": json::row(w.comparison.last_row.as_ref()),
                "next_row": json::row(w.comparison.next_row.as_ref()),
                "missing_rows": w.missing_rows,
                "explanation": w.explanation,
                "unexplained": differences.map(|d| json!({
                    "row": json::row(Some(&d.row)),
                    "missing_in": if d.missing_in_reference { &self.reference } else { &w.name },
                })).collect::<Vec<_>>(),
                "content_differs": w.content_differs.iter().take(100).map(|s| json::seq(Some(*s))).collect::<Vec<_>>(),
            })
        });
        let value = json!({
            "dataset": self.id.dataset,
            "partition": self.id.path,
            "seq": json::seq(Some(self.proof.watermark)),
            "reference": self.reference,
            "compared": self.proof.compared.as_str(),
            "proven": self.proof.proven,
            "generations": generations.collect::<Vec<_>>(),
            "files_total": self.proof.files_total,
            "files_read": self.proof.files_read,
        });
        fleet::named(value, self.fleet.then_some(&self.home))
    }

    fn text(&self, printer: &Printer) -> String {
        let proof = &self.proof;
        let reference = proof.generations.iter().find(|w| w.name == self.reference).map(|w| &w.comparison);
        let seq = |row: Option<&hypseq_boundary::Row>| row.map_or_else(|| "none".to_owned(), |r| r.seq.to_string());
        let last = seq(reference.and_then(|c| c.last_row.as_ref()));
        let next = seq(reference.and_then(|c| c.next_row.as_ref()));
        let answer = if proof.proven { "is proven" } else { "is NOT proven" };
        let how = match proof.compared {
            Compared::Counts => "",
            Compared::Rows => ", every row compared",
            Compared::Columns => ", every column compared",
        };
        let mut text = format!(
            "{}: {} (last row {last}, next row {next}{how})\n\n",
            select::name(&self.id),
            printer.strong(&format!("the boundary at seq {} {answer}", proof.watermark)),
        );
        let mut grid = Grid::new(&["generation", "state", "verdict", ">last row", ">next row", ">its last", ">rows"]);
        for w in &proof.generations {
            let seq =
                |row: &Option<hypseq_boundary::Row>| row.as_ref().map_or_else(|| "–".to_owned(), |r| r.seq.to_string());
            grid.row([
                w.name.clone(),
                json!(w.state).as_str().unwrap_or_default().to_owned(),
                w.comparison.verdict.as_str().to_owned(),
                seq(&w.comparison.last_row),
                seq(&w.comparison.next_row),
                w.max_seq.map_or_else(|| "–".to_owned(), |s| s.to_string()),
                w.visible_rows.map_or_else(|| "–".to_owned(), grouped),
            ]);
        }
        text.push_str(&grid.aligned(2, printer.width));
        text.push_str("\n  Why:\n");
        for w in &proof.generations {
            let why = if printer.is_verbose() { &w.explanation } else { &w.summary };
            text.push_str(&printer.paragraph(2, &format!("{}: {why}", w.name)));
        }
        self.strangers(&mut text);
        self.conclusion(&mut text);
        text
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            "home",
            "dataset",
            "partition",
            ">seq",
            "proven",
            "generation",
            "state",
            "covers",
            "verdict",
            ">last seq",
            ">next seq",
            ">max seq",
            ">visible rows",
            ">missing rows",
            "explanation",
        ]);
        let seq = |s: Option<i64>| s.map_or_else(String::new, |s| s.to_string());
        for w in &self.proof.generations {
            grid.row([
                self.home.clone(),
                self.id.dataset.clone(),
                self.id.path.clone(),
                self.proof.watermark.to_string(),
                self.proof.proven.to_string(),
                w.name.clone(),
                json!(w.state).as_str().unwrap_or_default().to_owned(),
                w.comparison.covers.to_string(),
                w.comparison.verdict.as_str().to_owned(),
                seq(w.comparison.last_row.as_ref().map(|r| r.seq)),
                seq(w.comparison.next_row.as_ref().map(|r| r.seq)),
                seq(w.max_seq),
                w.visible_rows.map_or_else(String::new, |n| n.to_string()),
                w.missing_rows.to_string(),
                w.explanation.clone(),
            ]);
        }
        grid
    }
}

impl Verified {
    /// The rows that nothing explains.
    fn strangers(&self, text: &mut String) {
        const SHOWN: usize = 20;
        let strangers: Vec<_> = self.proof.unexplained().collect();
        if strangers.is_empty() {
            return;
        }
        let _ = write!(
            text,
            "\n  {} in one generation and not in another, and nothing that can be read says why:\n",
            count(strangers.len() as u64, "row")
        );
        for (witnessed, difference) in strangers.iter().take(SHOWN) {
            let _ = writeln!(
                text,
                "    {}: {}",
                witnessed.name,
                name_row(&difference.row, difference.missing_in_reference)
            );
        }
        if strangers.len() > SHOWN {
            let _ = writeln!(text, "    and {} more (--format json lists 100 of each)", strangers.len() - SHOWN);
        }
    }

    fn conclusion(&self, text: &mut String) {
        let proof = &self.proof;
        let flags = format!("{} {}", self.home_flag, select::flags(&self.id));
        if proof.proven {
            let support = match proof.independent() {
                0 => "Only the live generation covers it: there is no second copy to compare with.".to_owned(),
                n => format!(
                    "{} beside the live one {} it and {} on both rows.",
                    count(n as u64, "generation"),
                    if n == 1 { "covers" } else { "cover" },
                    if n == 1 { "agrees" } else { "agree" }
                ),
            };
            let point = match self.at {
                Some(at) => format!("--since {}", select::quote(&show(at))),
                None => format!("--to-seq {}", proof.watermark),
            };
            let compared = match proof.compared {
                Compared::Counts => {
                    "\n  Compared: both rows, and how many rows lie where. --full-scan compares every row."
                }
                Compared::Rows | Compared::Columns => "",
            };
            let _ = write!(
                text,
                "\n  {support}{compared}\n  Next: hypseq plan rewind {flags} --sink {} {point} --reason '…'\n          what would be sent? (a \
                 dry run)\n",
                self.sink
            );
            return;
        }
        let unreadable = proof.generations.iter().any(|w| w.comparison.verdict == Verdict::Unreadable);
        let advice = if unreadable {
            "copy the cache again: a generation that cannot be read may say otherwise"
        } else if proof.generations.iter().all(|w| !w.comparison.covers) {
            "no generation reaches the boundary; choose a lower seq"
        } else {
            "look at the rows named above: hypseq sql -c \"SELECT … FROM raw.…\"; a plan for this boundary needs \
             --accept-unproven"
        };
        let _ = write!(text, "\n  Next: {advice}\n");
    }
}
