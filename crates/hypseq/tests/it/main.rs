//! The program as its users run it, on caches that HypAware wrote.

mod bad_input;
mod bounds;
mod canned;
mod corpora;
mod fleet;
mod formats;
mod help;
#[cfg(unix)]
mod killed;
mod life;
mod plan;
mod plan_bounds;
mod plan_life;
mod plan_refusals;
mod plan_watch;
#[cfg(unix)]
mod pty;
mod query;
#[cfg(unix)]
mod race;
mod read_only;
mod readme;
#[cfg(unix)]
mod shell;
mod support;
mod verify;
