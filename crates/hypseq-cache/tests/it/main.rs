//! The crate against real caches, copies of them with one thing broken, and small homes made by hand.

mod corpora;
mod generations;
mod home;
mod policy;
mod spool;
mod state;
mod support;
mod watermarks;
