//! `plan apply --watch` against a daemon whose every write the test decides.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::life::{GAP, Life, OLD, SENT, TARGET};
use crate::support::{CLAUDE, Ran, T, command, items};

/// Applies with a watch, in the background.
struct Watch {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// What it has said so far.
    said: String,
}

impl Watch {
    /// Starts it, and returns when it waits for the daemon.
    fn start(life: &Life, more: &[&str]) -> Self {
        let mut child = command()
            .args(["--home", &life.home(), "--format", "json", "plan", "apply", &life.plan(), "--watch"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("its messages"));
        let mut watch = Self { child, stderr, said: String::new() };
        watch.wait_until_it_says("waiting for the daemon's own write");
        watch
    }

    fn wait_until_it_says(&mut self, wanted: &str) {
        let begun = self.said.len();
        while !self.said[begun..].contains(wanted) {
            let read = self.stderr.read_line(&mut self.said).expect("a line");
            assert!(read > 0, "it never said `{wanted}`: {}", self.said);
        }
    }

    fn end(mut self) -> Ran {
        self.stderr.read_to_string(&mut self.said).expect("text");
        let output = self.child.wait_with_output().expect("an end");
        Ran {
            status: output.status.code().expect("an exit status"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: self.said,
        }
    }

    #[cfg(unix)]
    fn interrupt(&self) {
        let sent = std::process::Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }
}

/// The judgements of a receipt's attempts.
fn judgements(life: &Life) -> Vec<Value> {
    let receipt = life.receipt();
    items(&receipt["attempts"]).iter().map(|a| a["swaps"][0]["judgement"]["verdict"].clone()).collect()
}

#[test]
fn swaps_after_the_daemons_own_write_and_sees_it_honoured() {
    let life = Life::new();
    let watch = Watch::start(&life, &["--timeout", "60s"]);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(life.mark(), (OLD, SENT), "nothing is swapped before the daemon wrote");
    life.tick(1299, SENT + 2);
    life.wait_for(TARGET);
    assert_eq!(life.mark(), (TARGET, SENT + 2));
    life.tick(1299, SENT + 2 + GAP + 2);
    let ran = watch.end().exits(0);
    let answer = ran.json();
    assert_eq!(
        (&answer["verdict"], &answer["watched"], &answer["attempts"]),
        (&json!("honoured"), &json!(true), &json!(1))
    );
    assert_eq!(answer["rewinds"][0]["verdict"], "honoured");
    assert!(
        ran.stderr.contains("waiting for the daemon's own write") && ran.stderr.contains("swapped"),
        "{}",
        ran.stderr
    );
    assert_eq!(judgements(&life), ["honoured"]);
}

#[test]
fn swaps_again_when_a_tick_in_flight_wrote_over_it() {
    let life = Life::new();
    let watch = Watch::start(&life, &["--timeout", "60s"]);
    life.tick(1282, SENT + 1);
    life.wait_for(TARGET);
    life.tick(1299, SENT + 3);
    life.wait_for(TARGET);
    life.tick(1299, SENT + 3 + GAP + 2);
    let ran = watch.end().exits(0);
    assert_eq!((&ran.json()["verdict"], &ran.json()["attempts"]), (&json!("honoured"), &json!(2)));
    assert!(ran.stderr.contains("clobbered") && ran.stderr.contains("swapped again"), "{}", ran.stderr);
    assert_eq!(judgements(&life), ["clobbered", "honoured"]);
}

#[test]
fn gives_up_after_so_many_swaps_that_were_clobbered() {
    let life = Life::new();
    let watch = Watch::start(&life, &["--timeout", "60s", "--retries", "1"]);
    life.tick(1282, SENT + 1);
    life.wait_for(TARGET);
    life.tick(1299, SENT + 3);
    life.wait_for(TARGET);
    life.tick(1301, SENT + 4);
    let ran = watch.end().exits(1);
    assert_eq!((&ran.json()["verdict"], &ran.json()["attempts"]), (&json!("clobbered"), &json!(2)));
    assert_eq!(judgements(&life), ["clobbered", "clobbered"]);
    assert_eq!(life.mark().0, 1301);
}

#[test]
fn sees_that_policy_dropped_the_rows_again() {
    let life = Life::of("neutral", &[&CLAUDE[..], &["--since", T, "--accept-withheld"]].concat());
    let watch = Watch::start(&life, &["--timeout", "8s"]);
    life.wait_for(722);
    life.tick(1495, 665);
    let ran = watch.end().exits(1);
    let answer = ran.json();
    assert_eq!(answer["verdict"], "dropped-again");
    let detail = answer["rewinds"][0]["detail"].as_str().expect("text");
    assert!(detail.contains("source claude is opted out of sync"), "{detail}");
    assert_eq!(judgements(&life), ["dropped-again"]);
}

#[test]
fn silence_is_never_success() {
    let life = Life::new();
    let outbox = life.home.join("hypaware/sinks/central/outbox");
    std::fs::create_dir_all(&outbox).expect("a folder");
    std::fs::write(outbox.join("1.json"), "{}").expect("written");
    let ran = Watch::start(&life, &["--timeout", "2s"]).end().exits(1);
    let answer = ran.json();
    assert_eq!(answer["verdict"], "pending");
    let detail = answer["rewinds"][0]["detail"].as_str().expect("text");
    assert!(detail.contains("no tick has ended since the swap") && detail.contains("in its outbox"), "{detail}");
    assert!(ran.stderr.contains("the daemon did not write"), "{}", ran.stderr);
    assert_eq!(judgements(&life), ["pending"]);
    assert_eq!(life.mark(), (TARGET, SENT));
}

#[cfg(unix)]
#[test]
fn an_interrupt_before_the_swap_changes_nothing() {
    let life = Life::new();
    let before = life.tree();
    let watch = Watch::start(&life, &["--timeout", "60s"]);
    watch.interrupt();
    let ran = watch.end().exits(1);
    assert_eq!(ran.json()["verdict"], "stopped");
    assert_eq!(life.tree(), before);
    life.json("apply", &[]).exits(0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_after_the_swap_leaves_a_true_receipt() {
    let life = Life::new();
    let mut watch = Watch::start(&life, &["--timeout", "60s"]);
    life.tick(1282, SENT + 1);
    watch.wait_until_it_says("swapped; watching");
    watch.interrupt();
    let ran = watch.end().exits(1);
    assert_eq!(ran.json()["verdict"], "pending");
    assert_eq!(judgements(&life), ["pending"]);
    assert_eq!(life.receipt()["attempts"][0]["state"], "applied");
    life.tick(1299, SENT + 1 + GAP + 2);
    let listed = crate::support::json_of(&life.home(), &["plan", "list"]).exits(0).json();
    assert_eq!(listed[0]["verdict"], "honoured", "{listed:#}");
}

#[test]
fn spans_of_time_are_typed_with_their_unit() {
    let life = Life::new();
    let ran = life.json("apply", &["--watch", "--timeout", "10"]).exits(2);
    assert!(ran.stderr.contains("not a span of time; expected such as 30s, 10m or 1h"), "{}", ran.stderr);
    let ran = life.json("apply", &["--timeout", "10m"]).exits(2);
    assert!(ran.stderr.contains("--watch"), "{}", ran.stderr);
}
