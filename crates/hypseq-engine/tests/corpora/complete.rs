//! Schema `complete` against a ranking of the rows of schema `raw`.

use serde_json::Value;

use super::answers::{corpus, rows, value};

/// For each seq of a partition, the row to take; for rows without a seq, those of the first generation that has any.
/// The corpora's generations sort by name: `table`, then `table-<ms>` of equal length, and `epoch=<digit>`.
const RANKED: &str = "
    SELECT _partition, _generation, _deleted, _hyp_ingest_seq, part_id,
        row_number() OVER (PARTITION BY _partition, _hyp_ingest_seq ORDER BY _generation_state = 'live' DESC,
            _generation DESC, _deleted, _file, _pos) AS place,
        dense_rank() OVER (PARTITION BY _partition, _hyp_ingest_seq IS NULL ORDER BY _generation_state = 'live' DESC,
            _generation DESC) AS generation_place
    FROM raw.ai_gateway_messages WHERE _referenced";

#[test]
fn each_seq_comes_once_from_the_first_generation_that_has_it() {
    for name in ["neutral", "legacy", "crashed"] {
        let engine = corpus(name);
        let columns = "_partition, _generation, _deleted, _hyp_ingest_seq, part_id";
        let order = "ORDER BY _partition, _hyp_ingest_seq, part_id";
        let ranked = format!(
            "SELECT {columns} FROM ({RANKED}) WHERE CASE WHEN _hyp_ingest_seq IS NULL THEN generation_place = 1
             ELSE place = 1 END {order}"
        );
        let expected = rows(&engine, &ranked);
        let found = rows(&engine, &format!("SELECT {columns} FROM complete.ai_gateway_messages {order}"));
        assert!(!found.is_empty());
        assert_eq!(found, expected, "{name}");
    }
}

/// What the sink counted as exported is the number of rows up to the boundary, those deleted since included.
#[test]
fn rows_that_were_deleted_since_are_still_there() {
    let sent = |name, dataset, condition| {
        value(
            &corpus(name),
            &format!("SELECT count(*) FROM complete.{dataset} WHERE source = 'claude' AND {condition}"),
        )
    };
    assert_eq!(sent("neutral", "ai_gateway_messages", "_hyp_ingest_seq <= 722"), 665);
    assert_eq!(sent("monotone", "ai_gateway_messages", "_hyp_ingest_seq <= 719"), 661);
    assert_eq!(sent("legacy", "ai_gateway_messages", "_hyp_ingest_seq IS NOT NULL"), 210);
    assert_eq!(sent("legacy", "ai_gateway_messages", "_hyp_ingest_seq IS NULL"), 76);
}

#[test]
fn a_partition_without_a_known_live_generation_has_its_newest_first() {
    let sql = "SELECT DISTINCT _generation FROM complete.ai_gateway_messages WHERE source = 'codex'";
    let found = rows(&corpus("crashed"), sql);
    assert_eq!(found.iter().map(|row| &row["_generation"]).collect::<Vec<_>>(), [&Value::from("table-1796095578086")]);
}
