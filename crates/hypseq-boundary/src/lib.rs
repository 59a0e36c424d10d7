//! From a wall-clock time to a safe sequence number: pure analysis, no I/O.
//!
//! A sink with watermark `W` sends the rows with a seq greater than `W`. Asked for the watermark after which
//! everything younger than a time `T` is sent again, two answers are possible, and they differ whenever rows were
//! flushed out of time order:
//!
//! ```text
//!   seq →      … 720  722 | 724  725  …  1204 | 1205 … 1254 | 1255 …
//!   time vs T      ≤    ≤ |   >    >         > |    ≤      ≤ |    >
//!                     safe  first after                 tight
//! ```
//!
//! [`resolve`] finds both and what each would cost, over anything that is a [`Source`]; [`RowSet`] is the source that
//! holds every row. [`verify`] compares the generations of a partition at a boundary and gives each a [`Verdict`];
//! [`Tally`] finds the same by counting, as long as the counts add up.

mod cause;
mod curve;
mod digest;
mod resolve;
mod rows;
mod tally;
mod verify;

pub use cause::{Cause, CauseKind};
pub use curve::CurvePoint;
pub use digest::Digest;
pub use resolve::{Boundary, Cost, Order, Run, Side, Sides, Source, resolve, safe_seq};
pub use rows::{Row, RowSet};
pub use tally::{Counted, Tally};
pub use verify::{Comparison, Deleted, Difference, GenerationView, Reason, Verdict, Verification, verify};
