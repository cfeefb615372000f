//! Files that are opened once, and meant from then on whatever their names lead to: a program may replace a name that it can write.

#[cfg(target_os = "linux")]
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::{Arc, Mutex, Weak};

#[cfg(target_os = "linux")]
use rustix::fs::FileType;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

#[cfg(target_os = "linux")]
use crate::sync::lock;

/// Linux opens a file without the right to read it.
#[cfg(target_os = "linux")]
const ANY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const ANY: OFlags = OFlags::RDONLY;

/// Device and number of a file.
pub(super) type Identity = (u64, u64);

/// The files that are shared by the sandboxes of this process, so that each has few descriptors of its own. A Python program locks
/// it only with the GIL held, so that it is free at a fork.
#[cfg(target_os = "linux")]
static SHARED: Mutex<Option<HashMap<Identity, Weak<Pinned>>>> = Mutex::new(None);

/// An open file, by which the file itself is meant.
#[derive(Debug)]
pub(super) struct Pinned {
    /// Taken only by [`Drop`].
    file: Option<OwnedFd>,
    /// A program that becomes a daemon may close all descriptors and reuse their numbers.
    identity: Identity,
}

impl Pinned {
    pub(super) fn new(file: impl Into<OwnedFd>) -> io::Result<Self> {
        let file = file.into();
        Ok(Self { identity: identity(&file)?, file: Some(file) })
    }

    /// Opens a file or a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::new(openat(CWD, path, ANY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Shares it with the sandboxes that have the file open already, if there are any.
    #[cfg(target_os = "linux")]
    pub(super) fn shared(self) -> Arc<Self> {
        let mut shared = lock(&SHARED);
        let shared = shared.get_or_insert_default();
        if let Some(known) = shared.get(&self.identity).and_then(Weak::upgrade).filter(|known| known.is_intact()) {
            return known;
        }
        shared.retain(|_, file| file.strong_count() > 0);
        let opened = Arc::new(self);
        shared.insert(opened.identity, Arc::downgrade(&opened));
        opened
    }

    #[cfg(target_os = "linux")]
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// The descriptor.
    ///
    /// # Errors
    ///
    /// If this process has closed it by its number, which may belong to another file by now.
    pub(super) fn get(&self) -> io::Result<BorrowedFd<'_>> {
        let lost = || io::Error::other("this process has closed a descriptor that belongs to toolcrib");
        self.file.as_ref().filter(|_| self.is_intact()).map(AsFd::as_fd).ok_or_else(lost)
    }

    pub(super) fn is_intact(&self) -> bool {
        self.file.as_ref().is_some_and(|file| identity(file).is_ok_and(|identity| identity == self.identity))
    }

    #[cfg(target_os = "linux")]
    pub(super) fn is_folder(&self) -> bool {
        self.facts().is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode).is_dir())
    }

    /// True if it has no name any more.
    #[cfg(target_os = "linux")]
    pub(super) fn is_removed(&self) -> bool {
        self.facts().is_ok_and(|facts| facts.st_nlink == 0)
    }

    #[cfg(target_os = "linux")]
    fn facts(&self) -> io::Result<rustix::fs::Stat> {
        Ok(fstat(self.get()?)?)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.is_intact() {
            // Its number may belong to another file, which must not be closed.
            std::mem::forget(self.file.take());
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "the types of the fields depend on the architecture")]
pub(super) fn identity(file: &OwnedFd) -> io::Result<Identity> {
    let facts = fstat(file)?;
    Ok((facts.st_dev as u64, facts.st_ino as u64))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_is_opened_once() {
        let shared = |path: &str| Pinned::open(Path::new(path)).unwrap().shared();

        let (one, other, different) = (shared("/usr"), shared("/usr/."), shared("/proc"));

        assert!(Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &different));
    }

    #[test]
    fn a_file_is_meant_after_its_name_leads_elsewhere() {
        let folder = std::env::temp_dir().join(format!("toolcrib-pinned-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let pinned = Pinned::open(&folder).unwrap();
        let before = identity(&OwnedFd::from(std::fs::File::open(&folder).unwrap())).unwrap();

        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/", &folder).unwrap();

        assert!(pinned.is_intact() && pinned.is_folder() && pinned.is_removed());
        assert_eq!(identity(&pinned.get().unwrap().try_clone_to_owned().unwrap()).unwrap(), before);
        std::fs::remove_file(folder).unwrap();
    }
}
