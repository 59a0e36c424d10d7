//! A digest of a set of rows that does not depend on their order.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::Row;

/// The sum modulo 2²⁵⁶ of the SHA-256 of each row's (seq, time, id), as a big-endian number.
///
/// A sum, unlike an exclusive or, tells one copy of a row from three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    fn add(&mut self, other: &[u8]) {
        let mut carry = 0u16;
        for (sum, addend) in self.0.iter_mut().zip(other).rev() {
            carry += u16::from(*sum) + u16::from(*addend);
            *sum = carry.to_le_bytes()[0];
            carry >>= 8;
        }
    }
}

impl<'a> FromIterator<&'a Row> for Digest {
    fn from_iter<I: IntoIterator<Item = &'a Row>>(rows: I) -> Self {
        let mut digest = Self::default();
        for row in rows {
            let mut hash = Sha256::new();
            hash.update(row.seq.to_le_bytes());
            match row.time {
                Some(time) => {
                    hash.update([1]);
                    hash.update(time.to_le_bytes());
                }
                None => hash.update([0]),
            }
            match &row.id {
                Some(id) => {
                    hash.update([1]);
                    hash.update(id.as_bytes());
                }
                None => hash.update([0]),
            }
            digest.add(&hash.finalize());
        }
        digest
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64) -> Row {
        Row { seq, time: Some(seq * 10), id: Some(format!("part{seq}").into()) }
    }

    fn digest(rows: &[Row]) -> String {
        rows.iter().collect::<Digest>().to_string()
    }

    #[test]
    fn no_rows_are_zero() {
        assert_eq!(digest(&[]), "0".repeat(64));
    }

    #[test]
    fn order_does_not_matter() {
        assert_eq!(digest(&[row(1), row(2), row(3)]), digest(&[row(3), row(1), row(2)]));
    }

    #[test]
    fn every_part_of_a_row_and_the_number_of_copies_matter() {
        let base = row(1);
        let mut digests = vec![
            digest(std::slice::from_ref(&base)),
            digest(&[Row { seq: 2, ..base.clone() }]),
            digest(&[Row { time: None, ..base.clone() }]),
            digest(&[Row { time: Some(11), ..base.clone() }]),
            digest(&[Row { id: None, ..base.clone() }]),
            digest(&[Row { id: Some("part2".into()), ..base.clone() }]),
            digest(&[base.clone(), base.clone(), base.clone()]),
        ];
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 7);
    }

    #[test]
    fn the_carry_runs_through() {
        let mut digest = Digest([0xff; 32]);
        let mut one = [0; 32];
        one[31] = 1;
        digest.add(&one);
        assert_eq!(digest, Digest([0; 32]));
    }
}
