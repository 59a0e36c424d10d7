//! `cache.problems`: what is wrong with the metadata. Data files are not read for it.

use hypseq_cache::{Problem, Severity};
use rayon::prelude::*;

use crate::computed::{Column, Relation, text};
use crate::homes::OpenHome;

/// Everything that cannot be read, beside the problems that the session found when it opened.
#[derive(Debug)]
pub(crate) struct Problems;

/// A problem, with its path as text.
pub(crate) struct Row {
    problem: Problem,
    path: String,
}

impl Relation for Problems {
    const NAME: &'static str = "problems";
    type Row = Row;

    fn columns() -> Vec<Column<Row>> {
        vec![
            text("severity", |row: &Row| {
                Some(match row.problem.severity {
                    Severity::Info => "info",
                    Severity::Warning => "warning",
                    Severity::Error => "error",
                })
            }),
            text("code", |row: &Row| Some(row.problem.code)),
            text("path", |row: &Row| Some(&row.path)),
            text("message", |row: &Row| Some(&row.problem.message)),
            text("advice", |row: &Row| Some(&row.problem.advice)),
        ]
    }

    fn rows(home: &OpenHome) -> Vec<Row> {
        home.generations.par_iter().for_each(|generation| {
            generation.snapshot();
            generation.unreferenced();
        });
        let mut problems = home.problems.clone();
        problems.extend(home.generations.iter().flat_map(|generation| generation.problems()));
        problems.extend(home.home.watermarks().problems);
        problems.extend(home.home.allocator().err());
        problems.extend(home.home.policy().problems);
        problems.extend(home.home.visit_spool(drop));
        problems.extend(home.noted().into_iter().filter(|noted| !problems.contains(noted)).collect::<Vec<_>>());
        problems.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.path.cmp(&b.path)));
        problems.into_iter().map(|problem| Row { path: problem.path.display().to_string(), problem }).collect()
    }
}
