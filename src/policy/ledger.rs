//! Which pending calls were answered, so that none is answered twice: in memory, or in a folder that survives a restart.
//!
//! In the folder each answered call is an empty file whose name has the call's nonce. The system makes a file of a name
//! only once, whoever asks for it, so of any number of programs exactly one claims a call, without a lock that could be
//! left behind, and no crash can tear anything.
//!
//! What has expired needs no entry. Before such entries are taken away, the latest of their times is kept as the
//! *horizon*: a call that expires no later is refused, even when the clock is set back to before its end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::hex::hex;
use crate::store::{Fs, steadily};
use crate::{Error, Result};

/// How many claims there are from one look for expired entries to the next.
const CLAIMS: usize = 256;

/// How many horizons stay, so that whoever reads the folder meanwhile always sees one.
const HORIZONS: usize = 4;

/// What is noted of an answered call: the millisecond in which it expires, and its nonce.
pub(super) type Entry = (i64, [u8; 16]);

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nobody had claimed the call, and nobody will.
    First,
    /// Somebody has claimed it.
    Used,
    /// It expired so long ago that nobody knows.
    Forgotten,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    used: BTreeSet<Entry>,
    horizon: Option<i64>,
}

impl Memory {
    fn claim(&mut self, entry: Entry, now: i64) -> Claim {
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
    /// Opens the folder, which is made if its parent is there.
    pub(super) fn open(fs: F, path: &Path) -> Result<Self> {
        let used = path.join("used");
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        for (folder, parent) in [(path, parent), (&used, path)] {
            let made = steadily(|| fs.make_folder(folder)).and_then(|()| steadily(|| fs.sync_folder(parent)));
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

    fn claim(&self, entry: Entry, now: i64) -> io::Result<Claim> {
        if self.claims.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLAIMS) {
            // Entries that are kept for longer than they are needed do no harm.
            let _ = self.sweep(now);
        }
        let path = self.used.join(format!("{}-{}", entry.0, hex(&entry.1)));
        let file = match steadily(|| self.fs.create(&path)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Claim::Used),
            made => made?,
        };
        // Only now, because the entry may have been taken away just before it was made again.
        let claimed = match self.horizon() {
            Ok(horizon) if horizon >= Some(entry.0) => Ok(Claim::Forgotten),
            Ok(_) => self.make_durable(&file).map(|()| Claim::First),
            Err(error) => Err(error),
        };
        if !matches!(claimed, Ok(Claim::First)) {
            // The claim was not given to anybody. Where this fails the call stays answered, which is the safe side.
            let _ = steadily(|| self.fs.remove(&path));
        }
        claimed
    }

    fn make_durable(&self, file: &F::File) -> io::Result<()> {
        steadily(|| self.fs.sync(file))?;
        steadily(|| self.fs.sync_folder(&self.used))
    }

    fn horizons(&self) -> io::Result<Vec<i64>> {
        let names = steadily(|| self.fs.list(&self.path))?;
        let mut found: Vec<i64> =
            names.iter().filter_map(|name| name.to_str()?.strip_prefix("horizon-")?.parse().ok()).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn horizon(&self) -> io::Result<Option<i64>> {
        Ok(self.horizons()?.pop())
    }

    /// Takes away the entries of calls that have expired.
    fn sweep(&self, now: i64) -> io::Result<()> {
        let names = steadily(|| self.fs.list(&self.used))?;
        let expired: Vec<(i64, &OsString)> = names
            .iter()
            .filter_map(|name| Some((expiry(name)?, name)))
            .filter(|(expires, _)| *expires <= now)
            .collect();
        let Some(latest) = expired.iter().map(|(expires, _)| *expires).max() else { return Ok(()) };
        self.raise_horizon(latest)?;
        for (_, name) in expired {
            // Another process may have been faster.
            let _ = steadily(|| self.fs.remove(&self.used.join(name)));
        }
        Ok(())
    }

    fn raise_horizon(&self, to: i64) -> io::Result<()> {
        let known = self.horizons()?;
        if known.last().is_some_and(|horizon| *horizon >= to) {
            return Ok(());
        }
        match steadily(|| self.fs.create(&self.path_of_horizon(to))) {
            Ok(file) => steadily(|| self.fs.sync(&file))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        steadily(|| self.fs.sync_folder(&self.path))?;
        for old in known.iter().rev().skip(HORIZONS) {
            let _ = steadily(|| self.fs.remove(&self.path_of_horizon(*old)));
        }
        Ok(())
    }

    fn path_of_horizon(&self, horizon: i64) -> PathBuf {
        self.path.join(format!("horizon-{horizon}"))
    }
}

/// When the call expires that an entry is for.
fn expiry(name: &OsString) -> Option<i64> {
    name.to_str()?.rsplit_once('-')?.0.parse().ok()
}

/// Which pending calls were answered.
#[derive(Debug)]
pub(super) enum Ledger<F> {
    Memory(Mutex<Memory>),
    Folder(Folder<F>),
}

impl<F: Fs> Ledger<F> {
    /// Claims a call; when it says `First`, that is durable.
    pub(super) fn claim(&self, entry: Entry, now: i64) -> Result<Claim> {
        match self {
            Self::Memory(memory) => Ok(memory.lock().unwrap_or_else(PoisonError::into_inner).claim(entry, now)),
            Self::Folder(folder) => {
                folder.claim(entry, now).map_err(|error| Error::access("write", &folder.used, &error))
            }
        }
    }
}
