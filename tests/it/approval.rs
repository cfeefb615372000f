//! Approvals: the scope of a pending call, and that each of them is used once, whatever goes wrong.

#![allow(clippy::expect_used)]

mod fault;
mod process;
mod race;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::policy::{ApprovalDraft, ApprovalScope, Approvals, Key, Pending};
use toolcrib::store::Fs;
use toolcrib::{Error, Result};

const LIFE: Duration = Duration::from_secs(60);

const FACTS: ApprovalScope<'static> = ApprovalScope {
    tool: "send_mail",
    schema_hash: [3; 32],
    presets_hash: [4; 32],
    caller: Some("ann"),
    session: Some("run 1"),
};

fn key() -> Key {
    Key::new([7; 32])
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn nonce(number: usize) -> [u8; 16] {
    let mut nonce = [9; 16];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    nonce
}

fn arguments() -> Value {
    json!({"to": "bob@example.org", "copies": 1, "weight": 1.0, "parts": [{"text": "hi\n", "flag": true}, null]})
}

fn asked<F: Fs>(approvals: &Approvals<F>, number: usize) -> Pending {
    let draft = ApprovalDraft { id: "call_1", arguments: &arguments(), scope: FACTS, life: LIFE };
    approvals.ask(&draft, at(0), nonce(number)).expect("a pending call")
}

/// A folder that is gone at the end of a test.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("toolcrib-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // What is tested here holds on any file system, and one in memory waits for no disk.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = root.join(name);
        std::fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn on_disk(place: &Place) -> Approvals {
    Approvals::open(&place.path().join("approvals"), key()).expect("a folder of approvals")
}

/// The same, as it is after a journey through a file.
fn stored(pending: &Pending) -> Pending {
    let text = pending.to_value().to_string();
    Pending::from_value(&serde_json::from_str(&text).expect("JSON")).expect("a pending call")
}

#[test]
fn a_pending_call_is_plain_data() {
    let pending = asked(&Approvals::in_memory(key()), 1);

    assert_eq!(stored(&pending), pending);
    assert_eq!(pending.arguments, arguments());
    assert_eq!((pending.created, pending.expires), (at(0), at(60)));
}

#[test]
fn a_pending_call_is_used_once_of_ten_thousand_times() {
    let place = Place::new();
    for (approvals, tries) in [(Approvals::in_memory(key()), 1_000), (on_disk(&place), 10_000)] {
        let pending = asked(&approvals, 1);

        let accepted = (0..tries).filter(|_| approvals.claim(&pending, &FACTS, at(1)).is_ok()).count();

        assert_eq!(accepted, 1);
        assert!(matches!(approvals.claim(&stored(&pending), &FACTS, at(2)), Err(Error::UsedPending { .. })));
    }
}

#[test]
fn a_pending_call_is_good_until_the_moment_it_expires() {
    let approvals = Approvals::in_memory(key());
    let (last, late) = (at(60) - Duration::from_nanos(1), at(60));

    assert_eq!(approvals.claim(&asked(&approvals, 1), &FACTS, last), Ok(()));
    let refused = approvals.claim(&asked(&approvals, 2), &FACTS, late);

    let expires = "2027-01-15T08:01:00.000Z".to_owned();
    assert_eq!(refused, Err(Error::ExpiredPending { tool: "send_mail".to_owned(), expires }));
}

#[test]
fn each_other_fact_is_a_refusal_of_its_own_that_uses_nothing_up() {
    let approvals = Approvals::in_memory(key());
    let pending = asked(&approvals, 1);
    let tool = || "send_mail".to_owned();

    for (facts, error) in [
        (
            ApprovalScope { tool: "send_maiI", ..FACTS },
            Error::OtherTool { asked: tool(), tool: "send_maiI".to_owned() },
        ),
        (ApprovalScope { schema_hash: [5; 32], ..FACTS }, Error::OtherSchema { tool: tool() }),
        (ApprovalScope { presets_hash: [5; 32], ..FACTS }, Error::OtherPresets { tool: tool() }),
        (
            ApprovalScope { caller: Some("eve"), ..FACTS },
            Error::OtherCaller { tool: tool(), owner: Some("ann".to_owned()) },
        ),
        (ApprovalScope { caller: None, ..FACTS }, Error::OtherCaller { tool: tool(), owner: Some("ann".to_owned()) }),
        (ApprovalScope { session: Some("run 2"), ..FACTS }, Error::OtherSession { tool: tool() }),
        (ApprovalScope { session: None, ..FACTS }, Error::OtherSession { tool: tool() }),
    ] {
        assert_eq!(approvals.claim(&pending, &facts, at(1)), Err(error));
    }
    let foreign = Approvals::in_memory(Key::new([8; 32]));
    assert_eq!(foreign.claim(&pending, &FACTS, at(1)), Err(Error::OtherKey { tool: tool() }));

    assert_eq!(approvals.claim(&pending, &FACTS, at(1)), Ok(()));
}

#[test]
fn the_hash_of_presets_is_of_no_use_to_guess_them() {
    let pending = asked(&Approvals::in_memory(key()), 1);

    assert_ne!(pending.presets_hash, FACTS.presets_hash);
}

/// Every value inside of a value, as a way to reach it.
fn places(value: &Value) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(entries) => entries.iter().map(|(name, entry)| (format!("/{name}"), entry)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (format!("/{index}"), item)).collect(),
        _ => Vec::new(),
    };
    let deeper =
        below.iter().flat_map(|(place, value)| places(value).into_iter().map(move |rest| place.clone() + &rest));
    std::iter::once(String::new()).chain(deeper).collect()
}

fn other_values(value: &Value) -> Vec<Value> {
    let mut others =
        vec![json!(null), json!(true), json!(0), json!("other"), json!({}), json!({"to": "eve"}), json!([])];
    match value {
        Value::String(text) => {
            // One letter after the other, as a digit of a hash or of a time would be changed.
            for (at, letter) in text.char_indices() {
                let mut changed = text.clone();
                changed.replace_range(at..at + letter.len_utf8(), if letter == '1' { "2" } else { "1" });
                others.push(changed.into());
            }
            others.push(format!("{text} ").into());
        }
        Value::Number(number) => {
            others.extend(["1", "1.0", "2", "-1"].map(|other| serde_json::from_str(other).expect("a number")));
            others.push(json!(number.to_string()));
        }
        _ => {}
    }
    others.retain(|other| other != value);
    others
}

#[test]
fn a_change_of_any_field_to_anything_is_refused() {
    let approvals = Approvals::in_memory(key());
    let pending = asked(&approvals, 1).to_value();
    let mut refused = 0;

    for place in places(&pending) {
        for other in other_values(pending.pointer(&place).expect("a place")) {
            let mut changed = pending.clone();
            *changed.pointer_mut(&place).expect("a place") = other;

            let outcome = Pending::from_value(&changed).and_then(|changed| approvals.claim(&changed, &FACTS, at(1)));

            outcome.expect_err(&changed.to_string());
            refused += 1;
        }
    }
    assert!(refused > 500, "{refused}");
    assert_eq!(Pending::from_value(&pending).and_then(|pending| approvals.claim(&pending, &FACTS, at(1))), Ok(()));
}

#[test]
fn the_order_of_keys_and_the_way_numbers_are_written_do_not_matter() {
    let approvals = Approvals::in_memory(key());
    let Value::Object(fields) = asked(&approvals, 1).to_value() else { panic!("an object") };
    let turned: serde_json::Map<_, _> = fields.into_iter().rev().collect();
    let text = Value::Object(turned).to_string().replace("1.0", "10e-1");

    let pending = Pending::from_value(&serde_json::from_str(&text).expect("JSON")).expect("a pending call");

    assert_eq!(approvals.claim(&pending, &FACTS, at(1)), Ok(()));
}

#[test]
fn what_is_wrong_with_a_value_is_told_by_its_field() {
    let pending = asked(&Approvals::in_memory(key()), 1).to_value();
    let told = |change: fn(&mut Value)| {
        let mut value = pending.clone();
        change(&mut value);
        Pending::from_value(&value).expect_err("no pending call").to_string()
    };

    for (change, text) in [
        ((|value| *value = json!("x")) as fn(&mut Value), "`$`: expected an object, got the string \"x\""),
        (|value| value["type"] = json!("other"), "`type`: expected `toolcrib.pending`, got the string \"other\""),
        (
            |value| value["version"] = json!(2),
            "`version`: expected 1, the version that this toolcrib supports, got the number 2",
        ),
        (|value| value["tool"] = json!(null), "`tool`: expected a string, got null"),
        (|value| value["caller"] = json!(7), "`caller`: expected a string or null, got the number 7"),
        (|value| value["arguments"] = json!([]), "`arguments`: expected an object, got an array"),
        (
            |value| value["nonce"] = json!("../../x"),
            "`nonce`: expected 32 hexadecimal digits, got the string \"../../x\"",
        ),
        (|value| value["extra"] = json!(true), "`extra`: expected no such field, got a boolean"),
        (
            |value| value["expires"] = json!("tomorrow"),
            "`expires`: expected a time such as `2026-01-31T09:30:00.000Z`, got the string \"tomorrow\"",
        ),
        (
            |value| drop(value.as_object_mut().expect("an object").remove("signature")),
            "`signature`: expected 64 hexadecimal digits, got nothing",
        ),
    ] {
        assert_eq!(told(change), format!("invalid pending call: {text}"));
    }
}

#[test]
fn arguments_that_could_not_be_read_again_are_not_asked_about() {
    let approvals = Approvals::in_memory(key());
    let ask = |depth: usize| -> Result<Pending> {
        let value = (0..depth).fold(json!(1), |value, _| json!({ "deeper": value }));
        approvals.ask(&ApprovalDraft { id: "call_1", arguments: &value, scope: FACTS, life: LIFE }, at(0), nonce(1))
    };

    let deepest = ask(119).expect("a pending call");

    assert_eq!(stored(&deepest), deepest);
    assert!(matches!(ask(120), Err(Error::InvalidPending { .. })));
    assert!(matches!(ask(0), Err(Error::InvalidPending { .. })));
}

#[test]
fn a_thousand_pending_calls_survive_a_restart_and_each_is_used_once() {
    let place = Place::new();
    let before = on_disk(&place);
    let pending: Vec<Pending> = (0..1_000).map(|number| stored(&asked(&before, number))).collect();
    for call in pending.iter().step_by(2) {
        before.claim(call, &FACTS, at(1)).expect("the first claim");
    }
    drop(before);

    // Another key would be taken only by a folder without one.
    let after = Approvals::open(&place.path().join("approvals"), Key::new([8; 32])).expect("a folder of approvals");
    let accepted: Vec<bool> = pending.iter().map(|call| after.claim(call, &FACTS, at(2)).is_ok()).collect();

    assert!(accepted.iter().enumerate().all(|(number, accepted)| *accepted == (number % 2 == 1)));
    assert!(pending.iter().all(|call| after.claim(call, &FACTS, at(3)).is_err()));
}

#[cfg(unix)]
#[test]
fn the_key_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    on_disk(&place);

    let folder = place.path().join("approvals");
    let key = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let key = key.into_iter().find(|entry| entry.file_name().to_string_lossy().starts_with("key-")).expect("a key");

    assert_eq!(key.metadata().expect("a key").permissions().mode() & 0o777, 0o600);
    assert_eq!(folder.metadata().expect("a folder").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_damaged_key_is_told() {
    let place = Place::new();
    on_disk(&place);
    let folder = place.path().join("approvals");
    std::fs::write(folder.join("key-0011223344556677.json"), "{\"format\": \"toolcrib-approval-key\"}")
        .expect("a file");

    assert!(matches!(Approvals::open(&folder, key()), Err(Error::DamagedFile { .. })));
}

#[test]
fn a_clock_that_is_set_back_frees_no_call() {
    let place = Place::new();
    for approvals in [Approvals::in_memory(key()), on_disk(&place)] {
        let old = asked(&approvals, 0);
        approvals.claim(&old, &FACTS, at(1)).expect("the first claim");
        let draft = ApprovalDraft { id: "call_2", arguments: &arguments(), scope: FACTS, life: 10 * LIFE };
        // Enough claims for the ledger to be swept.
        for number in 1..=300 {
            let later = approvals.ask(&draft, at(100), nonce(number)).expect("a pending call");
            approvals.claim(&later, &FACTS, at(101)).expect("the first claim");
        }

        let again = approvals.claim(&old, &FACTS, at(2));

        assert!(matches!(again, Err(Error::ExpiredPending { .. })), "{again:?}");
    }
    let used = std::fs::read_dir(place.path().join("approvals").join("used")).expect("a folder").count();
    assert_eq!(used, 300);
}

proptest! {
    #[test]
    fn any_bytes_of_a_key_and_any_texts_come_through(
        secret: [u8; 32], nonce: [u8; 16], id: String, tool: String, caller: Option<String>, text: String, number: f64,
    ) {
        let approvals = Approvals::in_memory(Key::new(secret));
        let facts = ApprovalScope { tool: &tool, caller: caller.as_deref(), ..FACTS };
        let arguments = json!({ text.clone(): [text, number] });

        let draft = ApprovalDraft { id: &id, arguments: &arguments, scope: facts, life: LIFE };
        let pending = stored(&approvals.ask(&draft, at(0), nonce).expect("a pending call"));

        prop_assert_eq!(approvals.claim(&pending, &facts, at(1)), Ok(()));
        prop_assert!(approvals.claim(&pending, &facts, at(1)).is_err());
    }
}
