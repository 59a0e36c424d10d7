//! Random queries whose answers do not depend on the order in which rows are read.

use super::files::Edges;
use super::rows::Random;

/// A query over `t` (schema live), `raw.t`, or both.
pub(super) fn random(random: &mut Random, edges: &Edges) -> String {
    let table = random.pick(&["t", "raw.t"]);
    let filter = filter(random, edges, "");
    let time = time(random, edges);
    let limit = random.below(20);
    match random.below(14) {
        0 => format!("SELECT count(*) FROM {table}"),
        1 => format!("SELECT count(*) FROM {table} WHERE {filter}"),
        2 => format!(
            "SELECT min(seq), max(seq), min(at), max(at), sum(n), count(late), count(DISTINCT word) FROM {table} WHERE {filter}"
        ),
        3 => format!(
            "SELECT max(seq) FILTER (WHERE at <= {time}), min(seq) FILTER (WHERE at > {time}) FROM {table} WHERE {filter}"
        ),
        4 => format!(
            "SELECT word, source, count(*), min(seq), max(pos) FROM {table} WHERE {filter} GROUP BY word, source"
        ),
        5 => {
            let order = random.pick(&[
                "seq",
                "at DESC",
                "at NULLS FIRST",
                "n DESC, at",
                "word, seq DESC",
                "late NULLS FIRST, pos",
            ]);
            format!("SELECT * FROM {table} WHERE {filter} ORDER BY {order}, file, pos LIMIT {limit}")
        }
        6 => format!("SELECT * FROM {table} WHERE {filter}"),
        7 => {
            let both =
                random.pick(&["l.seq = r.seq", "l.at = r.at AND l.n < r.n", "l.seq = r.seq AND l.file = r.file"]);
            let other = super::queries::filter(random, edges, "r.");
            format!(
                "SELECT count(*), min(l.seq), max(r.pos), count(r.late) FROM t l JOIN raw.t r ON {both} WHERE {other}"
            )
        }
        8 => format!("SELECT count(*), min(pos) FROM raw.t WHERE seq IN (SELECT seq FROM {table} WHERE {filter})"),
        9 => format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {filter} LIMIT {limit})"),
        10 => format!(
            "SELECT file, pos, deleted FROM {table} WHERE {filter} ORDER BY pos DESC, file LIMIT {limit} OFFSET 2"
        ),
        11 => {
            format!("SELECT file, max(attrs), min(json_get_int(attrs, 'k')) FROM {table} WHERE {filter} GROUP BY file")
        }
        12 => format!("SELECT seq, lag(seq) OVER (ORDER BY file, pos) FROM {table} WHERE {filter}"),
        _ => format!(
            "SELECT min(seq) FROM {table} WHERE {filter} UNION ALL SELECT max(wide) FROM t WHERE NOT ({filter})"
        ),
    }
}

fn filter(random: &mut Random, edges: &Edges, of: &str) -> String {
    let mut filter = condition(random, edges, of);
    for _ in 0..random.below(3) {
        let joiner = random.pick(&["AND", "OR"]);
        let not = random.pick(&["", "", "", "NOT "]);
        filter = format!("({filter} {joiner} {not}({}))", condition(random, edges, of));
    }
    filter
}

fn condition(random: &mut Random, edges: &Edges, of: &str) -> String {
    let (seq, other_seq) = (random.pick(&edges.seqs), random.pick(&edges.seqs));
    let (time, other_time) = (time(random, edges), time(random, edges));
    let compared = random.pick(&["=", "<>", "<", "<=", ">", ">="]);
    match random.below(27) {
        0 => format!("{of}seq BETWEEN {seq} AND {}", seq.saturating_add(random.pick(&[0, 5, 60]))),
        1..3 => format!("{of}seq {compared} {seq}"),
        3 => format!("{of}seq IN ({seq}, {other_seq}, {})", seq + 7),
        4 => format!("{of}seq NOT IN ({seq}, {other_seq})"),
        5..7 => format!("{of}at {compared} {time}"),
        7 => format!("{of}at BETWEEN {time} AND {other_time}"),
        8 => format!("{of}at IS {}NULL", random.pick(&["", "NOT "])),
        9 => format!("{of}seq IS {}NULL", random.pick(&["", "NOT "])),
        10 => format!("{of}n < {}", i64::try_from(random.below(50)).unwrap() - 25),
        11 => format!("{of}wide > 24000072"),
        12 => format!("{of}word LIKE '%e%'"),
        13 => format!("{of}word = 'merge'"),
        14 => format!("{of}flag"),
        15 => format!("{of}late IS NULL"),
        16 => format!("{of}attrs LIKE '%\"a\"%'"),
        17 => format!("json_get_int({of}attrs, 'k') > {}", random.below(50)),
        18 => format!("{of}pos {} {}", random.pick(&["<", ">="]), random.below(40)),
        19 => random
            .pick(&["deleted", "NOT deleted", "source = 'claude'", "source IS NULL", "source <> 'codex'"])
            .replace("deleted", &format!("{of}deleted"))
            .replace("source", &format!("{of}source")),
        20 => format!("coalesce({of}seq, {seq}) {compared} {seq}"),
        21 => format!("{of}seq + 1 {compared} {seq}"),
        22 => format!("CAST({of}seq AS VARCHAR) = '{seq}'"),
        23 => format!("date_trunc('minute', {of}at) {compared} {time}"),
        24 => format!("{of}at {compared} '{}'", text(random.pick(&edges.times))),
        25 => format!("({of}source = 'claude') = ({of}seq {compared} {seq})"),
        _ => format!("{of}file <> '{}'", random.below(4)),
    }
}

fn time(random: &mut Random, edges: &Edges) -> String {
    format!("to_timestamp_micros({})", random.pick(&edges.times))
}

/// A time as RFC 3339.
fn text(micros: i64) -> String {
    let time = datafusion::arrow::temporal_conversions::timestamp_us_to_datetime(micros).unwrap();
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
