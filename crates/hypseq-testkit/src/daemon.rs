//! A model of the daemon's sink: ticks over real watermark files, as its own process, by seed.
//!
//! A tick does what HypAware's does (`cache-format.md`, "A watermark and the tick that moves it"): it reads the watermark
//! when it starts, takes a while, and writes it once at its end, as a temporary file that is renamed over the old one,
//! with the greatest seq it saw and `exportedRowCount` plus the rows really sent, both from what it had *read*. It writes
//! only if it sent or dropped a row. A source that is opted out is dropped and passed all the same; a server that fails
//! leaves a batch in the outbox and the watermark where it was. Between two ticks a compaction may replace the table.
//!
//! Which rows there are is told by the spec; the model "captures" them one after the other. Everything it does stands in
//! its log, which is what a test judges by.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rng::Rng;

/// What the model is to do. Spans are in milliseconds, least and greatest, both included.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonSpec {
    /// `<HYP_HOME>/hypaware`.
    pub state_root: PathBuf,
    /// The sink's plugin, such as `@hypaware/central`.
    pub plugin: String,
    /// The sink's instance.
    pub instance: String,
    /// The partitions, in the order in which a tick visits them.
    pub partitions: Vec<Feed>,
    /// Where the log goes; one [`Event`] per line.
    pub log: PathBuf,
    /// Whatever is drawn depends on this alone.
    pub seed: u64,
    /// From the end of a tick to the next.
    pub pause_ms: (u64, u64),
    /// From reading a watermark to writing it.
    pub tick_ms: (u64, u64),
    /// Rows captured before a tick, per partition.
    pub arrivals: (u64, u64),
    /// In how many of a thousand ticks the server fails.
    pub failing_permille: u32,
    /// After how many of a thousand ticks the first partition is compacted.
    pub compacting_permille: u32,
}

/// A partition and its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Feed {
    /// The dataset.
    pub dataset: String,
    /// The path below it, such as `source=claude`; also the watermark's.
    pub partition: String,
    /// Its rows by seq, ascending. When all are captured, the model goes on with numbers of its own.
    pub seqs: Vec<i64>,
    /// How many of them are captured at the start.
    pub captured: usize,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A tick read a watermark.
    Read,
    /// It wrote it.
    Wrote,
    /// It had nothing to send or drop, and did not write.
    Idle,
    /// The server failed, and it did not write.
    Failed,
    /// A policy store does not parse, and nothing was sent.
    Stopped,
    /// The partition has a new generation.
    Compacted,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the start, by a clock that only goes forward.
    pub at_us: u64,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    /// Which tick, from 1.
    pub tick: u64,
    /// Which partition of the spec.
    pub partition: usize,
    /// What happened.
    pub what: What,
    /// The watermark's seq as read or written.
    pub seq: i64,
    /// Its `exportedRowCount` as read or written.
    pub exported: u64,
    /// Rows sent by this tick.
    pub sent: u64,
    /// Rows dropped by this tick.
    pub dropped: u64,
}

/// Reads a log. A last line that was cut by the end of the process is left out.
///
/// # Errors
///
/// When the file cannot be read, or another line does not parse.
pub fn read_log(path: &Path) -> io::Result<Vec<Event>> {
    let text = fs::read_to_string(path)?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

/// Runs until the process is ended, or the log's folder is gone.
///
/// # Errors
///
/// When a file of the home cannot be read or written.
pub fn run(spec: DaemonSpec) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(&spec.log)?;
    let captured = spec.partitions.iter().map(|feed| feed.seqs.iter().take(feed.captured).copied().collect()).collect();
    let rng = Rng::new(spec.seed);
    let mut daemon = Daemon { spec, captured, rng, log, begun: Instant::now(), tick: 0 };
    while daemon.spec.log.exists() {
        daemon.tick += 1;
        for partition in 0..daemon.captured.len() {
            daemon.visit(partition)?;
        }
        if daemon.rng.permille(daemon.spec.compacting_permille) {
            daemon.compact()?;
        }
        let pause = daemon.spec.pause_ms;
        daemon.wait(pause);
    }
    Ok(())
}

struct Daemon {
    spec: DaemonSpec,
    /// Per partition, the seqs of the rows that exist by now.
    captured: Vec<Vec<i64>>,
    rng: Rng,
    log: File,
    begun: Instant,
    tick: u64,
}

/// A watermark's meaning.
#[derive(Clone, Copy)]
struct Mark {
    seq: i64,
    exported: u64,
}

impl Daemon {
    /// One partition's part of a tick.
    fn visit(&mut self, partition: usize) -> io::Result<()> {
        self.capture(partition);
        let path = self.watermark(partition);
        let read = read_mark(&path)?;
        self.log(partition, What::Read, read, 0, 0)?;
        let duration = self.spec.tick_ms;
        self.wait(duration);

        let above = self.captured.get(partition).into_iter().flatten().copied().filter(|seq| *seq > read.seq);
        let rows: Vec<i64> = above.collect();
        let Some(last) = rows.iter().copied().max() else { return self.log(partition, What::Idle, read, 0, 0) };
        let count = rows.len() as u64;
        let Ok(withheld) = self.is_opted_out(partition) else {
            return self.log(partition, What::Stopped, read, 0, 0);
        };
        if !withheld && self.rng.permille(self.spec.failing_permille) {
            self.keep_batch(count)?;
            return self.log(partition, What::Failed, read, 0, 0);
        }
        let (sent, dropped) = if withheld { (0, count) } else { (count, 0) };
        let mark = Mark { seq: last, exported: read.exported + sent };
        let temporary = path.with_extension(format!("json.tmp.{}.{}", std::process::id(), self.tick));
        fs::write(&temporary, mark_text(mark))?;
        fs::rename(&temporary, &path)?;
        self.log(partition, What::Wrote, mark, sent, dropped)?;
        self.clear_outbox()
    }

    fn capture(&mut self, partition: usize) {
        let (least, most) = self.spec.arrivals;
        let arriving = least + self.rng.below(most - least + 1);
        let (Some(rows), Some(feed)) = (self.captured.get_mut(partition), self.spec.partitions.get(partition)) else {
            return;
        };
        for _ in 0..arriving {
            let beyond = rows.last().map_or(1, |last| last + 1);
            rows.push(feed.seqs.get(rows.len()).copied().unwrap_or(beyond));
        }
    }

    fn watermark(&self, partition: usize) -> PathBuf {
        let feed = self.spec.partitions.get(partition);
        let (dataset, path) = feed.map_or(("", ""), |feed| (&feed.dataset, &feed.partition));
        let sinks = self.spec.state_root.join("plugins").join(&self.spec.plugin).join("sink-instances");
        sinks.join(&self.spec.instance).join("watermarks").join(dataset).join(format!("{path}.json"))
    }

    /// Whether `client-sync.json` opts the partition's source out; an error where it does not parse.
    fn is_opted_out(&self, partition: usize) -> io::Result<bool> {
        let path = self.spec.state_root.join("usage-policy/client-sync.json");
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            text => text?,
        };
        let store: Value = serde_json::from_str(&text)?;
        let source = self.spec.partitions.get(partition).and_then(|feed| feed.partition.strip_prefix("source="));
        let entries = store.get("entries").and_then(Value::as_array);
        Ok(entries.into_iter().flatten().any(|entry| entry.get("source").and_then(Value::as_str) == source))
    }

    fn outbox(&self) -> PathBuf {
        self.spec.state_root.join("sinks").join(&self.spec.instance).join("outbox")
    }

    fn keep_batch(&self, rows: u64) -> io::Result<()> {
        let outbox = self.outbox();
        fs::create_dir_all(&outbox)?;
        fs::write(outbox.join(format!("{}.json", self.tick)), json!({ "rows": rows }).to_string())
    }

    /// A server that takes a tick's rows takes the batches that it refused before as well.
    fn clear_outbox(&self) -> io::Result<()> {
        match fs::read_dir(self.outbox()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            entries => entries?.try_for_each(|entry| fs::remove_file(entry?.path())),
        }
    }

    /// Replaces the first partition's table by a copy of another lineage, as far as a reader can tell.
    fn compact(&mut self) -> io::Result<()> {
        let Some(feed) = self.spec.partitions.first() else { return Ok(()) };
        let dir = self.spec.state_root.join("cache/datasets").join(&feed.dataset).join(&feed.partition);
        let cursor_path = dir.join("cursor.json");
        let mut cursor: Value = serde_json::from_slice(&fs::read(&cursor_path)?)?;
        let old = cursor.get("tableDir").and_then(Value::as_str).unwrap_or("table").to_owned();
        let new = format!("table-{}", Utc::now().timestamp_millis());
        if old == new {
            return Ok(());
        }
        copy_table(&dir.join(&old), &dir.join(&new), &self.rng.uuid())?;
        if let Some(fields) = cursor.as_object_mut() {
            fields.insert("tableDir".to_owned(), json!(new));
        }
        let temporary = dir.join("cursor.json.tmp");
        fs::write(&temporary, format!("{cursor:#}\n"))?;
        fs::rename(&temporary, &cursor_path)?;
        fs::write(dir.join(old).join(".retired"), now())?;
        let mark = read_mark(&self.watermark(0))?;
        self.log(0, What::Compacted, mark, 0, 0)
    }

    fn wait(&mut self, (least, most): (u64, u64)) {
        sleep(Duration::from_millis(least + self.rng.below(most - least + 1)));
    }

    fn log(&mut self, partition: usize, what: What, mark: Mark, sent: u64, dropped: u64) -> io::Result<()> {
        let event = Event {
            at_us: u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            wall_ms: Utc::now().timestamp_millis(),
            tick: self.tick,
            partition,
            what,
            seq: mark.seq,
            exported: mark.exported,
            sent,
            dropped,
        };
        // In one write, so that a kill cuts the last line at most.
        self.log.write_all(format!("{}\n", serde_json::to_string(&event)?).as_bytes())
    }
}

/// A watermark as HypAware reads it: one that is missing or does not parse means "export everything".
fn read_mark(path: &Path) -> io::Result<Mark> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        bytes => bytes?,
    };
    let file: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let seq = file.pointer("/continuation/seq").and_then(Value::as_str).and_then(|seq| seq.parse().ok());
    let exported = file.get("exportedRowCount").and_then(Value::as_u64);
    Ok(Mark { seq: seq.unwrap_or(0), exported: exported.unwrap_or(0) })
}

/// A watermark as HypAware writes it.
fn mark_text(Mark { seq, exported }: Mark) -> String {
    format!(
        "{{\n  \"v\": 1,\n  \"continuation\": {{\n    \"v\": 1,\n    \"seq\": \"{seq}\"\n  }},\n  \"exportedRowCount\": \
         {exported},\n  \"updatedAt\": \"{}\"\n}}\n",
        now()
    )
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Copies a table folder and gives the copy a lineage of its own.
fn copy_table(from: &Path, to: &Path, uuid: &str) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        let text = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            copy_table(&entry.path(), &target, uuid)?;
        } else if text.ends_with(".metadata.json") {
            let mut metadata: Value = serde_json::from_slice(&fs::read(entry.path())?)?;
            if let Some(fields) = metadata.as_object_mut() {
                fields.insert("table-uuid".to_owned(), json!(uuid));
            }
            fs::write(target, metadata.to_string())?;
        } else if text != ".retired" {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A tick that went back to a rewound watermark: it read that position, and wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Which tick.
    pub tick: u64,
    /// When it wrote, in milliseconds since 1970.
    pub wall_ms: i64,
    /// Rows sent by it.
    pub sent: u64,
    /// Rows dropped by it.
    pub dropped: u64,
}

/// The truth about rewinds of a partition to a position at which no tick ends by itself: every tick that took one up.
/// None means that none was honoured; two, that rows were sent twice over.
pub fn replays(log: &[Event], partition: usize, target: i64) -> Vec<Replay> {
    let of = |what: What| log.iter().filter(move |event| event.what == what && event.partition == partition);
    let took_up = |wrote: &&Event| of(What::Read).any(|read| read.tick == wrote.tick && read.seq == target);
    of(What::Wrote)
        .filter(took_up)
        .map(|wrote| Replay { tick: wrote.tick, wall_ms: wrote.wall_ms, sent: wrote.sent, dropped: wrote.dropped })
        .collect()
}
