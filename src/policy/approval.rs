//! Asking for an approval in one process and using it, once, in the same or a later one.

use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::key::{Key, KeyId};
use super::ledger::{Claim, Folder, Ledger, Memory};
use super::moment::{after, rfc3339, to_millisecond};
use super::pending::{Pending, check_arguments};
use crate::store::{Disk, Fs};
use crate::{Error, Result};

const PRESETS: &str = "presets";

/// What an approval is good for; an approval that was asked for with some of these is refused with any others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalScope<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What the tool's schema sums up to.
    pub schema_hash: [u8; 32],
    /// What the tool's presets sum up to.
    pub presets_hash: [u8; 32],
    /// Who calls.
    pub caller: Option<&'a str>,
    /// The session or run.
    pub session: Option<&'a str>,
}

/// A call that somebody is to be asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draft<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The arguments, without presets.
    pub arguments: &'a Value,
    /// What the approval is to be good for.
    pub facts: ApprovalScope<'a>,
    /// How long an answer counts.
    pub life: Duration,
}

/// Makes pending calls, and lets each of them be answered once.
///
/// It is shared between threads. Two of them on one folder, in one process or in several, are as good as one.
#[derive(Debug)]
pub struct Approvals<F = Disk> {
    /// Never empty; the first one signs.
    keys: RwLock<Vec<Key>>,
    ledger: Ledger<F>,
    /// The process that a ledger in memory is for: a copy in a forked process would count every use anew.
    process: Option<u32>,
    /// The keys of the processes that this one was forked from.
    inherited: Vec<KeyId>,
}

impl Approvals {
    /// Approvals that end with the process, as everything does that was asked with them. A forked process has to
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

    /// Approvals in memory for this process, with a key of its own, in place of those that it was forked with. Pending calls
    /// of the other process are refused.
    #[must_use]
    pub fn renewed(&self, key: Key) -> Self {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let inherited = self.inherited.iter().copied().chain(keys.iter().map(Key::id)).collect();
        Self { inherited, ..Self::in_memory(key) }
    }

    /// Approvals that survive a restart, in a folder that is made if its parent is there.
    ///
    /// The key is kept in it, too, and takes part only if the folder has none: 256 random bits are good for it.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if the system refuses, and [`Error::DamagedFile`] or one of its kind for a key that is none.
    pub fn open(path: &Path, key: Key) -> Result<Self> {
        Self::open_on(Disk, path, key)
    }
}

impl<F: Fs> Approvals<F> {
    /// [`open`](Approvals::open) on any file system.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_on(fs: F, path: &Path, key: Key) -> Result<Self> {
        let folder = Folder::open(fs, path)?;
        let mut keys = Key::all_in(folder.fs(), path)?;
        if keys.is_empty() {
            key.save_in(folder.fs(), path)?;
            keys.push(key);
        }
        Ok(Self { keys: RwLock::new(keys), ledger: Ledger::Folder(folder), process: None, inherited: Vec::new() })
    }

    /// True in a process that was forked after approvals in memory were made: they are another process's.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.process.is_some_and(|process| process != std::process::id())
    }

    /// Makes a pending call of 128 random bits.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPending`] if the arguments are no object, or too deep to be read again; [`Error::OtherProcess`] if
    /// these are the approvals of the process that this one was forked from.
    pub fn ask(&self, draft: &Draft<'_>, now: Timestamp, nonce: [u8; 16]) -> Result<Pending> {
        check_arguments(draft.arguments)?;
        if self.is_forked() {
            return Err(Error::OtherProcess { tool: draft.facts.tool.to_owned() });
        }
        let Draft { id, arguments, facts, life } = draft;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = &keys[0];
        let mut pending = Pending {
            id: (*id).to_owned(),
            tool: facts.tool.to_owned(),
            arguments: (*arguments).clone(),
            caller: facts.caller.map(str::to_owned),
            session: facts.session.map(str::to_owned),
            schema_hash: facts.schema_hash,
            // A plain sum of a short secret could be found by trying.
            presets_hash: key.sign(PRESETS, &facts.presets_hash),
            created: to_millisecond(now),
            expires: after(now, *life),
            nonce,
            key: key.id(),
            signature: [0; 32],
        };
        pending.sign(key);
        Ok(pending)
    }

    /// Uses a pending call up; after this it is refused for ever. Nothing may run before it returns.
    ///
    /// A call that is refused for any other reason than its use can still be claimed by whoever it is for.
    ///
    /// # Errors
    ///
    /// One for each reason: another process or key, a changed field, the time, another tool, schema, presets, caller or session, an
    /// earlier use; and [`Error::FileAccess`] if the use cannot be made durable.
    pub fn claim(&self, pending: &Pending, facts: &ApprovalScope<'_>, now: Timestamp) -> Result<()> {
        let tool = || pending.tool.clone();
        let expired = || Error::ExpiredPending { tool: tool(), expires: rfc3339(pending.expires) };
        if self.is_forked() || self.inherited.contains(&pending.key) {
            return Err(Error::OtherProcess { tool: tool() });
        }
        let key = self.key_of(pending)?.ok_or_else(|| Error::OtherKey { tool: tool() })?;
        if !pending.is_signed_by(&key) {
            return Err(Error::AlteredPending { id: pending.id.clone() });
        }
        if pending.expires <= now {
            return Err(expired());
        }
        if pending.tool != facts.tool {
            return Err(Error::OtherTool { asked: tool(), tool: facts.tool.to_owned() });
        }
        if pending.schema_hash != facts.schema_hash {
            return Err(Error::OtherSchema { tool: tool() });
        }
        if !key.verifies(PRESETS, &facts.presets_hash, &pending.presets_hash) {
            return Err(Error::OtherPresets { tool: tool() });
        }
        if pending.caller.as_deref() != facts.caller {
            return Err(Error::OtherCaller { tool: tool() });
        }
        if pending.session.as_deref() != facts.session {
            return Err(Error::OtherSession { tool: tool() });
        }
        match self.ledger.claim((pending.expires.as_millisecond(), pending.nonce), now.as_millisecond())? {
            Claim::First => Ok(()),
            Claim::Used => Err(Error::UsedPending { tool: tool() }),
            Claim::Forgotten => Err(expired()),
        }
    }

    /// The key that a call says it was signed with, which another process may have made meanwhile.
    fn key_of(&self, pending: &Pending) -> Result<Option<Key>> {
        let find = |keys: &[Key]| keys.iter().find(|key| key.id() == pending.key).cloned();
        if let Some(key) = find(&self.keys.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(key));
        }
        let Ledger::Folder(folder) = &self.ledger else { return Ok(None) };
        let key = find(&Key::all_in(folder.fs(), folder.path())?);
        self.keys.write().unwrap_or_else(PoisonError::into_inner).extend(key.clone());
        Ok(key)
    }
}
