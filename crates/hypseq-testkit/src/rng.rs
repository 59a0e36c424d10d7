//! Random numbers that are the same for a seed in every version and on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and any number is a good seed.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for whatever the numbers name, so that what is drawn for one thing does not depend on what
    /// was drawn for another.
    pub(crate) fn keyed(key: &[u64]) -> Self {
        Self(key.iter().fold(0, |state, part| Self(state ^ part).next()))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(to.abs_diff(from) + 1).cast_signed()
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn permille(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.sync()).into_uuid().to_string()
    }

    /// An Avro file's sync marker.
    pub(crate) fn sync(&mut self) -> [u8; 16] {
        ((u128::from(self.next()) << 64) | u128::from(self.next())).to_be_bytes()
    }
}
