//! The shell, as someone at a terminal sees it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::pty::Terminal;
use crate::support::{copy, files, home};

const UP: &str = "\u{1b}[A";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
/// More rows than anyone waits for, and it can be cancelled between any two batches.
const ENDLESS: &str = "SELECT count(*) FROM raw.ai_gateway_messages a, raw.ai_gateway_messages b, \
                       raw.ai_gateway_messages c WHERE a.message_id < b.message_id AND b.message_id < c.message_id;";

fn state() -> TempDir {
    TempDir::new().expect("a folder")
}

fn shell(state: &Path) -> Terminal {
    let terminal = Terminal::start(&["--home", &home("neutral"), "sql"], state);
    terminal.ends_with("hyp>");
    terminal
}

#[test]
fn statements_run_and_the_shell_ends_with_the_input() {
    let state = state();
    let mut terminal = shell(state.path());
    let screen = terminal.sees("Statements end with `;`.");
    assert!(screen.contains("neutral: 1 dataset\n"), "{screen}");
    let screen = terminal.enter("SELECT 1 AS a, NULL AS b; SELECT 'x;y' AS c;");
    assert!(screen.contains("\na  b\n─  ────\n1  NULL\n(1 row)\nc\n───\nx;y\n(1 row)\nhyp>"), "{screen}");
    terminal.press(CTRL_D);
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn statements_go_over_lines_and_say_what_is_open() {
    let state = state();
    let mut terminal = shell(state.path());
    for (line, prompt) in [("SELECT /* ;", "*>"), ("*/ 'a", "'>"), ("b'", "->"), ("AS c", "->")] {
        terminal.press(&format!("{line}\r"));
        terminal.ends_with(&format!("{line}\n  {prompt}"));
    }
    let screen = terminal.enter(";");
    assert!(screen.contains("\nc\n────\na\\nb\n(1 row)\n"), "{screen}");
    terminal.press("\\q\r");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn an_error_is_said_and_the_shell_goes_on() {
    let state = state();
    let mut terminal = shell(state.path());
    // What follows on the line is left out, be it whole or not.
    let screen = terminal.enter("SELECT 1 FORM x; SELECT 3 + 4 AS skipped; SELECT");
    assert!(screen.ends_with("\n  SELECT 1 FORM x\n                ^\nhyp>"), "{screen}");
    assert!(screen.contains("error: Expected: end of statement, found: x\n"), "{screen}");
    let screen = terminal.enter("DROP TABLE ai_gateway_messages;");
    assert!(screen.contains("error: DROP TABLE is refused"), "{screen}");
    let screen = terminal.enter("SELECT 20 + 3 AS n;");
    assert!(screen.ends_with("\n n\n──\n23\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn history_is_one_entry_per_statement_and_lasts() {
    let state = state();
    let mut first = shell(state.path());
    first.press("SELECT 41\r");
    first.sees("->");
    first.enter("+ 1 AS answer;");
    first.enter("\\x auto");
    first.press(CTRL_D);
    assert_eq!(first.ends(), 0);

    let mut second = shell(state.path());
    second.press(UP);
    second.sees("hyp> \\x auto");
    second.press(UP);
    second.sees("hyp> SELECT 41\n+ 1 AS answer;");
    let screen = second.enter("");
    assert!(screen.ends_with("\nanswer\n──────\n    42\n(1 row)\nhyp>"), "{screen}");

    let file = state.path().join("hypseq/history");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&state.path().join("hypseq"))), (0o600, 0o700));
    }
    let entries = fs::read_to_string(&file).expect("the history");
    assert!(entries.contains("SELECT 41\\n+ 1 AS answer;\n\\\\x auto\n"), "{entries}");
}

#[test]
fn no_history_is_written_below_a_home() {
    let (_folder, home) = copy("skew");
    let home_arg = home.to_string_lossy().into_owned();
    let mut terminal = Terminal::start_with(&["-v", "--home", &home_arg, "sql"], &home, (200, 24));
    terminal.sees("history ends with the shell");
    terminal.enter("SELECT 5 AS n;");
    terminal.press(UP);
    terminal.ends_with("hyp> SELECT 5 AS n;");
    assert!(!home.join("hypseq").exists());
}

#[test]
fn ctrl_c_drops_the_line() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.press("SELECT 'a\r");
    terminal.sees("'>");
    terminal.press("b");
    let screen = terminal.press_until_prompt(CTRL_C);
    assert!(screen.ends_with("'> b\nhyp>"), "{screen}");
    let screen = terminal.enter("SELECT 6 AS n;");
    assert!(screen.ends_with("\nn\n─\n6\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn ctrl_c_cancels_what_runs_and_not_the_shell() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.press(&format!("{ENDLESS} SELECT 8 AS skipped;\r"));
    // Its spinner.
    terminal.sees("running");
    terminal.press(CTRL_C);
    let screen = terminal.ends_with("hyp>");
    assert!(screen.contains("cancelled after 0 rows"), "{screen}");
    assert!(!screen.contains("───"), "neither a header nor what follows: {screen}");
    let screen = terminal.enter("SELECT 9 AS n;");
    assert!(screen.ends_with("\nn\n─\n9\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn a_long_result_is_cut_to_the_screen_and_counted() {
    let state = state();
    let mut terminal = shell(state.path());
    let screen = terminal.enter("SELECT _hyp_ingest_seq AS seq FROM ai_gateway_messages ORDER BY 1;");
    assert_eq!(screen.lines().count(), 24, "{screen}");
    assert!(screen.starts_with("hyp> SELECT"), "{screen}");
    assert!(screen.ends_with("\n(19 of 1,199 rows; \\pset rows all shows all)\nhyp>"), "{screen}");

    terminal.enter("\\pset rows 2 format csv");
    let screen = terminal.enter("SELECT value FROM generate_series(11, 14);");
    assert!(screen.ends_with("\nvalue\n11\n12\n2 of 4 rows; \\pset rows all shows all\nhyp>"), "{screen}");

    terminal.enter("\\pset rows all");
    let screen = terminal.enter("SELECT value FROM generate_series(1, 1000);");
    assert!(screen.ends_with("\n999\n1000\nhyp>"), "{screen}");
}

#[test]
fn counting_can_be_cancelled() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.enter("\\pset rows 1");
    terminal.press("SELECT a.value FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b;\r");
    terminal.sees("\nvalue\n─────\n");
    terminal.press(CTRL_C);
    let screen = terminal.ends_with(" rows, 1 of them shown\nhyp>");
    assert!(screen.contains("cancelled after "), "{screen}");
}

#[test]
fn a_file_whose_rows_are_cancelled_is_not_kept() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.press(&format!("{} \\g rows.csv\r", ENDLESS.trim_end_matches(';')));
    terminal.sees("running");
    assert!(state.path().join("rows.csv").exists());
    terminal.press(CTRL_C);
    terminal.ends_with("cancelled after 0 rows; `rows.csv` is not kept\nhyp>");
    assert!(!state.path().join("rows.csv").exists());
}

#[test]
fn wide_rows_have_one_column_per_line_and_stay_within_the_margin() {
    let state = state();
    let mut terminal = Terminal::start_with(&["--home", &home("neutral"), "sql"], state.path(), (80, 120));
    terminal.sees("hyp>");
    let screen = terminal.enter("SELECT * FROM ai_gateway_messages WHERE _hyp_ingest_seq = 722;");
    assert!(screen.contains("\n── row 1 ──\n"), "{screen}");
    let at = |text: &str| screen.lines().find(|line| line.starts_with(text)).map(|line| line.replace(text, ""));
    assert_eq!(at("_hyp_ingest_seq ").as_deref().map(str::trim), Some("722"));
    assert_eq!(at("message_created_at ").as_deref().map(str::trim), Some("2026-07-28T14:26:02.373Z"));
    assert!(screen.ends_with("\n(1 row)\nhyp>"), "{screen}");

    // A value that is longer than the line hangs below itself.
    let screen = terminal.enter("\\x on");
    assert!(screen.ends_with("one column per line is on\nhyp>"), "{screen}");
    let screen = terminal.enter("SELECT 7 AS n, repeat('word ', 30) AS text;");
    let line = ["word"; 15].join(" ");
    assert!(screen.ends_with(&format!("\nn     7\ntext  {line}\n      {line}\n(1 row)\nhyp>")), "{screen}");
}

#[test]
fn a_long_column_is_cut_beside_short_ones() {
    let state = state();
    let mut terminal = shell(state.path());
    let screen = terminal.enter("SELECT content_text, attributes FROM ai_gateway_messages ORDER BY date;");
    assert_eq!(screen.lines().count(), 24, "{screen}");
    assert!(screen.lines().any(|line| line.ends_with("  {\"gateway\":{\"identity_source\":\"native\"…")), "{screen}");
    assert!(
        screen.ends_with("\n(19 of 1,199 rows; \\pset rows all shows all; \\x on shows what … cuts)\nhyp>"),
        "{screen}"
    );

    let screen = terminal.enter("SELECT 7 AS n, repeat('word ', 1000) AS text;");
    let cut = "7  word word word word word word word word word word word word word word word w…";
    let footer = "(1 row; \\x on shows what … cuts)";
    assert!(screen.ends_with(&format!("{cut}\n{footer}\nhyp>")), "{screen}");
}

#[test]
fn plans_keep_their_lines() {
    let state = state();
    let mut terminal = shell(state.path());
    let screen = terminal.enter("EXPLAIN SELECT count(*) FROM ai_gateway_messages;");
    assert!(
        screen.contains("\nplan_type  logical_plan\nplan       Projection: count(Int64(1)) AS count(*)\n             "),
        "{screen}"
    );
}

#[test]
fn tab_completes() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.press("sel\t");
    terminal.ends_with("hyp> select");
    terminal.press(" json_get_s\t");
    terminal.ends_with("select json_get_str(");
    terminal.press("tool_args, 'cmd') FROM ai_g\t WHERE _hyp_i\t");
    terminal.ends_with("FROM ai_gateway_messages WHERE _hyp_ingest_seq");
    terminal.press_until_prompt(CTRL_C);
    terminal.press("\\query rows-a\t");
    terminal.ends_with("hyp> \\query rows-around-seq");
    terminal.press(" s\t");
    terminal.ends_with("hyp> \\query rows-around-seq seq=");
    terminal.press_until_prompt(CTRL_C);
    fs::write(state.path().join("script.sql"), "SELECT 31 AS n;\n").expect("written");
    let screen = terminal.enter("\\i scr\t");
    assert!(screen.ends_with("hyp> \\i script.sql\n n\n──\n31\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn tables_and_columns_are_described() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.enter("CREATE VIEW recent AS SELECT 1 AS one, 2 AS two;");
    let screen = terminal.enter("\\d");
    let listed: Vec<Vec<&str>> = screen.lines().map(|line| line.split_whitespace().collect()).collect();
    let place = |row: &[&str]| listed.iter().position(|line| line[..line.len().min(3)] == *row);
    let dataset = place(&["live", "ai_gateway_messages", "dataset"]);
    assert!(dataset.is_some() && place(&["raw", "ai_gateway_messages", "dataset"]) > dataset, "{screen}");
    let view = place(&["live", "recent", "view"]).expect("the view");
    assert_eq!(listed[view], ["live", "recent", "view", "2"]);
    assert!(place(&["complete", "ai_gateway_messages", "dataset"]) < Some(view), "{screen}");
    assert!(!screen.contains("information_schema"), "{screen}");

    let screen = terminal.enter("\\d raw.ai_gateway_messages");
    let listed: Vec<Vec<&str>> = screen.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [["_pos", "BIGINT"], ["_deleted", "BOOLEAN"]] {
        assert!(listed.iter().any(|line| *line == row), "{row:?}: {screen}");
    }
    let screen = terminal.enter("\\d nope");
    assert!(screen.contains("error: there is no table `nope`\n  hint: \\d lists all tables\n"), "{screen}");
    let screen = terminal.enter("\\d raw.recent");
    assert!(screen.contains("error: there is no table `raw.recent`\n"), "{screen}");
}

#[test]
fn odd_names_are_quoted() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.enter("CREATE VIEW \"My.Data\"\"set\" AS SELECT 1 AS one;");
    let screen = terminal.enter("\\d \"My.Data\"\"set\"");
    assert!(screen.ends_with("\ncolumn  type\none     BIGINT\nhyp>"), "{screen}");
    let screen = terminal.enter("\\d raw.\"My.Data\"\"set\"");
    assert!(screen.contains("\n  hint: there is \"My.Data\"\"set\"\n"), "{screen}");
    terminal.press("SELECT one + 1 AS n FROM My\t");
    terminal.ends_with("FROM \"My.Data\"\"set\"");
    let screen = terminal.enter(";");
    assert!(screen.ends_with("\nn\n─\n2\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn a_damaged_row_of_the_spool_does_not_end_the_shell() {
    let (_folder, home) = copy("neutral");
    let spool = home.join("hypaware/cache/datasets/ai_gateway_messages/proxy_messages_v5/_hypaware_spool/active.jsonl");
    let rows = fs::read_to_string(&spool).expect("the spool");
    fs::write(&spool, rows.replacen("\"message_created_at\":\"", "\"message_created_at\":1,\"_\":\"", 1))
        .expect("written");
    let state = state();
    let home_arg = home.to_string_lossy().into_owned();
    let mut terminal = Terminal::start_with(&["--home", &home_arg, "sql"], state.path(), (250, 50));
    terminal.sees("hyp>");
    let screen = terminal.enter("\\d");
    assert!(screen.contains("\nspool "), "{screen}");
    let screen = terminal.enter("SELECT count(*) FROM spool.ai_gateway_messages;");
    assert!(screen.contains("expected `message_created_at` as a text with a time"), "{screen}");
    let screen = terminal.enter("SELECT count(*) AS n FROM ai_gateway_messages;");
    assert!(screen.ends_with("\n   n\n────\n1199\n(1 row)\nhyp>"), "{screen}");
}

#[test]
fn canned_queries_are_listed_and_run() {
    let state = state();
    let mut terminal = Terminal::start_with(&["--home", &home("neutral"), "sql"], state.path(), (120, 50));
    terminal.sees("hyp>");
    let screen = terminal.enter("\\query");
    assert!(screen.contains("\nrows-around-seq "), "{screen}");
    let screen = terminal.enter("\\query rows-around-seq seq=722 rows=1");
    assert!(screen.contains(" 722  2026-07-28T14:26:02.373Z  table-1796095174466  false\n"), "{screen}");
    let screen = terminal.enter("\\query rows-around-seq");
    assert!(screen.contains("error: parameter `seq` is missing"), "{screen}");
    assert!(screen.contains("\n    seq=BIGINT  "), "{screen}");
    let screen = terminal.enter("\\query nope");
    assert!(
        screen.contains("error: there is no query `nope`\n  hint: there are boundary-per-generation, "),
        "{screen}"
    );
}

#[test]
fn a_canned_query_does_not_mix_homes() {
    let state = state();
    let args = ["--home", &home("neutral"), "--home", &home("monotone"), "sql"];
    let mut terminal = Terminal::start_with(&args, state.path(), (200, 50));
    terminal.ends_with("hyp>");
    let screen = terminal.enter("\\query rows-per-day");
    assert!(
        screen.ends_with(
            "\nerror: 2 homes are open, and a canned query would mix their rows\n  hint: `hypseq query rows-per-day` asks \
             each home apart; or open the shell on one home\nhyp>"
        ),
        "{screen}"
    );
    let screen = terminal.enter("\\query");
    assert!(screen.contains("\nrows-around-seq "), "{screen}");
}

#[test]
fn what_is_no_command_is_refused() {
    let state = state();
    let mut terminal = shell(state.path());
    let screen = terminal.enter("\\nope");
    assert!(screen.contains("error: there is no command `\\nope`\n  hint: there are \\? \\d \\g "), "{screen}");
    let screen = terminal.enter("\\timing maybe");
    assert!(screen.contains("hint: \\timing [on|off]"), "{screen}");
    let screen = terminal.enter("SELECT 1 \\x");
    assert!(screen.contains("error: `\\x` stands in the middle of a statement"), "{screen}");
    let screen = terminal.enter("\\?");
    assert!(screen.contains("\n\\pset "), "{screen}");
}

#[test]
fn settings_are_set_and_shown() {
    let state = state();
    let mut terminal = shell(state.path());
    terminal.enter("\\pset rows 7 format ndjson");
    terminal.enter("\\timing on");
    let screen = terminal.enter("\\pset");
    assert!(
        screen.ends_with("\nsetting  value\nrows     7\nformat   ndjson\n\\x       auto\n\\timing  on\nhyp>"),
        "{screen}"
    );
    let screen = terminal.enter("SELECT 1 AS n;");
    assert!(screen.contains("\n{\"n\":1}\ntime: "), "{screen}");
}

#[test]
fn rows_go_to_a_new_file_outside_of_the_home() {
    let (_folder, home) = copy("skew");
    let state = state();
    let home_arg = home.to_string_lossy().into_owned();
    let mut terminal = Terminal::start_with(&["--home", &home_arg, "sql"], state.path(), (200, 50));
    terminal.sees("hyp>");
    let screen = terminal.enter("SELECT 1 AS a, 'x' AS b \\g one.csv");
    assert!(screen.ends_with("\n1 row written to `one.csv`\nhyp>"), "{screen}");
    assert_eq!(fs::read_to_string(state.path().join("one.csv")).expect("the file"), "a,b\n1,x\n");
    terminal.enter("\\g one.json");
    let written = fs::read_to_string(state.path().join("one.json")).expect("the file");
    assert_eq!(written, "[\n  {\"a\":1,\"b\":\"x\"}\n]\n");

    let screen = terminal.enter("\\g one.csv");
    assert!(screen.contains("error: `one.csv` is there already"), "{screen}");
    let screen = terminal.enter("\\g one.parquet");
    assert!(screen.contains("error: `one.parquet`: its extension tells no format"), "{screen}");
    let below = home.join("rows.csv");
    let screen = terminal.enter(&format!("\\g {}", below.display()));
    assert!(screen.contains("nothing is ever written there"), "{screen}");
    assert!(!below.exists());

    let screen = terminal.enter("SELECT CAST('x' || a AS INT) FROM (VALUES (1)) t(a) \\g two.csv");
    assert!(screen.contains("error: "), "{screen}");
    assert!(!state.path().join("two.csv").exists(), "what is not whole is removed");
}

#[test]
fn what_cannot_be_read_is_said_once() {
    let (_folder, home) = copy("neutral");
    let live = home.join("hypaware/cache/datasets/ai_gateway_messages/source=claude/table-1796095174466");
    fs::write(files(&live, "-m0.avro").remove(0), b"no manifest").expect("written");
    let state = state();
    let home_arg = home.to_string_lossy().into_owned();
    let mut terminal = Terminal::start_with(&["--home", &home_arg, "sql"], state.path(), (200, 50));
    terminal.ends_with("hyp>");
    // As a problem of the cache, and as the reason why this statement fails; then as the latter only.
    for times in [2, 3] {
        let screen = terminal.enter("SELECT max(model) FROM ai_gateway_messages;");
        assert_eq!(screen.matches("as the manifest list says, found 11").count(), times, "{screen}");
    }
    terminal.press(CTRL_D);
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn rows_alone_go_to_a_stdout_that_is_no_terminal() {
    let state = state();
    let neutral = home("neutral");
    let program = env!("CARGO_BIN_EXE_hypseq");
    let command = format!("{program} --home {neutral} --format csv sql > rows.csv");
    let mut terminal = Terminal::start_program("sh", &["-c", &command], state.path(), (80, 24));
    terminal.ends_with("hyp>");
    terminal.enter("SELECT value FROM generate_series(1, 30);");
    terminal.press(CTRL_D);
    assert_eq!(terminal.ends(), 0);
    let rows: Vec<String> = (1..=30).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(state.path().join("rows.csv")).expect("rows"), format!("value\n{}", rows.concat()));
}
