//! Differences between two documents of the same shape, field by field.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Where, such as `rewinds[0].counts.replayed`.
    pub place: String,
    /// What the first document has there; none where it has nothing.
    pub was: Option<Value>,
    /// What the second document has there; none where it has nothing.
    pub is: Option<Value>,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        write!(f, "{}: was {}, is {}", self.place, text(&self.was), text(&self.is))
    }
}

/// Every leaf field in which two documents differ, in document order: a plan and the plan that would be
/// made now, say.
///
/// # Errors
///
/// When a document does not serialise.
pub fn drift(was: &impl Serialize, is: &impl Serialize) -> Result<Vec<Drift>, serde_json::Error> {
    let mut found = Vec::new();
    compare(String::new(), Some(&serde_json::to_value(was)?), Some(&serde_json::to_value(is)?), &mut found);
    Ok(found)
}

fn compare(place: String, was: Option<&Value>, is: Option<&Value>, found: &mut Vec<Drift>) {
    match (was, is) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let dot = if place.is_empty() { "" } else { "." };
                compare(format!("{place}{dot}{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(format!("{place}[{at}]"), a.get(at), b.get(at), found);
            }
        }
        _ if was == is => {}
        _ => found.push(Drift { place, was: was.cloned(), is: is.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_every_leaf_that_differs() {
        let was = json!({"a": 1, "b": {"c": [1, {"d": null}]}, "gone": 0});
        let is = json!({"a": 1, "b": {"c": [2, {"d": "x"}, 3]}, "new": false});
        let lines: Vec<String> = drift(&was, &is).unwrap().iter().map(Drift::to_string).collect();
        assert_eq!(
            lines,
            [
                "b.c[0]: was 1, is 2",
                "b.c[1].d: was null, is \"x\"",
                "b.c[2]: was nothing, is 3",
                "gone: was 0, is nothing",
                "new: was nothing, is false",
            ]
        );
        assert_eq!(drift(&was, &was).unwrap(), []);
    }
}
