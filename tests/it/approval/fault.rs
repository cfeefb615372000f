//! Faults at every system call of a claim.

use std::path::Path;

use toolcrib::policy::{Approvals, Key, Pending};
use toolcrib::{Error, Result};

use super::{FACTS, asked, at, key};
use crate::store::model::{Fault, Model};

const EIO: i32 = 5;
const EINTR: i32 = 4;
const ENOSPC: i32 = 28;

fn open(fs: &Model) -> Result<Approvals<Model>> {
    Approvals::open_on(fs.clone(), Path::new("/states/approvals"), key())
}

fn claim(fs: &Model, pending: &Pending, second: i64) -> Result<()> {
    open(fs)?.claim(pending, &FACTS, at(second))
}

/// A folder with a used call that has expired by the time of the next claim, so that the claim sweeps.
fn with_old_call() -> (Model, Pending) {
    let fs = Model::default();
    let old = asked(&open(&fs).expect("a folder"), 0);
    claim(&fs, &old, 1).expect("the first claim");
    (fs, old)
}

fn new_call(fs: &Model) -> Pending {
    use super::{ApprovalDraft, LIFE, arguments, nonce};
    let draft = ApprovalDraft { call_id: "call_2", arguments: &arguments(), scope: FACTS, life: LIFE };
    open(fs).and_then(|approvals| approvals.ask(&draft, at(100), nonce(1))).expect("a pending call")
}

fn calls_of_a_claim() -> usize {
    let (fs, _) = with_old_call();
    let counting = fs.failing(usize::MAX, Fault::Crash);
    claim(&counting, &new_call(&fs), 101).expect("the first claim");
    counting.calls()
}

#[test]
fn a_claim_makes_the_calls_that_durability_needs() {
    // Two folders made and synced, keys listed and read, a sweep with its horizon, an entry made and synced.
    assert!(calls_of_a_claim() > 15);
}

#[test]
fn an_error_at_any_call_never_lets_a_call_be_claimed_twice() {
    for fault in [Fault::Once(EIO), Fault::Once(ENOSPC), Fault::Full(ENOSPC), Fault::Full(EIO)] {
        for call in 0..calls_of_a_claim() {
            let (fs, old) = with_old_call();
            let pending = new_call(&fs);

            let first = claim(&fs.failing(call, fault), &pending, 101);

            let second = claim(&fs, &pending, 102);
            assert!(!(first.is_ok() && second.is_ok()), "{fault:?} at call {call}");
            if let Err(error) = &first {
                assert!(matches!(error, Error::FileAccess { .. }), "{fault:?} at call {call}: {error}");
            }
            claim(&fs, &pending, 103).expect_err("a third claim");
            claim(&fs, &old, 2).expect_err("a call that was used before the clock was set back");
        }
    }
}

#[test]
fn a_signal_at_any_call_is_no_error() {
    for call in 0..calls_of_a_claim() {
        let (fs, _) = with_old_call();
        let pending = new_call(&fs);

        assert_eq!(claim(&fs.failing(call, Fault::Once(EINTR)), &pending, 101), Ok(()));
    }
}

#[test]
fn what_was_claimed_survives_any_crash() {
    let (fs, old) = with_old_call();
    let pending = new_call(&fs);

    claim(&fs, &pending, 101).expect("the first claim");

    for after in fs.after_crash() {
        assert!(matches!(claim(&after, &pending, 102), Err(Error::UsedPending { .. })));
        claim(&after, &old, 2).expect_err("a used call");
    }
}

#[test]
fn a_crash_at_any_call_frees_no_used_call() {
    for call in 0..calls_of_a_claim() {
        let (fs, old) = with_old_call();
        let pending = new_call(&fs);

        claim(&fs.failing(call, Fault::Crash), &pending, 101).expect_err("the power is gone");

        for after in fs.after_crash() {
            claim(&after, &old, 2).expect_err("a used call");
            let _ = claim(&after, &pending, 102);
            claim(&after, &pending, 103).expect_err("a used call");
        }
    }
}

#[test]
fn a_crash_at_any_call_of_the_first_opening_leaves_a_folder_that_opens() {
    let counting = Model::default().failing(usize::MAX, Fault::Crash);
    open(&counting).expect("a folder");

    for call in 0..counting.calls() {
        let fs = Model::default();

        let _ = open(&fs.failing(call, Fault::Crash));

        for after in fs.after_crash() {
            let pending = asked(&open(&after).expect("a folder"), 1);
            assert_eq!(claim(&after, &pending, 1), Ok(()));
        }
    }
}

#[test]
fn another_claim_at_any_call_is_the_only_one_or_none() {
    for call in 0..calls_of_a_claim() {
        let (fs, _) = with_old_call();
        let pending = new_call(&fs);
        let theirs = std::rc::Rc::new(std::cell::Cell::new(false));
        let (rival, told) = (pending.clone(), theirs.clone());
        let interrupted = fs.interrupted(call, move |fs| told.set(claim(fs, &rival, 101).is_ok()));

        let our = claim(&interrupted, &pending, 101).is_ok();

        assert!(our != theirs.get(), "at call {call}: {our}");
    }
}

#[test]
fn two_that_make_the_first_key_at_once_accept_what_the_other_asked() {
    let counting = Model::default().failing(usize::MAX, Fault::Crash);
    open(&counting).expect("a folder");

    for call in 0..counting.calls() {
        let fs = Model::default();
        let interrupted = fs.interrupted(call, |fs| {
            Approvals::open_on(fs.clone(), Path::new("/states/approvals"), Key::new([8; 32])).expect("a folder");
        });

        let our = open(&interrupted).expect("a folder");
        let theirs = open(&fs).expect("a folder");

        assert_eq!(theirs.claim(&asked(&our, 1), &FACTS, at(1)), Ok(()), "at call {call}");
        assert_eq!(our.claim(&asked(&theirs, 2), &FACTS, at(1)), Ok(()), "at call {call}");
    }
}
