//! Watermark files: where they are found, and what is refused.

use hypseq_cache::{Problem, Severity, Watermark};

use crate::support::{Scratch, codes, only};

const CENTRAL: &str = "hypaware/plugins/@hypaware/central/sink-instances/central";
const GOOD: &str = r#"{"v":1,"continuation":{"v":1,"seq":"7"},"exportedRowCount":3,"updatedAt":"t"}"#;

fn refused(content: impl AsRef<[u8]>) -> Problem {
    let scratch = Scratch::copy("neutral");
    scratch.file(&format!("{CENTRAL}/watermarks/ai_gateway_messages/source=claude.json"), content);
    let found = scratch.home().watermarks();
    let problem = found.value[0].state.clone().unwrap_err();
    assert!(found.value[1].state.is_ok());
    assert_eq!(only(&found.problems), &problem);
    assert_eq!((problem.code, problem.severity), ("watermark-unreadable", Severity::Error));
    problem
}

/// Refused by the daemon as well.
fn resends_everything(content: &str, message: &str) {
    let problem = refused(content);
    assert_eq!(problem.message, message);
    assert!(problem.advice.contains("export everything"), "{}", problem.advice);
}

/// Refused here, while the daemon goes on from the seq.
fn goes_on(content: &str, seq: &str, message: &str) {
    let problem = refused(content);
    assert_eq!(problem.message, message);
    assert!(problem.advice.contains(&format!("goes on from seq {seq};")), "{}", problem.advice);
}

#[test]
fn a_watermark() {
    let expected = Watermark { seq: 7, exported_row_count: 3, updated_at: "t".to_owned() };
    assert_eq!(Watermark::parse(GOOD.as_bytes()), Ok(expected));
}

#[test]
fn the_ends_of_the_seq_range() {
    for seq in ["0", "9223372036854775807"] {
        let watermark = Watermark::parse(GOOD.replace(r#""7""#, &format!("\"{seq}\"")).as_bytes()).unwrap();
        assert_eq!(watermark.seq.to_string(), seq);
    }
}

#[test]
fn later_fields_are_of_no_concern() {
    assert!(Watermark::parse(GOOD.replace("{\"v\":1,\"seq\"", "{\"v\":1,\"later\":[],\"seq\"").as_bytes()).is_ok());
}

#[test]
fn every_cut_is_refused() {
    for length in 0..GOOD.len() {
        assert!(Watermark::parse(&GOOD.as_bytes()[..length]).is_err(), "{length}");
    }
}

#[test]
fn an_empty_file() {
    resends_everything("\n", "expected a JSON object, found an empty file");
}

#[test]
fn bytes_that_are_no_text() {
    let problem = refused(b"\x00\xff\xfe");
    assert!(problem.message.starts_with(r#"expected a JSON object, found "\0"#), "{}", problem.message);
    assert!(problem.advice.contains("export everything"));
}

#[test]
fn no_object() {
    resends_everything("\"7\"", "expected a JSON object, found the string \"7\"");
}

#[test]
fn another_version() {
    goes_on(&GOOD.replacen("\"v\":1", "\"v\":2", 1), "7", "expected `v` to be 1, found the number 2");
}

#[test]
fn no_version() {
    goes_on(&GOOD.replacen("\"v\":1,", "", 1), "7", "expected `v` to be 1, found nothing");
}

#[test]
fn no_continuation() {
    resends_everything(
        r#"{"v":1,"exportedRowCount":3,"updatedAt":"t"}"#,
        "expected `continuation` to be an object, found nothing",
    );
}

#[test]
fn a_continuation_of_another_version() {
    resends_everything(
        &GOOD.replace("{\"v\":1,\"seq\"", "{\"v\":\"1\",\"seq\""),
        "expected `continuation.v` to be 1, found the string \"1\"",
    );
}

#[test]
fn a_seq_that_is_not_digits() {
    const EXPECTED: &str =
        "expected `continuation.seq` to be a decimal string from \"0\" to \"9223372036854775807\", found";
    for (seq, shown) in [
        ("\"-5\"", "the string \"-5\""),
        ("\"+5\"", "the string \"+5\""),
        ("\" 5\"", "the string \" 5\""),
        ("\"5\\n\"", "the string \"5\\n\""),
        ("\"\"", "the string \"\""),
        ("\"0x5\"", "the string \"0x5\""),
        ("\"٣\"", "the string \"٣\""),
        ("5", "the number 5"),
        ("null", "null"),
    ] {
        resends_everything(&GOOD.replace("\"7\"", seq), &format!("{EXPECTED} {shown}"));
    }
    goes_on(
        &GOOD.replace("\"7\"", "\"9223372036854775808\""),
        "9223372036854775808",
        &format!("{EXPECTED} the string \"9223372036854775808\""),
    );
}

#[test]
fn an_exported_row_count_that_is_no_count() {
    for (count, shown) in [("-3", "the number -3"), ("3.5", "the number 3.5"), ("\"3\"", "the string \"3\"")] {
        goes_on(
            &GOOD.replace(":3,", &format!(":{count},")),
            "7",
            &format!("expected `exportedRowCount` to be a non-negative integer, found {shown}"),
        );
    }
}

#[test]
fn no_time_of_update() {
    goes_on(&GOOD.replace("\"t\"", "5"), "7", "expected `updatedAt` to be a string, found the number 5");
}

#[test]
fn plugins_with_and_without_a_scope() {
    let scratch = Scratch::new();
    for place in ["zeta/sink-instances/b", "zeta/sink-instances/a", "@acme/s3/sink-instances/archive"] {
        scratch.file(&format!("hypaware/plugins/{place}/watermarks/logs/source=x.json"), GOOD);
    }
    let found = scratch.home().watermarks();
    assert_eq!(found.problems, []);
    let places: Vec<_> = found.value.iter().map(|file| (file.plugin.as_str(), file.instance.as_str())).collect();
    assert_eq!(places, [("@acme/s3", "archive"), ("zeta", "a"), ("zeta", "b")]);
    assert_eq!(found.value[0].relative_path, "plugins/@acme/s3/sink-instances/archive/watermarks/logs/source=x.json");
    assert_eq!(found.value[0].path, scratch.path("hypaware").join(&found.value[0].relative_path));
}

#[test]
fn destinations_of_one_instance_are_kept_apart() {
    let scratch = Scratch::new();
    scratch.file(&format!("{CENTRAL}/watermarks/logs/source=x.json"), GOOD);
    scratch.file(&format!("{CENTRAL}/destinations/3fa9/watermarks/logs/source=x.json"), GOOD);
    let found = scratch.home().watermarks().value;
    let instances: Vec<_> = found.iter().map(|file| file.instance.as_str()).collect();
    assert_eq!(instances, ["central", "central/destinations/3fa9"]);
    assert_eq!(found[1].path, scratch.path("hypaware").join(&found[1].relative_path));
}

#[test]
fn nested_partitions_and_datasets_without_segments() {
    let scratch = Scratch::new();
    scratch.file(&format!("{CENTRAL}/watermarks/old/client=c/date=2026-07-20.json"), GOOD);
    scratch.file(&format!("{CENTRAL}/watermarks/context_graph/_partition.json"), GOOD);
    scratch.generation("old/client=c/date=2026-07-20/table").generation("context_graph/table");
    let partitions = scratch.home().partitions().value;
    let found = scratch.home().watermarks().value;
    let places: Vec<_> = found.iter().map(|file| (file.dataset.as_str(), file.partition.as_str())).collect();
    assert_eq!(places, [("context_graph", "_partition"), ("old", "client=c/date=2026-07-20")]);
    for (file, partition) in found.iter().zip(&partitions) {
        assert!(file.is_for(&partition.id));
    }
    assert!(!found[0].is_for(&partitions[1].id));
}

#[test]
fn what_else_lies_about_is_no_watermark() {
    let scratch = Scratch::new();
    for other in [
        "watermarks/logs/source=x.json.tmp.4242.1796099999999",
        "watermarks/logs/source=x.json.tmp",
        "watermarks/logs/.tmpAbCdEf",
        "watermarks/stray.json",
        "rewind.lock",
        "rewinds/0197.json",
        "destination.json",
        "open-dataset-rollouts/logs.json",
    ] {
        scratch.file(&format!("{CENTRAL}/{other}"), "{");
    }
    scratch.file("hypaware/plugins/notes.json", "{");
    let found = scratch.home().watermarks();
    assert!(found.value.is_empty(), "{:?}", found.value);
    assert_eq!(found.problems, []);
}

#[test]
fn files_come_by_partition_and_problems_by_file_name() {
    let scratch = Scratch::new();
    for name in ["c", "a", "a-b"] {
        scratch.file(&format!("{CENTRAL}/watermarks/logs/source={name}.json"), "");
    }
    let found = scratch.home().watermarks();
    let partitions: Vec<_> = found.value.iter().map(|file| file.partition.as_str()).collect();
    assert_eq!(partitions, ["source=a", "source=a-b", "source=c"]);
    let listed: Vec<_> = found.problems.iter().map(|problem| problem.path.file_name().unwrap()).collect();
    assert_eq!(listed, ["source=a-b.json", "source=a.json", "source=c.json"]);
    assert_eq!(codes(&found.problems), ["watermark-unreadable"; 3]);
}
