//! Replaces the content of a file in one step.
//!
//! The new content is written to a temporary file in the same folder, which then takes the name of the old one. The writer locks
//! the temporary file until the end, and the operating system releases the lock when the writer dies. So the next writer can
//! distinguish a file that is being written from one that was left behind, and removes the latter.
//!
//! A temporary file is renamed or removed only while its lock is held, by a writer that has seen after locking it that the name
//! is still that of the file. Therefore no writer ever touches the file of another one, also not in the moment in which a new
//! file is not locked yet: its writer finds out that it was removed, and starts again.
//!
//! There are two ways to name a temporary file. [`replace`] chooses a random name: writers do not wait, and the last one wins.
//! [`Temporary::only`] has one name for each target: its creator is the only writer until the end, so that nothing that
//! was read meanwhile changes, and no edit is lost.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::fs::{FileAccess, Fs, not_regular, parent_of, retry_interrupted, write_all};
use crate::bytes::{hex, random_bytes};
use crate::{Error, Result};

/// The beginning and the end of the names of temporary files.
pub(crate) const TEMPORARY: (&str, &str) = (".toolcrib-", ".tmp");

/// An open folder in which files are replaced.
pub(crate) trait Folder {
    /// An open file.
    type File;

    /// Creates a file; [`ErrorKind::AlreadyExists`] if the name is used.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file, without waiting for the other end of a pipe.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Locks a file until it is closed.
    fn claim(&self, file: &mut Self::File) -> io::Result<FileLock>;

    /// True if the name is that of a file that was claimed.
    fn is_named(&self, file: &Self::File, name: &str) -> io::Result<bool>;

    /// Sets the owner and the permissions.
    fn set_access(&self, file: &Self::File, access: FileAccess) -> io::Result<()>;

    /// Writes all bytes.
    fn write_all(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Waits until the content of a file survives a loss of power.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file, replacing the file that has the new name.
    fn rename(&self, from: &str, to: &OsStr) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Waits until the names in the folder survive a loss of power.
    fn sync_names(&self) -> io::Result<()>;

    /// Joins the writers in the folder, until the folder is closed; false if one claims to be alone in it.
    fn join(&self) -> bool {
        true
    }

    /// Leaves the writers in the folder.
    fn leave(&self) {}

    /// Runs a function while there is no writer in the folder; none if there are some, or that is not known.
    fn alone<T>(&self, _run: impl FnOnce() -> T) -> Option<T> {
        None
    }
}

/// The outcome of locking a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileLock {
    /// It is locked, and has a name.
    Held,
    /// Another writer has locked or removed it.
    Lost,
    /// Files cannot be locked here, and therefore no writer removes those of others.
    Unsupported,
}

/// A temporary file that is to take the name of another file. Dropping it removes it.
pub(crate) struct Temporary<'f, F: Folder> {
    folder: &'f F,
    name: String,
    file: F::File,
    is_ours: bool,
}

/// The time for which a writer waits for another writer of the same file.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const RETRY: Duration = Duration::from_millis(1);

impl<'f, F: Folder> Temporary<'f, F> {
    /// Creates the only temporary file of a target: waits for other writers of the target, and removes what a dead one left.
    /// None if another one is writing for too long.
    pub(crate) fn only(folder: &'f F, target: &OsStr) -> io::Result<Option<Self>> {
        let name = format!("{}{}", prefix(target), TEMPORARY.1);
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            if folder.join() {
                match Self::create(folder, name.clone()) {
                    Ok(None) => folder.leave(),
                    created => return created,
                }
            }
            let is_free = remove_abandoned(folder, &name);
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if !is_free {
                thread::sleep(RETRY);
            }
        }
    }

    /// Creates a temporary file and locks it; none if the name is used, or another writer took the file for an abandoned one.
    fn create(folder: &'f F, name: String) -> io::Result<Option<Self>> {
        let file = match folder.create(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            created => created?,
        };
        let mut temporary = Self { folder, name, file, is_ours: true };
        temporary.is_ours = folder.claim(&mut temporary.file)? != FileLock::Lost;
        Ok(temporary.is_ours.then_some(temporary))
    }

    /// Writes the content. With `durable` it survives a loss of power from then on.
    pub(crate) fn fill(&mut self, bytes: &[u8], access: Option<FileAccess>, durable: bool) -> io::Result<()> {
        // First, so that other users cannot read the content meanwhile.
        if let Some(access) = access {
            self.folder.set_access(&self.file, access)?;
        }
        self.folder.write_all(&mut self.file, bytes)?;
        if durable { self.folder.sync(&self.file) } else { Ok(()) }
    }

    /// Gives the file the name of the target; false if another program has removed it meanwhile.
    pub(crate) fn rename(mut self, target: &OsStr) -> io::Result<bool> {
        // A program that does not know the lock may have removed the file, and another writer has created its own.
        if !self.folder.is_named(&self.file, &self.name)? {
            self.is_ours = false;
            return Ok(false);
        }
        match self.folder.rename(&self.name, target) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                self.is_ours = false;
                Ok(true)
            }
        }
    }
}

impl<F: Folder> Drop for Temporary<'_, F> {
    fn drop(&mut self) {
        if self.is_ours && self.folder.is_named(&self.file, &self.name).unwrap_or(false) {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Removes a temporary file whose writer is gone; true if the name is free then.
fn remove_abandoned<F: Folder>(folder: &F, name: &str) -> bool {
    match folder.open(name) {
        // The lock is kept until the file is removed.
        Ok(mut file) => {
            matches!(folder.claim(&mut file), Ok(FileLock::Held))
                && folder.is_named(&file, name).unwrap_or(false)
                && folder.remove(name).is_ok()
        }
        Err(error) => match error.kind() {
            ErrorKind::NotFound => true,
            // The file of another user, a link or a socket: it cannot be locked, so it counts as abandoned only if there is no
            // writer at all.
            ErrorKind::PermissionDenied => folder.alone(|| folder.remove(name).is_ok()).unwrap_or(false),
            _ if is_special(&error) => folder.alone(|| folder.remove(name).is_ok()).unwrap_or(false),
            // Too many open files, for example, say nothing about the file.
            _ => false,
        },
    }
}

/// True if a link or a socket was to be opened.
fn is_special(error: &io::Error) -> bool {
    #[cfg(unix)]
    return matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EMLINK | libc::ENXIO | libc::EOPNOTSUPP));
    #[cfg(not(unix))]
    return false;
}

/// The beginning of the names of all temporary files for a target; it has the same length for every target.
fn prefix(target: &OsStr) -> String {
    format!("{}{}", TEMPORARY.0, hex(&Sha256::digest(target.as_encoded_bytes())[..8]))
}

/// The number of attempts of a writer whose temporary file is removed.
const REPLACE_TRIES: usize = 10;

/// The number of names that are tried for a temporary file.
const NAME_TRIES: usize = 100;

/// Replaces the content of a file, so that readers, also after a crash, find the old content or the new one.
///
/// Symbolic links are followed. An existing file keeps its permissions; a new one is accessible to its owner only.
///
/// # Errors
///
/// [`Error::FileAccess`] if the path is not that of a regular file, or the system refuses.
pub fn replace<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: &io::Error| Error::access("write", path, error);
    let target = retry_interrupted(|| fs.resolve(path)).map_err(|error| failed(&error))?;
    let name = target.file_name().ok_or_else(|| failed(&io::Error::other("it does not end in a file name")))?;
    let old = retry_interrupted(|| fs.path_info(&target)).map_err(|error| failed(&error))?;
    if old.is_some_and(|old| !old.is_regular) {
        return Err(failed(&not_regular()));
    }
    let folder = FolderAt { fs, path: parent_of(&target) };
    sweep(&folder, name);
    let mut tries = REPLACE_TRIES;
    loop {
        tries -= 1;
        let replaced = Temporary::beside_others(&folder, name).and_then(|mut temporary| {
            temporary.fill(bytes, old.map(|old| old.access), true)?;
            temporary.rename(name)
        });
        match replaced.map_err(|error| failed(&error))? {
            true => break,
            // Possible where files cannot be locked.
            false if tries == 0 => return Err(failed(&ErrorKind::NotFound.into())),
            false => {}
        }
    }
    folder.sync_names().map_err(|error| Error::access("sync", path, &error))
}

impl<'f, F: Folder> Temporary<'f, F> {
    /// Creates a temporary file with a random name, beside those of other writers.
    fn beside_others(folder: &'f F, target: &OsStr) -> io::Result<Self> {
        for _ in 0..NAME_TRIES {
            let random = hex(&random_bytes::<8>().map_err(io::Error::other)?);
            let name = format!("{}-{random}{}", prefix(target), TEMPORARY.1);
            if let Some(temporary) = Self::create(folder, name)? {
                return Ok(temporary);
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "no free name for a temporary file"))
    }
}

/// Removes the temporary files that writers of the same target left behind when they died. Errors are ignored.
fn sweep<F: Fs>(folder: &FolderAt<'_, F>, target: &OsStr) {
    let prefix = format!("{}-", prefix(target));
    let Ok(names) = retry_interrupted(|| folder.fs.list(folder.path)) else { return };
    let is_temporary = |name: &&str| name.starts_with(&prefix) && name.ends_with(TEMPORARY.1);
    for name in names.iter().filter_map(|name: &OsString| name.to_str()).filter(is_temporary) {
        remove_abandoned(folder, name);
    }
}

/// A folder of a file system, by its path.
struct FolderAt<'a, F> {
    fs: &'a F,
    path: &'a Path,
}

impl<F: Fs> Folder for FolderAt<'_, F> {
    type File = F::File;

    fn create(&self, name: &str) -> io::Result<F::File> {
        retry_interrupted(|| self.fs.create(&self.path.join(name)))
    }

    fn open(&self, name: &str) -> io::Result<F::File> {
        retry_interrupted(|| self.fs.open(&self.path.join(name)))
    }

    fn claim(&self, file: &mut F::File) -> io::Result<FileLock> {
        match retry_interrupted(|| self.fs.claim(file)) {
            Ok(true) if retry_interrupted(|| self.fs.file_info(file))?.names > 0 => Ok(FileLock::Held),
            Ok(_) => Ok(FileLock::Lost),
            Err(_) => Ok(FileLock::Unsupported),
        }
    }

    fn is_named(&self, _file: &F::File, name: &str) -> io::Result<bool> {
        // A random name is never used again, so that a file which has it is the same.
        Ok(retry_interrupted(|| self.fs.path_info(&self.path.join(name)))?.is_some())
    }

    fn set_access(&self, file: &F::File, access: FileAccess) -> io::Result<()> {
        retry_interrupted(|| self.fs.set_access(file, access))
    }

    fn write_all(&self, file: &mut F::File, bytes: &[u8]) -> io::Result<()> {
        write_all(self.fs, file, bytes)
    }

    fn sync(&self, file: &F::File) -> io::Result<()> {
        retry_interrupted(|| self.fs.sync(file))
    }

    fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
        retry_interrupted(|| self.fs.rename(&self.path.join(from), &self.path.join(to)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        retry_interrupted(|| self.fs.remove(&self.path.join(name)))
    }

    fn sync_names(&self) -> io::Result<()> {
        retry_interrupted(|| self.fs.sync_folder(self.path))
    }
}
