//! Damaged files for property tests: whatever the damage, a decoder returns.

use std::path::Path;

use proptest::prelude::*;

/// A file of `testdata/`.
pub(crate) fn testdata(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).unwrap()
}

/// The bytes with a few of them changed, removed or doubled, or with the end cut off.
pub(crate) fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..8u8);
    (prop::collection::vec(change, 1..6), prop::option::weighted(0.2, any::<prop::sample::Index>())).prop_map(
        move |(changes, cut)| {
            let mut damaged = bytes.clone();
            for (index, byte, kind) in changes {
                let at = index.index(damaged.len());
                match kind {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.insert(at, byte),
                    2 => damaged[at] ^= 1 << (byte % 8),
                    3 => damaged[at] = damaged[at].wrapping_add(1),
                    4 => damaged[at] = damaged[at].wrapping_sub(1),
                    _ => damaged[at] = byte,
                }
            }
            if let Some(cut) = cut {
                damaged.truncate(cut.index(damaged.len()));
            }
            damaged
        },
    )
}
