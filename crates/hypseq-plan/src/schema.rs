//! The JSON Schema of a plan.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::model::Plan;

/// The JSON Schema (draft 2020-12) of a plan file: every field required, no other allowed. Agreement between
/// fields and the checksum are beyond it; [`Plan::read`] checks those.
pub fn plan_schema() -> Value {
    // As written, not as accepted: in the other contract a field that may be null might be left out.
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Plan>().to_value()
}
