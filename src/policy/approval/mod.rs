//! Approvals: a call waits as a pending call, and its approval is used once, in the same process or a later one.
//!
//! Read in this order: `answer` (the [`Question`] that an approver is asked, answers, and approvals that apply to more than one
//! call), this file ([`Approvals`]), `pending` (a call that waits, as data), `ledger` (the record of used approvals), `key` (the
//! secret that signs pending calls).

mod answer;
mod key;
mod ledger;
mod pending;

use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

pub(super) use answer::AnsweredQuestions;
pub use answer::{Answer, Choice, Grants, Question, Ticket};
pub use key::Key;
pub use ledger::{ApprovalStore, ListPending};
pub use pending::{Pending, rfc3339};

use self::key::KeyId;
use self::ledger::{Claim, Folder, Ledger, Memory};
use self::pending::{after, check_arguments, to_millisecond};
use crate::store::{Disk, Fs, Write};
use crate::sync::{read, write};
use crate::{Error, Result};

const PRESETS: &str = "presets";

/// The scope of an approval; it is refused for a call with any other scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalScope<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The hash of the tool's schema.
    pub schema_hash: [u8; 32],
    /// The hash of the tool's presets.
    pub presets_hash: [u8; 32],
    /// The caller.
    pub caller: Option<&'a str>,
    /// The session or run.
    pub session: Option<&'a str>,
}

/// A call that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApprovalDraft<'a> {
    /// The id of the call.
    pub call_id: &'a str,
    /// The arguments, without presets.
    pub arguments: &'a Value,
    /// The scope of the approval.
    pub scope: ApprovalScope<'a>,
    /// The time until it expires.
    pub life: Duration,
}

/// Creates pending calls, and lets each of them be answered once.
///
/// It can be shared between threads. Several of them on one folder, in one process or in several, act as one.
#[derive(Debug)]
pub struct Approvals<F = Disk> {
    /// Never empty; the first key signs.
    keys: RwLock<Vec<Key>>,
    ledger: Ledger<F>,
    /// The process that owns a ledger in memory: a copy in a forked process would not see the uses in the other.
    process: Option<u32>,
    /// The keys of the processes that this one was forked from.
    inherited: Vec<KeyId>,
}

impl Approvals {
    /// Approvals in memory, which end with the process, like their pending calls. A forked process has to
    /// [renew](Self::renewed) them.
    #[must_use]
    pub fn in_memory(key: Key) -> Self {
        Self {
            keys: RwLock::new(vec![key]),
            ledger: Ledger::Memory(Mutex::new(Memory::default())),
            process: Some(std::process::id()),
            inherited: Vec::new(),
        }
    }

    /// Approvals in memory for a forked process, with a key of its own. Pending calls of the parent process are refused.
    #[must_use]
    pub fn renewed(&self, key: Key) -> Self {
        let keys = read(&self.keys);
        let inherited = self.inherited.iter().copied().chain(keys.iter().map(Key::id)).collect();
        Self { inherited, ..Self::in_memory(key) }
    }

    /// Approvals whose uses are recorded in a store that several processes share, such as a database. All of them have to use
    /// the same key.
    #[must_use]
    pub fn in_store(store: Arc<dyn ApprovalStore>, key: Key) -> Self {
        Self { keys: RwLock::new(vec![key]), ledger: Ledger::Store(store), process: None, inherited: Vec::new() }
    }

    /// Approvals that survive a restart, in a folder that is created if its parent exists.
    ///
    /// The folder also holds the signing key; `key` is used only if it has none yet.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if the system refuses, and [`Error::DamagedFile`] or a similar error for an invalid key file.
    pub fn open(path: &Path, key: Key) -> Result<Self> {
        Self::open_on(Disk, path, key)
    }
}

impl<F: Fs> Approvals<F> {
    /// [`open`](Approvals::open) on any file system.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Approvals::open).
    pub fn open_on(fs: F, path: &Path, key: Key) -> Result<Self> {
        let folder = Folder::open(fs, path)?;
        let mut keys = Key::all_in(folder.fs(), path)?;
        if keys.is_empty() {
            key.save_in(folder.fs(), path)?;
            keys.push(key);
        }
        Ok(Self { keys: RwLock::new(keys), ledger: Ledger::Folder(folder), process: None, inherited: Vec::new() })
    }

    /// True in a forked process, if the approvals are those in memory of its parent.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.process.is_some_and(|process| process != std::process::id())
    }

    /// Creates a pending call; `nonce` are 128 random bits.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPending`] if the arguments are not an object, or too deep to be parsed again; [`Error::OtherProcess`] if
    /// the approvals belong to the parent of a forked process; [`Error::ApprovalStore`] if the store cannot keep it.
    pub fn ask(&self, draft: &ApprovalDraft<'_>, now: Timestamp, nonce: [u8; 16]) -> Result<Pending> {
        let (pending, keep) = self.begin_ask(draft, now, nonce)?;
        keep.map_or(Ok(true), Write::wait).map_err(|error| unkept(&pending, &error))?;
        Ok(pending)
    }

    /// The same as [`ask`](Self::ask) for a caller that must not block. The call is pending when the write is done, if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`ask`](Self::ask).
    pub fn begin_ask(
        &self,
        draft: &ApprovalDraft<'_>,
        now: Timestamp,
        nonce: [u8; 16],
    ) -> Result<(Pending, Option<Write>)> {
        check_arguments(draft.arguments)?;
        if self.is_forked() {
            return Err(Error::OtherProcess { tool: draft.scope.tool.to_owned() });
        }
        let ApprovalDraft { call_id, arguments, scope, life } = draft;
        let keys = read(&self.keys);
        let key = &keys[0];
        let mut pending = Pending {
            nonce,
            call_id: (*call_id).to_owned(),
            tool: scope.tool.to_owned(),
            arguments: (*arguments).clone(),
            caller: scope.caller.map(str::to_owned),
            session: scope.session.map(str::to_owned),
            schema_hash: scope.schema_hash,
            // A plain hash of a short secret could be found by trying.
            presets_hash: key.sign(PRESETS, &scope.presets_hash),
            created: to_millisecond(now),
            expires: after(now, *life),
            key: key.id(),
            signature: [0; 32],
        };
        pending.sign(key);
        let Ledger::Store(store) = &self.ledger else { return Ok((pending, None)) };
        let keep = store.defer_keep(&pending);
        if keep.is_none() {
            store.keep(&pending).map_err(|reason| Error::ApprovalStore { id: pending.id(), reason })?;
        }
        Ok((pending, keep))
    }

    /// Claims a pending call: it can be claimed only once. The tool must not run before this returns.
    ///
    /// A call that is refused for any other reason than its use can still be claimed with the right scope.
    ///
    /// # Errors
    ///
    /// One for each reason: another process or key, an altered field, expiry, another tool, schema, presets, caller or session, an
    /// earlier use; and [`Error::FileAccess`] or [`Error::ApprovalStore`] if the claim cannot be made durable.
    pub fn claim(&self, pending: &Pending, scope: &ApprovalScope<'_>, now: Timestamp) -> Result<()> {
        match self.begin_claim(pending, scope, now)? {
            Some(claim) => claimed(pending, claim.wait()),
            None => Ok(()),
        }
    }

    /// The same as [`claim`](Self::claim) for a caller that must not block. The call is claimed if there is no write, or if
    /// [`claimed`] accepts its result.
    ///
    /// # Errors
    ///
    /// Those of [`claim`](Self::claim).
    pub fn begin_claim(&self, pending: &Pending, scope: &ApprovalScope<'_>, now: Timestamp) -> Result<Option<Write>> {
        self.check(pending, scope, now)?;
        let entry = (pending.expires.as_millisecond(), pending.nonce);
        if let Some(claim) = self.ledger.defer_claim(entry) {
            return Ok(Some(claim));
        }
        match self.ledger.claim(entry, now.as_millisecond())? {
            Claim::First => Ok(None),
            Claim::Used => Err(Error::UsedPending { tool: pending.tool.clone() }),
            Claim::Forgotten => Err(expired(pending)),
        }
    }

    /// Refuses a pending call that may not be claimed, whether it was claimed before or not.
    fn check(&self, pending: &Pending, scope: &ApprovalScope<'_>, now: Timestamp) -> Result<()> {
        let tool = || pending.tool.clone();
        let key = self.verified_key(pending)?;
        if pending.expires <= now {
            return Err(expired(pending));
        }
        if pending.tool != scope.tool {
            return Err(Error::OtherTool { asked: tool(), tool: scope.tool.to_owned() });
        }
        if pending.schema_hash != scope.schema_hash {
            return Err(Error::OtherSchema { tool: tool() });
        }
        if !key.verifies(PRESETS, &scope.presets_hash, &pending.presets_hash) {
            return Err(Error::OtherPresets { tool: tool() });
        }
        if pending.session.as_deref() != scope.session {
            return Err(Error::OtherSession { tool: tool(), session: pending.session.clone() });
        }
        if pending.caller.as_deref() != scope.caller {
            return Err(Error::OtherCaller { tool: tool(), caller: pending.caller.clone() });
        }
        Ok(())
    }

    /// Refuses a pending call that is not as it was made.
    ///
    /// # Errors
    ///
    /// [`Error::OtherProcess`], [`Error::OtherKey`], [`Error::AlteredPending`].
    pub fn verify(&self, pending: &Pending) -> Result<()> {
        self.verified_key(pending).map(drop)
    }

    fn verified_key(&self, pending: &Pending) -> Result<Key> {
        if self.is_forked() || self.inherited.contains(&pending.key) {
            return Err(Error::OtherProcess { tool: pending.tool.clone() });
        }
        let key = self.key_of(pending)?.ok_or_else(|| Error::OtherKey { tool: pending.tool.clone() })?;
        if pending.is_signed_by(&key) { Ok(key) } else { Err(Error::AlteredPending { id: pending.id() }) }
    }

    /// The key that a pending call names, which another process may have created meanwhile.
    fn key_of(&self, pending: &Pending) -> Result<Option<Key>> {
        let find = |keys: &[Key]| keys.iter().find(|key| key.id() == pending.key).cloned();
        if let Some(key) = find(&read(&self.keys)) {
            return Ok(Some(key));
        }
        let Ledger::Folder(folder) = &self.ledger else { return Ok(None) };
        let key = find(&Key::all_in(folder.fs(), folder.path())?);
        write(&self.keys).extend(key.clone());
        Ok(key)
    }
}

/// The result of a [claim](Approvals::begin_claim) that a store has answered.
///
/// # Errors
///
/// [`Error::UsedPending`] for a call that was claimed before, [`Error::ApprovalStore`] if the claim is not durable.
pub fn claimed(pending: &Pending, written: Result<bool>) -> Result<()> {
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::UsedPending { tool: pending.tool.clone() }),
        Err(error) => Err(unkept(pending, &error)),
    }
}

/// The error of a store that could not keep or claim a pending call.
#[must_use]
pub fn unkept(pending: &Pending, error: &Error) -> Error {
    Error::ApprovalStore { id: pending.id(), reason: error.to_string() }
}

fn expired(pending: &Pending) -> Error {
    Error::ExpiredPending { tool: pending.tool.clone(), expires: rfc3339(pending.expires) }
}
