//! HypAware's Iceberg v3 tables, read offline and wherever the cache was copied to: table metadata, manifest
//! lists, manifests with their bounds, snapshots to live data files, deletion vectors and position-delete files.

mod avro;
#[cfg(test)]
mod damage;
mod deletes;
mod error;
mod guard;
mod listing;
mod manifest;
mod manifest_list;
mod metadata;
mod newest;
mod positions;
mod puffin;
mod relocate;
mod table;

pub use deletes::{DeleteFile, DeleteKind, DeletedRows};
pub use error::Error;
pub(crate) use error::io_error;
pub use guard::{guarded, is_guarded};
pub use listing::unreferenced;
pub use manifest::{Bounds, DataFile};
pub use metadata::{Field, FieldType, Schema, Snapshot, TableMetadata};
pub use table::{SnapshotFiles, Table};
