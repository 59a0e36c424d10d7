//! From a point to its proof: by counts where they can tell, else row by row.

use anyhow::{Result, anyhow};
use hypseq_cache::{Generation, Partition};
use hypseq_scan::{Doubt, LazyScan};

use crate::answer::{Reading, bounded_anchor, outside};
use crate::boundary::{Excluded, Point, Resolved, require_complete, resolve_point, resolve_rows};
use crate::opened::{Opened, lazy_rows, place};
use crate::printer::Printer;
use crate::proof::Proof;
use crate::survey::Survey;
use crate::time::show;

/// What to prove, and in which generations.
pub struct Claim<'a> {
    pub partition: &'a Partition,
    /// The generation that the others are compared with; the live one where none is named.
    pub generation: Option<&'a str>,
    pub time_column: Option<&'a str>,
    pub point: &'a Point,
    pub excluded: &'a Excluded,
    pub reading: Reading,
    /// Compare every column.
    pub deep: bool,
}

/// A proof, and the name of the generation that the others were compared with.
pub struct Proven {
    pub proof: Proof,
    pub reference: String,
}

impl Claim<'_> {
    pub fn prove(&self, printer: &Printer) -> Result<Proven> {
        let opened = Opened::all(self.partition, self.time_column)?;
        let place = place(self.partition, self.generation, &opened)?;
        let reference = opened[place].generation.name.clone();
        match self.count(&opened, place) {
            Counted::Proof(proof) => {
                printer.problems(opened.iter().flat_map(|o| &o.problems));
                return Ok(Proven { proof, reference });
            }
            Counted::NoBoundary(at) => return Err(no_boundary(at)),
            Counted::Unknown(why) => printer.detail(&format!("every file is read: {why}")),
        }

        let survey = Survey::scan(self.partition, opened);
        printer.problems(survey.problems());
        let surveyed = &survey.generations[place];
        require_complete(surveyed)?;
        let resolved = resolve_point(surveyed, self.point, self.excluded)?;
        let watermark = watermark(&resolved).map_err(no_boundary)?;
        let mut proof = Proof::of(&survey, place, watermark, self.at());
        if self.deep {
            printer.problems(&proof.deepen(&survey, place));
        }
        Ok(Proven { proof, reference })
    }

    fn at(&self) -> Option<i64> {
        if let Point::At(when) = self.point { Some(when.at) } else { None }
    }

    fn count(&self, opened: &[Opened], place: usize) -> Counted {
        let anchor = bounded_anchor(&opened[place], self.point, self.excluded, self.reading).filter(|_| !self.deep);
        let Some(anchor) = anchor else { return Counted::Unknown("bounds cannot tell".to_owned()) };
        let rows = match lazy_rows(opened) {
            Ok(rows) => rows,
            Err(why) => return Counted::Unknown(why),
        };
        let generations = opened.iter().zip(&rows).map(|(o, rows)| (&o.generation, rows.as_ref().map_err(|why| *why)));
        let generations: Vec<(&Generation, Result<&LazyScan<'_>, &str>)> = generations.collect();
        let Ok(live) = generations[place].1 else { return Counted::Unknown("it has no metadata".to_owned()) };
        let count = || -> Result<Counted, Doubt> {
            let resolved = resolve_rows(live, anchor, self.excluded, outside(live, self.excluded)?)?;
            let watermark = match watermark(&resolved) {
                Ok(watermark) => watermark,
                Err(at) => return Ok(Counted::NoBoundary(at)),
            };
            let proof = Proof::counted(&generations, place, watermark, self.at())?;
            let unknown = || Counted::Unknown("the generations' counts do not add up".to_owned());
            Ok(proof.map_or_else(unknown, Counted::Proof))
        };
        count().unwrap_or_else(|doubt| Counted::Unknown(doubt.to_string()))
    }
}

/// What counting came to.
enum Counted {
    Proof(Proof),
    /// No row is safe to start from; the time.
    NoBoundary(Option<i64>),
    /// Rows must be read; why.
    Unknown(String),
}

/// The watermark to prove; else the time at which there is none.
fn watermark(resolved: &Resolved) -> Result<i64, Option<i64>> {
    let boundary = resolved.boundary.as_ref();
    resolved.position.or(boundary.and_then(|b| b.safe_seq)).ok_or(boundary.map(|b| b.at))
}

fn no_boundary(at: Option<i64>) -> anyhow::Error {
    match at {
        Some(at) => anyhow!(
            "no row at or before {} is safe to start from, so there is no boundary to verify\n  hint: see `hypseq resolve` \
             at that time",
            show(at)
        ),
        None => anyhow!("there is no boundary to verify"),
    }
}
