//! Generated tables against a plain evaluation of the same rows in memory.

mod differential;
mod files;
mod queries;
mod regressions;
mod rows;
