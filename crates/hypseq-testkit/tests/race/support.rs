//! A small home without a cache, a plan for it, and a consumer's world.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hypseq_plan::{
    Accepted, Boundary, BoundaryRefusal, Counts, Exclusions, Guard, Observed, PLAN_KIND, PLAN_VERSION, Plan, Policy,
    Rewind, Row, Seq, Sha256, Sink, Target, Time, Tool, Undo, WatermarkPath, World, watermark_text,
};
use hypseq_testkit::daemon::{DaemonSpec, Event, What, read_log};
use tempfile::TempDir;

pub const DATASET: &str = "ai_gateway_messages";
pub const SPEC: &str = "HYPSEQ_DAEMON_SPEC";

/// A world in which every boundary holds, at a fixed time or at the present one.
pub struct Sound(pub Option<Time>);

impl World for Sound {
    fn now(&self) -> Time {
        self.0.unwrap_or_else(Time::now)
    }

    fn boundary_holds(&self, _: &Rewind) -> Result<(), BoundaryRefusal> {
        Ok(())
    }
}

pub fn sink() -> Sink {
    Sink { plugin: "@hypaware/central".into(), instance: "central".into() }
}

pub fn seq(value: i64) -> Seq {
    Seq::new(value).expect("a seq")
}

/// A folder in memory where that can be: these tests flush thousands of files.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Writes the watermarks of a home, each `(partition, seq, exported)`.
pub fn write_watermarks(state_root: &Path, marks: &[(&str, i64, u64)]) {
    for (partition, value, exported) in marks {
        let path = WatermarkPath::new(&sink(), DATASET, partition).expect("a path").under(state_root);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, watermark_text(&observed(*value, *exported))).expect("written");
    }
}

pub fn observed(value: i64, exported_row_count: u64) -> Observed {
    Observed { seq: seq(value), exported_row_count, updated_at: "2026-12-01T03:19:36.701Z".into() }
}

/// A plan of `(partition, observed seq, exported, target)`.
pub fn plan(rewinds: &[(&str, i64, u64, i64)]) -> Plan {
    let now = Time::now();
    let mut plan = Plan {
        v: PLAN_VERSION,
        kind: PLAN_KIND.into(),
        id: uuid::Uuid::now_v7(),
        created_at: now,
        expires_at: now.plus(hypseq_plan::DEFAULT_LIFETIME).expect("a time"),
        created_by: Tool { name: "test".into(), version: "0".into() },
        reason: "a race".into(),
        sink: sink(),
        rewinds: rewinds
            .iter()
            .map(|(partition, from, exported, to)| rewind(partition, *from, *exported, *to))
            .collect(),
        checksum: Sha256::of(b""),
    };
    plan.seal().expect("sealed");
    plan
}

fn rewind(partition: &str, from: i64, exported: u64, to: i64) -> Rewind {
    let row = |value: i64| Some(Row { seq: seq(value), time: None, id: None });
    let observed = observed(from, exported);
    Rewind {
        dataset: DATASET.into(),
        partition: partition.into(),
        watermark: WatermarkPath::new(&sink(), DATASET, partition).expect("a path"),
        target: Target { last_exported_seq: seq(to), first_replayed_seq: Some(seq(to + 1)) },
        guard: Guard {
            watermark_v: 1,
            continuation_v: 1,
            min_seq: observed.seq,
            min_exported_row_count: exported,
            above_seq: seq(to),
            generation: "table".into(),
            table_uuid: "0b6f0e9c-5d3c-4b8e-9a53-6d7f6f0d2f11".into(),
            last_row: row(to),
            next_row: row(to + 1),
        },
        boundary: Boundary {
            policy: Policy::Seq,
            at: None,
            as_typed: to.to_string(),
            zone: None,
            time_column: None,
            tight_seq: None,
            safe_seq: None,
            first_seq_after: None,
            last_row: row(to),
            next_row: row(to + 1),
            straddle: None,
            exclusions: Exclusions::default(),
        },
        counts: Counts {
            replayed: from.abs_diff(to),
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
    }
}

/// The model in a process of its own, ended when it is dropped.
pub struct Model {
    child: Child,
    log: PathBuf,
}

impl Model {
    /// Starts it: this very program again, whose test `the_daemon` runs the model.
    pub fn start(spec: &DaemonSpec) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["the_daemon", "--exact", "--ignored", "--nocapture"])
            .env(SPEC, serde_json::to_string(spec).expect("JSON"))
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        Self { child, log: spec.log.clone() }
    }

    pub fn log(&self) -> Vec<Event> {
        read_log(&self.log).unwrap_or_default()
    }

    /// Waits until so many more ticks have begun than had when this was called.
    pub fn wait_for_ticks(&self, more: usize) {
        let reads = || self.log().iter().filter(|event| event.what == What::Read).count();
        let wanted = reads() + more;
        let deadline = Instant::now() + Duration::from_secs(20);
        while reads() < wanted {
            assert!(Instant::now() < deadline, "the model has stopped");
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Files below a folder that are neither JSON, nor the lock, nor the log.
pub fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let expected = path.extension().is_some_and(|e| e == "json" || e == "lock" || e == "log");
        if path.is_dir() {
            found.extend(leftovers(&path));
        } else if !expected {
            found.push(path);
        }
    }
    found
}
