//! The README's examples print what it says they print.

use std::path::Path;
use std::process::Command;

use crate::support::testdata;

/// Commands and their output: the `console` blocks that run on a cache of the repository.
fn examples(readme: &str) -> Vec<(String, String)> {
    let blocks = readme.split("```console\n$ ").skip(1).filter_map(|b| b.split_once("\n```").map(|(block, _)| block));
    blocks
        .filter(|block| block.starts_with("hypseq --home testdata/"))
        .map(|block| {
            let mut command = String::new();
            let mut rest = block;
            loop {
                let (line, more) = rest.split_once('\n').expect("a command has output");
                command.push_str(line);
                command.push('\n');
                rest = more;
                if !line.ends_with('\\') && command.matches('"').count().is_multiple_of(2) {
                    return (command, format!("{rest}\n"));
                }
            }
        })
        .collect()
}

/// A plan has a new id and new times whenever it is made.
fn lasting(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("Rewind plan ") && !line.starts_with("  made ")).collect()
}

#[test]
fn examples_are_true() {
    let root = testdata().join("..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let program = Path::new(env!("CARGO_BIN_EXE_hypseq")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut checked = 0;
    for (command, expected) in examples(&readme) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&root).env("PATH", &path).env("COLUMNS", "100");
        let output = shell.output().expect("a shell");
        let shown = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert_eq!(lasting(&shown), lasting(&expected), "{command}");
        checked += 1;
    }
    assert_eq!(checked, 6);
}
