//! One file per command.

pub mod completions;
pub mod man;
pub mod plan_apply;
pub mod plan_check;
pub mod plan_list;
pub mod plan_rewind;
pub mod plan_schema;
pub mod plan_show;
pub mod plan_undo;
pub mod query;
pub mod resolve;
pub mod sql;
pub mod status;
pub mod verify;
