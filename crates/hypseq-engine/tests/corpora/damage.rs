//! Damaged caches: what cannot be read is named, and a total over the rest is never given.

use std::fs;
use std::path::{Path, PathBuf};

use hypseq_cache::Problem;
use hypseq_engine::{Engine, Error};
use hypseq_iceberg::Table;
use tempfile::TempDir;

use super::answers::{copy, open, try_rows, value};

const TABLE: &str = "hypaware/cache/datasets/ai_gateway_messages/source=claude";
const CLAUDE: &str = "SELECT count(*) FROM ai_gateway_messages";
const CODEX: &str = "SELECT count(*) FROM ai_gateway_messages WHERE source = 'codex'";

/// A copy of a corpus, to be damaged before it is opened.
struct Damaged {
    dir: TempDir,
    name: &'static str,
    /// The live generation of `source=claude`.
    live: &'static str,
}

impl Damaged {
    fn neutral() -> Self {
        Self { dir: copy("neutral"), name: "neutral", live: "table-1796095174466" }
    }

    fn partition(&self) -> PathBuf {
        self.dir.path().join(self.name).join(TABLE)
    }

    /// The first file of the live generation, by name, that fits.
    fn file(&self, folder: &str, fits: impl Fn(&str) -> bool) -> PathBuf {
        let folder = self.partition().join(self.live).join(folder);
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        folder.join(names.into_iter().find(|name| fits(name.to_str().unwrap())).unwrap())
    }

    fn data_file(&self) -> PathBuf {
        self.file("data", |name| name.ends_with(".parquet"))
    }

    fn open(&self) -> (Engine, Vec<Problem>) {
        open(&[self.dir.path().join(self.name)])
    }
}

/// The query fails, naming this file.
fn assert_fails(engine: &Engine, sql: &str, path: &Path) -> String {
    match try_rows(engine, sql) {
        Err(Error::Unreadable(unreadable)) => {
            assert_eq!(unreadable.path, path, "{sql}");
            unreadable.message
        }
        other => panic!("{sql}: {other:?}"),
    }
}

fn truncate(path: &Path, length: usize) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..length]).unwrap();
}

#[test]
fn a_data_file_that_is_not_there() {
    let home = Damaged::neutral();
    let file = home.data_file();
    fs::remove_file(&file).unwrap();
    let (engine, _) = home.open();
    assert!(assert_fails(&engine, CLAUDE, &file).contains("No such file"));
    assert_fails(&engine, "SELECT count(*) FROM raw.ai_gateway_messages", &file);
    assert_fails(&engine, "SELECT count(*) FROM complete.ai_gateway_messages", &file);
    assert_eq!(value(&engine, CODEX), 299);
}

#[test]
fn a_data_file_of_zero_bytes() {
    let home = Damaged::neutral();
    let file = home.data_file();
    truncate(&file, 0);
    let (engine, _) = home.open();
    assert_fails(&engine, CLAUDE, &file);
    assert_fails(&engine, "SELECT min(_hyp_ingest_seq) FROM ai_gateway_messages", &file);
    assert_eq!(value(&engine, CODEX), 299);
}

#[test]
fn a_data_file_that_was_cut() {
    let home = Damaged::neutral();
    let file = home.data_file();
    let length = fs::metadata(&file).unwrap().len();
    truncate(&file, usize::try_from(length).unwrap() - 100);
    assert_fails(&home.open().0, CLAUDE, &file);
}

#[test]
fn a_data_file_whose_pages_are_garbage() {
    let home = Damaged::neutral();
    let file = home.data_file();
    let mut bytes = fs::read(&file).unwrap();
    let length = bytes.len();
    bytes[4..length / 2].fill(0xA5);
    fs::write(&file, bytes).unwrap();
    assert_fails(&home.open().0, "SELECT * FROM ai_gateway_messages", &file);
}

#[test]
fn a_data_file_with_other_rows_than_its_manifest_says() {
    let home = Damaged::neutral();
    let file = home.data_file();
    let other = home.partition().join("table/data");
    let mut others: Vec<_> = fs::read_dir(other).unwrap().map(|entry| entry.unwrap().path()).collect();
    others.sort();
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let biggest = others.iter().max_by_key(|path| size(path)).unwrap();
    fs::copy(biggest, &file).unwrap();
    let message = assert_fails(&home.open().0, CLAUDE, &file);
    assert!(message.contains("rows, as the manifest says, found"), "{message}");
}

#[test]
fn a_raw_query_can_leave_a_file_out_by_name() {
    let home = Damaged::neutral();
    let file = home.data_file();
    truncate(&file, 0);
    let (engine, _) = home.open();
    let Err(Error::Unreadable(unreadable)) = try_rows(&engine, "SELECT count(*) FROM raw.ai_gateway_messages") else {
        panic!("the file is needed");
    };
    let condition = unreadable.hint.split('`').nth(1).unwrap();
    assert!(
        value(&engine, &format!("SELECT count(*) FROM raw.ai_gateway_messages {condition}")).as_i64() > Some(3_000)
    );
}

#[test]
fn a_deletion_vector_with_a_wrong_checksum() {
    let home = Damaged::neutral();
    let file = home.file("data", |name| name.ends_with(".puffin"));
    let mut bytes = fs::read(&file).unwrap();
    let place = bytes.windows(4).position(|window| window == [0xD1, 0xD3, 0x39, 0x64]).unwrap() + 5;
    bytes[place] ^= 0xFF;
    fs::write(&file, bytes).unwrap();

    let (engine, problems) = home.open();
    assert_eq!(problems, []);
    assert_eq!(value(&engine, CODEX), 299);
    assert_eq!(engine.problems(), [], "nothing of that partition was needed");
    assert_fails(&engine, CLAUDE, &file);
    assert_eq!(
        engine.problems().iter().map(|problem| (problem.code, &problem.path)).collect::<Vec<_>>(),
        [("deletes-unreadable", &file)]
    );
    assert_eq!(value(&engine, CODEX), 299);
    let raw = |condition: &str| {
        value(
            &engine,
            &format!(
                "SELECT count(*) FROM raw.ai_gateway_messages WHERE source = 'claude' AND _generation_state = 'live' AND {condition}"
            ),
        )
    };
    assert_eq!(raw("true"), 1005);
    assert!(raw("_deleted IS NULL").as_i64() > Some(0));
}

#[test]
fn a_manifest_that_was_cut() {
    let home = Damaged::neutral();
    let list = Table::open(&home.partition().join(home.live)).unwrap().metadata.current_snapshot().unwrap().clone();
    let commit = list.manifest_list.rsplit("-1-").next().unwrap().replace(".avro", "-m0.avro");
    let file = home.file("metadata", |name| name == commit);
    truncate(&file, 40);
    let (engine, problems) = home.open();
    assert_eq!(problems, []);
    assert_fails(&engine, CLAUDE, &file);
    let problems = engine.problems();
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["metadata-unreadable"]);
    assert_eq!(problems[0].path, file);
    assert_eq!(value(&engine, CODEX), 299);
    let raw = |condition: &str| {
        value(
            &engine,
            &format!(
                "SELECT count(*) FROM raw.ai_gateway_messages WHERE source = 'claude' AND _generation_state = 'live' AND {condition}"
            ),
        )
    };
    assert_eq!(raw("true"), 1005, "every physical row is found by listing");
    assert!(raw("_referenced IS NULL").as_i64() > Some(0));
    assert_eq!(raw("NOT _referenced"), 0);
}

#[test]
fn table_metadata_of_the_live_generation_that_was_cut() {
    let home = Damaged::neutral();
    let hint = fs::read_to_string(home.file("metadata", |name| name == "version-hint.text")).unwrap();
    let file = home.file("metadata", |name| name == format!("v{}.metadata.json", hint.trim()));
    truncate(&file, 300);
    let (engine, problems) = home.open();
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["metadata-unreadable"]);
    assert_fails(&engine, CLAUDE, &file);
    assert_fails(&engine, "SELECT count(*) FROM complete.ai_gateway_messages", &file);
    assert_eq!(value(&engine, CODEX), 299);
    assert_eq!(
        value(&engine, "SELECT count(*) FROM raw.ai_gateway_messages WHERE _generation_state = 'live'"),
        1005 + 299
    );
}

#[test]
fn an_unreadable_retired_generation_does_not_concern_the_live_one() {
    let home = Damaged::neutral();
    let metadata = home.partition().join("table/metadata");
    for entry in fs::read_dir(metadata).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            truncate(&path, 10);
        }
    }
    let (engine, problems) = home.open();
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["metadata-unreadable"]);
    assert_eq!(value(&engine, CLAUDE), 1199);
    assert!(matches!(
        try_rows(&engine, "SELECT count(*) FROM complete.ai_gateway_messages"),
        Err(Error::Unreadable(_))
    ));
}

#[test]
fn a_cursor_that_was_cut_leaves_the_partition_out_of_live_and_is_a_problem() {
    let home = Damaged::neutral();
    truncate(&home.partition().join("cursor.json"), 20);
    let (engine, problems) = home.open();
    let problem = problems.iter().find(|problem| problem.code == "live-generation-unknown").unwrap();
    assert_eq!(problem.path, home.partition());
    assert_eq!(value(&engine, CLAUDE), 299);
    assert_eq!(value(&engine, "SELECT count(*) FROM raw.ai_gateway_messages WHERE _generation_state = 'live'"), 299);
    assert_eq!(value(&engine, "SELECT count(*) FROM complete.ai_gateway_messages WHERE source = 'claude'"), 1196);
}

#[test]
fn without_any_table_metadata_the_files_say_what_their_columns_are() {
    let home = Damaged { dir: copy("sinks"), name: "sinks", live: "" };
    let dataset = home.dir.path().join("sinks/hypaware/cache/datasets/logs/source=unknown");
    for generation in ["table", "table-1796095185684"] {
        fs::remove_dir_all(dataset.join(generation).join("metadata")).unwrap();
    }
    let (engine, _) = home.open();
    let sql = "SELECT count(DISTINCT _hyp_ingest_seq) FROM raw.logs WHERE serviceName LIKE 'svc%'
               AND body->>'stringValue' IS NOT NULL AND \"timestamp\" > '2026-07-20' AND _referenced IS DISTINCT FROM true";
    assert_eq!(
        value(&engine, sql),
        value(&open(&[super::answers::home("sinks")]).0, "SELECT count(*) FROM logs WHERE \"timestamp\" IS NOT NULL")
    );
    assert!(matches!(try_rows(&engine, "SELECT count(*) FROM logs"), Err(Error::Unreadable(_))));
}

/// A damaged byte may go unnoticed by the format; what is noticed names the file, and never ends the process.
#[test]
fn damage_anywhere_in_a_data_file() {
    let home = Damaged::neutral();
    let file = home.data_file();
    let good = fs::read(&file).unwrap();
    let mut noticed = 0;
    for step in 0..32 {
        let mut bad = good.clone();
        bad[good.len() * step / 32] ^= 0xA5;
        fs::write(&file, bad).unwrap();
        match try_rows(&home.open().0, "SELECT * FROM ai_gateway_messages WHERE source = 'claude'") {
            Ok(rows) => assert_eq!(rows.len(), 900),
            Err(Error::Unreadable(unreadable)) => {
                assert_eq!(unreadable.path, file);
                noticed += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(noticed > 16, "{noticed}");
}
