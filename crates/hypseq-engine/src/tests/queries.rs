//! Random queries whose answers do not depend on the order in which rows are read.

use super::rows::{Random, START};

/// A query over `t` (schema live), `raw.t`, or both.
pub(super) fn random(random: &mut Random, seqs: i64) -> String {
    let table = random.pick(&["t", "raw.t"]);
    let filter = filter(random, seqs, "");
    let time = time(random, seqs);
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
            let other = super::queries::filter(random, seqs, "r.");
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

fn filter(random: &mut Random, seqs: i64, of: &str) -> String {
    let mut filter = condition(random, seqs, of);
    for _ in 0..random.below(3) {
        let joiner = random.pick(&["AND", "OR"]);
        filter = format!("({filter} {joiner} {})", condition(random, seqs, of));
    }
    filter
}

fn condition(random: &mut Random, seqs: i64, of: &str) -> String {
    let seq = random.below(seqs.unsigned_abs() + 10);
    let time = time(random, seqs);
    match random.below(19) {
        0 => format!("{of}seq BETWEEN {seq} AND {}", seq + random.below(60)),
        1 => format!("{of}seq > {seq}"),
        2 => format!("{of}seq <= {seq}"),
        3 => format!("{of}seq IN ({seq}, {}, {})", seq + 1, seq + 7),
        4 => format!("{of}at <= {time}"),
        5 => format!("{of}at > {time}"),
        6 => format!("{of}at IS NULL"),
        7 => format!("{of}seq IS NOT NULL"),
        8 => format!("{of}n < {}", i64::try_from(random.below(50)).unwrap() - 25),
        9 => format!("{of}wide > 24000072"),
        10 => format!("{of}word LIKE '%e%'"),
        11 => format!("{of}word = 'merge'"),
        12 => format!("{of}flag"),
        13 => format!("{of}late IS NULL"),
        14 => format!("{of}attrs LIKE '%\"a\"%'"),
        15 => format!("json_get_int({of}attrs, 'k') > {}", random.below(50)),
        16 => format!("{of}pos {} {}", random.pick(&["<", ">="]), random.below(40)),
        17 => random
            .pick(&["deleted", "NOT deleted", "source = 'claude'", "source IS NULL"])
            .replace("deleted", &format!("{of}deleted"))
            .replace("source", &format!("{of}source")),
        _ => format!("{of}file <> '{}'", random.below(4)),
    }
}

fn time(random: &mut Random, seqs: i64) -> String {
    let seconds = START / 1_000_000 + i64::try_from(random.below(seqs.unsigned_abs() * 10)).unwrap();
    format!("to_timestamp({seconds})")
}
