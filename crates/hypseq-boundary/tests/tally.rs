//! The comparison by counts against the one by rows, over random histories of a partition.

use std::collections::BTreeMap;
use std::convert::Infallible;

use hypseq_boundary::{
    Comparison, Cost, Counted, Deleted, GenerationView, Order, Row, RowSet, Run, Side, Sides, Source, Tally, verify,
};
use proptest::prelude::*;

/// A generation with its rows in memory.
#[derive(Debug, Default, Clone)]
struct Generation {
    visible: RowSet,
    deleted: Vec<Deleted>,
}

impl Order for Generation {
    type Error = Infallible;

    fn last_at_or_before(&self, at: i64) -> Result<Option<i64>, Infallible> {
        self.visible.last_at_or_before(at)
    }

    fn first_after(&self, at: i64) -> Result<Option<i64>, Infallible> {
        self.visible.first_after(at)
    }

    fn last_timed(&self, seq: i64) -> Result<Option<i64>, Infallible> {
        self.visible.last_timed(seq)
    }
}

impl Source for Generation {
    fn sides(&self, at: i64) -> Result<Sides, Infallible> {
        self.visible.sides(at)
    }

    fn cost(&self, at: i64, watermark: i64) -> Result<Cost, Infallible> {
        self.visible.cost(at, watermark)
    }

    fn last_at_or_below(&self, seq: i64) -> Result<Option<Row>, Infallible> {
        self.visible.last_at_or_below(seq)
    }

    fn next_above(&self, seq: i64) -> Result<Option<Row>, Infallible> {
        self.visible.next_above(seq)
    }

    fn runs(&self, at: i64, after: i64, up_to: i64) -> Result<Vec<Run>, Infallible> {
        self.visible.runs(at, after, up_to)
    }

    fn rows_on(&self, side: Side, at: i64, after: i64, up_to: i64) -> Result<Vec<Row>, Infallible> {
        self.visible.rows_on(side, at, after, up_to)
    }

    fn considering(&self, keeps: impl Fn(&Row) -> bool) -> impl Order<Error = Infallible> {
        self.visible.filtered(keeps)
    }

    fn seqs_within(&self, from: i64, to: i64) -> Result<Vec<i64>, Infallible> {
        self.visible.seqs_within(from, to)
    }
}

impl Counted for Generation {
    fn max_seq(&self) -> Result<Option<i64>, Infallible> {
        Ok(self.visible.max_seq())
    }

    fn max_physical_seq(&self) -> Result<Option<i64>, Infallible> {
        Ok(self.visible.max_seq().max(self.deleted.iter().map(|d| d.row.seq).max()))
    }

    fn visible_up_to(&self, seq: i64) -> Result<u64, Infallible> {
        Ok(self.visible.at_or_below(seq).len() as u64)
    }

    fn deleted_up_to(&self, seq: i64) -> Result<BTreeMap<String, u64>, Infallible> {
        let mut by_file = BTreeMap::new();
        for deleted in self.deleted.iter().filter(|d| d.row.seq <= seq) {
            *by_file.entry(deleted.by.clone()).or_default() += 1;
        }
        Ok(by_file)
    }

    fn physical_seq_at(&self, rank: u64) -> Result<Option<i64>, Infallible> {
        let deleted = self.deleted.iter().map(|d| d.row.seq);
        let mut seqs: Vec<i64> = self.visible.rows().iter().map(|r| r.seq).chain(deleted).collect();
        seqs.sort_unstable();
        Ok(usize::try_from(rank).ok().and_then(|rank| seqs.get(rank.checked_sub(1)?).copied()))
    }
}

fn row(seq: i64) -> Row {
    Row { seq, time: Some(seq * 10), id: Some(format!("p{seq}").into()) }
}

/// What happened in one generation: rows that the compaction before it dropped, rows flushed, rows deleted in turn.
#[derive(Debug, Clone)]
struct Chapter {
    drops: Vec<prop::sample::Index>,
    flushed: u8,
    deletes: Vec<prop::sample::Index>,
}

fn history(with_drops: bool) -> impl Strategy<Value = Vec<Chapter>> {
    let indices = |most: usize| prop::collection::vec(any::<prop::sample::Index>(), 0..=most);
    let chapter = (indices(usize::from(with_drops)), 0u8..6, indices(3));
    let chapter = chapter.prop_map(|(drops, flushed, deletes)| Chapter { drops, flushed, deletes });
    prop::collection::vec(chapter, 1..5)
}

fn tell(history: &[Chapter]) -> Vec<(String, Generation)> {
    let mut next_seq = 1;
    let mut visible: Vec<Row> = Vec::new();
    let mut generations = Vec::new();
    for (number, chapter) in history.iter().enumerate() {
        let take = |index: &prop::sample::Index, visible: &mut Vec<Row>| {
            (!visible.is_empty()).then(|| visible.remove(index.index(visible.len())))
        };
        for drop in &chapter.drops {
            take(drop, &mut visible);
        }
        for _ in 0..chapter.flushed {
            visible.push(row(next_seq));
            next_seq += 1 + next_seq % 2;
        }
        let mut deleted = Vec::new();
        for (file, delete) in chapter.deletes.iter().enumerate() {
            let by = format!("{file}-deletes.puffin");
            deleted.extend(take(delete, &mut visible).map(|row| Deleted { row, by }));
        }
        generations.push((format!("g{number}"), Generation { visible: RowSet::new(visible.clone()), deleted }));
    }
    generations
}

fn by_rows(generations: &[(String, Generation)], watermark: i64) -> (bool, Vec<Comparison>) {
    let views = generations.iter().map(|(name, generation)| GenerationView {
        name,
        rows: Ok(&generation.visible),
        leftover: false,
        deleted: &generation.deleted,
    });
    let views: Vec<GenerationView<'_>> = views.collect();
    let mut verification = verify(&views, views.len() - 1, watermark, None);
    for comparison in &mut verification.generations {
        comparison.differences.clear();
    }
    (verification.proven, verification.generations)
}

fn union(generations: &[(String, Generation)]) -> BTreeMap<i64, Row> {
    let rows = |g: &Generation| {
        let deleted = g.deleted.iter().map(|d| d.row.clone());
        g.visible.rows().iter().cloned().chain(deleted).map(|r| (r.seq, r)).collect::<Vec<_>>()
    };
    generations.iter().flat_map(|(_, generation)| rows(generation)).collect()
}

fn tally(generations: &[(String, Generation)]) -> Tally<'_, Generation> {
    let Ok(tally) = Tally::new(generations.iter().map(|(name, generation)| (name.as_str(), Ok(generation))));
    tally
}

proptest! {
    #[test]
    fn without_drops_counting_finds_what_comparing_finds(history in history(false), watermark in 0i64..30) {
        let generations = tell(&history);
        let tally = tally(&generations);
        let Ok(Some(counted)) = tally.verify(generations.len() - 1, watermark) else {
            return Err(TestCaseError::fail("the counts add up"));
        };
        prop_assert_eq!((counted.proven, counted.generations), by_rows(&generations, watermark));

        let union = union(&generations);
        let Ok(up_to) = tally.union_up_to(watermark);
        prop_assert_eq!(up_to, union.range(..=watermark).count() as u64);
        prop_assert_eq!(tally.max_seq(), Ok(union.keys().max().copied()));
        for (rank, seq) in (1..).zip(union.keys().copied().map(Some).chain([None])) {
            prop_assert_eq!(tally.seq_at(rank), Ok(seq), "rank {}", rank);
        }
        for (_, generation) in &generations {
            let max = generation.visible.max_seq().unwrap_or(0);
            let missing = union.range(..=max).count() - generation.visible.rows().len();
            prop_assert_eq!(tally.missing_rows(generation), Ok(missing as u64));
        }
    }

    #[test]
    fn with_drops_there_is_no_answer_or_the_same(history in history(true), watermark in 0i64..30) {
        let generations = tell(&history);
        let Ok(counted) = tally(&generations).verify(generations.len() - 1, watermark);
        let dropped = history.windows(2).zip(&generations).any(|(pair, (_, g))| {
            !pair[1].drops.is_empty() && !g.visible.rows().is_empty()
        });
        prop_assert_eq!(counted.is_none(), dropped);
        if let Some(counted) = counted {
            prop_assert_eq!((counted.proven, counted.generations), by_rows(&generations, watermark));
        }
    }
}

#[test]
fn only_the_newest_whole_generation_can_be_the_reference() {
    let history = vec![Chapter { drops: Vec::new(), flushed: 4, deletes: Vec::new() }; 2];
    let generations = tell(&history);
    assert_eq!(tally(&generations).verify(0, 2), Ok(None));

    let with_leftover = generations.iter().map(|(name, g)| (name.as_str(), Ok(g))).chain([("g9", Err("no metadata"))]);
    let Ok(tally) = Tally::new(with_leftover);
    let Ok(Some(verification)) = tally.verify(1, 2) else { panic!("the leftover does not count") };
    assert!(verification.proven);
    assert_eq!(verification.generations[2].unreadable.as_deref(), Some("no metadata"));
}

#[test]
fn one_row_more_than_the_generation_before_shows_does_not_add_up() {
    let generation =
        |seqs: &[i64]| Generation { visible: RowSet::new(seqs.iter().map(|s| row(*s)).collect()), deleted: Vec::new() };
    let generations = vec![("g0".to_owned(), generation(&[1, 2, 5])), ("g1".to_owned(), generation(&[1, 2, 3, 5, 6]))];
    assert_eq!(tally(&generations).adds_up(&[]), Ok(false));
    // A row in another place below the end: the count up to the mark tells.
    let generations = vec![("g0".to_owned(), generation(&[1, 2, 5])), ("g1".to_owned(), generation(&[1, 4, 5, 6]))];
    assert_eq!(tally(&generations).adds_up(&[]), Ok(true));
    assert_eq!(tally(&generations).adds_up(&[2]), Ok(false));
}
