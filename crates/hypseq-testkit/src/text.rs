//! Words for captured texts.

use std::fmt::Write;

use crate::rng::Rng;

const WORDS: [&str; 48] = [
    "build",
    "cache",
    "review",
    "merge",
    "branch",
    "query",
    "token",
    "session",
    "gateway",
    "daemon",
    "sink",
    "watermark",
    "rewind",
    "plan",
    "cursor",
    "compact",
    "stream",
    "patch",
    "error",
    "test",
    "rust",
    "node",
    "schema",
    "column",
    "parquet",
    "manifest",
    "snapshot",
    "retry",
    "timeout",
    "socket",
    "worker",
    "thread",
    "index",
    "filter",
    "bounds",
    "delta",
    "vector",
    "folder",
    "metric",
    "trace",
    "prompt",
    "answer",
    "result",
    "tool",
    "editor",
    "shell",
    "commit",
    "naïve",
];

/// Writes words of about so many bytes in all: at least one word, between half and one and a half times the mean. Each
/// eighth or so is a number, so that no two texts are likely to be the same.
pub(crate) fn write_text(out: &mut impl Write, mean_bytes: usize, rng: &mut Rng) {
    let wanted = mean_bytes / 2 + rng.index(mean_bytes + 1);
    let mut written = 0;
    loop {
        let draw = rng.next();
        // Writing to memory does not fail.
        let _ = if draw.is_multiple_of(8) {
            written += 7;
            write!(out, "{:06x}", (draw >> 8) & 0x00ff_ffff)
        } else {
            let word = usize::try_from((draw >> 8) % 48).map_or("", |place| WORDS[place]);
            written += word.len() + 1;
            out.write_str(word)
        };
        if written >= wanted {
            return;
        }
        let _ = out.write_char(' ');
    }
}
