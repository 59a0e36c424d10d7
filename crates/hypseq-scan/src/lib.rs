//! Sequence, time and id of every row of a generation, read from its data files.
//!
//! [`scan_generation`] is the full scan: every data file is opened, three columns of it are read, and the rows that the
//! table's own metadata deletes are told from the visible ones. [`LazyScan`] answers the same from the manifests' bounds and
//! reads only the files that can change an answer. In the full scan, one file that cannot be read is a problem, and the
//! scan goes on:
//!
//! | code | meaning |
//! | --- | --- |
//! | `data-file-unreadable` | a data file is not what the manifest or the format says; its rows are left out |
//! | `deletes-unreadable` | a delete file or delete manifest is not; the rows that it may delete are left out |

mod columns;
mod content;
mod data_file;
mod lazy;
mod problems;
mod rows;
mod scan;

pub use columns::{Columns, time_column};
pub use content::{RowContent, content_hashes};
pub use lazy::{Doubt, Figures, LazyScan};
pub use scan::{DeletedRow, Scan, scan_files, scan_generation};
