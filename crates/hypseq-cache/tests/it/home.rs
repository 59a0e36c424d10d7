//! Opening a home: what is one, and what the error and its hint say of everything else.

use std::fs;
use std::path::Path;

use hypseq_cache::{Error, Home};

use crate::support::{Scratch, testdata};

/// `found` and `hint` of a refusal.
fn refusal(opened: Result<Home, Error>) -> (String, String) {
    match opened {
        Err(Error::NotThat { found, hint, .. }) => (found, hint),
        other => panic!("{other:?}"),
    }
}

fn canonical(path: &Path) -> String {
    fs::canonicalize(path).unwrap().display().to_string()
}

#[test]
fn a_home_opens() {
    let home = Home::open(&testdata("neutral")).unwrap();
    assert_eq!(home.name(), "neutral");
    assert_eq!(home.root(), testdata("neutral"));
    assert_eq!(home.state_root(), Some(testdata("neutral/hypaware").as_path()));
    assert_eq!(home.cache_root(), testdata("neutral/hypaware/cache"));
}

#[test]
fn a_name_is_the_folders_own() {
    let home = Home::open(&testdata("neutral/hypaware/..")).unwrap();
    assert_eq!(home.name(), "neutral");
}

#[test]
fn a_name_may_have_spaces_and_other_letters() {
    let scratch = Scratch::new();
    let path = scratch.path("maskin två ✓");
    fs::create_dir_all(path.join("hypaware/cache/datasets")).unwrap();
    assert_eq!(Home::open(&path).unwrap().name(), "maskin två ✓");
}

#[test]
fn nothing_there() {
    let scratch = Scratch::new();
    let (found, hint) = refusal(Home::open(&scratch.path("nowhere")));
    assert_eq!(found, "there is nothing at that path");
    assert_eq!(hint, "a home is `$HYP_HOME`, else `~/.hyp`: give `--home` that folder, or a copy of it");
}

#[test]
fn a_path_through_a_file() {
    let scratch = Scratch::new();
    scratch.file("notes", "");
    assert_eq!(refusal(Home::open(&scratch.path("notes/home"))).0, "there is nothing at that path");
}

#[test]
fn a_file() {
    let scratch = Scratch::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let archive = elsewhere.path().join("neutral.tar.gz");
    fs::write(&archive, "").unwrap();
    let (found, hint) = refusal(Home::open(&archive));
    assert_eq!(found, "it is a file");
    assert_eq!(hint, "if it is an archive of a home, unpack it and give `--home` the folder");

    scratch.file("hypaware/cache/_hyp_ingest_seq.json", "{}");
    let (found, hint) = refusal(Home::open(&scratch.path("hypaware/cache/_hyp_ingest_seq.json")));
    assert_eq!(found, "it is a file");
    assert_eq!(hint, format!("use `--home {}`", canonical(&scratch.root())));
}

#[test]
fn an_empty_folder() {
    let elsewhere = tempfile::tempdir().unwrap();
    for opened in [Home::open(elsewhere.path()), Home::open_cache(elsewhere.path())] {
        assert_eq!(refusal(opened).0, "it is an empty folder");
    }
}

#[test]
fn some_other_folder() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("readme"), "").unwrap();
    assert_eq!(refusal(Home::open(elsewhere.path())).0, "it is a folder of something else");
}

#[test]
fn a_home_without_a_cache() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(elsewhere.path().join("hypaware/run")).unwrap();
    let (found, hint) = refusal(Home::open(elsewhere.path()));
    assert_eq!(found, "it holds `hypaware`, without `cache/datasets` in it");
    assert_eq!(hint, "nothing was captured there yet, or the copy is not complete");
}

#[test]
fn a_state_root() {
    let path = testdata("neutral/hypaware");
    let (found, hint) = refusal(Home::open(&path));
    assert_eq!(found, "it is a state root (it holds `cache/datasets`)");
    assert_eq!(
        hint,
        format!(
            "use `--home {}`, or `--cache {}` for the cache alone",
            canonical(&testdata("neutral")),
            path.join("cache").display()
        )
    );
    assert_eq!(refusal(Home::open_cache(&path)), (found, hint));
}

#[test]
fn a_state_root_under_another_name() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(elsewhere.path().join("cache/datasets")).unwrap();
    let (found, hint) = refusal(Home::open(elsewhere.path()));
    assert_eq!(found, "it is a state root (it holds `cache/datasets`)");
    assert_eq!(hint, format!("use `--cache {}`", elsewhere.path().join("cache").display()));
}

#[test]
fn a_cache_root_in_a_home() {
    let path = testdata("neutral/hypaware/cache");
    let (found, hint) = refusal(Home::open(&path));
    assert_eq!(found, "it is a cache root (it holds `datasets`)");
    assert_eq!(
        hint,
        format!(
            "use `--home {}`, or `--cache {}` for the cache alone",
            canonical(&testdata("neutral")),
            path.display()
        )
    );
}

#[test]
fn a_bare_cache_root() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("datasets")).unwrap();
    let (found, hint) = refusal(Home::open(elsewhere.path()));
    assert_eq!(found, "it is a cache root (it holds `datasets`)");
    assert_eq!(hint, format!("use `--cache {}`", elsewhere.path().display()));
}

#[test]
fn a_datasets_folder() {
    let elsewhere = tempfile::tempdir().unwrap();
    let datasets = elsewhere.path().join("datasets");
    fs::create_dir_all(datasets.join("logs")).unwrap();
    let hint_expected = format!("use `--cache {}`", canonical(elsewhere.path()));
    for opened in [Home::open(&datasets), Home::open_cache(&datasets)] {
        let (found, hint) = refusal(opened);
        assert_eq!(found, "it is the `datasets` folder of a cache root");
        assert_eq!(hint, hint_expected);
    }
}

#[test]
fn a_partition() {
    let path = testdata("neutral/hypaware/cache/datasets/ai_gateway_messages/source=claude");
    let (_, hint) = refusal(Home::open(&path));
    assert_eq!(
        hint,
        format!(
            "use `--home {}`, or `--cache {}` for the cache alone",
            canonical(&testdata("neutral")),
            canonical(&testdata("neutral/hypaware/cache"))
        )
    );
}

#[test]
fn a_home_given_as_a_cache() {
    let path = testdata("neutral");
    let (found, hint) = refusal(Home::open_cache(&path));
    assert_eq!(found, "it is a home (it holds `hypaware/cache/datasets`)");
    assert_eq!(
        hint,
        format!(
            "use `--home {}`, or `--cache {}` for the cache alone",
            path.display(),
            path.join("hypaware/cache").display()
        )
    );
}

#[test]
fn a_folder_of_homes() {
    let path = testdata("");
    let (_, hint) = refusal(Home::open(&path));
    assert_eq!(
        hint,
        format!(
            "use `--home {}`, or `--home '{}/*'` for all the homes in it",
            path.join("crashed").display(),
            path.display()
        )
    );
}

#[test]
fn a_folder_with_one_home() {
    let scratch = Scratch::new();
    let parent = scratch.path("..");
    let (_, hint) = refusal(Home::open(&parent));
    assert_eq!(hint, format!("use `--home {}`", parent.join("home").display()));
}

#[test]
fn a_neighbour_of_a_cache_is_no_part_of_it() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(elsewhere.path().join("datasets")).unwrap();
    fs::create_dir_all(elsewhere.path().join("photos")).unwrap();
    let (_, hint) = refusal(Home::open(&elsewhere.path().join("photos")));
    assert!(!hint.contains("--cache"), "{hint}");
}

#[test]
fn the_message_names_path_expectation_finding_and_hint() {
    let error = Home::open(Path::new("/nonexistent/home")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`/nonexistent/home` is not a HypAware home (a folder that holds `hypaware/cache/datasets`): there is nothing \
         at that path\n  hint: a home is `$HYP_HOME`, else `~/.hyp`: give `--home` that folder, or a copy of it"
    );
}
