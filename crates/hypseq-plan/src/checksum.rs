//! The checksum of a plan: SHA-256 over its canonical form (RFC 8785) without the `checksum` field.

use serde::Serialize;
use serde_json::Value;

use crate::model::Plan;
use crate::scalar::Sha256;

/// The greatest integer that RFC 8785 keeps apart from its neighbours: 2^53 - 1.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// Why a document has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// Canonical numbers are IEEE 754 doubles, so two such documents could share a checksum.
    #[error("{0} is a number that a canonical form cannot hold; expected an integer from 0 to 9007199254740991")]
    Number(serde_json::Number),
    /// The document does not serialise.
    #[error("no canonical form")]
    Json(#[from] serde_json::Error),
}

/// The canonical form of a document without its own `checksum` field.
pub(crate) fn canonical(document: &impl Serialize) -> Result<Vec<u8>, CanonicalError> {
    let mut value = serde_json::to_value(document)?;
    if let Value::Object(fields) = &mut value {
        fields.remove("checksum");
    }
    check_numbers(&value)?;
    Ok(serde_json_canonicalizer::to_vec(&value)?)
}

fn check_numbers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(n) if n.as_u64().is_none_or(|n| n > MAX_EXACT) => Err(CanonicalError::Number(n.clone())),
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(fields) => fields.values().try_for_each(check_numbers),
        _ => Ok(()),
    }
}

/// The checksum of a document that has a `checksum` field.
pub(crate) fn checksum(document: &impl Serialize) -> Result<Sha256, CanonicalError> {
    Ok(Sha256::of(&canonical(document)?))
}

impl Plan {
    /// The plan's canonical form (RFC 8785) without its checksum: what the checksum is taken over.
    ///
    /// # Errors
    ///
    /// When a count exceeds 2^53 - 1.
    pub fn canonical(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical(self)
    }

    /// Sets the checksum to that of the other fields.
    ///
    /// # Errors
    ///
    /// When a count exceeds 2^53 - 1.
    pub fn seal(&mut self) -> Result<(), CanonicalError> {
        self.checksum = checksum(self)?;
        Ok(())
    }

    /// Whether the checksum is that of the other fields.
    ///
    /// # Errors
    ///
    /// When a count exceeds 2^53 - 1.
    pub fn verify_checksum(&self) -> Result<bool, CanonicalError> {
        Ok(self.checksum == checksum(self)?)
    }
}
