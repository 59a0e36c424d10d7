//! Sequence, time and id of every row of a generation, read from its data files.
//!
//! This is the full scan: every data file is opened, three columns of it are read, and the rows that the table's own
//! metadata deletes are told from the visible ones. One file that cannot be read is a problem, and the scan goes on:
//!
//! | code | meaning |
//! | --- | --- |
//! | `data-file-unreadable` | a data file is not what the manifest or the format says; its rows are left out |
//! | `deletes-unreadable` | a delete file or delete manifest is not; the rows that it may delete are left out |

mod columns;
mod content;
mod data_file;
mod problems;
mod rows;
mod scan;

pub use columns::{Columns, time_column};
pub use content::{RowContent, content_hashes};
pub use scan::{DeletedRow, Scan, scan_files, scan_generation};
