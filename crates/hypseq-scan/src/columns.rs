//! Which columns of a dataset hold the seq, the time and the id.

use hypseq_iceberg::{FieldType, Schema};

/// The seq's column in every dataset.
pub(crate) const SEQ: &str = "_hyp_ingest_seq";

/// The id's column, where a dataset has ids.
const ID: &str = "part_id";

/// Primary timestamp columns by what a dataset's name begins with (`cache-format.md`, "The home").
const PRIMARY_TIMES: &[(&str, &str)] = &[
    ("ai_gateway_messages", "message_created_at"),
    ("logs", "timestamp"),
    ("metrics", "timestamp"),
    ("traces", "startTimestamp"),
    ("claude", "event_timestamp"),
    ("gascity", "event_time"),
    ("context_graph", "first_seen"),
];

/// What retention falls back to. Its last fallback, `date`, is text and a whole day long: it orders nothing here.
const FALLBACK_TIMES: &[&str] = &["timestamp", "created_at", "recorded_at"];

/// The columns that a scan reads, by name in the table's current schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// `_hyp_ingest_seq`.
    pub seq: &'static str,
    /// The primary timestamp; none when the dataset has no known one.
    pub time: Option<String>,
    /// `part_id`; none when the schema lacks it.
    pub id: Option<String>,
}

impl Columns {
    /// The well-known columns of a dataset, as far as the schema has them.
    pub fn of(dataset: &str, schema: &Schema) -> Self {
        Self { seq: SEQ, time: time_column(dataset, schema), id: schema.field(ID).map(|f| f.name.clone()) }
    }
}

/// The dataset's primary timestamp column: the known one, else the retention fallbacks `timestamp`, `created_at` and
/// `recorded_at`, the first that the schema has as timestamptz.
pub fn time_column(dataset: &str, schema: &Schema) -> Option<String> {
    let known = PRIMARY_TIMES.iter().filter(|(prefix, _)| dataset.starts_with(prefix)).map(|(_, column)| column);
    let is_time = |name: &&&str| schema.field(name).is_some_and(|f| f.field_type == FieldType::Timestamptz);
    known.chain(FALLBACK_TIMES).find(is_time).map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use hypseq_iceberg::Field;

    use super::*;

    fn schema(fields: &[(&str, FieldType)]) -> Schema {
        let field = |(id, (name, field_type)): (i32, &(&str, FieldType))| Field {
            id,
            name: (*name).to_owned(),
            required: false,
            field_type: *field_type,
        };
        Schema { id: 0, fields: (1..).zip(fields).map(field).collect() }
    }

    fn assert_time(dataset: &str, fields: &[(&str, FieldType)], expected: Option<&str>) {
        assert_eq!(time_column(dataset, &schema(fields)).as_deref(), expected, "{dataset}");
    }

    #[test]
    fn known_columns_come_first() {
        let time = FieldType::Timestamptz;
        for (dataset, column) in PRIMARY_TIMES {
            assert_time(dataset, &[("created_at", time), (column, time), ("other", time)], Some(column));
        }
    }

    #[test]
    fn then_the_fallbacks_and_only_as_timestamptz() {
        let time = FieldType::Timestamptz;
        assert_time("logs", &[("recorded_at", time), ("timestamp", FieldType::String)], Some("recorded_at"));
        assert_time("mine", &[("recorded_at", time), ("created_at", time)], Some("created_at"));
        assert_time("mine", &[("message_created_at", time), ("date", FieldType::String)], None);
    }

    #[test]
    fn the_id_is_there_or_not() {
        let with = schema(&[("part_id", FieldType::String)]);
        assert_eq!(
            Columns::of("mine", &with),
            Columns { seq: "_hyp_ingest_seq", time: None, id: Some("part_id".to_owned()) }
        );
        assert_eq!(Columns::of("mine", &schema(&[])).id, None);
    }
}
