//! The plan as a file, and what a consumer makes of it.

mod consume;
mod crash;
#[cfg(unix)]
mod foreign;
mod home;
mod plan_file;
mod sample;
mod undo;
