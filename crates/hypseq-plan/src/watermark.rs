//! The text of a watermark file: read strictly, written byte for byte as HypAware writes it.
//!
//! ```json
//! {
//!   "v": 1,
//!   "continuation": {
//!     "v": 1,
//!     "seq": "21739"
//!   },
//!   "exportedRowCount": 9683,
//!   "updatedAt": "2026-12-01T03:19:36.701Z"
//! }
//! ```

use serde::Deserialize;
use serde_json::Value;

use crate::model::Observed;
use crate::scalar::Seq;

/// Why the content of a watermark file is not understood.
#[derive(Debug, thiserror::Error)]
pub enum WatermarkError {
    /// Not JSON, or not with exactly the known fields.
    #[error("not a watermark: expected v, continuation, exportedRowCount and updatedAt")]
    Shape(#[from] serde_json::Error),
    /// A version that this crate does not know.
    #[error("{field}: expected 1, found {found}; the daemon writes another format than this program knows")]
    Version {
        /// `v` or `continuation.v`.
        field: &'static str,
        /// What the file has.
        found: String,
    },
    /// A count that the daemon, which counts in doubles, cannot have written.
    #[error("exportedRowCount: expected at most 9007199254740991, found {0}")]
    Count(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    #[serde(rename = "v")]
    _v: u32,
    continuation: Continuation,
    exported_row_count: u64,
    updated_at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Continuation {
    #[serde(rename = "v")]
    _v: u32,
    seq: Seq,
}

/// Reads a watermark file's content.
///
/// # Errors
///
/// When it is not JSON, has another version, lacks a field or has one that is unknown.
pub fn parse_watermark(text: &str) -> Result<Observed, WatermarkError> {
    let raw: Value = serde_json::from_str(text)?;
    for (field, pointer) in [("v", "/v"), ("continuation.v", "/continuation/v")] {
        match raw.pointer(pointer) {
            Some(v) if v.as_u64() != Some(1) => return Err(WatermarkError::Version { field, found: v.to_string() }),
            _ => {}
        }
    }
    let file: File = serde_json::from_str(text)?;
    if file.exported_row_count >= 1 << 53 {
        return Err(WatermarkError::Count(file.exported_row_count));
    }
    Ok(Observed {
        seq: file.continuation.seq,
        exported_row_count: file.exported_row_count,
        updated_at: file.updated_at,
    })
}

/// The content of the watermark file with these values: what HypAware itself would write.
pub fn watermark_text(watermark: &Observed) -> String {
    let Observed { seq, exported_row_count, updated_at } = watermark;
    let updated_at = Value::from(updated_at.as_str());
    format!(
        "{{\n  \"v\": 1,\n  \"continuation\": {{\n    \"v\": 1,\n    \"seq\": \"{seq}\"\n  }},\n  \
         \"exportedRowCount\": {exported_row_count},\n  \"updatedAt\": {updated_at}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The files of the test caches whose name ends so, below their homes.
    fn watermarks(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                watermarks(&path, found);
            } else if path.to_str().unwrap().contains("/watermarks/") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn writes_every_watermark_of_the_test_caches_as_hypaware_did() {
        let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
        let mut texts = Vec::new();
        for home in ["neutral", "monotone", "legacy", "skew", "crashed", "sinks"] {
            watermarks(&Path::new(testdata).join(home).join("hypaware/plugins"), &mut texts);
        }
        let (good, bad): (Vec<_>, Vec<_>) = texts.iter().partition(|text| parse_watermark(text).is_ok());
        assert_eq!((good.len(), bad.len()), (16, 1));
        for text in good {
            assert_eq!(watermark_text(&parse_watermark(text).unwrap()), *text);
        }
        assert_eq!(bad[0], "{\"v\":1,\"continuation\":{\"v\":1,\"seq\":\"-5\"},\"exportedRowCount\":3");
    }

    #[test]
    fn keeps_every_digit() {
        let text = concat!(
            "{\n  \"v\": 1,\n  \"continuation\": {\n    \"v\": 1,\n    \"seq\": \"9223372036854775807\"\n  },\n",
            "  \"exportedRowCount\": 9007199254740991,\n  \"updatedAt\": \"2026-12-01T03:19:36.701Z\"\n}\n"
        );
        let read = parse_watermark(text).unwrap();
        assert_eq!((read.seq, read.exported_row_count), (Seq::MAX, 9_007_199_254_740_991));
        assert_eq!(watermark_text(&read), text);
    }

    #[test]
    fn rejects_what_it_does_not_understand() {
        let good = r#"{"v":1,"continuation":{"v":1,"seq":"5"},"exportedRowCount":3,"updatedAt":"x"}"#;
        let error = |from: &str, to: &str| parse_watermark(&good.replacen(from, to, 1)).unwrap_err();
        assert!(parse_watermark(good).is_ok());
        assert!(matches!(error("{\"v\":1", "{\"v\":2"), WatermarkError::Version { field: "v", found } if found == "2"));
        let inner = error("{\"v\":1,\"seq\"", "{\"v\":\"1\",\"seq\"");
        assert!(matches!(inner, WatermarkError::Version { field: "continuation.v", found } if found == "\"1\""));
        for (from, to) in [
            ("\"5\"", "\"-5\""),
            ("\"5\"", "\"05\""),
            ("\"5\"", "5"),
            ("\"5\"", "\"9223372036854775808\""),
            (":3", ":-3"),
            (":3", ":3.0"),
            (":3", ":\"3\""),
            ("\"v\":1,", ""),
            ("\"exportedRowCount\":3,", ""),
            (",\"updatedAt\":\"x\"", ""),
            ("\"x\"", "\"x\",\"new\":0"),
            ("\"5\"", "\"5\",\"file\":0"),
            ("}", ""),
        ] {
            assert!(matches!(error(from, to), WatermarkError::Shape(_)), "{from} → {to}");
        }
        assert!(matches!(error(":3", ":9007199254740992"), WatermarkError::Count(9_007_199_254_740_992)));
    }
}
