//! A home to rewind: the sink folder of the cache `neutral`, copied, and a world that can be told what to say.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hypseq_plan::{BoundaryRefusal, ConsumeError, Consumer, Observed, Plan, Receipt, Refusal, Rewind, Time, World};
use tempfile::TempDir;

use crate::sample::{plan_of, rewind, seq, time};

pub const CLAUDE: &str = "source=claude";
pub const CODEX: &str = "source=codex";
pub const INSTANCE: &str = "plugins/@hypaware/central/sink-instances/central";

/// Mode and content by path below the state root.
pub type Tree = BTreeMap<String, (u32, Vec<u8>)>;

pub struct Home {
    _folder: TempDir,
    pub state_root: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        // In memory where that can be: the tests that stop at every step flush thousands of files.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let state_root = folder.path().join("hypaware");
        let home = Self { _folder: folder, state_root };
        fs::create_dir_all(home.watermark(CLAUDE).parent().unwrap()).unwrap();
        for partition in [CLAUDE, CODEX] {
            fs::write(home.watermark(partition), original(partition)).unwrap();
        }
        home
    }

    pub fn instance(&self) -> PathBuf {
        self.state_root.join(INSTANCE)
    }

    pub fn watermark(&self, partition: &str) -> PathBuf {
        self.instance().join("watermarks/ai_gateway_messages").join(format!("{partition}.json"))
    }

    pub fn text(&self, partition: &str) -> String {
        fs::read_to_string(self.watermark(partition)).unwrap()
    }

    pub fn receipt_path(&self, plan: &Plan) -> PathBuf {
        self.instance().join("rewinds").join(format!("{}.json", plan.id))
    }

    pub fn receipt(&self, plan: &Plan) -> Receipt {
        Receipt::read(&self.receipt_path(plan)).unwrap()
    }

    /// What the daemon does at the end of a tick.
    pub fn tick(&self, partition: &str, to: i64, exported: u64) {
        let text = text(to, exported, "2026-12-01T10:00:59.000Z");
        let path = self.watermark(partition);
        let temporary = path.with_extension("json.tmp");
        fs::write(&temporary, text).unwrap();
        fs::rename(temporary, path).unwrap();
    }

    /// Every file and folder below the state root, with mode and content.
    pub fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        list(&self.state_root, &self.state_root, &mut tree);
        tree
    }

    /// The files of the sink instance that are neither watermarks, nor receipts, nor the lock.
    pub fn leftovers(&self) -> Vec<String> {
        let expected = |name: &String| {
            let path = self.state_root.join(name);
            path.is_dir() || path.ends_with("rewind.lock") || path.extension().is_some_and(|e| e == "json")
        };
        self.tree().into_keys().filter(|name| !expected(name)).collect()
    }
}

fn list(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        tree.insert(name, (mode(&metadata), content));
        if metadata.is_dir() {
            list(root, &path, tree);
        }
    }
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions())
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

/// The watermark file of the cache `neutral`.
pub fn original(partition: &str) -> String {
    let neutral = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/neutral/hypaware");
    let path = Path::new(neutral).join(INSTANCE).join(format!("watermarks/ai_gateway_messages/{partition}.json"));
    fs::read_to_string(path).unwrap()
}

/// A watermark file, spelled out here once more as HypAware writes it.
pub fn text(seq: i64, exported: u64, updated_at: &str) -> String {
    format!(
        r#"{{
  "v": 1,
  "continuation": {{
    "v": 1,
    "seq": "{seq}"
  }},
  "exportedRowCount": {exported},
  "updatedAt": "{updated_at}"
}}
"#
    )
}

/// The present time of the tests.
pub const NOW: &str = "2026-12-01T10:00:00.000Z";

/// A world in which every boundary holds, unless it is told otherwise.
pub struct Told {
    pub now: Cell<Time>,
    pub boundary: RefCell<Result<(), BoundaryRefusal>>,
}

impl Told {
    pub fn well() -> Self {
        Self { now: Cell::new(time(NOW)), boundary: RefCell::new(Ok(())) }
    }
}

impl World for Told {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn boundary_holds(&self, _: &Rewind) -> Result<(), BoundaryRefusal> {
        self.boundary.borrow().clone()
    }
}

/// A sealed plan for the claude partition of `neutral`: 1495 back to 722.
pub fn one() -> Plan {
    sealed(vec![rewind("ai_gateway_messages", CLAUDE, 1495, 665, 722)])
}

/// The same and 1329 back to 500 for codex.
pub fn two() -> Plan {
    sealed(vec![
        rewind("ai_gateway_messages", CLAUDE, 1495, 665, 722),
        rewind("ai_gateway_messages", CODEX, 1329, 299, 500),
    ])
}

pub fn sealed(rewinds: Vec<Rewind>) -> Plan {
    let mut plan = plan_of(rewinds);
    plan.seal().unwrap();
    plan
}

pub fn observed(value: i64, exported_row_count: u64) -> Observed {
    Observed { seq: seq(value), exported_row_count, updated_at: NOW.into() }
}

/// The refusals with which an apply ends; it must have changed nothing but the lock file.
pub fn refusals(home: &Home, world: &Told, plan: &Plan) -> Vec<Refusal> {
    let before = home.tree();
    let result = Consumer::new(&home.state_root, world).apply(plan);
    let mut after = home.tree();
    if !before.contains_key(&format!("{INSTANCE}/rewind.lock")) {
        after.remove(&format!("{INSTANCE}/rewind.lock"));
    }
    assert_eq!(before, after);
    match result {
        Err(ConsumeError::Refused(refusals)) => refusals,
        other => panic!("{other:?}"),
    }
}

/// The only refusal.
pub fn refusal(home: &Home, world: &Told, plan: &Plan) -> Refusal {
    let mut refusals = refusals(home, world, plan);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals.remove(0)
}
