//! What a rewind comes to, as far as it rests on rows: whether there is one, its target, and its counts.
//!
//! Bounds answer first, and where no plan comes of it nothing else is read. The evidence of a plan needs every row all the
//! same, so its counts are then made once more from the rows, by the same code, and the two must be the same.

use anyhow::{Context, Error, Result, bail};
use hypseq_boundary::{Boundary, Row, Source};
use hypseq_cache::{Partition, Watermark, WatermarkFile};
use hypseq_plan as plan;
use hypseq_plan::{Seq, Time};
use serde::Serialize;

use crate::answer::{bounded_anchor, outside};
use crate::boundary::{Excluded, Point, Resolved, resolve_point, resolve_rows};
use crate::census::{ByBounds, ByRows, Census};
use crate::cli::Policy;
use crate::exported::{Exported, Reading};
use crate::opened::{Opened, lazy_rows};
use crate::planning::{Planned, Refusal, Request};
use crate::select;
use crate::sentence::count;
use crate::survey::Survey;
use crate::time::show;
use crate::watermarks;

/// How far back one watermark is to go.
pub struct Question<'a> {
    pub request: &'a Request<'a>,
    pub partition: &'a Partition,
    pub file: &'a WatermarkFile,
    pub watermark: &'a Watermark,
    pub excluded: &'a Excluded,
}

/// A rewind, as far as it rests on rows.
#[derive(Debug, Serialize)]
pub struct Size {
    /// Seq that the watermark goes back to.
    pub target: i64,
    pub boundary: plan::Boundary,
    /// What the sink would send is measured apart from these: its figures are zero here.
    pub counts: plan::Counts,
    pub witness: plan::Witness,
    /// What the witness says, reading by reading.
    #[serde(skip)]
    pub readings: Vec<Reading>,
}

impl Question<'_> {
    /// The answer from bounds. The decision rests on the live generation alone.
    ///
    /// # Errors
    /// Why bounds cannot tell.
    pub fn by_bounds(&self, opened: &[Opened], live: usize) -> Result<Planned<Size>> {
        let Request { point, reading, .. } = self.request;
        let anchor = bounded_anchor(&opened[live], point, self.excluded, *reading).context("bounds cannot tell")?;
        let rows = opened[live].lazy().context("the live generation cannot be read whole")??;
        let resolved = resolve_rows(&rows, anchor, self.excluded, outside(&rows, self.excluded)?)?;
        self.decide(&rows, &resolved)?.try_map(|target| {
            let rows = lazy_rows(opened).map_err(Error::msg)?;
            self.size(&ByBounds::new(opened, &rows, live)?, &opened[live], &resolved, target)
        })
    }

    /// The answer from every row.
    pub fn by_rows(&self, survey: &Survey<'_>, live: usize) -> Result<Planned<Size>> {
        let surveyed = &survey.generations[live];
        let resolved = resolve_point(surveyed, &self.request.point, self.excluded)?;
        self.decide(&surveyed.scan.visible, &resolved)?
            .try_map(|target| self.size(&ByRows::new(survey, live), &surveyed.opened, &resolved, target))
    }

    fn at(&self) -> Option<i64> {
        if let Point::At(when) = &self.request.point { Some(when.at) } else { None }
    }

    /// The target, where there is one below the watermark.
    fn decide<S: Source>(&self, live: &S, resolved: &Resolved) -> Result<Planned<i64>, S::Error> {
        let Self { request, file, watermark, .. } = self;
        let name = select::name(&self.partition.id);
        let target = match target(request, resolved) {
            Planned::Rewind(target) if target < watermark.seq => return Ok(Planned::Rewind(target)),
            Planned::Rewind(target) => target,
            Planned::NothingToDo(why) => return Ok(Planned::NothingToDo(format!("{name}: {why}"))),
            Planned::NoTarget(refusal) => return Ok(Planned::NoTarget(refusal)),
        };
        if let Some(at) = self.at() {
            let skipped = live.cost(at, watermark.seq)?.lost;
            if skipped > 0 {
                return Ok(Planned::NoTarget(Refusal {
                    code: "loss",
                    message: format!(
                        "{name}: the watermark, {}, lies below the {} answer {target}, and {} younger than {} at or below it \
                         would never be sent",
                        watermark.seq,
                        if request.policy == Policy::Tight { "tight" } else { "safe" },
                        count(skipped, "row"),
                        show(at)
                    ),
                    flag: "--policy safe".to_owned(),
                }));
            }
        }
        Ok(Planned::NothingToDo(format!(
            "{name}: the watermark of sink {} is {}, at or below the target {target}; every row above the target will be sent \
             anyway",
            file.instance, watermark.seq
        )))
    }

    fn size<C: Census>(&self, rows: &C, opened: &Opened, resolved: &Resolved, target: i64) -> Result<Size> {
        let watermark = self.watermark;
        let exported = Exported {
            count: watermark.exported_row_count,
            legacy: rows.legacy_rows()?,
            resent: watermarks::resent_before(self.request.home, self.file)?,
        };
        let readings = exported.readings(rows.union(), target)?;
        let visible = |above: i64, up_to: i64| -> Result<u64> {
            Ok(rows.visible_up_to(up_to)?.saturating_sub(rows.visible_up_to(above)?))
        };
        // Rows without a time are on no side of any time: which one is asked about is all the same to them.
        let cost = rows.live().cost(self.at().unwrap_or(i64::MAX), target)?;
        let counts = plan::Counts {
            replayed: visible(target, watermark.seq)?,
            pending: visible(watermark.seq, i64::MAX)?,
            spooled: watermarks::spooled(self.request.spool, &self.partition.id),
            resent: self.at().map(|_| cost.resent),
            lost: self.at().map(|_| cost.lost),
            null_time_lost: cost.null_time_lost,
            null_time_resent: cost.null_time_resent,
            withheld: 0,
            unrecoverable: rows.gone(target, watermark.seq)?,
            legacy: rows.live_legacy_rows()?,
            bytes: 0,
            chunks: 0,
        };
        let sides = (rows.live().last_at_or_below(target)?, rows.live().next_above(target)?);
        let timed = resolved.boundary.as_ref().filter(|_| self.at().is_some());
        let straddle = match timed.filter(|boundary| boundary.inversion()) {
            Some(b) => Some(plan::Straddle {
                rows: visible(b.safe_seq.unwrap_or(0), b.tight_seq.unwrap_or(0))?,
                lost_at_tight: b.cost_at_tight.lost,
                resent_at_safe: b.cost_at_safe.resent,
            }),
            None => None,
        };
        Ok(Size {
            target,
            boundary: self.boundary(opened, resolved, timed, sides, straddle)?,
            counts,
            witness: exported.witness(&readings, target),
            readings,
        })
    }

    fn boundary(
        &self,
        opened: &Opened,
        resolved: &Resolved,
        timed: Option<&Boundary>,
        (last, next): (Option<Row>, Option<Row>),
        straddle: Option<plan::Straddle>,
    ) -> Result<plan::Boundary> {
        let optional = |s: Option<i64>| s.map(seq).transpose();
        let end = |micros: Option<i64>| micros.and_then(Time::from_micros);
        Ok(plan::Boundary {
            policy: match (self.at(), self.request.policy) {
                (None, _) => plan::Policy::Seq,
                (Some(_), Policy::Safe) => plan::Policy::Safe,
                (Some(_), Policy::Tight) => plan::Policy::Tight,
            },
            at: end(self.at()),
            as_typed: self.request.as_typed.clone(),
            zone: self.request.zone.clone(),
            time_column: opened.columns.as_ref().and_then(|c| c.time.clone()).filter(|_| self.at().is_some()),
            tight_seq: optional(timed.and_then(|b| b.tight_seq))?,
            safe_seq: optional(timed.and_then(|b| b.safe_seq))?,
            first_seq_after: optional(timed.and_then(|b| b.first_seq_after))?,
            last_row: last.as_ref().map(row).transpose()?,
            next_row: next.as_ref().map(row).transpose()?,
            straddle,
            exclusions: plan::Exclusions {
                ignore_times_outside: self
                    .excluded
                    .window
                    .map(|(from, to)| plan::TimeRange { from: end(from), to: end(to) }),
                exclude: self.excluded.predicate.as_ref().map(|(text, _)| text.clone()),
                rows: resolved.excluded_rows,
            },
        })
    }
}

/// Checks that bounds and rows come to the same. Where a data file is not what its manifest says (`contradicted`), the rows
/// count, as they do with `--full-scan` everywhere; where nothing explains the difference, neither can be trusted.
pub fn check(name: &str, bounds: &Size, rows: &Planned<Size>, contradicted: bool) -> Result<()> {
    if contradicted {
        return Ok(());
    }
    let target = bounds.target;
    let difference = match rows {
        Planned::Rewind(rows) => {
            let text = |value: Option<serde_json::Value>| value.unwrap_or_default().to_string();
            let first = plan::drift(bounds, rows)?.into_iter().next();
            first.map(|d| format!("{} is {} by the manifests, {} by the rows", d.place, text(d.was), text(d.is)))
        }
        Planned::NothingToDo(why) => Some(format!("the target is {target} by the manifests, but by the rows {why}")),
        Planned::NoTarget(refusal) => {
            Some(format!("the target is {target} by the manifests, but by the rows {}", refusal.message))
        }
    };
    match difference {
        Some(difference) => bail!(
            "{name}: {difference}\n  hint: look with `hypseq verify --full-scan` first; --full-scan plans by the rows alone"
        ),
        None => Ok(()),
    }
}

/// The watermark that a resolved point stands for under the policy.
fn target(request: &Request<'_>, resolved: &Resolved) -> Planned<i64> {
    if let Some(position) = resolved.position {
        return Planned::Rewind(position);
    }
    let Some(boundary) = &resolved.boundary else { return Planned::NothingToDo("there are no rows".to_owned()) };
    if boundary.first_seq_after.is_none() && boundary.sides.rows_after > 0 {
        return Planned::NoTarget(Refusal {
            code: "exclusions",
            message: format!(
                "every one of the {} younger than {} was left out of the resolution",
                count(boundary.sides.rows_after, "row"),
                show(boundary.at)
            ),
            flag: "leave out less with --ignore-times-outside or --exclude".to_owned(),
        });
    }
    if boundary.first_seq_after.is_none() {
        return Planned::NothingToDo(format!(
            "no row with a seq is younger than {}: nothing to rewind for",
            show(boundary.at)
        ));
    }
    let chosen = match request.policy {
        Policy::Safe => boundary.safe_seq,
        Policy::Tight => boundary.tight_seq,
    };
    chosen.map_or_else(
        || {
            Planned::NoTarget(Refusal {
                code: "full-resend",
                message: format!(
                    "no row's seq is a safe watermark for {}: even the first row is younger, so everything would be sent again",
                    show(boundary.at)
                ),
                flag: "--to-seq 0 --accept-full-resend (in place of --since)".to_owned(),
            })
        },
        Planned::Rewind,
    )
}

/// A seq as plans write it.
pub fn seq(value: i64) -> Result<Seq> {
    Seq::new(value).with_context(|| format!("seq {value} is negative"))
}

fn row(row: &Row) -> Result<plan::Row> {
    Ok(plan::Row {
        seq: seq(row.seq)?,
        time: row.time.and_then(Time::from_micros),
        id: row.id.as_deref().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(replayed: u64) -> Size {
        let counts = plan::Counts {
            replayed,
            pending: 0,
            spooled: 0,
            resent: Some(50),
            lost: Some(0),
            null_time_lost: 0,
            null_time_resent: 0,
            withheld: 0,
            unrecoverable: 0,
            legacy: 0,
            bytes: 0,
            chunks: 0,
        };
        let boundary = plan::Boundary {
            policy: plan::Policy::Safe,
            at: None,
            as_typed: String::new(),
            zone: None,
            time_column: None,
            tight_seq: None,
            safe_seq: None,
            first_seq_after: None,
            last_row: None,
            next_row: None,
            straddle: None,
            exclusions: plan::Exclusions::default(),
        };
        let witness =
            plan::Witness { kind: plan::WitnessKind::ExportedRowCount, value: "665".to_owned(), says: String::new() };
        Size { target: 722, boundary, counts, witness, readings: Vec::new() }
    }

    fn refusal(rows: &Planned<Size>) -> String {
        check("logs", &size(531), rows, false).expect_err("they differ").to_string()
    }

    #[test]
    fn bounds_and_rows_that_differ_are_an_error_with_both_numbers() {
        let differs = Planned::Rewind(size(530));
        assert!(refusal(&differs).starts_with("logs: counts.replayed is 531 by the manifests, 530 by the rows\n"));
        let idle = Planned::NothingToDo("there are no rows".to_owned());
        assert!(
            refusal(&idle).starts_with("logs: the target is 722 by the manifests, but by the rows there are no rows")
        );
        let none = Refusal { code: "full-resend", message: "nothing is safe".to_owned(), flag: String::new() };
        let none = Planned::NoTarget(none);
        assert!(
            refusal(&none).starts_with("logs: the target is 722 by the manifests, but by the rows nothing is safe")
        );
    }

    #[test]
    fn the_rows_count_where_they_agree_or_a_manifest_is_known_to_be_wrong() {
        assert!(check("logs", &size(531), &Planned::Rewind(size(531)), false).is_ok());
        assert!(check("logs", &size(531), &Planned::Rewind(size(530)), true).is_ok());
    }
}
