//! A valid plan for the cache `neutral`: the incident's partition, back from 1495 to 722.

use hypseq_plan::{
    Accepted, Boundary, Counts, Evidence, Exclusions, GenerationState, Guard, Observed, PLAN_KIND, PLAN_VERSION, Plan,
    Policy, Rewind, Row, Seq, Sha256, Sink, Straddle, Target, Time, Tool, Undo, Verdict, WatermarkPath, Witness,
    WitnessKind,
};

pub fn seq(value: i64) -> Seq {
    Seq::new(value).unwrap()
}

pub fn time(text: &str) -> Time {
    text.parse().unwrap()
}

pub fn row(seq_value: i64, at: &str, id: &str) -> Row {
    Row { seq: seq(seq_value), time: Some(time(at)), id: Some(id.to_owned()) }
}

/// A rewind of one watermark of `@hypaware/central`, instance `central`.
pub fn rewind(dataset: &str, partition: &str, from: i64, exported: u64, to: i64) -> Rewind {
    let sink = Sink { plugin: "@hypaware/central".into(), instance: "central".into() };
    let last = (to > 0).then(|| row(to, "2026-07-28T14:26:02.373Z", "msg_2e8343f37f517db95ecf#0"));
    let next = row(to + 2, "2026-07-29T06:00:50.955Z", "msg_2fe3a4c66eb1234db8ca#0");
    Rewind {
        dataset: dataset.into(),
        partition: partition.into(),
        watermark: WatermarkPath::new(&sink, dataset, partition).unwrap(),
        observed: Observed {
            seq: seq(from),
            exported_row_count: exported,
            updated_at: "2026-12-01T03:19:36.701Z".into(),
        },
        target: Target { last_exported_seq: seq(to), first_replayed_seq: Some(next.seq) },
        guard: Guard {
            watermark_v: 1,
            continuation_v: 1,
            min_seq: seq(from),
            min_exported_row_count: exported,
            above_seq: seq(to),
            generation: "table-1796095174466".into(),
            table_uuid: "0b6f0e9c-5d3c-4b8e-9a53-6d7f6f0d2f11".into(),
            last_row: last.clone(),
            next_row: Some(next.clone()),
        },
        boundary: Boundary {
            policy: Policy::Safe,
            at: Some(time("2026-07-28T21:00:00.000Z")),
            as_typed: "2026-07-28T21:00:00Z".into(),
            zone: None,
            time_column: Some("message_created_at".into()),
            tight_seq: Some(seq(1254)),
            safe_seq: Some(seq(to)),
            first_seq_after: Some(next.seq),
            last_row: last,
            next_row: Some(next),
            straddle: Some(Straddle { rows: 319, lost_at_tight: 269, resent_at_safe: 50 }),
            exclusions: Exclusions::default(),
        },
        counts: Counts {
            replayed: 531,
            pending: 0,
            spooled: 3,
            resent: Some(50),
            lost: Some(0),
            null_time_lost: 0,
            null_time_resent: 0,
            withheld: 531,
            unrecoverable: 0,
            legacy: 0,
            bytes: 612_000,
            chunks: 1,
        },
        evidence: vec![Evidence {
            generation: "table-1796095174466".into(),
            state: GenerationState::Live,
            table_uuid: Some("0b6f0e9c-5d3c-4b8e-9a53-6d7f6f0d2f11".into()),
            snapshot_id: Some("7798300431279562".into()),
            metadata_file: Some("v31.metadata.json".into()),
            metadata_sha256: Some(Sha256::of(b"metadata")),
            visible_rows: Some(900),
            max_seq: Some(seq(1495)),
            verdict: Verdict::Agrees,
            digest_at_or_below: None,
            digest_resent: None,
            explanation: None,
        }],
        proven: true,
        witnesses: vec![Witness {
            kind: WitnessKind::ExportedRowCount,
            value: exported.to_string(),
            says: "the row of rank 665 in the union is 722".into(),
        }],
        accepted: Accepted { withheld: true, ..Accepted::default() },
        undo: Undo { last_exported_seq: seq(from), valid_below_seq: seq(from) },
    }
}

/// An unsealed plan of the given rewinds, with a literal id and literal times.
pub fn plan_of(rewinds: Vec<Rewind>) -> Plan {
    Plan {
        v: PLAN_VERSION,
        kind: PLAN_KIND.into(),
        id: "019af5b1-7c00-7d2e-8a41-5f0c3b9e1d77".parse().unwrap(),
        created_at: time("2026-12-01T09:00:00.000Z"),
        expires_at: time("2026-12-02T09:00:00.000Z"),
        created_by: Tool { name: "hypseq".into(), version: "0.1.0".into() },
        reason: "opt-out of claude left a gap".into(),
        sink: Sink { plugin: "@hypaware/central".into(), instance: "central".into() },
        rewinds,
        checksum: Sha256::of(b""),
    }
}

/// A sealed plan for `neutral`.
pub fn sample() -> Plan {
    let mut plan = plan_of(vec![rewind("ai_gateway_messages", "source=claude", 1495, 665, 722)]);
    plan.seal().unwrap();
    plan
}
