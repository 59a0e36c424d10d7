//! `_hyp_ingest_seq.json`, the seq counter of the whole cache, and how to read it.

use std::path::Path;

use crate::Problem;
use crate::json::{self, Object};

/// `_hyp_ingest_seq.json`: the seq counter of the whole cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// The next seq to be reserved. Blocks of 1,024 are reserved ahead.
    pub next_seq: i64,
    /// As written in the file.
    pub updated_at: Option<String>,
}

const ADVICE: &str = "HypAware starts again at seq 1, below every watermark, when it cannot read this file: before \
    its next flush, put back a `nextSeq` above every seq in the cache";

pub(crate) fn read(path: &Path) -> Result<Option<Allocator>, Problem> {
    let Some(bytes) = json::read(path).map_err(|error| Problem::io(path, &error))? else {
        return Ok(None);
    };
    parse(&bytes).map(Some).map_err(|message| Problem::error("allocator-unreadable", path, message, ADVICE))
}

fn parse(bytes: &[u8]) -> Result<Allocator, String> {
    let map = json::parse(bytes)?;
    let file = Object::new(&map);
    file.version("v", 1)?;
    Ok(Allocator { next_seq: file.seq("nextSeq")?, updated_at: file.optional_string("updatedAt")? })
}
