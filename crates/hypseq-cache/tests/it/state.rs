//! The seq allocator, the daemon's claim and the outboxes.

use hypseq_cache::{Allocator, Daemon, Severity};

use crate::support::Scratch;

const ALLOCATOR: &str = "hypaware/cache/_hyp_ingest_seq.json";
const PID: &str = "hypaware/run/hypaware.pid";

fn allocator_refused(content: &str) -> String {
    let scratch = Scratch::copy("neutral");
    scratch.file(ALLOCATOR, content);
    let problem = scratch.home().allocator().unwrap_err();
    assert_eq!((problem.code, problem.severity), ("allocator-unreadable", Severity::Error));
    assert_eq!(problem.path, scratch.path(ALLOCATOR));
    problem.message
}

#[test]
fn no_allocator() {
    assert_eq!(Scratch::new().home().allocator(), Ok(None));
}

#[test]
fn an_allocator_without_a_time() {
    let scratch = Scratch::new();
    scratch.file(ALLOCATOR, r#"{"v":1,"nextSeq":"9223372036854775807"}"#);
    let expected = Allocator { next_seq: i64::MAX, updated_at: None };
    assert_eq!(scratch.home().allocator(), Ok(Some(expected)));
}

#[test]
fn a_cut_allocator() {
    assert!(allocator_refused(r#"{"v":1,"nex"#).contains("which does not parse"));
}

#[test]
fn an_allocator_of_another_version() {
    assert_eq!(allocator_refused(r#"{"v":2,"nextSeq":"5"}"#), "expected `v` to be 1, found the number 2");
}

#[test]
fn an_allocator_without_a_sensible_seq() {
    for (seq, shown) in [
        ("5", "the number 5"),
        ("\"-5\"", "the string \"-5\""),
        ("\"9223372036854775808\"", "the string \"9223372036854775808\""),
    ] {
        assert_eq!(
            allocator_refused(&format!(r#"{{"v":1,"nextSeq":{seq}}}"#)),
            format!("expected `nextSeq` to be a decimal string from \"0\" to \"9223372036854775807\", found {shown}")
        );
    }
}

#[test]
fn an_allocator_with_a_time_that_is_no_text() {
    assert_eq!(
        allocator_refused(r#"{"v":1,"nextSeq":"5","updatedAt":7}"#),
        "expected `updatedAt` to be a string, found the number 7"
    );
}

#[test]
fn a_daemon() {
    let scratch = Scratch::new();
    scratch.file(PID, r#"{"pid":4242,"startedAt":"2026-12-01T03:19:00.000Z","runId":"r1","mode":"foreground"}"#);
    let expected = Daemon {
        pid: 4242,
        started_at: Some("2026-12-01T03:19:00.000Z".to_owned()),
        run_id: Some("r1".to_owned()),
        mode: Some("foreground".to_owned()),
    };
    assert_eq!(scratch.home().daemon(), Ok(Some(expected)));
}

#[test]
fn a_daemon_that_is_no_process() {
    for (content, message) in [
        ("4242", "expected a JSON object, found the number 4242"),
        (r#"{"pid":-1}"#, "expected `pid` to be a process id, found the number -1"),
        (r#"{"pid":4294967296}"#, "expected `pid` to be a process id, found the number 4294967296"),
        (r#"{"pid":1,"mode":2}"#, "expected `mode` to be a string, found the number 2"),
    ] {
        let scratch = Scratch::new();
        scratch.file(PID, content);
        let problem = scratch.home().daemon().unwrap_err();
        assert_eq!((problem.code, problem.severity), ("daemon-unreadable", Severity::Warning));
        assert_eq!(problem.message, message);
    }
}

#[test]
fn outboxes_are_counted_by_instance() {
    let scratch = Scratch::new();
    scratch.file("hypaware/sinks/nas/outbox/nas-1.json", "{}").file("hypaware/sinks/nas/outbox/nas-2.json", "{}");
    scratch.file("hypaware/sinks/nas/outbox/nas-3.json.tmp", "{}").folder("hypaware/sinks/nas/outbox/old.json");
    scratch.folder("hypaware/sinks/central/outbox").folder("hypaware/sinks/archive/other");
    let found = scratch.home().outbox();
    assert_eq!(found.problems, []);
    let counts: Vec<_> = found.value.iter().map(|outbox| (outbox.instance.as_str(), outbox.batches)).collect();
    assert_eq!(counts, [("central", 0), ("nas", 2)]);
    assert_eq!(found.value[1].dir, scratch.path("hypaware/sinks/nas/outbox"));
}
