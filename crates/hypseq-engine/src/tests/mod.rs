//! Tables and whole caches against a plain evaluation of the same rows in memory.

mod caches;
mod differential;
mod files;
mod queries;
mod regressions;
mod rows;
