//! The incident as it was reported: a sink that had sent 255,086 rows when it began to drop what it should have sent, and
//! whose watermark moved on to the end.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::spec::{CacheSpec, DeleteForm, Doomed, Flow, Origin, PartitionSpec, Step};

/// The incident at some size: how to make it, and its figures.
#[derive(Debug, Clone, Serialize)]
pub struct Incident {
    /// The cache. Its first partition is the one that it is about.
    #[serde(skip)]
    pub spec: CacheSpec,
    /// The last time that the server received, in milliseconds since 1970, UTC: 2026-08-12T00:50:47Z.
    pub time_ms: i64,
    /// The last seq at or before that time.
    pub last_seq: i64,
    /// The next seq in the partition, and the first after that time.
    pub next_seq: i64,
    /// Rows up to the last seq: what the sink had sent.
    pub exported: u64,
    /// Rows of the complete table, which is the union over the generations.
    pub rows: u64,
    /// Rows that are visible in the live generation.
    pub visible: u64,
}

/// 2026-07-18T06:00:00Z, the first row.
const FROM_MS: i64 = 1_784_354_400_000;
/// 2026-08-12T00:50:47Z.
const TIME_MS: i64 = 1_786_495_847_000;
/// When the first row came after that time.
const NEXT_MS: i64 = TIME_MS + 83_412;
/// 2026-09-04T06:00:00Z, the last row.
const TO_MS: i64 = 1_788_501_600_000;

/// The figures as reported.
const ROWS: u64 = 488_088;
const EXPORTED: u64 = 255_086;
const LAST_SEQ: u64 = 355_254;
const LOST: u64 = 72;

/// Four generations cover the boundary. The first begins when so many thousandths of the rows after it are still to come,
/// a quarter of them to each generation.
const LATE_PERMILLE: u64 = 40;
const GENERATIONS: u64 = 4;

/// Commits while a generation was live.
const COMMITS: u64 = 24;

/// Below, the figures would fall together.
const MIN_ROWS: u64 = 500;

/// Describes the incident with so many rows in the partition that it is about, at least 500: 488,088 for the one that was
/// reported, with its very figures, and any other number for one in proportion.
pub fn incident(rows: u64, seed: u64) -> Incident {
    let rows = rows.max(MIN_ROWS);
    let exported = scaled(EXPORTED, rows);
    let last_seq = scaled(LAST_SEQ, rows);
    let others = last_seq - exported;
    let lost = scaled(LOST, rows).max(2);
    let lost_live = (lost * 3 / 7).max(1);
    // Less the first row after the time, which has a flow of its own.
    let after = rows - exported - 1;
    let others_after = others * after / exported;
    let late = (after * LATE_PERMILLE / 1000).max(GENERATIONS * COMMITS);
    let others_late = others_after * late / after;
    let late_from_ms = TO_MS - (TO_MS - NEXT_MS) / 1000 * LATE_PERMILLE.cast_signed();
    let flush_rows = scaled(300, rows).max(2);

    let mut steps = vec![
        // No row but the last is of the second that the time names.
        flow([exported - 1, others], FROM_MS..=TIME_MS - 1000, flush_rows),
        flow([1, 0], TIME_MS..=TIME_MS, 1),
        Step::Tick { withheld: Vec::new() },
        flow([0, 2], TIME_MS + 1000..=NEXT_MS - 1000, 2),
        flow([1, 0], NEXT_MS..=NEXT_MS, 1),
        flow([after - late, others_after - others_late], NEXT_MS + 1..=late_from_ms, flush_rows),
    ];
    for generation in 0..GENERATIONS {
        let removes_old = generation == 0;
        steps.extend([0, 1].map(|partition| Step::Compact { partition, drops: 0, removes_old }));
        let part = |whole: u64| whole * (generation + 1) / GENERATIONS - whole * generation / GENERATIONS;
        let at = |generation: u64| late_from_ms + (TO_MS - late_from_ms) / 4 * generation.cast_signed();
        let rows = [part(late), part(others_late)];
        let flush_rows = (rows[0] + rows[1]).div_ceil(COMMITS);
        steps.push(flow(rows, at(generation) + 1..=at(generation + 1), flush_rows));
        steps.push(Step::Tick { withheld: vec![0] });
        match generation {
            2 => steps.push(purge(lost - lost_live)),
            3 => steps.push(purge(lost_live)),
            _ => {}
        }
    }

    let sessions = |source: &str, sessions, session_rows| PartitionSpec {
        sessions,
        session_rows,
        ..PartitionSpec::messages(source)
    };
    let spec = CacheSpec {
        seed,
        partitions: vec![sessions("claude", 6, 500..=1500), sessions("codex", 3, 400..=1200)],
        steps,
        text_bytes: 160,
        spooled: 40,
        opted_out: Some(Vec::new()),
        ..CacheSpec::default()
    };
    let (last_seq, visible) = (last_seq.cast_signed(), rows - lost);
    Incident { spec, time_ms: TIME_MS, last_seq, next_seq: last_seq + 3, exported, rows, visible }
}

/// A figure in proportion to so many rows.
fn scaled(figure: u64, rows: u64) -> u64 {
    let scaled = (u128::from(figure) * u128::from(rows) + u128::from(ROWS / 2)) / u128::from(ROWS);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn flow(rows: [u64; 2], time: RangeInclusive<i64>, flush_rows: u64) -> Step {
    Step::Flow(Flow {
        rows: rows.to_vec(),
        from_ms: *time.start(),
        to_ms: *time.end(),
        jitter_ms: 300_000,
        grain_ms: 1,
        flush_rows,
        origin: Origin::Live,
    })
}

fn purge(rows: u64) -> Step {
    Step::Delete { partition: 0, rows: Doomed::Any(rows), form: DeleteForm::Vectors }
}
