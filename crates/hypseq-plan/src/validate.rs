//! What a plan must satisfy beyond the shape of its fields: the fields must agree with one another, and
//! every drawback that it records must have been accepted.

use std::collections::BTreeSet;

use crate::model::{PLAN_KIND, PLAN_VERSION, Plan, Rewind, Sink};
use crate::path::WatermarkPath;
use crate::scalar::Seq;

/// A field that contradicts another, or that no valid plan has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct Invalid {
    /// Where, such as `rewinds[0].guard.min_seq`.
    pub place: String,
    /// What a valid plan has there.
    pub expected: String,
    /// What this one has.
    pub found: String,
}

fn ensure(holds: bool, place: &str, expected: impl Into<String>, found: impl std::fmt::Display) -> Result<(), Invalid> {
    if holds {
        Ok(())
    } else {
        Err(Invalid { place: place.to_owned(), expected: expected.into(), found: found.to_string() })
    }
}

fn ensure_same<T: PartialEq + std::fmt::Debug>(place: &str, found: &T, other: &str, value: &T) -> Result<(), Invalid> {
    ensure(found == value, place, format!("{value:?} as in {other}"), format!("{found:?}"))
}

impl Plan {
    /// Checks that the fields agree with one another and that every drawback was accepted by name. The
    /// checksum is not looked at.
    ///
    /// # Errors
    ///
    /// The first field that does not fit.
    pub fn validate(&self) -> Result<(), Invalid> {
        ensure(self.v == PLAN_VERSION, "v", PLAN_VERSION.to_string(), self.v)?;
        ensure(self.kind == PLAN_KIND, "kind", PLAN_KIND, &self.kind)?;
        ensure(self.id.get_version_num() == 7, "id", "a UUID of version 7", self.id)?;
        let after = format!("a time after created_at, {}", self.created_at);
        ensure(self.expires_at > self.created_at, "expires_at", after, self.expires_at)?;
        ensure(!self.reason.trim().is_empty(), "reason", "why the watermarks go back", "no text")?;
        ensure(!self.rewinds.is_empty(), "rewinds", "at least one", "none")?;
        let mut seen = BTreeSet::new();
        for (at, rewind) in self.rewinds.iter().enumerate() {
            rewind.validate(&self.sink).map_err(|e| Invalid { place: format!("rewinds[{at}].{}", e.place), ..e })?;
            let place = format!("rewinds[{at}].watermark");
            ensure(seen.insert(&rewind.watermark), &place, "each watermark once", &rewind.watermark)?;
        }
        Ok(())
    }
}

impl Rewind {
    fn validate(&self, sink: &Sink) -> Result<(), Invalid> {
        let Self { observed, target, guard, counts, accepted, undo, .. } = self;
        match WatermarkPath::new(sink, &self.dataset, &self.partition) {
            Ok(path) => ensure(path == self.watermark, "watermark", path.as_str(), &self.watermark)?,
            Err(e) => ensure(false, "partition", "names that make a watermark path", e)?,
        }
        let to = target.last_exported_seq;
        let back = format!("a seq below observed.seq, {}", observed.seq);
        ensure(to < observed.seq, "target.last_exported_seq", back, to)?;
        if let Some(first) = target.first_replayed_seq {
            ensure(first > to, "target.first_replayed_seq", format!("a seq above the target, {to}"), first)?;
        }

        ensure(guard.watermark_v == 1, "guard.watermark_v", "1", guard.watermark_v)?;
        ensure(guard.continuation_v == 1, "guard.continuation_v", "1", guard.continuation_v)?;
        ensure_same("guard.min_seq", &guard.min_seq, "observed.seq", &observed.seq)?;
        let count = &observed.exported_row_count;
        let place = "guard.min_exported_row_count";
        ensure_same(place, &guard.min_exported_row_count, "observed.exported_row_count", count)?;
        ensure_same("guard.above_seq", &guard.above_seq, "target.last_exported_seq", &to)?;
        if let Some(row) = &guard.last_row {
            ensure(row.seq <= to, "guard.last_row.seq", format!("a seq at or below the target, {to}"), row.seq)?;
        }
        let next = guard.next_row.as_ref().map(|row| row.seq);
        ensure_same("guard.next_row.seq", &next, "target.first_replayed_seq", &target.first_replayed_seq)?;

        ensure_same("undo.last_exported_seq", &undo.last_exported_seq, "observed.seq", &observed.seq)?;
        ensure_same("undo.valid_below_seq", &undo.valid_below_seq, "observed.seq", &observed.seq)?;

        if let Some(lost) = counts.lost.filter(|lost| *lost > 0) {
            ensure_same("accepted.loss", &accepted.loss, "counts.lost", &Some(lost))?;
        }
        ensure(counts.withheld == 0 || accepted.withheld, "accepted.withheld", "true, as rows are withheld", "false")?;
        ensure(self.proven || accepted.unproven, "accepted.unproven", "true, as the boundary is not proven", "false")?;
        let full = to == Seq::ZERO;
        ensure(!full || accepted.full_resend, "accepted.full_resend", "true, as the target is 0", "false")
    }
}
