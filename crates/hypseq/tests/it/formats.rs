//! The five output formats, and what goes where.

use crate::support::{CLAUDE, T, home, run};

const SQL: &str = "SELECT _hyp_ingest_seq, message_created_at, model FROM ai_gateway_messages WHERE _hyp_ingest_seq IN \
                   (722, 724) ORDER BY 1; SELECT count(*) AS rows FROM ai_gateway_messages";

fn sql(format: &str) -> String {
    run(["--home", &home("neutral"), "--format", format, "sql", "-c", SQL]).exits(0).stdout
}

#[test]
fn table() {
    assert_eq!(
        sql("table"),
        "_hyp_ingest_seq  message_created_at        model\n\
         ───────────────  ────────────────────────  ───────────\n\
         \x20           722  2026-07-28T14:26:02.373Z  claude-opus\n\
         \x20           724  2026-07-29T06:00:50.955Z  claude-opus\n\
         (2 rows)\n\
         rows\n\
         ────\n\
         1199\n\
         (1 row)\n"
    );
}

#[test]
fn csv() {
    assert_eq!(
        sql("csv"),
        "_hyp_ingest_seq,message_created_at,model\n\
         722,2026-07-28T14:26:02.373Z,claude-opus\n\
         724,2026-07-29T06:00:50.955Z,claude-opus\n\
         rows\n\
         1199\n"
    );
}

#[test]
fn ndjson() {
    assert_eq!(
        sql("ndjson"),
        "{\"_hyp_ingest_seq\":\"722\",\"message_created_at\":\"2026-07-28T14:26:02.373Z\",\"model\":\"claude-opus\"}\n\
         {\"_hyp_ingest_seq\":\"724\",\"message_created_at\":\"2026-07-29T06:00:50.955Z\",\"model\":\"claude-opus\"}\n\
         {\"rows\":1199}\n"
    );
}

#[test]
fn json() {
    assert!(sql("json").starts_with("[\n  {\"_hyp_ingest_seq\":\"722\","));
    assert!(sql("json").ends_with("[\n  {\"rows\":1199}\n]\n"));
}

#[test]
fn lists_show_what_columns_show() {
    let sql = "SELECT array_agg(_hyp_ingest_seq ORDER BY _hyp_ingest_seq) AS every_seq, array_agg(message_created_at ORDER BY \
               _hyp_ingest_seq) AS times, array_agg(length(model)) AS lengths FROM ai_gateway_messages WHERE \
               _hyp_ingest_seq IN (722, 1205)";
    let shown = |format| run(["--home", &home("neutral"), "--format", format, "sql", "-c", sql]).exits(0).stdout;
    assert_eq!(
        shown("csv"),
        "every_seq,times,lengths\n\
         \"[722, 1205]\",\"[2026-07-28T14:26:02.373Z, 2026-07-22T01:00:00.000Z]\",\"[11, 11]\"\n"
    );
    assert_eq!(
        shown("ndjson"),
        "{\"every_seq\":[\"722\",\"1205\"],\"times\":[\"2026-07-28T14:26:02.373Z\",\"2026-07-22T01:00:00.000Z\"],\
         \"lengths\":[11,11]}\n"
    );
}

#[test]
fn markdown() {
    assert!(sql("markdown").starts_with(
        "| _hyp_ingest_seq | message_created_at       | model       |\n\
         |----------------:|--------------------------|-------------|\n"
    ));
}

#[test]
fn variants_are_json_and_their_text_can_be_searched() {
    let sql = "SELECT tool_args, json_get_str(tool_args, 'cmd') AS cmd FROM ai_gateway_messages WHERE tool_name = 'Bash' \
               ORDER BY _hyp_ingest_seq LIMIT 1";
    let ran = run(["--home", &home("neutral"), "--format", "ndjson", "sql", "-c", sql]).exits(0);
    let row: serde_json::Value = serde_json::from_str(&ran.stdout).expect("a row");
    assert_eq!(row["tool_args"]["cmd"], row["cmd"]);
    assert!(row["cmd"].is_string(), "{row}");
}

#[test]
fn statements_come_from_options_files_and_stdin() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("two.sql");
    std::fs::write(&file, "SELECT 2 AS b;\n-- a remark\n").expect("written");
    let ran =
        run(["--home", &home("skew"), "--format", "csv", "sql", "-f", &file.to_string_lossy(), "-c", "SELECT 1 AS a"]);
    assert_eq!(ran.exits(0).stdout, "a\n1\nb\n2\n");

    let stdin = std::fs::File::open(&file).expect("a file");
    let output =
        crate::support::command().args(["--home", &home("skew"), "--format", "csv", "sql"]).stdin(stdin).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("runs").stdout), "b\n2\n");
}

#[test]
fn every_command_has_every_format() {
    for format in ["table", "json", "ndjson", "csv", "markdown"] {
        let neutral = home("neutral");
        let base = ["--home", &neutral, "--format", format];
        let at = ["--at", T];
        for command in
            [vec!["status"], [&["resolve"][..], &at, &CLAUDE].concat(), [&["verify"][..], &at, &CLAUDE].concat()]
        {
            let ran = run([&base[..], &command].concat()).exits(0);
            assert!(ran.stdout.contains("table-1796095174466"), "{format} {command:?}: {}", ran.stdout);
            assert!(!ran.stdout.contains('\u{1b}'), "no colour in a pipe");
        }
    }
}

#[test]
fn unsafe_statements_are_refused() {
    for sql in [
        "DROP TABLE ai_gateway_messages",
        "INSERT INTO ai_gateway_messages SELECT * FROM ai_gateway_messages",
        "DELETE FROM ai_gateway_messages",
        "SET datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown = true",
        "SELEKT 1",
    ] {
        let ran = run(["--home", &home("neutral"), "sql", "-c", sql]).exits(2);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
}

#[test]
fn a_statement_that_is_refused_stops_the_script_before_anything_runs() {
    let ran = run(["--home", &home("neutral"), "sql", "-c", "SELECT 1; DROP TABLE x"]).exits(2);
    assert_eq!(ran.stdout, "");
}
