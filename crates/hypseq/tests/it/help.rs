//! Help, manual pages and completions.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{command, run};

/// Everything that can be typed after the program's name.
const COMMANDS: [&str; 15] = [
    "status",
    "sql",
    "query",
    "resolve",
    "verify",
    "plan",
    "plan rewind",
    "plan show",
    "plan check",
    "plan apply",
    "plan undo",
    "plan list",
    "plan schema",
    "completions",
    "man",
];

#[test]
fn help_fits_a_terminal_of_80_columns_and_ends_with_an_example() {
    for name in COMMANDS.into_iter().chain([""]) {
        let output = command().args(name.split_whitespace()).arg("--help").env("COLUMNS", "80").output().expect("runs");
        assert!(output.status.success(), "{name}");
        let help = String::from_utf8(output.stdout).expect("text");
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [""; 0], "{name}");
        let example = help.rsplit_once("\n\n").expect("an example").1;
        assert!(example.starts_with("Example: hypseq "), "{name}: {example}");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let script = run(["completions", "bash"]).exits(0).stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().expect("bash");
    bash.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("written");
    assert!(bash.wait().expect("an end").success());
    let complete = |words: &str, typed: &str| {
        let last = words.split_whitespace().count();
        let ask = format!(
            "{script}\nCOMP_WORDS=({words} '{typed}'); COMP_CWORD={last}\n_hypseq hypseq '{typed}' ''\nprintf '%s\\n' \
             \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["-c", &ask]).output().expect("bash");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("hypseq", "res"), "resolve\n");
    assert_eq!(complete("hypseq plan", "rew"), "rewind\n");
    assert_eq!(complete("hypseq plan rewind", "--accept-l"), "--accept-loss\n");
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).exits(0).stdout;
        assert!(script.contains("rewind") && script.contains("accept-loss"), "{shell}");
    }
    let refused = run(["completions", "csh"]).exits(2);
    assert!(refused.stderr.contains("possible values: bash, elvish, fish, powershell, zsh"), "{}", refused.stderr);
}

#[test]
fn the_manual_has_a_section_for_every_command() {
    let page = run(["man"]).exits(0).stdout;
    for heading in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES"] {
        assert_eq!(page.lines().filter(|line| *line == format!(".SH {heading}")).count(), 1, "{heading}");
    }
    for name in COMMANDS.iter().filter(|name| **name != "plan") {
        let heading = format!(".SH \"HYPSEQ {}\"", name.to_uppercase());
        assert_eq!(page.lines().filter(|line| *line == heading).count(), 1, "{heading}");
    }
    assert_eq!(page.matches("When to use colour").count(), 1, "the options of all commands stand there once");
}

#[test]
fn a_command_has_a_page_of_its_own() {
    let page = run(["man", "plan", "rewind"]).exits(0).stdout;
    assert!(page.contains(".TH hypseq-plan-rewind 1"), "{page}");
    assert!(page.contains("accept\\-loss") && page.contains("When to use colour"), "{page}");
    let sql = run(["man", "sql"]).exits(0).stdout;
    let (description, rest) = sql.split_once("\n.SH OPTIONS\n").expect("options");
    let (_, description) = description.split_once("\n.SH DESCRIPTION\n").expect("a description");
    assert!(description.starts_with("Run SQL over the cache") && description.contains("\nSchemas: live"), "{sql}");
    let (_, example) = rest.split_once("\n.SH EXAMPLES\n").expect("an example");
    assert!(example.starts_with(".nf\nhypseq sql ") && !example.contains("Schemas"), "{sql}");
    let refused = run(["man", "plan", "nope"]).exits(2);
    assert!(
        refused.stderr.contains("`hypseq plan` has no command `nope`\n  hint: there are rewind, "),
        "{}",
        refused.stderr
    );
    assert!(run(["man", "status", "nope"]).exits(2).stderr.contains("it has no commands of its own"));
}

#[test]
fn whoever_reads_may_go_away() {
    for args in [&["man"][..], &["completions", "zsh"]] {
        let mut child = command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        drop(child.stdout.take());
        assert!(child.wait().expect("an end").success(), "{args:?}");
        let mut errors = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        assert_eq!(errors, "");
    }
}
