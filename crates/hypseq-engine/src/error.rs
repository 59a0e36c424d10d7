//! Why a statement was refused or failed.

use std::error::Error as StdError;
use std::path::PathBuf;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

/// Why there is no (complete) result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is not one of those allowed here; nothing was run.
    #[error("{statement} is refused: {reason}\n  hint: {hint}")]
    Refused {
        /// What was asked for (`DROP TABLE`, `SET datafusion.execution.time_zone`).
        statement: String,
        /// Why not.
        reason: String,
        /// What to do instead.
        hint: String,
    },
    /// A file that the statement needs cannot be read. Rows that came before it are not the whole answer.
    #[error(transparent)]
    Unreadable(Unreadable),
    /// Syntax, unknown names, types, values that do not parse, memory.
    #[error("{0}")]
    Query(String),
}

/// A file of a cache that cannot be read, or does not hold what the metadata says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{path}`: {message}\n  hint: {hint}")]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What was expected and what was found.
    pub message: String,
    /// How to go on without it.
    pub hint: String,
}

impl Error {
    /// What remains of an error of the query engine for a person to read: the file where one is to blame, else the
    /// innermost message.
    pub(crate) fn from_datafusion(error: &DataFusionError) -> Self {
        if let Some(unreadable) = find::<Unreadable>(error) {
            return Self::Unreadable(unreadable.clone());
        }
        match error.find_root() {
            DataFusionError::ResourcesExhausted(message) => Self::Query(format!(
                "the statement needs more memory than it may have: {message}\n  hint: allow more with --memory-limit, or ask for \
                 fewer columns or groups"
            )),
            DataFusionError::SQL(error, _) => match &**error {
                ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                    Self::Query(message.clone())
                }
                other @ ParserError::RecursionLimitExceeded => Self::Query(other.to_string()),
            },
            root => Self::Query(with_hint(&root.message())),
        }
    }
}

/// The engine's own words, and what to write instead where that is known.
fn with_hint(message: &str) -> String {
    if message.contains("Error parsing timestamp from") {
        return format!("{message}\n  hint: write a time as '2026-07-28T21:00:00Z'; without a zone it is UTC");
    }
    if message.contains("comparison operation Timestamp") {
        return format!(
            "{message}\n  hint: write a time as '2026-07-28T21:00:00Z', or make one of seconds with to_timestamp()"
        );
    }
    // The list of columns would push everything else off the screen.
    if let Some((error, _)) =
        message.split_once(" Valid fields are ").or_else(|| message.split_once("\nValid fields are "))
    {
        return format!("{error}\n  hint: DESCRIBE shows the columns of a table");
    }
    message.to_owned()
}

/// The first error of type `T` in a chain of causes.
pub(crate) fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
