//! What the tests of a plan's life share: a home to rewind, a plan for it, and a daemon's ticks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hypseq_plan::Plan;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{CLAUDE, Ran, T, copy_tree, files, json_of, run, testdata};

pub const INSTANCE: &str = "hypaware/plugins/@hypaware/central/sink-instances/central";
/// The claude watermark of `monotone`, where the plan puts it, and the rows between.
pub const OLD: i64 = 1280;
pub const SENT: u64 = 661;
pub const TARGET: i64 = 719;
pub const GAP: u64 = 512;

/// A copy of `monotone`, and a plan for it beside it.
pub struct Life {
    pub folder: TempDir,
    pub home: PathBuf,
    pub plan: PathBuf,
}

impl Life {
    pub fn new() -> Self {
        let life = Self::without_plan("monotone");
        // Copies are one home to a plan, and making it takes longer than all that is done with it.
        fs::write(&life.plan, the_plan()).expect("written");
        life
    }

    pub fn of(corpus: &str, what: &[&str]) -> Self {
        let life = Self::without_plan(corpus);
        life.write_plan(&life.plan, what);
        life
    }

    fn without_plan(corpus: &str) -> Self {
        let folder = folder();
        let (home, plan) = (folder.path().join(corpus), folder.path().join("plan.json"));
        copy_tree(&testdata().join(corpus), &home);
        Self { folder, home, plan }
    }

    pub fn write_plan(&self, to: &Path, what: &[&str]) {
        let base = ["plan", "rewind", "--sink", "central", "--reason", "opt-out of 28 July", "--out"];
        let out = to.to_string_lossy().into_owned();
        json_of(&self.home(), &[&base[..], &[&out], what].concat()).exits(0);
    }

    /// Replaces the plan by one that was changed, with a checksum that fits.
    pub fn reseal(&self, mut plan: Plan) {
        plan.seal().expect("sealed");
        fs::write(&self.plan, serde_json::to_string_pretty(&plan).expect("JSON")).expect("written");
    }

    pub fn home(&self) -> String {
        self.home.to_string_lossy().into_owned()
    }

    pub fn plan(&self) -> String {
        self.plan.to_string_lossy().into_owned()
    }

    /// `plan VERB PLAN …` with JSON.
    pub fn json(&self, verb: &str, more: &[&str]) -> Ran {
        json_of(&self.home(), &[&["plan", verb, &self.plan()][..], more].concat())
    }

    pub fn text(&self, verb: &str, more: &[&str]) -> Ran {
        run([&["--home", &self.home(), "plan", verb, &self.plan()][..], more].concat())
    }

    pub fn watermark(&self) -> PathBuf {
        self.home.join(INSTANCE).join("watermarks/ai_gateway_messages/source=claude.json")
    }

    pub fn watermark_text(&self) -> String {
        fs::read_to_string(self.watermark()).expect("a watermark")
    }

    /// The seq and the count of the watermark.
    pub fn mark(&self) -> (i64, u64) {
        let file: Value = serde_json::from_str(&self.watermark_text()).expect("JSON");
        let seq = file["continuation"]["seq"].as_str().expect("text").parse().expect("a number");
        (seq, file["exportedRowCount"].as_u64().expect("a number"))
    }

    /// What the daemon does at the end of a tick.
    pub fn tick(&self, seq: impl Into<i128>, exported: u64) {
        let path = self.watermark();
        let temporary = path.with_extension("json.tmp");
        fs::write(&temporary, text(seq, exported, "2026-12-01T10:00:59.000Z")).expect("written");
        fs::rename(temporary, path).expect("renamed");
    }

    /// Waits until the watermark stands there.
    pub fn wait_for(&self, seq: i64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.mark().0 != seq {
            assert!(Instant::now() < deadline, "the watermark stays at {:?}", self.mark());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The receipt of the plan.
    pub fn receipt(&self) -> Value {
        let plan: Value = serde_json::from_slice(&fs::read(&self.plan).expect("a plan")).expect("JSON");
        let path = self.home.join(INSTANCE).join(format!("rewinds/{}.json", plan["id"].as_str().expect("an id")));
        serde_json::from_slice(&fs::read(path).expect("a receipt")).expect("JSON")
    }

    /// Opts the claude source out of sync.
    pub fn opt_out(&self) {
        let policy = self.home.join("hypaware/usage-policy");
        fs::create_dir_all(&policy).expect("a folder");
        let store = r#"{"version":1,"entries":[{"source":"claude","class":"local-only"}]}"#;
        fs::write(policy.join("client-sync.json"), store).expect("written");
    }

    /// Mode and content of everything in the home.
    pub fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        list(&self.home, &mut tree);
        tree
    }

    /// The same without what a refused apply may leave: its lock, and the empty folder of the receipts.
    pub fn tree_but_lock(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut tree = self.tree();
        tree.retain(|path, _| !path.ends_with("rewind.lock") && !path.ends_with("rewinds"));
        tree
    }

    /// The temporary files of a consumer that are left in the home.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let plugins = self.home.join("hypaware/plugins");
        let mut found = files(&plugins, ".new");
        found.extend(files(&plugins, ".old"));
        found.extend(files(&plugins, ".tmp"));
        found
    }
}

/// A folder in memory where that can be: these tests flush many files, and read homes whole to see what changed.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary folder")
}

/// The plan for `monotone`.
fn the_plan() -> &'static [u8] {
    static PLAN: OnceLock<Vec<u8>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let life = Life::of("monotone", &[&CLAUDE[..], &["--since", T]].concat());
        fs::read(&life.plan).expect("a plan")
    })
}

fn list(folder: &Path, tree: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        let content = if metadata.is_file() { fs::read(&path).expect("content") } else { Vec::new() };
        if metadata.is_dir() {
            list(&path, tree);
        }
        tree.insert(path, (mode(&metadata), content));
    }
}

#[cfg(unix)]
pub fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777
}

#[cfg(not(unix))]
pub fn mode(_: &fs::Metadata) -> u32 {
    0
}

/// A watermark as HypAware writes it.
pub fn text(seq: impl Into<i128>, exported: u64, updated_at: &str) -> String {
    let seq = seq.into();
    format!(
        "{{\n  \"v\": 1,\n  \"continuation\": {{\n    \"v\": 1,\n    \"seq\": \"{seq}\"\n  }},\n  \"exportedRowCount\": \
         {exported},\n  \"updatedAt\": \"{updated_at}\"\n}}\n"
    )
}

/// The codes of the reasons in an answer, of the plan and of its rewinds.
pub fn codes(answer: &Value) -> Vec<String> {
    let of = |value: &Value| -> Vec<String> {
        let reasons = value["reasons"].as_array().cloned().unwrap_or_default();
        reasons.iter().map(|r| r["code"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let rewinds = answer["rewinds"].as_array().cloned().unwrap_or_default();
    let mut codes = of(answer);
    codes.extend(rewinds.iter().flat_map(of));
    codes
}
