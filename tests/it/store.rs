//! Durable files: after a fault at any system call of a save, the old or the new state is there.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod database;
pub(crate) mod model;

use std::path::Path;

use model::{Fault, Model};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::store::{FileFormat, Fs, load, replace, save, whole};
use toolcrib::{Error, Result};

const FORMAT: FileFormat = FileFormat { name: "test-state", version: 3, limit: 4096 };

const EIO: i32 = 5;
const EINTR: i32 = 4;
const ENOSPC: i32 = 28;

fn path() -> &'static Path {
    Path::new("/states/agent.json")
}

fn state(text: &str) -> Value {
    json!({ "text": text, "more": text.repeat(20) })
}

fn put(fs: &Model, text: &str) -> Result<()> {
    save(fs, path(), &FORMAT, &state(text))
}

/// The content of the file, which must be whole.
fn held(fs: &Model) -> Value {
    load(fs, path(), &FORMAT).expect("a whole file").value
}

fn with_old_state() -> Model {
    let fs = Model::default().portioned(64);
    put(&fs, "old").expect("a save without faults");
    fs
}

/// The number of system calls of a save over an old state.
fn calls_of_a_save() -> usize {
    let fs = with_old_state().failing(usize::MAX, Fault::Crash);
    put(&fs, "new").expect("a save without faults");
    fs.calls()
}

fn next_save_is_clean(fs: &Model) {
    put(fs, "next").expect("a save without faults");

    assert_eq!(held(fs), state("next"));
    assert_eq!(fs.names(), [path()]);
}

#[test]
fn a_save_makes_the_calls_that_durability_needs() {
    // Resolve, look, list, create, claim, facts, access, some writes, sync, rename, sync of the folder.
    assert!(calls_of_a_save() > 10);
}

#[test]
fn what_was_saved_survives_any_crash() {
    let fs = with_old_state();

    put(&fs, "new").expect("a save without faults");

    for after in fs.after_crash() {
        assert_eq!(held(&after), state("new"));
        next_save_is_clean(&after);
    }
}

#[test]
fn a_crash_at_any_call_leaves_the_old_state_or_the_new_one() {
    for at in 0..calls_of_a_save() {
        let fs = with_old_state();

        put(&fs.failing(at, Fault::Crash), "new").expect_err("the power is gone");

        for after in fs.after_crash() {
            let found = held(&after);
            assert!(found == state("old") || found == state("new"), "crash at call {at}: {found}");
            next_save_is_clean(&after);
        }
    }
}

#[test]
fn a_crash_at_any_call_of_the_first_save_leaves_nothing_or_the_whole_state() {
    for at in 0..calls_of_a_save() {
        let fs = Model::default().portioned(64);

        let _ = put(&fs.failing(at, Fault::Crash), "new");

        for after in fs.after_crash() {
            match load(&after, path(), &FORMAT) {
                Ok(found) => assert_eq!(found.value, state("new")),
                Err(error) => assert!(matches!(error, Error::MissingFile { .. }), "crash at call {at}: {error}"),
            }
            next_save_is_clean(&after);
        }
    }
}

#[test]
fn a_writer_that_does_not_sync_would_be_found_out() {
    let mut is_torn = false;
    for at in 0..8 {
        let fs = with_old_state();
        let failing = fs.failing(at, Fault::Crash);
        let careless = || -> std::io::Result<()> {
            let new = Path::new("/states/new");
            let mut file = failing.create(new)?;
            failing.write(&mut file, b"{\"format\": \"test-state\"")?;
            failing.rename(new, path())
        };
        let _ = careless();

        is_torn |= fs.after_crash().iter().any(|after| load(after, path(), &FORMAT).is_err());
    }
    assert!(is_torn);
}

#[test]
fn an_error_at_any_call_is_told_or_harmless() {
    for fault in [Fault::Once(EIO), Fault::Once(ENOSPC), Fault::Full(ENOSPC), Fault::Full(EIO)] {
        for at in 0..calls_of_a_save() {
            let fs = with_old_state();

            let outcome = put(&fs.failing(at, fault), "new");

            let found = held(&fs);
            match outcome {
                Ok(()) => assert_eq!(found, state("new"), "{fault:?} at call {at}"),
                Err(Error::FileAccess { doing: "sync", .. }) => assert_eq!(found, state("new")),
                Err(error) => assert_eq!(found, state("old"), "{fault:?} at call {at}: {error}"),
            }
            next_save_is_clean(&fs);
        }
    }
}

#[test]
fn a_signal_at_any_call_is_no_error() {
    for at in 0..calls_of_a_save() {
        let fs = with_old_state();

        put(&fs.failing(at, Fault::Once(EINTR)), "new").expect("a save that was only interrupted");

        assert_eq!(held(&fs), state("new"));
        assert_eq!(fs.names(), [path()]);
    }
}

#[test]
fn an_error_at_any_call_of_a_load_is_told() {
    let fs = with_old_state();
    let counting = fs.failing(usize::MAX, Fault::Crash);
    held(&counting);

    for at in 0..counting.calls() {
        let interrupted = load(&fs.failing(at, Fault::Once(EINTR)), path(), &FORMAT);
        let failed = load(&fs.failing(at, Fault::Once(EIO)), path(), &FORMAT);

        assert_eq!(interrupted.map(|saved| saved.value), Ok(state("old")));
        assert!(matches!(failed, Err(Error::FileAccess { doing: "read", code: Some(EIO), .. })));
    }
}

#[test]
fn another_writer_at_any_call_leaves_one_of_the_two_states_whole() {
    // One more round than the calls: a writer whose file was swept away starts anew.
    for at in 0..calls_of_a_save() + 8 {
        let fs = with_old_state();
        let interrupted = fs.interrupted(at, |fs| {
            let other = fs.failing(usize::MAX, Fault::Crash);
            put(&other, "theirs").expect("a save beside another");
        });

        put(&interrupted, "our").expect("a save beside another");

        let found = held(&fs);
        assert!(found == state("our") || found == state("theirs"), "at call {at}: {found}");
        next_save_is_clean(&fs);
    }
}

#[test]
fn another_writer_leaves_a_file_alone_that_is_being_written() {
    let fs = with_old_state();
    let at = calls_of_a_save() - 2;
    let interrupted = fs.interrupted(at, |fs| {
        put(&fs.failing(usize::MAX, Fault::Crash), "theirs").expect("a save beside another");
    });

    put(&interrupted, "our").expect("a save beside another");

    assert_eq!(held(&fs), state("our"));
    assert_eq!(interrupted.calls(), calls_of_a_save());
}

#[test]
fn who_may_use_a_file_stays_as_it_was() {
    let fs = with_old_state();
    let file = fs.open(path()).expect("the file");
    let access = toolcrib::store::FileAccess { mode: 0o640, owner: 7, group: 8 };
    fs.set_access(&file, access).expect("the file");

    put(&fs, "new").expect("a save without faults");

    assert_eq!(fs.path_info(path()).expect("the file").map(|info| info.access), Some(access));
}

#[test]
fn a_state_that_is_too_large_is_not_saved() {
    let fs = with_old_state();

    let outcome = put(&fs, &"x".repeat(FORMAT.limit));

    assert!(matches!(outcome, Err(Error::FileTooLarge { limit: 4096, .. })));
    assert_eq!(held(&fs), state("old"));
}

#[test]
fn a_file_of_exactly_the_limit_is_read() {
    let fs = Model::default();
    replace(&fs, path(), &[b' '; 100]).expect("a save without faults");

    assert_eq!(whole(&fs, path(), 100).map(|bytes| bytes.len()), Ok(100));
    assert!(matches!(whole(&fs, path(), 99), Err(Error::FileTooLarge { limit: 99, .. })));
}

fn reading(bytes: &[u8]) -> Result<Value> {
    let fs = Model::default();
    replace(&fs, path(), bytes).expect("a save without faults");
    load(&fs, path(), &FORMAT).map(|saved| saved.value)
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    assert!(matches!(reading(b"{\"format\": \"other\", \"version\": 1}"), Err(Error::ForeignFile { .. })));
    assert!(matches!(reading(b"[1, 2]"), Err(Error::ForeignFile { .. })));
    assert!(matches!(reading(b"\x7fELF"), Err(Error::ForeignFile { .. })));
    assert!(matches!(reading(b""), Err(Error::DamagedFile { .. })));
    assert!(matches!(
        reading(b"{\"format\": \"test-state\", \"version\": 4}"),
        Err(Error::NewerFile { version: 4, known: 3, .. })
    ));
    for damaged in [
        "{\"format\": \"test-state\"}",
        "{\"format\": \"test-state\", \"version\": 0}",
        "{\"format\": \"test-state\", \"version\": 1}",
        "{\"format\": \"test-state\", \"version\": 1, \"state\": {}}",
        "{\"format\": \"test-state\", \"version\": 1, \"checksum\": \"sha256:00\", \"state\": {}}",
    ] {
        assert!(matches!(reading(damaged.as_bytes()), Err(Error::DamagedFile { .. })), "{damaged}");
    }
}

fn sealed() -> Vec<u8> {
    whole(&with_old_state(), path(), FORMAT.limit).expect("a whole file")
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let bytes = sealed();

    // The last byte is the end of the line.
    for end in 0..bytes.len() - 1 {
        let refused = matches!(reading(&bytes[..end]), Err(Error::DamagedFile { .. } | Error::ForeignFile { .. }));
        assert!(refused, "cut at {end}");
    }
}

#[test]
fn a_file_may_be_laid_out_anew() {
    let file: Value = serde_json::from_slice(&sealed()).expect("JSON");

    assert_eq!(reading(file.to_string().as_bytes()), Ok(state("old")));
}

proptest! {
    #[test]
    fn a_changed_byte_never_changes_the_state(at in 0_usize..600, to: u8) {
        let mut bytes = sealed();
        let at = at % bytes.len();
        bytes[at] = to;

        if let Ok(found) = reading(&bytes) {
            prop_assert_eq!(found, state("old"));
        }
    }

    #[test]
    fn any_value_comes_back_as_it_was(text: String, number: i64, items in prop::collection::vec(any::<f64>(), 0..9)) {
        let value = json!({ "text": text, "number": number, "items": items, text.clone(): null });
        let fs = Model::default();
        let format = FileFormat { limit: usize::MAX - 1, ..FORMAT };

        save(&fs, path(), &format, &value).expect("a save without faults");

        prop_assert_eq!(load(&fs, path(), &format).map(|saved| saved.value), Ok(value));
    }

    #[test]
    fn any_bytes_are_a_state_or_an_error(bytes: Vec<u8>) {
        let _ = reading(&bytes);
    }
}
