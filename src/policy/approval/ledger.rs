//! The ledger: which pending calls were answered, so that none is answered twice, in memory, in a folder or in a store of
//! the program.
//!
//! In the folder each answered call is an empty file whose name has the call's nonce. The operating system creates a file of
//! a given name only once, so of any number of processes exactly one claims a call, without a lock that could be
//! left behind, and a crash leaves no partial entry.
//!
//! Expired calls need no entry. Before their entries are removed, the latest of their expiry times is stored as the
//! *horizon*: a call that expires no later is refused, even when the clock is set back to before its end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use super::pending::Pending;
use crate::bytes::hex;
use crate::store::{
    self, Access, Database, Entries, Failure, Forget, Fs, Operation, PutNext, Store, Write, parent_of,
    retry_interrupted,
};
use crate::sync::lock;
use crate::{Error, Result};

/// The number of claims between two searches for expired entries.
const CLAIMS: usize = 256;

/// The number of horizons that are kept, so that a concurrent reader of the folder always sees one.
const HORIZONS: usize = 4;

/// An answered call: the millisecond in which it expires, and its nonce.
pub(super) type AnsweredCall = (i64, [u8; 16]);

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The call is claimed now, and will never be claimed again.
    First,
    /// The call was claimed before.
    Used,
    /// The call expired so long ago that its entry is gone.
    Forgotten,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    used: BTreeSet<AnsweredCall>,
    horizon: Option<i64>,
}

impl Memory {
    fn claim(&mut self, entry: AnsweredCall, now: i64) -> Claim {
        while let Some(expired) = self.used.pop_first() {
            if expired.0 > now {
                self.used.insert(expired);
                break;
            }
            self.horizon = self.horizon.max(Some(expired.0));
        }
        match self.horizon {
            Some(horizon) if entry.0 <= horizon => Claim::Forgotten,
            _ if self.used.insert(entry) => Claim::First,
            _ => Claim::Used,
        }
    }
}

#[derive(Debug)]
pub(super) struct Folder<F> {
    fs: F,
    path: PathBuf,
    used: PathBuf,
    claims: AtomicUsize,
}

impl<F: Fs> Folder<F> {
    /// Opens the folder, which is created if its parent exists.
    pub(super) fn open(fs: F, path: &Path) -> Result<Self> {
        let used = path.join("used");
        for (folder, parent) in [(path, parent_of(path)), (&used, path)] {
            let made = retry_interrupted(|| fs.make_folder(folder))
                .and_then(|()| retry_interrupted(|| fs.sync_folder(parent)));
            made.map_err(|error| Error::access("make", folder, &error))?;
        }
        Ok(Self { fs, path: path.to_owned(), used, claims: AtomicUsize::new(0) })
    }

    pub(super) fn fs(&self) -> &F {
        &self.fs
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn claim(&self, entry: AnsweredCall, now: i64) -> io::Result<Claim> {
        if self.claims.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLAIMS) {
            // Entries that are kept for longer than needed do no harm.
            let _ = self.sweep(now);
        }
        let path = self.used.join(format!("{}-{}", entry.0, hex(&entry.1)));
        let file = match retry_interrupted(|| self.fs.create(&path)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Claim::Used),
            made => made?,
        };
        // Only now, because the entry may have been swept just before it was created again.
        let claimed = match self.horizon() {
            Ok(horizon) if horizon >= Some(entry.0) => Ok(Claim::Forgotten),
            Ok(_) => self.make_durable(&file).map(|()| Claim::First),
            Err(error) => Err(error),
        };
        if !matches!(claimed, Ok(Claim::First)) {
            // The claim was not granted. Where the removal fails the call stays answered, which is the safe side.
            let _ = retry_interrupted(|| self.fs.remove(&path));
        }
        claimed
    }

    fn make_durable(&self, file: &F::File) -> io::Result<()> {
        retry_interrupted(|| self.fs.sync(file))?;
        retry_interrupted(|| self.fs.sync_folder(&self.used))
    }

    fn horizons(&self) -> io::Result<Vec<i64>> {
        let names = retry_interrupted(|| self.fs.list(&self.path))?;
        let mut found: Vec<i64> =
            names.iter().filter_map(|name| name.to_str()?.strip_prefix("horizon-")?.parse().ok()).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn horizon(&self) -> io::Result<Option<i64>> {
        Ok(self.horizons()?.pop())
    }

    /// Removes the entries of expired calls.
    fn sweep(&self, now: i64) -> io::Result<()> {
        let names = retry_interrupted(|| self.fs.list(&self.used))?;
        let expired: Vec<(i64, &OsString)> = names
            .iter()
            .filter_map(|name| Some((expiry(name)?, name)))
            .filter(|(expires, _)| *expires <= now)
            .collect();
        let Some(latest) = expired.iter().map(|(expires, _)| *expires).max() else { return Ok(()) };
        self.raise_horizon(latest)?;
        for (_, name) in expired {
            // Another process may have been faster.
            let _ = retry_interrupted(|| self.fs.remove(&self.used.join(name)));
        }
        Ok(())
    }

    fn raise_horizon(&self, to: i64) -> io::Result<()> {
        let known = self.horizons()?;
        if known.last().is_some_and(|horizon| *horizon >= to) {
            return Ok(());
        }
        match retry_interrupted(|| self.fs.create(&self.path_of_horizon(to))) {
            Ok(file) => retry_interrupted(|| self.fs.sync(&file))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        retry_interrupted(|| self.fs.sync_folder(&self.path))?;
        for old in known.iter().rev().skip(HORIZONS) {
            let _ = retry_interrupted(|| self.fs.remove(&self.path_of_horizon(*old)));
        }
        Ok(())
    }

    fn path_of_horizon(&self, horizon: i64) -> PathBuf {
        self.path.join(format!("horizon-{horizon}"))
    }
}

/// The expiry time in the name of an entry.
fn expiry(name: &OsString) -> Option<i64> {
    name.to_str()?.rsplit_once('-')?.0.parse().ok()
}

/// A database that several processes share, as the record of answered calls.
pub trait ApprovalStore: Send + Sync + fmt::Debug {
    /// Claims a key, durably: true for the first claim of this key by any process, false for all others. It may be forgotten
    /// when it has expired, which is also the end of the pending call.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be claimed; then the call does not run.
    fn claim(&self, key: &str, expires: Timestamp) -> Result<bool, String>;

    /// Keeps a pending call until it is claimed, so that another process can list it. A store that has no place for it does
    /// nothing.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be kept; then the call is not pending.
    fn keep(&self, _pending: &Pending) -> Result<(), String> {
        Ok(())
    }

    /// The same as [`claim`](Self::claim) for a caller that must not block; none if the store can only block.
    fn defer_claim(&self, _key: &str, _expires: Timestamp) -> Option<Write> {
        None
    }

    /// The same as [`keep`](Self::keep) for a caller that must not block; none if the store can only block.
    fn defer_keep(&self, _pending: &Pending) -> Option<Write> {
        None
    }
}

/// The space of pending calls in a store.
const PENDING: &str = "pending";

impl ApprovalStore for Store {
    fn claim(&self, key: &str, expires: Timestamp) -> Result<bool, String> {
        self.run(claim_of(key, expires)).map_err(|error| error.to_string())
    }

    fn keep(&self, pending: &Pending) -> Result<(), String> {
        self.run(put_of(pending)).map(drop).map_err(|error| error.to_string())
    }

    fn defer_claim(&self, key: &str, expires: Timestamp) -> Option<Write> {
        Some(self.write(claim_of(key, expires), |claimed| claimed))
    }

    fn defer_keep(&self, pending: &Pending) -> Option<Write> {
        Some(self.write(put_of(pending), |kept| kept.map(|_| true)))
    }
}

fn claim_of(key: &str, expires: Timestamp) -> store::Claim {
    let (expires, now) = (expires.as_millisecond(), Timestamp::now().as_millisecond());
    store::Claim { key: key.to_owned(), expires, now, releases: Some(PENDING) }
}

fn put_of(pending: &Pending) -> PutNext {
    PutNext { space: PENDING, key: pending.id(), value: pending.to_value().to_string().into_bytes() }
}

/// Lists the pending calls that a store keeps: those that can still be answered, oldest first. The others are removed.
#[derive(Debug, Clone)]
pub struct ListPending {
    /// The current time.
    pub now: Timestamp,
}

impl Operation for ListPending {
    type Output = Vec<Pending>;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<Pending>>, Failure> {
        let entries = Entries { space: PENDING.to_owned() }.perform(database)?;
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(refused) => return Ok(Err(refused)),
        };
        // Not by the times at which they were created: the clocks of the processes differ, and two may have the same.
        entries.sort_by_key(|(_, entry)| entry.version);
        let mut waiting: Vec<Pending> = Vec::new();
        for (key, entry) in entries {
            let value = serde_json::from_slice(&entry.value).unwrap_or_default();
            match Pending::from_value(&value) {
                Ok(pending) if pending.expires <= self.now => Forget { space: PENDING, key }.perform(database)?,
                // It was written by another version of toolcrib, which can answer it.
                Err(_) => {}
                Ok(pending) => waiting.push(pending),
            }
        }
        Ok(Ok(waiting))
    }
}

/// The record of answered calls.
#[derive(Debug)]
pub(super) enum Ledger<F> {
    Memory(Mutex<Memory>),
    Folder(Folder<F>),
    Store(Arc<dyn ApprovalStore>),
}

impl<F: Fs> Ledger<F> {
    /// The claim of a call as a write, for a caller that must not block; none if it does not take long, or can only block.
    pub(super) fn defer_claim(&self, entry: AnsweredCall) -> Option<Write> {
        let Self::Store(store) = self else { return None };
        store.defer_claim(&hex(&entry.1), end_of(entry))
    }

    /// Claims a call; `First` is returned only when the claim is durable.
    pub(super) fn claim(&self, entry: AnsweredCall, now: i64) -> Result<Claim> {
        match self {
            Self::Memory(memory) => Ok(lock(memory).claim(entry, now)),
            Self::Folder(folder) => {
                folder.claim(entry, now).map_err(|error| Error::access("write", &folder.used, &error))
            }
            Self::Store(store) => {
                let id = hex(&entry.1);
                match store.claim(&id, end_of(entry)) {
                    Ok(true) => Ok(Claim::First),
                    Ok(false) => Ok(Claim::Used),
                    Err(reason) => Err(Error::ApprovalStore { id, reason }),
                }
            }
        }
    }
}

fn end_of(entry: AnsweredCall) -> Timestamp {
    Timestamp::from_millisecond(entry.0).unwrap_or(Timestamp::MAX)
}
