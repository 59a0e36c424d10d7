//! The comparison: every question, of every contender, in turns.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use crate::answer::Answer;
use crate::arena::{Arena, Mode, Side};
use crate::cache::Kind;
use crate::contender::{Contender, Run};
use crate::progress;
use crate::question::{Asked, QUESTIONS, Question};
use crate::stats::Times;

/// Something of each contender that was asked.
type BySide<T> = BTreeMap<Side, T>;

/// How long the contenders took for a question.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The question.
    pub question: &'static str,
    /// Whether it was put in SQL that is the same for everybody.
    pub sql: bool,
    /// How it was measured.
    pub mode: Mode,
    /// The times of those that were asked.
    pub times_ms: BySide<Times>,
}

impl Measured {
    /// The median of a contender; none if it was not asked.
    pub fn median(&self, side: Side) -> Option<f64> {
        self.times_ms.get(&side).map(|times| times.median)
    }

    /// How many times as fast as another hypseq was, by the medians.
    pub fn ratio(&self, to: Side) -> Option<f64> {
        Some(self.median(to)? / self.median(Side::Hypseq)?)
    }
}

/// Asks everything, so many times each, in both modes.
pub fn compare(arena: &Arena<'_>, kind: Kind, runs: usize) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for question in &QUESTIONS {
        progress(&format!("{}, a process each", question.name));
        let (times, answers) =
            take_turns(Arena::sides(question, Mode::Whole), runs, |side| arena.whole(side, question))?;
        check(arena, kind, question, &answers)?;
        measured.push(of(question, Mode::Whole, times));
    }
    let mut contenders = BTreeMap::new();
    for side in [Side::Hypseq, Side::Duckdb, Side::Datafusion] {
        contenders.insert(side, arena.start(side)?);
    }
    for question in &QUESTIONS {
        progress(&format!("{}, warm", question.name));
        let sides = Arena::sides(question, Mode::Warm);
        let (times, answers) =
            take_turns(sides, runs, |side| arena.warm(running(&mut contenders, side)?, side, question))?;
        if let Asked::Sql(sql) = question.asked {
            check(arena, kind, question, &answers)?;
            if kind == Kind::Incident {
                let raw = arena.raw(running(&mut contenders, Side::Hypseq)?, sql)?;
                same(question, Side::Hypseq, &raw.rows, Side::Duckdb, &answers[&Side::Duckdb])?;
            }
        }
        measured.push(of(question, Mode::Warm, times));
    }
    contenders.into_values().try_for_each(Contender::end)?;
    Ok(measured)
}

fn running(contenders: &mut BySide<Contender>, side: Side) -> Result<&mut Contender> {
    contenders.get_mut(&side).ok_or_else(|| anyhow::anyhow!("{side} is not running"))
}

fn of(question: &Question, mode: Mode, times: BySide<Vec<f64>>) -> Measured {
    let times_ms = times.into_iter().map(|(side, runs)| (side, Times::of(runs))).collect();
    Measured { question: question.name, sql: matches!(question.asked, Asked::Sql(_)), mode, times_ms }
}

/// Lets each run in turn, once more than is counted: the first turn warms the page cache. An answer may not change.
fn take_turns(
    sides: &[Side],
    runs: usize,
    mut run: impl FnMut(Side) -> Result<Run>,
) -> Result<(BySide<Vec<f64>>, BySide<Answer>)> {
    let (mut times, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for turn in 0..=runs {
        for &side in sides {
            let Run { ms, rows } = run(side)?;
            if turn > 0 {
                times.entry(side).or_insert_with(Vec::new).push(ms);
            }
            let first = answers.entry(side).or_insert_with(|| rows.clone());
            ensure!(*first == rows, "{side} answered otherwise in turn {turn} than in the first");
        }
    }
    Ok((times, answers))
}

/// Without deletes all answers must be the same. With deletes, which no reader of the bare files knows of, those readers
/// must give the same one, and counts must differ by the rows that are deleted.
fn check(arena: &Arena<'_>, kind: Kind, question: &Question, answers: &BySide<Answer>) -> Result<()> {
    match (kind, question.asked) {
        (Kind::Undeleted, _) => {
            let ours = &answers[&Side::Hypseq];
            answers.iter().try_for_each(|(&side, theirs)| same(question, Side::Hypseq, ours, side, theirs))
        }
        (Kind::Incident, Asked::Sql(_)) => {
            let [duckdb, datafusion] = [Side::Duckdb, Side::Datafusion].map(|side| &answers[&side]);
            same(question, Side::Duckdb, duckdb, Side::Datafusion, datafusion)
        }
        (Kind::Incident, Asked::Command(command)) => {
            let size = (command.among)(arena.cache);
            for (side, rows) in [(Side::Hypseq, size.rows - size.deleted), (Side::Duckdb, size.rows)] {
                let counted = command.counted(&answers[&side]).unwrap_or(rows);
                ensure!(counted == rows, "{}: {side} counted {counted} rows, expected {rows}", question.name);
            }
            Ok(())
        }
    }
}

fn same(question: &Question, one: Side, ours: &Answer, other: Side, theirs: &Answer) -> Result<()> {
    ensure!(!ours.is_empty(), "{}: {one} found nothing", question.name);
    if ours == theirs {
        return Ok(());
    }
    let rows = ours.len().max(theirs.len());
    let differing = (0..rows).map(|row| (ours.get(row), theirs.get(row))).find(|(ours, theirs)| ours != theirs);
    let (ours, theirs) = differing.unwrap_or_default();
    bail!("{}: the answers differ\n  {one}: {ours:?}\n  {other}: {theirs:?}", question.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        vec![vec!["1".to_owned(), text.to_owned()]]
    }

    #[test]
    fn the_first_turn_is_not_counted() -> Result<()> {
        let mut order = Vec::new();
        let (times, answers) = take_turns(&[Side::Hypseq, Side::Duckdb], 2, |side| {
            order.push(side);
            Ok(Run { ms: if order.len() > 2 { 5.0 } else { 100.0 }, rows: answer("a") })
        })?;
        assert_eq!(order, [Side::Hypseq, Side::Duckdb].repeat(3));
        assert_eq!(times, [(Side::Hypseq, vec![5.0, 5.0]), (Side::Duckdb, vec![5.0, 5.0])].into());
        assert_eq!(answers[&Side::Duckdb], answer("a"));
        Ok(())
    }

    #[test]
    fn an_answer_that_changes_is_an_error() {
        let mut turn = 0;
        let outcome = take_turns(&[Side::Hypseq], 2, |_| {
            turn += 1;
            Ok(Run { ms: 1.0, rows: answer(if turn < 3 { "a" } else { "b" }) })
        });
        assert_eq!(outcome.unwrap_err().to_string(), "hypseq answered otherwise in turn 2 than in the first");
    }

    #[test]
    fn answers_that_differ_are_an_error_which_shows_the_row() {
        let question = &QUESTIONS[0];
        let compared = |ours: &Answer, theirs: &Answer| same(question, Side::Hypseq, ours, Side::Duckdb, theirs);
        assert!(compared(&answer("a"), &answer("a")).is_ok());
        assert_eq!(
            compared(&answer("a"), &answer("b")).unwrap_err().to_string(),
            "resolve: the answers differ\n  hypseq: Some([\"1\", \"a\"])\n  DuckDB: Some([\"1\", \"b\"])"
        );
        assert_eq!(compared(&Vec::new(), &Vec::new()).unwrap_err().to_string(), "resolve: hypseq found nothing");
    }
}
