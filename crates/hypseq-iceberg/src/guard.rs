//! Panics of other crates' decoders, turned into errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside [`guarded`]: a program's panic hook may keep silent then, since the panic is reported as
/// an error.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs a decoder of another crate; a panic in it is an error like any other.
///
/// `parquet` 59.3 panics on some damaged files (a negative column offset, a page that wants a dictionary where there is
/// none). The panic hook still runs. Whatever the closure changed must not be used after an error.
///
/// # Errors
/// The panic's message.
pub fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(outer);
    decoded.map_err(|payload| {
        let message = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        format!("something that its decoder does not survive: {}", message.unwrap_or("no message"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let empty: Vec<u8> = Vec::new();
        assert_eq!(guarded(|| empty.len()), Ok(0));
        assert_eq!(
            guarded(|| -> usize { panic!("page {}", empty.len()) }),
            Err("something that its decoder does not survive: page 0".to_owned())
        );
    }

    #[test]
    fn the_thread_knows_that_it_is_guarded() {
        assert_eq!((is_guarded(), guarded(is_guarded), is_guarded()), (false, Ok(true), false));
        let _ = guarded(|| panic!("on the way"));
        assert!(!is_guarded());
    }
}
