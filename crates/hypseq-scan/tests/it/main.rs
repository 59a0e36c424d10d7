//! The scan, on the corpora and on damaged copies of them.

mod content;
mod corpora;
mod damage;
mod lazy;
mod support;
