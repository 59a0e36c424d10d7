//! A daemon that takes rewind plans between its ticks.
//!
//! It does what HypAware does about once a minute: read the watermark, send the rows above it, write the
//! watermark once. Between two ticks nothing is in flight, so a plan applied there cannot be written over, and
//! the next tick sends what the plan asks for. Plans are files in a folder that the operator drops them into.
//!
//! Run it with `cargo run --example tick_loop`; it asserts what it shows.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use hypseq_plan::{
    Accepted, Boundary, BoundaryRefusal, ConsumeError, Consumer, Counts, Exclusions, Guard, Observed, PLAN_KIND,
    PLAN_VERSION, Plan, Policy, Rewind, Row, Seq, Sha256, Sink, Target, Time, Tool, Undo, WatermarkPath, World,
    parse_watermark, watermark_text,
};

/// The daemon's one partition: the seqs of its rows, and the table that holds them.
struct Daemon {
    state_root: PathBuf,
    watermark: WatermarkPath,
    table_uuid: String,
    rows: Vec<Seq>,
    sent: Vec<Seq>,
}

/// All that the consumer must know of the daemon's cache.
impl World for Daemon {
    fn boundary_holds(&self, rewind: &Rewind) -> Result<(), BoundaryRefusal> {
        if rewind.guard.table_uuid != self.table_uuid {
            let (expected, found) = (rewind.guard.table_uuid.clone(), self.table_uuid.clone());
            return Err(BoundaryRefusal::AnotherTable { expected, found });
        }
        let target = rewind.target.last_exported_seq;
        let next = self.rows.iter().find(|seq| **seq > target).copied();
        if next == rewind.target.first_replayed_seq {
            Ok(())
        } else {
            Err(BoundaryRefusal::Moved(format!("the first row above {target} is {next:?}")))
        }
    }
}

impl Daemon {
    fn tick(&mut self) -> Result<(), Box<dyn Error>> {
        let path = self.watermark.under(&self.state_root);
        let mut watermark = parse_watermark(&fs::read_to_string(&path)?)?;
        let above: Vec<Seq> = self.rows.iter().filter(|seq| **seq > watermark.seq).copied().collect();
        if let Some(last) = above.last() {
            watermark.seq = *last;
            watermark.exported_row_count += above.len() as u64;
            watermark.updated_at = Time::now().to_string();
            self.sent.extend(above);
            let temporary = path.with_extension("tmp");
            fs::write(&temporary, watermark_text(&watermark))?;
            fs::rename(&temporary, &path)?;
        }
        Ok(())
    }

    /// Applies every plan in the folder and takes it away, whatever came of it; what did is returned.
    fn take_plans(&self, inbox: &Path) -> Result<Vec<String>, Box<dyn Error>> {
        let mut log = Vec::new();
        for entry in fs::read_dir(inbox)? {
            let path = entry?.path();
            log.push(match Plan::read(&path) {
                Ok(plan) => match Consumer::new(&self.state_root, self).apply(&plan) {
                    Ok(applied) => format!("applied {}", applied.receipt.id),
                    // Left where it is: the next turn finishes it or takes it back.
                    Err(ConsumeError::Unfinished { .. }) => continue,
                    Err(error) => error.to_string(),
                },
                Err(error) => error.to_string(),
            });
            fs::remove_file(&path)?;
        }
        Ok(log)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let inbox = tempfile::tempdir()?;
    let sink = Sink { plugin: "@hypaware/central".into(), instance: "central".into() };
    let mut daemon = Daemon {
        state_root: home.path().join("hypaware"),
        watermark: WatermarkPath::new(&sink, "logs", "source=app")?,
        table_uuid: "0b6f0e9c-5d3c-4b8e-9a53-6d7f6f0d2f11".into(),
        rows: (1..=9).filter_map(Seq::new).collect(),
        sent: Vec::new(),
    };
    let path = daemon.watermark.under(&daemon.state_root);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let start = Observed { seq: Seq::ZERO, exported_row_count: 0, updated_at: Time::now().to_string() };
    fs::write(&path, watermark_text(&start))?;

    daemon.tick()?;
    let plan = back_to(&daemon, &sink, 6)?;
    plan.write(&inbox.path().join("plan.json"), home.path())?;

    // The loop: between two ticks, the plans.
    let log = daemon.take_plans(inbox.path())?;
    daemon.tick()?;
    assert_eq!(log, [format!("applied {}", plan.id)]);
    assert_eq!(daemon.sent.iter().map(|seq| seq.get()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9]);

    // A plan is used once.
    plan.write(&inbox.path().join("again.json"), home.path())?;
    let log = daemon.take_plans(inbox.path())?;
    assert!(log[0].contains("the plan was used before"), "{log:?}");
    Ok(())
}

/// A plan as `hypseq plan rewind` writes them, here made by hand: back to a seq, whatever is sent twice.
fn back_to(daemon: &Daemon, sink: &Sink, target: i64) -> Result<Plan, Box<dyn Error>> {
    let target = Seq::new(target).ok_or("a negative seq")?;
    let observed = parse_watermark(&fs::read_to_string(daemon.watermark.under(&daemon.state_root))?)?;
    let row = |seq: &Seq| Row { seq: *seq, time: None, id: None };
    let last_row = daemon.rows.iter().rfind(|seq| **seq <= target).map(row);
    let next_row = daemon.rows.iter().find(|seq| **seq > target).map(row);
    let first_replayed_seq = next_row.as_ref().map(|row| row.seq);
    let replayed = daemon.rows.iter().filter(|seq| **seq > target && **seq <= observed.seq).count() as u64;
    let now = Time::now();
    let mut plan = Plan {
        v: PLAN_VERSION,
        kind: PLAN_KIND.into(),
        id: uuid::Uuid::now_v7(),
        created_at: now,
        expires_at: now.plus(hypseq_plan::DEFAULT_LIFETIME).ok_or("a time beyond the year 9999")?,
        created_by: Tool { name: "tick_loop".into(), version: env!("CARGO_PKG_VERSION").into() },
        reason: "the server lost its last rows".into(),
        sink: sink.clone(),
        rewinds: vec![Rewind {
            dataset: "logs".into(),
            partition: "source=app".into(),
            watermark: daemon.watermark.clone(),
            guard: Guard {
                watermark_v: 1,
                continuation_v: 1,
                min_seq: observed.seq,
                min_exported_row_count: observed.exported_row_count,
                above_seq: target,
                generation: "table".into(),
                table_uuid: daemon.table_uuid.clone(),
                last_row: last_row.clone(),
                next_row: next_row.clone(),
            },
            target: Target { last_exported_seq: target, first_replayed_seq },
            boundary: Boundary {
                policy: Policy::Seq,
                at: None,
                as_typed: target.to_string(),
                zone: None,
                time_column: None,
                tight_seq: None,
                safe_seq: None,
                first_seq_after: None,
                last_row,
                next_row,
                straddle: None,
                exclusions: Exclusions::default(),
            },
            counts: Counts {
                replayed,
                pending: 0,
                spooled: 0,
                resent: None,
                lost: None,
                null_time_lost: 0,
                null_time_resent: 0,
                withheld: 0,
                unrecoverable: 0,
                legacy: 0,
                bytes: 0,
                chunks: 1,
            },
            evidence: Vec::new(),
            proven: false,
            witnesses: Vec::new(),
            accepted: Accepted { unproven: true, ..Accepted::default() },
            undo: Undo { last_exported_seq: observed.seq, valid_below_seq: observed.seq },
            observed,
        }],
        checksum: Sha256::of(b""),
    };
    plan.seal()?;
    Ok(plan)
}

/// The example stays true.
#[test]
fn runs() {
    main().unwrap();
}
