//! Runs the program and reads what it printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A program that hangs fails its test.
const PATIENCE: Duration = Duration::from_mins(2);

pub const CORPORA: [&str; 6] = ["crashed", "legacy", "monotone", "neutral", "sinks", "skew"];
pub const CLAUDE: [&str; 4] = ["--dataset", "ai_gateway_messages", "--partition", "source=claude"];
/// The time of the incident.
pub const T: &str = "2026-07-28T21:00:00.000Z";

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

pub fn home(name: &str) -> String {
    testdata().join(name).to_string_lossy().into_owned()
}

/// A copy of a home that may be damaged.
pub fn copy(name: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let to = folder.path().join(name);
    copy_tree(&testdata().join(name), &to);
    (folder, to)
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// Files below a folder whose name ends so, sorted.
pub fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, suffix));
        } else if path.to_string_lossy().ends_with(suffix) {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }

    /// The same, after checking the exit status.
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hypseq"));
    command.env_remove("HYP_HOME").env("NO_COLOR", "1").stdin(std::process::Stdio::null());
    command
}

pub fn run<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> Ran {
    let args: Vec<String> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
    let mut command = assert_cmd::Command::from_std(command());
    let Output { status, stdout, stderr } = command.args(&args).timeout(PATIENCE).output().expect("the program ends");
    Ran {
        status: status.code().expect("an exit status"),
        stdout: String::from_utf8(stdout).expect("text"),
        stderr: String::from_utf8(stderr).expect("text"),
    }
}

/// Runs a command on a home with `--format json`.
pub fn json_of(home: &str, args: &[&str]) -> Ran {
    run(["--home", home, "--format", "json"].iter().chain(args))
}

pub fn expected(name: &str) -> Value {
    let text = fs::read_to_string(testdata().join(format!("expected/{name}.expected.json"))).expect("expected values");
    serde_json::from_str(&text).expect("JSON")
}

/// Elements of a JSON array.
pub fn items(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// The item of an array whose field has this value.
pub fn by<'a>(value: &'a Value, field: &str, wanted: &str) -> &'a Value {
    items(value).iter().find(|v| v[field] == wanted).unwrap_or_else(|| panic!("no {field} {wanted} in {value:#}"))
}
