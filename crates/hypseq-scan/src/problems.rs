//! How files that could not be used are reported.

use std::path::{Path, PathBuf};

use hypseq_cache::{Problem, Severity};
use hypseq_iceberg::{DataFile, Error};

use crate::data_file::Unusable;

const ADVICE: &str =
    "copy the file again from the machine that wrote it, or see whether another generation has the rows";

/// Why a data file's rows are left out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The data file itself.
    Data(PathBuf, Unusable),
    /// What may delete rows of it.
    Deletes(Error),
}

impl Failure {
    pub(crate) fn data(file: &DataFile, why: Unusable) -> Self {
        Self::Data(file.path.clone(), why)
    }
}

/// The problems in the order in which they were met; one delete file or delete manifest that concerns many data files is
/// one problem.
pub(crate) fn report(failures: Vec<Failure>) -> Vec<Problem> {
    let mut deletes: Vec<(Error, u64)> = Vec::new();
    let mut problems = Vec::new();
    for failure in failures {
        match failure {
            Failure::Data(path, why) => problems.push(unreadable(&path, &why)),
            Failure::Deletes(error) => match deletes.iter_mut().find(|(known, _)| *known == error) {
                Some((_, files)) => *files += 1,
                None => deletes.push((error, 1)),
            },
        }
    }
    problems.extend(deletes.iter().map(|(error, files)| deletes_unreadable(error, *files)));
    problems
}

pub(crate) fn unreadable(path: &Path, why: &Unusable) -> Problem {
    Problem {
        severity: Severity::Error,
        code: "data-file-unreadable",
        path: path.to_owned(),
        message: format!("{why}; its rows are left out"),
        advice: ADVICE.to_owned(),
    }
}

fn deletes_unreadable(error: &Error, files: u64) -> Problem {
    let plural = if files == 1 { "" } else { "s" };
    Problem {
        severity: Severity::Error,
        code: "deletes-unreadable",
        path: error.path().to_owned(),
        message: format!("{error}; the rows of {files} data file{plural} are left out, as any of them may be deleted"),
        advice: ADVICE.to_owned(),
    }
}
