//! How a cache is described: its partitions, and step by step what happened to it.

use std::ops::RangeInclusive;

/// A cache, described. The same description gives the same bytes.
///
/// Times are milliseconds since 1970, UTC.
#[derive(Debug, Clone)]
pub struct CacheSpec {
    /// Every random choice follows from it.
    pub seed: u64,
    /// The partitions; steps name them by their place here.
    pub partitions: Vec<PartitionSpec>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// Mean length of `content_text` in bytes.
    pub text_bytes: usize,
    /// Rows per row group of a data file; none for one row group.
    pub row_group_rows: Option<usize>,
    /// Whether compacted files hold their rows in no order; else in the order of flushes, as HypAware writes them.
    pub shuffled: bool,
    /// In how many of a thousand data files the manifest lacks some or all bounds or counts.
    pub missing_bounds_permille: u32,
    /// Whether a data file that several generations hold unchanged is one file with several names. Saves space and time;
    /// not for tests that damage a file.
    pub link_same_files: bool,
    /// Rows in the spool of the messages.
    pub spooled: usize,
    /// Sources that are `local-only` in `client-sync.json`; none for no such file.
    pub opted_out: Option<Vec<String>>,
    /// Entries of `local-only.json`, `(folder, class)`; none for no such file.
    pub folders: Option<Vec<(String, String)>>,
}

/// What a partition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dataset {
    /// `ai_gateway_messages`: 57 columns, partitioned by session, conversation, `cwd` and date into many small files.
    Messages,
    /// `logs`: 16 columns, no partition columns, a nullable time. A compaction makes one file of all, so not for millions
    /// of rows.
    Logs,
}

/// A partition `source=<name>`.
#[derive(Debug, Clone)]
pub struct PartitionSpec {
    /// Its dataset.
    pub dataset: Dataset,
    /// Its source, as in the folder's name.
    pub source: String,
    /// How many sessions are at work at once.
    pub sessions: usize,
    /// How many rows a session has in all: with one file per session and day, the size of files.
    pub session_rows: RangeInclusive<i64>,
    /// How many of a thousand rows have no time. [`Dataset::Logs`] only: a message always has one.
    pub null_times_permille: u32,
}

impl PartitionSpec {
    /// A partition of messages with three sessions of 20 to 60 rows.
    pub fn messages(source: &str) -> Self {
        Self {
            dataset: Dataset::Messages,
            source: source.to_owned(),
            sessions: 3,
            session_rows: 20..=60,
            null_times_permille: 0,
        }
    }

    /// A partition of logs.
    pub fn logs(source: &str) -> Self {
        Self { dataset: Dataset::Logs, null_times_permille: 50, ..Self::messages(source) }
    }
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Step {
    /// Rows were captured and flushed.
    Flow(Flow),
    /// The last flush was made again, as after a crash: the same rows under new seqs.
    Replay,
    /// The reserved seqs were lost, as after a crash: up to the next block of 1,024 they exist nowhere.
    LoseSeqs,
    /// A compaction moved a partition to a new generation.
    Compact {
        /// Which one.
        partition: usize,
        /// How many rows it dropped, which no delete file shows.
        drops: u64,
        /// Whether the old generation's folder is gone since.
        removes_old: bool,
    },
    /// Rows of a partition's live generation were deleted, in one commit.
    Delete {
        /// Which partition.
        partition: usize,
        /// Which rows.
        rows: Doomed,
        /// In which form. A generation that has a deletion vector gets no position deletes any more.
        form: DeleteForm,
    },
    /// A compaction was killed: its folder has a data file, a cut temporary one, and no metadata.
    KilledCompaction {
        /// Of which partition.
        partition: usize,
    },
    /// The sink sent what was new and moved its watermarks to the last seqs.
    Tick {
        /// Partitions whose rows were dropped instead: their watermarks moved all the same.
        withheld: Vec<usize>,
    },
}

/// Rows that were captured in some time, flush by flush.
#[derive(Debug, Clone)]
pub struct Flow {
    /// How many, by partition; their order among one another is random.
    pub rows: Vec<u64>,
    /// No row is earlier.
    pub from_ms: i64,
    /// No row is later.
    pub to_ms: i64,
    /// A quarter of the rows are off their place in time by up to so much, either way.
    pub jitter_ms: i64,
    /// Times are multiples of this, so that several rows have the same; 1 for none but by chance.
    pub grain_ms: i64,
    /// Rows per flush.
    pub flush_rows: u64,
    /// Where they came from.
    pub origin: Origin,
}

/// Where rows came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They were captured as they happened: the time of day goes along with them.
    Live,
    /// As [`Origin::Live`], and they were flushed before seqs existed.
    Legacy,
    /// They are of another time than the one at which they were captured: a backfill, or a client whose clock is wrong.
    /// They have sessions of their own.
    OtherTime,
}

/// Which rows a delete concerns.
#[derive(Debug, Clone)]
pub enum Doomed {
    /// So many, anywhere: what `hyp purge` does.
    Any(u64),
    /// All that are older: what retention does.
    Before(i64),
}

/// How deletes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteForm {
    /// Deletion vectors, one Puffin file per data file.
    Vectors,
    /// A position-delete Parquet file for all data files, as in older tables.
    Positions,
}

const HOUR_MS: i64 = 3_600_000;

/// 2026-07-20T06:00:00Z.
const START_MS: i64 = 1_784_527_200_000;

impl Flow {
    /// So many rows of each partition over some hours of the default cache's time, ten to a flush, with two minutes of
    /// jitter.
    pub fn hours(rows: &[u64], hours: RangeInclusive<i64>) -> Self {
        Self {
            rows: rows.to_vec(),
            from_ms: START_MS + hours.start() * HOUR_MS,
            to_ms: START_MS + hours.end() * HOUR_MS,
            jitter_ms: 120_000,
            grain_ms: 1,
            flush_rows: 10,
            origin: Origin::Live,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.rows.iter().sum()
    }

    pub(crate) fn flushes(&self) -> u64 {
        self.total().div_ceil(self.flush_rows.max(1))
    }

    /// Where the row of that place in the flow lies in time, jitter aside.
    pub(crate) fn base_ms(&self, place: u64) -> i64 {
        let span = i128::from(self.to_ms - self.from_ms);
        let twice = i128::from(self.total().max(1)) * 2;
        let offset = span * (i128::from(place) * 2 + 1) / twice;
        self.from_ms + i64::try_from(offset).unwrap_or(0)
    }
}

impl Default for CacheSpec {
    /// Two sources, 500 rows in order over two days, two generations, all of it sent.
    fn default() -> Self {
        let compact = |partition| Step::Compact { partition, drops: 0, removes_old: false };
        Self {
            seed: 0,
            partitions: vec![PartitionSpec::messages("claude"), PartitionSpec::messages("codex")],
            steps: vec![
                Step::Flow(Flow::hours(&[200, 80], 0..=30)),
                compact(0),
                compact(1),
                Step::Flow(Flow::hours(&[160, 60], 30..=48)),
                Step::Tick { withheld: Vec::new() },
            ],
            text_bytes: 80,
            row_group_rows: None,
            shuffled: false,
            missing_bounds_permille: 0,
            link_same_files: false,
            spooled: 0,
            opted_out: None,
            folders: None,
        }
    }
}
