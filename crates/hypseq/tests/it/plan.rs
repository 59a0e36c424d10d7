//! Rewind plans: what is refused, what is written, and every figure in it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{CLAUDE, Ran, T, copy, files, home, items, json_of, run};

fn rewind(home: &str, more: &[&str]) -> Ran {
    let base = ["plan", "rewind", "--sink", "central", "--reason", "opt-out of 28 July"];
    json_of(home, &[&base[..], &CLAUDE, more].concat())
}

fn refusals(ran: &Ran) -> Vec<String> {
    let shown = ran.json();
    items(&shown["refused"]).iter().map(|r| r["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_opt_out_that_still_stands_is_refused() {
    let ran = rewind(&home("neutral"), &["--since", T]).exits(3);
    assert_eq!(refusals(&ran), ["withheld"]);
    assert!(ran.stderr.contains("--accept-withheld"), "{}", ran.stderr);
    assert_eq!(ran.json()["written"], Value::Null);
}

#[test]
fn the_incident_is_planned_when_the_opt_out_is_accepted() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("rewind.json");
    let out_arg = out.to_string_lossy().into_owned();
    let ran = rewind(&home("neutral"), &["--since", T, "--accept-withheld", "--out", &out_arg]).exits(0);
    let shown = ran.json();
    assert_eq!(shown["written"], json!(out_arg));
    let plan: Value = serde_json::from_slice(&fs::read(&out).expect("the plan")).expect("JSON");
    assert_eq!(plan, shown["plan"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&out).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    let rewind = &plan["rewinds"][0];
    assert_eq!(plan["sink"], json!({"plugin": "@hypaware/central", "instance": "central"}));
    assert_eq!(rewind["target"], json!({"last_exported_seq": "722", "first_replayed_seq": "724"}));
    assert_eq!(rewind["observed"]["seq"], "1495");
    assert_eq!(rewind["observed"]["exported_row_count"], 665);
    assert_eq!(
        rewind["watermark"],
        "plugins/@hypaware/central/sink-instances/central/watermarks/ai_gateway_messages/source=claude.json"
    );
    let counts = &rewind["counts"];
    for (field, value) in [
        ("replayed", 531),
        ("pending", 0),
        ("spooled", 7),
        ("resent", 50),
        ("lost", 0),
        ("withheld", 531),
        ("unrecoverable", 0),
        ("legacy", 0),
        ("chunks", 1),
    ] {
        assert_eq!(counts[field], value, "{field}");
    }
    assert_eq!(rewind["proven"], true);
    assert_eq!(items(&rewind["evidence"]).len(), 4);
    let says = rewind["witnesses"][0]["says"].as_str().expect("words");
    assert!(says.contains("end at seq 722, the target itself"), "{says}");

    let shown = run(["plan", "show", &out_arg]).exits(0).stdout;
    assert!(shown.contains("watermark 1495 goes back to 722"), "{shown}");
    assert!(!shown.contains("content_text"));
}

#[test]
fn no_policy_needs_no_acceptance() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("plan.json").to_string_lossy().into_owned();
    let shown = rewind(&home("monotone"), &["--since", T, "--out", &out]).exits(0).json();
    assert_eq!(shown["plan"]["rewinds"][0]["target"]["last_exported_seq"], "719");
    assert!(Path::new(&out).exists());
    let again = rewind(&home("monotone"), &["--since", T, "--out", &out]).exits(2);
    assert!(again.stderr.contains("never overwritten"), "{}", again.stderr);
}

#[test]
fn loss_needs_its_exact_number() {
    let neutral = home("neutral");
    let tight = ["--since", T, "--policy", "tight", "--accept-withheld"];
    let ran = rewind(&neutral, &tight).exits(3);
    assert_eq!(refusals(&ran), ["loss"]);
    assert!(ran.stderr.contains("--accept-loss 269"), "{}", ran.stderr);
    assert_eq!(refusals(&rewind(&neutral, &[&tight[..], &["--accept-loss", "268"]].concat()).exits(3)), ["loss"]);
    let ran = rewind(&neutral, &[&tight[..], &["--accept-loss", "269"]].concat()).exits(0);
    assert_eq!(ran.json()["plan"]["rewinds"][0]["accepted"]["loss"], 269);
    let nothing_lost = rewind(&neutral, &["--since", T, "--accept-withheld", "--accept-loss", "5"]).exits(3);
    assert_eq!(refusals(&nothing_lost), ["loss"]);
}

#[test]
fn everything_is_sent_again_only_when_it_is_spelled() {
    let monotone = home("monotone");
    let ran = rewind(&monotone, &["--since", "2026-07-01T00:00:00.000Z"]).exits(3);
    assert!(ran.stderr.contains("--to-seq 0 --accept-full-resend"), "{}", ran.stderr);
    assert_eq!(ran.json()["plan"], Value::Null);
    assert_eq!(refusals(&rewind(&monotone, &["--to-seq", "0"]).exits(3)), ["full-resend"]);
    let shown = rewind(&monotone, &["--to-seq", "0", "--accept-full-resend"]).exits(0).json();
    assert_eq!(shown["plan"]["rewinds"][0]["counts"]["replayed"], 1173);
    assert_eq!(shown["plan"]["rewinds"][0]["counts"]["lost"], Value::Null);
}

#[test]
fn a_target_above_what_was_exported_is_warned_of() {
    let above = ["--to-seq", "1254", "--accept-withheld"];
    let refused = rewind(&home("neutral"), &above).exits(3);
    assert_eq!(refusals(&refused), ["loss"]);
    let above = rewind(&home("neutral"), &[&above[..], &["--accept-loss", "319"]].concat()).exits(0).json();
    let remark = above["remarks"][0].as_str().expect("a remark").to_owned();
    assert!(remark.contains("end at seq 722: 319 rows from there to the target would stay unsent"), "{remark}");
    let below = rewind(&home("neutral"), &["--to-seq", "700", "--accept-withheld"]).exits(0).json();
    let says = below["plan"]["rewinds"][0]["witnesses"][0]["says"].as_str().expect("words").to_owned();
    assert!(says.contains("would be sent twice"), "{says}");
}

#[test]
fn an_unproven_boundary_is_refused() {
    let (_folder, home) = copy("monotone");
    let retired = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095164078");
    fs::write(&files(&retired, ".parquet")[0], b"").expect("emptied");
    let home = home.to_string_lossy();
    let ran = rewind(&home, &["--since", T]).exits(3);
    assert_eq!(refusals(&ran), ["unproven"]);
    let shown = rewind(&home, &["--since", T, "--accept-unproven"]).exits(0).json();
    assert_eq!(shown["plan"]["rewinds"][0]["proven"], false);
    assert_eq!(shown["plan"]["rewinds"][0]["accepted"]["unproven"], true);
}

#[test]
fn nothing_to_do() {
    let monotone = home("monotone");
    let ran = rewind(&monotone, &["--since", "2026-08-30T00:00:00.000Z"]).exits(1);
    assert!(ran.stderr.contains("nothing to rewind for"), "{}", ran.stderr);
    assert_eq!(ran.json(), json!({"written": null, "plan": null, "refused": [], "remarks": []}));
    let ran = rewind(&monotone, &["--to-seq", "1280"]).exits(1);
    assert!(ran.stderr.contains("the watermark of sink central is 1280"), "{}", ran.stderr);
}

#[test]
fn unreadable_policy_counts_as_withheld() {
    let (_folder, home) = copy("neutral");
    fs::write(home.join("hypaware/usage-policy/client-sync.json"), "{\"version\": 1, \"entr").expect("cut");
    let ran = rewind(&home.to_string_lossy(), &["--since", T]).exits(3);
    assert_eq!(refusals(&ran), ["withheld"]);
    assert!(ran.stderr.contains("does not parse"), "{}", ran.stderr);
}

#[test]
fn folders_that_are_kept_local_are_counted_by_row() {
    let (_folder, home) = copy("monotone");
    fs::create_dir_all(home.join("hypaware/usage-policy")).expect("a folder");
    let policy = json!({"version": 2, "entries": [{"dir": "/home/op/private", "class": "local-only"}]});
    fs::write(home.join("hypaware/usage-policy/local-only.json"), policy.to_string()).expect("written");
    let home = home.to_string_lossy();
    let shown = rewind(&home, &["--since", T]).exits(3).json();
    let sql = "SELECT count(*) AS n FROM ai_gateway_messages WHERE source = 'claude' AND _hyp_ingest_seq > 719 AND cwd LIKE \
               '/home/op/private%'";
    let counted = run(["--home", &home, "--format", "ndjson", "sql", "-c", sql]).exits(0).json()["n"].clone();
    assert_eq!(shown["plan"]["rewinds"][0]["counts"]["withheld"], counted);
    assert!(counted.as_u64().is_some_and(|n| n > 0));
}

#[test]
fn every_gap_of_a_sink_in_one_plan() {
    let ran = json_of(
        &home("monotone"),
        &["plan", "rewind", "--sink", "central", "--reason", "x", "--since", T, "--all-gaps"],
    );
    let shown = ran.exits(0).json();
    let partitions: Vec<&Value> = items(&shown["plan"]["rewinds"]).iter().map(|r| &r["partition"]).collect();
    assert_eq!(partitions, [&json!("source=claude")]);
}

#[test]
fn rows_that_an_earlier_rewind_sent_twice_are_not_taken_for_new_ones() {
    let (folder, home) = copy("monotone");
    let home_arg = home.to_string_lossy().into_owned();
    let out = folder.path().join("plan.json").to_string_lossy().into_owned();
    rewind(&home_arg, &["--to-seq", "400", "--out", &out]).exits(0);
    run(["--home", &home_arg, "plan", "apply", &out]).exits(0);
    // What the daemon would have written: all 773 rows above 400 sent, whether they had been sent before or not.
    let watermark = home.join(
        "hypaware/plugins/@hypaware/central/sink-instances/central/watermarks/ai_gateway_messages/source=claude.json",
    );
    let written = json!({"v": 1, "continuation": {"v": 1, "seq": "1280"}, "exportedRowCount": 1173, "updatedAt": "x"});
    fs::write(&watermark, written.to_string()).expect("written");
    let status = json_of(&home_arg, &["status", "--partition", "source=claude"]).exits(0).json();
    let shown = &status["partitions"][0]["watermarks"][0];
    assert_eq!(shown["suspected_unsent_rows"], Value::Null, "{shown}");
    let note = shown["note"].as_str().expect("a note");
    assert!(
        note.starts_with("0 rows unsent if none of the 773 rows that earlier rewinds may have sent twice"),
        "{note}"
    );
    let gaps = ["plan", "rewind", "--sink", "central", "--reason", "x", "--since", T, "--all-gaps"];
    let ran = json_of(&home_arg, &gaps).exits(2);
    assert!(ran.stderr.contains("whether there is a gap cannot be told"), "{}", ran.stderr);
}

#[test]
fn sinks_are_named_by_instance_or_by_plugin_and_instance() {
    let sinks = home("sinks");
    let plan = |sink: &str| {
        let point = ["--to-seq", "50", "--reason", "x", "--accept-unproven"];
        json_of(&sinks, &[&["plan", "rewind", "--sink", sink][..], &point, &CLAUDE].concat())
    };
    assert_eq!(plan("nas").exits(0).json()["plan"]["sink"]["plugin"], "@hypaware/local-fs");
    plan("@hypaware/local-fs/nas").exits(0);
    let unknown = plan("nope").exits(2);
    assert!(unknown.stderr.contains("@hypaware/s3/archive"), "{}", unknown.stderr);
}

#[test]
fn an_unreadable_watermark_cannot_be_planned_for() {
    let codex = ["--dataset", "ai_gateway_messages", "--partition", "source=codex"];
    let args = [&["plan", "rewind", "--sink", "nas", "--to-seq", "50", "--reason", "x"][..], &codex].concat();
    let ran = json_of(&home("sinks"), &args).exits(2);
    assert!(ran.stderr.contains("codex.json") || ran.stderr.contains("watermark"), "{}", ran.stderr);
}

#[test]
fn a_plan_is_never_written_into_the_home() {
    let (_folder, home) = copy("monotone");
    let out = home.join("hypaware/plan.json").to_string_lossy().into_owned();
    let ran = rewind(&home.to_string_lossy(), &["--since", T, "--out", &out]).exits(2);
    assert!(ran.stderr.contains("never written into a HypAware home"), "{}", ran.stderr);
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_plan_edited_by_hand_is_not_shown_as_one() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("plan.json");
    let out_arg = out.to_string_lossy().into_owned();
    rewind(&home("monotone"), &["--since", T, "--out", &out_arg]).exits(0);
    let edited = fs::read_to_string(&out).expect("a plan").replace("\"opt-out of 28 July\"", "\"other\"");
    fs::write(&out, edited).expect("edited");
    let ran = run(["plan", "show", &out_arg]).exits(2);
    assert!(ran.stderr.contains("checksum"), "{}", ran.stderr);
}

#[test]
fn the_schema_accepts_what_is_written() {
    let schema = run(["plan", "schema"]).exits(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let required = items(&schema["required"]);
    for field in ["v", "kind", "id", "rewinds", "checksum"] {
        assert!(required.contains(&json!(field)), "{field}");
    }
}
