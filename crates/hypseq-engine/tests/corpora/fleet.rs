//! Several homes as one catalog.

use serde_json::json;

use super::answers::{copy, home, open, rows, value};

#[test]
fn the_home_is_the_first_column() {
    let (engine, problems) = open(&[home("neutral"), home("monotone")]);
    assert_eq!(problems, []);
    let found = rows(&engine, "SELECT home, count(*) AS n FROM ai_gateway_messages GROUP BY home ORDER BY home");
    let found: Vec<_> = found.into_iter().map(serde_json::Value::from).collect();
    let alone = |name| value(&open(&[home(name)]).0, "SELECT count(*) FROM ai_gateway_messages");
    assert_eq!(
        found,
        [json!({"home": "monotone", "n": alone("monotone")}), json!({"home": "neutral", "n": alone("neutral")})]
    );
    for schema in ["live", "raw", "complete"] {
        assert_eq!(rows(&engine, &format!("DESCRIBE {schema}.ai_gateway_messages"))[0]["column_name"], "home");
    }
}

#[test]
fn one_home_has_no_home_column() {
    let row = rows(&open(&[home("neutral")]).0, "SELECT * FROM ai_gateway_messages LIMIT 1").remove(0);
    assert!(!row.contains_key("home"));
}

#[test]
fn homes_of_the_same_name_are_told_apart_by_their_paths() {
    let (one, other) = (copy("sinks"), copy("sinks"));
    let paths = [one.path().join("sinks"), other.path().join("sinks")];
    let (engine, _) = open(&paths);
    let mut found: Vec<_> =
        rows(&engine, "SELECT DISTINCT home FROM logs").into_iter().map(|row| row["home"].clone()).collect();
    let mut expected: Vec<_> = paths.iter().map(|path| json!(path.display().to_string())).collect();
    found.sort_by_key(ToString::to_string);
    expected.sort_by_key(ToString::to_string);
    assert_eq!(found, expected);
}

#[test]
fn a_column_that_only_one_home_has_is_null_in_the_other() {
    let (engine, _) = open(&[home("legacy"), home("sinks")]);
    let sql = "SELECT count(*) FROM ai_gateway_messages WHERE home = 'sinks' AND client IS NOT NULL";
    assert!(super::answers::try_rows(&engine, sql).is_err(), "ai_gateway_messages has no client segment");
    assert_eq!(value(&engine, "SELECT count(*) FROM logs WHERE home = 'legacy'"), 0);
    assert_eq!(value(&engine, "SELECT count(*) FROM legacy_messages WHERE home = 'legacy' AND client = 'claude'"), 45);
}
