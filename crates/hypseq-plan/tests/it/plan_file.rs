//! The plan as a file: round trip, checksum, and one rejection for each thing that can be wrong.

use std::error::Error;
use std::fs;

use crate::sample::{plan_of, rewind, row, sample, seq, time};
use hypseq_plan::{CanonicalError, FormatError, Invalid, Plan, ReadError, Rewind, Seq, WriteError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The message with those of its sources.
fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// The refusal of a plan whose JSON was changed and, where asked, sealed again by someone else's tool.
fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(sample()).unwrap();
    change(&mut value);
    chain(&Plan::from_json(value.to_string().as_bytes()).unwrap_err())
}

/// The contradiction that `validate` finds after a change.
fn contradiction(change: impl FnOnce(&mut Plan)) -> Invalid {
    let mut plan = sample();
    change(&mut plan);
    plan.seal().unwrap();
    let text = plan.to_text().unwrap();
    match Plan::from_json(text.as_bytes()).unwrap_err() {
        FormatError::Invalid(invalid) => invalid,
        other => panic!("{other}"),
    }
}

fn contradiction_in_rewind(change: fn(&mut Rewind)) -> String {
    contradiction(|plan| change(&mut plan.rewinds[0])).place
}

#[test]
fn survives_a_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    sample().write(&path, home.path()).unwrap();
    assert_eq!(Plan::read(&path).unwrap(), sample());

    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, sample().to_text().unwrap());
    assert!(text.starts_with("{\n  \"v\": 1,\n  \"kind\": \"hypaware.sink.rewind-plan\",\n  \"id\": \"019af5b1-"));
    assert!(text.ends_with("\"\n}\n"));
    assert!(text.contains("\"last_exported_seq\": \"722\""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_checksum_is_that_of_the_canonical_form() {
    let mut plan = plan_of(vec![]);
    plan.seal().unwrap();
    assert_eq!(
        String::from_utf8(plan.canonical().unwrap()).unwrap(),
        concat!(
            r#"{"created_at":"2026-12-01T09:00:00.000Z","created_by":{"name":"hypseq","version":"0.1.0"},"#,
            r#""expires_at":"2026-12-02T09:00:00.000Z","id":"019af5b1-7c00-7d2e-8a41-5f0c3b9e1d77","#,
            r#""kind":"hypaware.sink.rewind-plan","reason":"opt-out of claude left a gap","rewinds":[],"#,
            r#""sink":{"instance":"central","plugin":"@hypaware/central"},"v":1}"#
        )
    );
    assert_eq!(plan.checksum.to_string(), "sha256:0a7f185b882e00ae97ca59d4409086650720124b9b17a632ec8ce1b2a2c1218c");
    assert_eq!(
        sample().checksum.to_string(),
        "sha256:74fbb52fa8ba11317078f6648dea73831bb0843f77300f7156edd2008dbfe52f"
    );
    assert!(sample().verify_checksum().unwrap());
}

#[test]
fn seqs_keep_every_digit() {
    for from in [9_007_199_254_740_993, 9_007_199_254_740_995, i64::MAX] {
        let mut plan = plan_of(vec![rewind("d", "p", from, 1, from - 3)]);
        plan.rewinds[0].accepted.withheld = true;
        plan.seal().unwrap();
        let read = Plan::from_json(plan.to_text().unwrap().as_bytes()).unwrap();
        assert_eq!(read.rewinds[0].observed.seq.get(), from);
        assert_eq!(read.rewinds[0].target.last_exported_seq.get(), from - 3);
    }
}

#[test]
fn rejects_what_is_not_json() {
    let text = sample().to_text().unwrap();
    for bad in ["", "plan", &text[..text.len() / 2], &format!("{text}x"), "\u{feff}{}"] {
        assert!(matches!(Plan::from_json(bad.as_bytes()), Err(FormatError::NotJson(_))), "{bad}");
    }
    assert!(matches!(Plan::from_json(b"{\"v\": \"\xff\"}"), Err(FormatError::NotJson(_))));
}

#[test]
fn rejects_another_kind_of_document() {
    assert_eq!(refusal(|v| *v = json!([])), "kind: expected \"hypaware.sink.rewind-plan\", found nothing");
    assert_eq!(
        refusal(|v| v["kind"] = json!("hypaware.sink.receipt")),
        "kind: expected \"hypaware.sink.rewind-plan\", found \"hypaware.sink.receipt\""
    );
}

#[test]
fn rejects_another_version() {
    for v in [json!(2), json!(0), json!("1"), json!(1.0), json!(null)] {
        let message = refusal(|plan| plan["v"] = v.clone());
        assert!(message.starts_with(&format!("v: expected 1, found {v};")), "{message}");
    }
}

#[test]
fn rejects_unknown_fields_and_says_where() {
    let text = sample().to_text().unwrap().replace("\"bytes\": 612000", "\"force\": true,\n\"bytes\": 612000");
    let line = 1 + text.lines().position(|line| line.contains("force")).unwrap();
    let message = chain(&Plan::from_json(text.as_bytes()).unwrap_err());
    assert!(message.contains("unknown field `force`"), "{message}");
    assert!(message.contains(&format!("at line {line} column")), "{message}");

    // At every level, not only here.
    let objects = [
        "",
        "/created_by",
        "/sink",
        "/rewinds/0",
        "/rewinds/0/observed",
        "/rewinds/0/target",
        "/rewinds/0/guard",
        "/rewinds/0/guard/last_row",
        "/rewinds/0/boundary",
        "/rewinds/0/boundary/straddle",
        "/rewinds/0/boundary/exclusions",
        "/rewinds/0/counts",
        "/rewinds/0/evidence/0",
        "/rewinds/0/witnesses/0",
        "/rewinds/0/accepted",
        "/rewinds/0/undo",
    ];
    for place in objects {
        let message = refusal(|v| v.pointer_mut(place).unwrap()["force"] = json!(true));
        assert!(message.contains("unknown field `force`"), "{place}: {message}");
    }
}

#[test]
fn rejects_a_field_given_twice() {
    let text = sample().to_text().unwrap().replace("\"proven\": true", "\"proven\": false,\n\"proven\": true");
    let message = chain(&Plan::from_json(text.as_bytes()).unwrap_err());
    assert!(message.contains("duplicate field `proven`"), "{message}");
}

#[test]
fn rejects_a_field_left_out_even_where_null_would_do() {
    let message = refusal(|v| drop(v["rewinds"][0]["guard"].as_object_mut().unwrap().remove("table_uuid")));
    assert!(message.contains("missing field `table_uuid`"), "{message}");
    assert_eq!(
        refusal(|v| drop(v["rewinds"][0]["boundary"].as_object_mut().unwrap().remove("zone"))),
        "rewinds[0].boundary.zone: expected the spelling null, found nothing"
    );
}

#[test]
fn rejects_other_spellings_of_a_value() {
    let id = "019AF5B1-7C00-7D2E-8A41-5F0C3B9E1D77";
    assert_eq!(
        refusal(|v| v["id"] = json!(id)),
        format!("id: expected the spelling {:?}, found {id:?}", id.to_lowercase())
    );
    for (place, bad) in [
        ("/rewinds/0/observed/seq", json!(1495)),
        ("/rewinds/0/observed/seq", json!("01495")),
        ("/rewinds/0/observed/seq", json!("-1")),
        ("/rewinds/0/observed/seq", json!("9223372036854775808")),
        ("/created_at", json!("2026-12-01T09:00:00Z")),
        ("/checksum", json!("sha256:00")),
        ("/rewinds/0/counts/replayed", json!(531.0)),
        ("/rewinds/0/counts/replayed", json!(-1)),
        ("/rewinds/0/boundary/policy", json!("Safe")),
    ] {
        let message = refusal(|v| *v.pointer_mut(place).unwrap() = bad.clone());
        assert!(message.starts_with("a field is unknown, doubled, missing or of another type: "), "{place}: {message}");
    }
}

#[test]
fn rejects_watermark_paths_that_lead_elsewhere() {
    let watermark = |path: &str| refusal(|v| v["rewinds"][0]["watermark"] = json!(path));
    let good = sample().rewinds[0].watermark.as_str().to_owned();
    assert!(watermark(&format!("/{good}")).contains("is absolute"));
    assert!(watermark("C:\\x.json").contains("is absolute"));
    assert!(watermark(&good.replace("/central/", "/../")).contains("has the component \"..\""));
    assert!(watermark(&good.replace("/source", "//source")).contains("has the component \"\""));
    assert!(watermark(&good.replace('=', "\\")).contains("has the component"));
    assert!(watermark(&good.replace(".json", "")).contains("is not plugins/"));
    assert!(watermark("cache/_hyp_ingest_seq.json").contains("is not plugins/"));
}

#[test]
fn rejects_a_plan_edited_by_hand() {
    let message = refusal(|v| v["reason"] = json!("another"));
    assert!(message.starts_with("edited after it was sealed: its checksum is sha256:"), "{message}");
    let message = refusal(|v| v["rewinds"][0]["target"]["last_exported_seq"] = json!("721"));
    assert!(message.starts_with("edited after it was sealed"), "{message}");
    assert!(refusal(|v| v["checksum"] = json!(format!("sha256:{:064}", 0))).starts_with("edited after"));
}

#[test]
fn rejects_counts_beyond_what_a_canonical_form_holds() {
    let mut plan = sample();
    plan.rewinds[0].counts.bytes = 1 << 53;
    assert!(matches!(plan.seal(), Err(CanonicalError::Number(n)) if n.as_u64() == Some(1 << 53)));
    plan.rewinds[0].counts.bytes -= 1;
    plan.seal().unwrap();
    let message = refusal(|v| v["rewinds"][0]["counts"]["bytes"] = json!(u64::MAX));
    assert!(message.starts_with("18446744073709551615 is a number that a canonical form cannot hold"), "{message}");
}

#[test]
fn rejects_contradictions_of_the_whole() {
    let id = contradiction(|p| p.id = "7f1b9c2e-3a55-4c1d-9f7e-0a1b2c3d4e5f".parse().unwrap());
    assert_eq!((id.place.as_str(), id.expected.as_str()), ("id", "a UUID of version 7"));
    assert_eq!(contradiction(|p| p.expires_at = p.created_at).place, "expires_at");
    assert_eq!(contradiction(|p| p.reason = " \n".into()).place, "reason");
    assert_eq!(contradiction(|p| p.rewinds.clear()).place, "rewinds");
    assert_eq!(contradiction(|p| p.rewinds.push(p.rewinds[0].clone())).place, "rewinds[1].watermark");
    let elsewhere = contradiction(|p| p.sink.instance = "archive".into());
    assert_eq!(elsewhere.place, "rewinds[0].watermark");
    assert!(elsewhere.expected.contains("/sink-instances/archive/"), "{elsewhere}");
    assert_eq!(contradiction(|p| p.sink.plugin = "@hypaware/../central".into()).place, "rewinds[0].partition");
}

#[test]
fn rejects_contradictions_of_a_rewind() {
    let place = contradiction_in_rewind;
    assert_eq!(place(|r| r.dataset = "logs".into()), "rewinds[0].watermark");
    assert_eq!(place(|r| r.partition = "source=codex".into()), "rewinds[0].watermark");
    assert_eq!(place(|r| r.target.last_exported_seq = seq(1495)), "rewinds[0].target.last_exported_seq");
    assert_eq!(place(|r| r.target.first_replayed_seq = Some(seq(722))), "rewinds[0].target.first_replayed_seq");
    assert_eq!(place(|r| r.guard.watermark_v = 2), "rewinds[0].guard.watermark_v");
    assert_eq!(place(|r| r.guard.continuation_v = 0), "rewinds[0].guard.continuation_v");
    assert_eq!(place(|r| r.guard.min_seq = seq(0)), "rewinds[0].guard.min_seq");
    assert_eq!(place(|r| r.guard.min_exported_row_count = 0), "rewinds[0].guard.min_exported_row_count");
    assert_eq!(place(|r| r.guard.above_seq = seq(0)), "rewinds[0].guard.above_seq");
    assert_eq!(
        place(|r| r.guard.last_row = Some(row(723, "2026-07-28T14:26:02.373Z", "x"))),
        "rewinds[0].guard.last_row.seq"
    );
    assert_eq!(place(|r| r.guard.next_row = None), "rewinds[0].guard.next_row.seq");
    assert_eq!(place(|r| r.undo.last_exported_seq = Seq::MAX), "rewinds[0].undo.last_exported_seq");
    assert_eq!(place(|r| r.undo.valid_below_seq = Seq::MAX), "rewinds[0].undo.valid_below_seq");
}

#[test]
fn rejects_drawbacks_that_were_not_accepted() {
    let place = contradiction_in_rewind;
    assert_eq!(place(|r| r.counts.lost = Some(269)), "rewinds[0].accepted.loss");
    assert_eq!(
        place(|r| {
            r.counts.lost = Some(269);
            r.accepted.loss = Some(268);
        }),
        "rewinds[0].accepted.loss"
    );
    assert_eq!(place(|r| r.accepted.withheld = false), "rewinds[0].accepted.withheld");
    assert_eq!(place(|r| r.proven = false), "rewinds[0].accepted.unproven");
    assert_eq!(
        place(|r| *r = rewind("ai_gateway_messages", "source=claude", 5, 5, 0)),
        "rewinds[0].accepted.full_resend"
    );
}

#[test]
fn reads_regular_files_of_moderate_size_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    assert!(matches!(Plan::read(&path), Err(ReadError::Io { .. })));
    assert!(matches!(Plan::read(folder.path()), Err(ReadError::NotAFile { .. })));
    fs::File::create(&path).unwrap().set_len((16 << 20) + 1).unwrap();
    assert!(matches!(Plan::read(&path), Err(ReadError::TooLarge { .. })));
    fs::write(&path, "{}").unwrap();
    let message = chain(&Plan::read(&path).unwrap_err());
    assert_eq!(
        message,
        format!("{}: unusable: kind: expected \"hypaware.sink.rewind-plan\", found nothing", path.display())
    );
}

#[test]
fn writes_only_sealed_and_valid_plans() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let mut plan = sample();
    plan.reason = "changed".into();
    assert!(matches!(plan.write(&path, home.path()), Err(WriteError::NotSealed)));
    plan.reason = String::new();
    plan.seal().unwrap();
    assert!(matches!(plan.write(&path, home.path()), Err(WriteError::Invalid(_))));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn never_overwrites() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    fs::write(&path, "mine").unwrap();
    assert!(matches!(sample().write(&path, home.path()), Err(WriteError::Exists { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn never_writes_into_the_home() {
    let home = tempfile::tempdir().unwrap();
    let inside = home.path().join("hypaware");
    fs::create_dir(&inside).unwrap();
    for path in [home.path().join("plan.json"), inside.join("plan.json"), inside.join("../plan.json")] {
        assert!(matches!(sample().write(&path, home.path()), Err(WriteError::BelowHome { .. })), "{path:?}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&inside).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn never_writes_into_the_home_through_a_link() {
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(home.path(), &link).unwrap();
    assert!(matches!(sample().write(&link.join("plan.json"), home.path()), Err(WriteError::BelowHome { .. })));
    assert!(matches!(sample().write(&home.path().join("plan.json"), &link), Err(WriteError::BelowHome { .. })));
}

#[cfg(unix)]
#[test]
fn is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    sample().write(&path, home.path()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn writes_fail_in_a_folder_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in [folder.path().join("missing/plan.json"), folder.path().join("file/plan.json")] {
        assert!(matches!(sample().write(&path, home.path()), Err(WriteError::Io { .. })), "{path:?}");
    }
}

/// Every schema of an object in a schema.
fn objects<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                found.push(schema);
            }
            fields.values().for_each(|v| objects(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| objects(v, found)),
        _ => {}
    }
}

#[test]
fn the_schema_requires_every_field_and_allows_no_other() {
    let schema = hypseq_plan::plan_schema();
    let mut found = Vec::new();
    objects(&schema, &mut found);
    assert_eq!(found.len(), 17);
    for object in found {
        assert_eq!(object["additionalProperties"], json!(false), "{object}");
        assert_eq!(
            object["required"].as_array().unwrap().len(),
            object["properties"].as_object().unwrap().len(),
            "{object}"
        );
    }
    assert_eq!(schema["$defs"]["Seq"]["type"], json!("string"));
    assert_eq!(schema["$defs"]["Boundary"]["properties"]["zone"]["type"], json!(["string", "null"]));
}

#[test]
fn times_are_as_javascript_writes_them() {
    let text = sample().to_text().unwrap();
    assert!(text.contains("\"at\": \"2026-07-28T21:00:00.000Z\""));
    assert_eq!(time("2026-07-28T21:00:00.000Z").millis(), 1_785_272_400_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_changed_byte_goes_unnoticed(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = sample().to_text().unwrap().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(plan) = Plan::from_json(&bytes) {
            prop_assert_eq!(plan, sample());
        }
    }

    #[test]
    fn no_cut_goes_unnoticed(at in any::<prop::sample::Index>()) {
        let bytes = sample().to_text().unwrap().into_bytes();
        // The final newline alone may go.
        prop_assert!(Plan::from_json(&bytes[..at.index(bytes.len() - 1)]).is_err());
    }
}
