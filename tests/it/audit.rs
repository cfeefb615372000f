//! The audit log: a line for each record, whatever is in it and whatever goes wrong.

#![allow(clippy::expect_used)]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::policy::{AuditLog, AuditRecord, Choice, Decision, Durability, Redaction, Sink, hash};
use toolcrib::store::{Fs, whole};
use toolcrib::{Error, Result};

use crate::approval::Place;
use crate::store::model::{Fault, Model};

const EIO: i32 = 5;
const EINTR: i32 = 4;
const ENOSPC: i32 = 28;

fn record(call: &str) -> AuditRecord<'_> {
    AuditRecord {
        time: Timestamp::UNIX_EPOCH,
        call,
        tool: "send",
        arguments_hash: [1; 32],
        arguments: None,
        caller: Some("ann"),
        session: Some("s1"),
        path: &[],
        rule: Some("mail"),
        decision: Decision::Ask,
        shadow: None,
        answered_by: Some("bob"),
        answer: Some(Choice::Once),
        outcome: None,
    }
}

#[test]
fn a_record_is_a_line_with_its_fields_in_order() {
    let secrets = ["token".into()];
    let arguments = Redaction::new(&secrets, &json!({})).arguments(&json!({"to": "ann", "token": 7}));
    let path = ["planner".into()];

    let line = AuditRecord { arguments: Some(&arguments), path: &path, ..record("call_1") }.to_line();

    let hash = "01".repeat(32);
    assert_eq!(
        line,
        format!(
            "{{\"time\":\"1970-01-01T00:00:00.000Z\",\"call_id\":\"call_1\",\"tool\":\"send\",\
             \"arguments_hash\":\"sha256:{hash}\",\"caller\":\"ann\",\"session\":\"s1\",\"path\":[\"planner\"],\"rule\":\"mail\",\"decision\":\"ask\",\
             \"shadow\":null,\"answered_by\":\"bob\",\"answer\":\"once\",\"outcome\":null,\
             \"arguments\":{{\"to\":\"ann\",\"token\":\"***\"}}}}"
        )
    );
}

#[test]
fn a_secret_is_not_in_the_sum_of_arguments() {
    let (one, other) = (json!({"to": "ann", "pin": "1234"}), json!({"to": "ann", "pin": "1235"}));

    let (secrets, parameters) = (["pin".into()], json!({}));
    let redaction = Redaction::new(&secrets, &parameters);

    assert_eq!(AuditRecord::hash_of(&one, &redaction), AuditRecord::hash_of(&other, &redaction));
    assert_ne!(
        AuditRecord::hash_of(&one, &redaction),
        AuditRecord::hash_of(&json!({"to": "bob", "pin": "1234"}), &redaction)
    );
    assert_eq!(AuditRecord::hash_of(&one, &Redaction::new(&[], &parameters)), hash(&one));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_is_in_a_record_it_is_one_line(call: String, tool in "[\u{0}-\u{2100}]*", text in "(?s).*") {
        let arguments = json!({ text.clone(): [text.clone()] });
        let record = AuditRecord { tool: &tool, rule: Some(&text), arguments: Some(&arguments), ..record(&call) };

        let line = record.to_line();

        let breaks = line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{0b}', '\u{0c}', '\u{1b}']);
        prop_assert!(!breaks);
        prop_assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), record.to_value());
    }
}

fn path() -> &'static Path {
    Path::new("/logs/audit.jsonl")
}

fn open(fs: &Model) -> Result<AuditLog<Model>> {
    AuditLog::open_on(fs.clone(), path(), Durability::Synced)
}

/// The calls of the lines, and `None` for what is left of a line.
fn calls(fs: &Model) -> Vec<Option<String>> {
    let bytes = whole(fs, path(), 1 << 20).expect("a file");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Some(serde_json::from_slice::<Value>(line).ok()?["call_id"].as_str()?.to_owned())).collect()
}

fn whole_calls(fs: &Model) -> Vec<String> {
    calls(fs).into_iter().flatten().collect()
}

fn with_two_records() -> Model {
    let fs = Model::default();
    let log = open(&fs).expect("a log");
    log.append(&record("1")).and_then(|()| log.append(&record("2"))).expect("two records");
    fs
}

fn calls_of_a_record(fs: &Model) -> usize {
    let counting = fs.failing(usize::MAX, Fault::Crash);
    open(&counting).and_then(|log| log.append(&record("3"))).expect("a record");
    counting.calls()
}

#[test]
fn an_error_at_any_call_is_told_and_loses_no_earlier_line() {
    for portion in [usize::MAX, 50] {
        for fault in [Fault::Once(EIO), Fault::Once(ENOSPC), Fault::Full(ENOSPC)] {
            for call in 0..calls_of_a_record(&with_two_records().portioned(portion)) {
                let fs = with_two_records().portioned(portion);

                let outcome = open(&fs.failing(call, fault)).and_then(|log| log.append(&record("3")));
                open(&fs).and_then(|log| log.append(&record("4"))).expect("a record");

                assert!(matches!(outcome, Err(Error::FileAccess { .. })), "{fault:?} at call {call}");
                let found = whole_calls(&fs);
                assert!(
                    found == ["1", "2", "4"] || found == ["1", "2", "3", "4"],
                    "{fault:?} at call {call}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_log_goes_on_after_an_error_at_any_call() {
    let fs = with_two_records().portioned(50);
    for call in 0..calls_of_a_record(&fs) {
        let fs = with_two_records().portioned(50);
        let Ok(log) = open(&fs.failing(call, Fault::Once(ENOSPC))) else { continue };

        log.append(&record("3")).expect_err("no space");
        log.append(&record("4")).expect("a record");

        let found = calls(&fs);
        assert_eq!(found.last(), Some(&Some("4".to_owned())), "at call {call}: {found:?}");
        assert!(found.len() <= 4);
    }
}

#[test]
fn a_signal_at_any_call_is_no_error() {
    for call in 0..calls_of_a_record(&with_two_records()) {
        let fs = with_two_records();

        open(&fs.failing(call, Fault::Once(EINTR))).and_then(|log| log.append(&record("3"))).expect("a record");

        assert_eq!(whole_calls(&fs), ["1", "2", "3"]);
    }
}

#[test]
fn what_was_noted_survives_a_crash_at_any_call_of_the_next_record() {
    for call in 0..calls_of_a_record(&with_two_records().portioned(50)) {
        let fs = with_two_records().portioned(50);

        open(&fs.failing(call, Fault::Crash)).and_then(|log| log.append(&record("3"))).expect_err("the power is gone");

        for after in fs.after_crash() {
            open(&after).and_then(|log| log.append(&record("4"))).expect("a record");
            let found = whole_calls(&after);
            assert!(found == ["1", "2", "4"] || found == ["1", "2", "3", "4"], "at call {call}: {found:?}");
        }
    }
}

#[test]
fn a_record_after_what_another_process_left_begins_a_new_line() {
    let fs = with_two_records();
    let log = open(&fs).expect("a log");
    log.append(&record("3")).expect("a record");
    let mut theirs = fs.append(path()).expect("a file");
    fs.write(&mut theirs, b"{\"call_id\": \"x").expect("a write");

    log.append(&record("4")).expect("a record");

    assert_eq!(calls(&fs), [Some("1"), Some("2"), Some("3"), None, Some("4")].map(|call| call.map(str::to_owned)));
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn threads_and_logs_on_one_file_lose_and_mix_nothing() {
    let place = Place::new();
    let path = place.path().join("audit.jsonl");
    let logs: Vec<_> = (0..2).map(|_| Arc::new(AuditLog::open(&path, Durability::Buffered).expect("a log"))).collect();

    thread::scope(|scope| {
        for number in 0..8 {
            let log = logs[number % 2].clone();
            scope.spawn(move || {
                for turn in 0..500 {
                    log.append(&record(&format!("{number}-{turn}"))).expect("a record");
                }
            });
        }
    });

    let mut found: Vec<_> = lines(&path).iter().map(|line| line["call_id"].to_string()).collect();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 4_000);
}

#[test]
fn a_file_that_was_renamed_is_opened_anew_on_demand() {
    let place = Place::new();
    let (path, old) = (place.path().join("audit.jsonl"), place.path().join("audit.1"));
    let log = AuditLog::open(&path, Durability::Synced).expect("a log");
    log.append(&record("1")).expect("a record");

    std::fs::rename(&path, &old).expect("a rename");
    log.append(&record("2")).expect("a record");
    log.reopen().expect("a log");
    log.append(&record("3")).expect("a record");

    assert_eq!(lines(&old).len(), 2);
    assert_eq!(lines(&path)[0]["call_id"], "3");
}

#[test]
fn a_file_that_was_removed_is_made_again() {
    let place = Place::new();
    let path = place.path().join("audit.jsonl");
    let log = AuditLog::open(&path, Durability::Synced).expect("a log");
    log.append(&record("1")).expect("a record");

    std::fs::remove_file(&path).expect("a removal");
    log.append(&record("2")).expect("a record");

    assert_eq!(lines(&path)[0]["call_id"], "2");
}

#[cfg(unix)]
#[test]
fn a_log_is_a_file_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let path = place.path().join("audit.jsonl");

    AuditLog::open(&path, Durability::Synced).expect("a log");

    assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    let missing = AuditLog::open(&place.path().join("no/audit.jsonl"), Durability::Synced);
    assert!(matches!(missing, Err(Error::FileAccess { doing: "open", code: Some(2), .. })));
    let device = AuditLog::open(Path::new("/dev/null"), Durability::Synced);
    assert!(matches!(device, Err(Error::FileAccess { code: None, .. })));
}

#[test]
fn anything_that_takes_a_record_is_a_sink() {
    let taken = Mutex::new(Vec::new());
    let sink = |record: &AuditRecord<'_>| -> Result<()> {
        taken.lock().expect("a list").push(record.to_line());
        Ok(())
    };

    let sink: &dyn Sink = &sink;
    sink.record(&record("1")).expect("a record");

    assert_eq!(*taken.lock().expect("a list"), [record("1").to_line()]);
}
