//! An open folder in which files are created, replaced and removed by their names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, flock, fstat, fsync, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::root::again;
use crate::store::{FileAccess, FileLock, Folder};

/// An open folder.
///
/// Its writers hold a shared lock on it. A temporary file that cannot be opened, because it belongs to another user, is removed
/// while there is none.
#[derive(Debug)]
pub(super) struct OpenFolder(OwnedFd);

/// A file of the folder.
pub(super) struct FolderFile {
    file: File,
    /// The metadata when it was claimed.
    stat: Option<Stat>,
}

impl OpenFolder {
    pub(super) fn new(folder: OwnedFd) -> Self {
        Self(folder)
    }

    /// Opens a file for reading; neither follows a link nor waits for the other end of a pipe.
    pub(super) fn open_file(&self, name: &str) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        again(|| openat(&self.0, name, flags, Mode::empty())).map(File::from)
    }
}

impl AsFd for OpenFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Folder for OpenFolder {
    type File = FolderFile;

    fn create(&self, name: &str) -> io::Result<FolderFile> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = again(|| openat(&self.0, name, flags, Mode::from_raw_mode(0o666)))?;
        Ok(FolderFile { file: file.into(), stat: None })
    }

    fn open(&self, name: &str) -> io::Result<FolderFile> {
        Ok(FolderFile { file: self.open_file(name)?, stat: None })
    }

    fn claim(&self, file: &mut FolderFile) -> io::Result<FileLock> {
        let locked = again(|| flock(&file.file, FlockOperation::NonBlockingLockExclusive));
        let stat = *file.stat.insert(fstat(&file.file)?);
        Ok(match locked {
            Ok(()) if stat.st_nlink > 0 => FileLock::Held,
            Ok(()) | Err(Errno::WOULDBLOCK) => FileLock::Lost,
            Err(_) => FileLock::Unsupported,
        })
    }

    fn is_named(&self, file: &FolderFile, name: &str) -> io::Result<bool> {
        let Some(own) = &file.stat else { return Ok(false) };
        match again(|| statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn set_access(&self, file: &FolderFile, access: FileAccess) -> io::Result<()> {
        let Some(own) = &file.stat else { return Ok(()) };
        if (access.owner, access.group) != (own.st_uid, own.st_gid) {
            // Only the superuser may change the owner; otherwise the new file belongs to the current user.
            let _ = fchown(&file.file, Some(Uid::from_raw(access.owner)), Some(Gid::from_raw(access.group)));
        }
        if access.mode != own.st_mode & 0o7777 {
            fchmod(&file.file, Mode::from_raw_mode(access.mode))?;
        }
        Ok(())
    }

    fn write_all(&self, file: &mut FolderFile, bytes: &[u8]) -> io::Result<()> {
        file.file.write_all(bytes)
    }

    fn sync(&self, file: &FolderFile) -> io::Result<()> {
        Ok(again(|| fsync(&file.file))?)
    }

    fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
        Ok(again(|| renameat(&self.0, from, &self.0, to))?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(again(|| unlinkat(&self.0, name, AtFlags::empty()))?)
    }

    fn sync_names(&self) -> io::Result<()> {
        match again(|| fsync(&self.0)) {
            // Some file systems do not support this for folders.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn join(&self) -> bool {
        // Where folders cannot be locked, none is ever claimed.
        !matches!(again(|| flock(&self.0, FlockOperation::NonBlockingLockShared)), Err(Errno::WOULDBLOCK))
    }

    fn leave(&self) {
        let _ = again(|| flock(&self.0, FlockOperation::Unlock));
    }

    fn alone<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        again(|| flock(&self.0, FlockOperation::NonBlockingLockExclusive)).ok()?;
        let done = run();
        // Explicitly, because a process that was forked meanwhile has the descriptor as well.
        self.leave();
        Some(done)
    }
}
