//! The store in a database.

use std::sync::mpsc::channel;
use std::thread;

use toolcrib::prelude::*;
use toolcrib::store::{
    Access, AddVersion, Append, Claim, Database, Failure, Get, Keys, Latest, Operation, Put, Records, Recovery,
    RemoveDocument, Store, Summaries, Versions,
};

fn put(key: &str, value: &str, expected: Option<u64>) -> Put {
    Put { space: "s".to_owned(), key: key.to_owned(), value: value.as_bytes().to_vec(), expected }
}

fn get(store: &Store, key: &str) -> Option<(String, u64)> {
    let entry = store.run(Get { space: "s".to_owned(), key: key.to_owned() }).unwrap();
    entry.map(|entry| (String::from_utf8(entry.value).unwrap(), entry.version))
}

#[test]
fn a_value_is_replaced_only_by_a_writer_that_has_seen_it() {
    let store = Store::open("sqlite::memory:").unwrap();

    assert_eq!(store.run(put("k", "one", Some(0))), Ok(1));
    assert_eq!(store.run(put("k", "two", Some(1))), Ok(2));
    let refused = store.run(put("k", "lost", Some(1)));

    assert_eq!(refused, Err(Error::VersionConflict { key: "k".to_owned(), expected: 1, version: 2 }));
    assert_eq!(get(&store, "k"), Some(("two".to_owned(), 2)));
}

#[test]
fn threads_that_write_at_once_lose_nothing() {
    let store = Store::open("sqlite::memory:").unwrap();
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        thread::spawn(move || {
            for at in 0..50 {
                store.run(put(&format!("{writer}-{at}"), "x", Some(0))).unwrap();
            }
        })
    });

    writers.collect::<Vec<_>>().into_iter().for_each(|writer| writer.join().unwrap());

    assert_eq!(store.run(Keys { space: "s".to_owned() }).unwrap().len(), 400);
}

/// An operation that writes, and then fails.
struct Failing;

impl Operation for Failing {
    type Output = ();
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> std::result::Result<Result<()>, Failure> {
        put("half", "written", None).perform(database)?.unwrap();
        Err(Failure { reason: "it fails".to_owned(), recovery: Recovery::GiveUp })
    }
}

#[test]
fn an_operation_that_fails_is_undone_and_leaves_its_group_alone() {
    let store = Store::open("sqlite::memory:").unwrap();
    let (sender, results) = channel();
    let reply = |name: &'static str| {
        let sender = sender.clone();
        move |result: Result<u64>| sender.send((name, result.is_ok())).unwrap()
    };

    for round in 0..20 {
        store.submit(put(&format!("before-{round}"), "x", Some(0)), reply("put")).unwrap();
        let failed = reply("failing");
        store.submit(Failing, move |result| failed(result.map(|()| 0))).unwrap();
        store.submit(put(&format!("after-{round}"), "x", Some(0)), reply("put")).unwrap();
    }
    let results: Vec<(&str, bool)> = results.iter().take(60).collect();

    assert!(results.iter().all(|(name, is_done)| *is_done == (*name == "put")), "{results:?}");
    assert_eq!(store.run(Keys { space: "s".to_owned() }).unwrap().len(), 40);
    assert_eq!(get(&store, "half"), None);
}

#[test]
fn a_closed_store_refuses() {
    let store = Store::open("sqlite::memory:").unwrap();
    store.close();
    store.close();

    let refused = store.run(put("k", "v", None)).unwrap_err();

    assert_eq!(refused.to_string(), "store `sqlite::memory:` failed: it is closed");
}

#[test]
fn a_log_is_read_in_its_order() {
    let store = Store::open("sqlite::memory:").unwrap();
    let append = |space: &str, record: &str| {
        store.run(Append { space: space.to_owned(), record: record.as_bytes().to_vec() }).unwrap()
    };
    let first = append("log", "a");
    append("other", "b");
    append("log", "c");

    let records = store.run(Records { space: "log".to_owned(), after: 0, limit: 10 }).unwrap();
    let later = store.run(Records { space: "log".to_owned(), after: first, limit: 10 }).unwrap();

    assert_eq!(records.iter().map(|record| record.record.as_slice()).collect::<Vec<_>>(), [b"a", b"c"]);
    assert_eq!(later, records[1..]);
}

#[test]
fn a_claim_is_granted_once_and_never_again_after_it_was_forgotten() {
    const DAY: i64 = 24 * 3600 * 1000;
    let store = Store::open("sqlite::memory:").unwrap();
    let claim = |key: &str, expires: i64, now: i64| {
        store.run(Claim { key: key.to_owned(), expires, now, releases: None }).unwrap()
    };

    assert!(claim("a", 1000, 0));
    assert!(!claim("a", 1000, 0));
    // A day after its end its record is removed, and what ended no later is refused even if the clock is set back.
    assert!(claim("b", 3 * DAY, 2 * DAY));
    assert!(!claim("a", 1000, 0));
    assert!(!claim("c", 999, 0));
    assert!(claim("d", 1001, 0));
}

#[test]
fn a_document_keeps_its_versions() {
    let store = Store::open("sqlite::memory:").unwrap();
    add(&store, 0, "one").unwrap();
    add(&store, 1, "two").unwrap();

    let refused = add(&store, 1, "lost").unwrap_err();
    let read = |version| store.run(Latest { space: "s".to_owned(), key: "k".to_owned(), version }).unwrap();

    assert_eq!(refused, Error::VersionConflict { key: "k".to_owned(), expected: 1, version: 2 });
    assert_eq!(read(None).unwrap().content, b"two");
    assert_eq!(read(Some(1)).unwrap().content, b"one");
    assert_eq!(read(Some(3)), None);
    assert_eq!(store.run(Versions { space: "s".to_owned(), key: "k".to_owned() }).unwrap().len(), 2);
    assert_eq!(store.run(Summaries { space: "s".to_owned() }).unwrap()[0].last.number, 2);
}

#[test]
fn a_removed_document_is_gone_and_its_numbers_are_not_used_again() {
    let store = Store::open("sqlite::memory:").unwrap();
    let remove = || store.run(RemoveDocument { space: "s".to_owned(), key: "k".to_owned() }).unwrap();
    let read = |version| store.run(Latest { space: "s".to_owned(), key: "k".to_owned(), version }).unwrap();
    let listed = || store.run(Summaries { space: "s".to_owned() }).unwrap();
    let versions = || store.run(Versions { space: "s".to_owned(), key: "k".to_owned() }).unwrap();
    assert!(!remove(), "there is none");
    add(&store, 0, "one").unwrap();
    add(&store, 1, "two").unwrap();

    assert!(remove());

    assert_eq!((read(None), read(Some(1)), listed(), versions()), (None, None, vec![], vec![]));
    assert!(!remove());
    // A writer from before has seen version 2.
    let refused = Error::VersionConflict { key: "k".to_owned(), expected: 2, version: 0 };
    assert_eq!(add(&store, 2, "late"), Err(refused));
    let new = add(&store, 0, "new").unwrap();
    let refused = Error::VersionConflict { key: "k".to_owned(), expected: 2, version: new };
    assert_eq!(add(&store, 2, "late"), Err(refused));
    assert_eq!(
        read(Some(1)).map(|version| (version.number, version.first, version.content)),
        Some((new, new, b"new".to_vec()))
    );
    assert_eq!((listed().len(), versions().len(), read(Some(2))), (1, 1, None));
}

fn add(store: &Store, after: u64, content: &str) -> toolcrib::Result<u64> {
    let (about, content) = (b"{}".to_vec(), content.as_bytes().to_vec());
    store.run(AddVersion { space: "s".to_owned(), key: "k".to_owned(), after, about, content })
}
