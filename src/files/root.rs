//! The directory of a logical root, in which relative paths are resolved.
//!
//! Linux resolves a path in one system call that stays beneath the directory (`openat2`). Where that call is missing, or a
//! sandbox refuses it, the path is opened name by name, each in the directory that was opened before. Neither way follows
//! symbolic links, those of `/proc` included, or enters another mount. A link that stays inside of the root is not followed
//! either, because it could lead from one grant to another.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

use super::error::{FileError, NOT_REGULAR, Subject};
use super::folder::OpenFolder;

/// Flags of every `open`: no descriptor for child processes, no waiting for the other end of a pipe, no terminal to control.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

/// The way in which paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// In one system call, or name by name if the kernel does not have it.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Name by name.
    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "the only way elsewhere"))]
    Walk,
}

string_enum! {
    /// The directories that are created for a root that does not exist.
    pub enum CreateFolder {
        /// None: the root must exist, so that a spelling mistake is noticed.
        Never = "never",
        /// The root, in a directory that exists.
        Last = "last",
        /// The root, and the directories above it.
        All = "all",
    }
}

/// An open directory whose contents a model may be given.
#[derive(Debug)]
pub(super) struct Root {
    folder: OwnedFd,
    device: u64,
    resolution: Resolution,
}

impl Root {
    /// Opens a directory, and creates it before if it does not exist and may be created.
    pub(super) fn open(folder: &Path, create: CreateFolder) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        match create {
            CreateFolder::Never => {}
            CreateFolder::Last => match builder.mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            },
            CreateFolder::All => builder.recursive(true).mode(0o700).create(folder)?,
        }
        // The path of the root itself is the developer's and may have links.
        let folder = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let device = device(&fstat(&folder)?);
        #[cfg(target_os = "linux")]
        let resolution = Resolution::Kernel;
        #[cfg(not(target_os = "linux"))]
        let resolution = Resolution::Walk;
        Ok(Self { folder, device, resolution })
    }

    /// Opens a regular file for reading.
    ///
    /// The file is returned with its size.
    pub(super) fn open_file(&self, relative: &str, subject: Subject<'_>) -> Result<(File, u64), FileError> {
        let (file, stat) = self.open_any(relative, OFlags::RDONLY, subject)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(file), size(&stat))),
            FileType::Directory => Err(subject.is_folder()),
            _ => Err(subject.denied(NOT_REGULAR)),
        }
    }

    /// Opens a folder for listing.
    pub(super) fn open_folder(&self, relative: &[u8], subject: Subject<'_>) -> Result<OwnedFd, FileError> {
        self.resolve(relative, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|errno| subject.failed(errno))
    }

    /// The metadata of a file or folder, which is not opened.
    pub(super) fn stat(&self, relative: &str, subject: Subject<'_>) -> Result<Stat, FileError> {
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY;
        let (_, stat) = self.open_any(relative, flags, subject)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(subject.failed(Errno::LOOP));
        }
        Ok(stat)
    }

    fn open_any(&self, relative: &str, flags: OFlags, subject: Subject<'_>) -> Result<(OwnedFd, Stat), FileError> {
        let opened = self.resolve(relative.as_bytes(), flags).and_then(|file| fstat(&file).map(|stat| (file, stat)));
        opened.map_err(|errno| subject.failed(errno))
    }

    /// Opens the folder of a path and returns it with the last name. Missing folders are created if `create` is set.
    pub(super) fn open_parent<'a>(
        &self,
        relative: &'a str,
        create: bool,
        subject: Subject<'_>,
    ) -> Result<(OpenFolder, &'a str), FileError> {
        let (folder, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        if name.is_empty() {
            return Err(subject.is_folder());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = match self.resolve(folder.as_bytes(), flags) {
            Err(Errno::NOENT) if create => self.create_folders(folder, flags),
            opened => opened,
        };
        Ok((OpenFolder::new(opened.map_err(|errno| subject.failed(errno))?), name))
    }

    /// Creates the missing folders of a path, each in the folder that was opened before.
    fn create_folders(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut folder = self.resolve(b"", flags)?;
        for name in relative.split('/') {
            folder = match self.enter(&folder, name.as_bytes(), flags) {
                Err(Errno::NOENT) => {
                    match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    self.enter(&folder, name.as_bytes(), flags)?
                }
                entered => entered?,
            };
        }
        Ok(folder)
    }

    /// Opens a path beneath the directory; the empty path is the directory itself.
    fn resolve(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.resolution {
            #[cfg(target_os = "linux")]
            Resolution::Kernel => match kernel::open_beneath(&self.folder, relative, flags) {
                // A sandbox may answer a system call that it does not know with `EPERM`.
                Err(Errno::NOSYS | Errno::PERM) => self.walk(relative, flags),
                opened => opened,
            },
            Resolution::Walk => self.walk(relative, flags),
        }
    }

    /// Opens a path name by name.
    fn walk(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = relative.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
        if names.peek().is_none() {
            return self.enter(&self.folder, b".", flags);
        }
        let mut folder: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            let flags = if names.peek().is_some() { OFlags::RDONLY | OFlags::DIRECTORY } else { flags };
            let parent = folder.as_ref().map_or(self.folder.as_fd(), AsFd::as_fd);
            folder = Some(self.enter(&parent, name, flags)?);
        }
        folder.ok_or(Errno::NOENT)
    }

    /// Opens one name in an open folder.
    fn enter(&self, folder: &impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let opened = again(|| openat(folder, name, open_flags(flags), Mode::empty()));
        let opened = match opened {
            // `O_DIRECTORY` hides that the name is a link.
            Err(Errno::NOTDIR) => {
                let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
                let is_link = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                return Err(if is_link { Errno::LOOP } else { Errno::NOTDIR });
            }
            opened => opened?,
        };
        if device(&fstat(&opened)?) == self.device { Ok(opened) } else { Err(Errno::XDEV) }
    }
}

/// The flags of an `open`, of which `O_PATH` permits few.
fn open_flags(flags: OFlags) -> OFlags {
    #[cfg(target_os = "linux")]
    if flags.contains(OFlags::PATH) {
        return flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    }
    flags | ALWAYS
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the type differs between systems")]
fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

/// The size of a file in bytes.
pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Makes a system call, again if a signal interrupted it.
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    use super::{again, open_flags};

    /// The number of attempts while other processes rename directories.
    const TRIES: usize = 64;

    const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
        .union(ResolveFlags::NO_MAGICLINKS)
        .union(ResolveFlags::NO_SYMLINKS)
        .union(ResolveFlags::NO_XDEV);

    /// Opens a path beneath a folder in one system call.
    pub(super) fn open_beneath(folder: impl AsFd, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = if relative.is_empty() { b"." } else { relative };
        let mut flags = open_flags(flags);
        if flags.contains(OFlags::DIRECTORY) {
            // `RESOLVE_NO_SYMLINKS` refuses a link at the end as well, and reports it as such.
            flags.remove(OFlags::NOFOLLOW);
        }
        let open = || openat2(folder.as_fd(), relative, flags, Mode::empty(), RESOLVE);
        let mut opened = again(open);
        for _ in 1..TRIES {
            // The kernel could not tell whether a directory that moved is still beneath the folder.
            if !matches!(opened, Err(Errno::AGAIN)) {
                break;
            }
            opened = again(open);
        }
        opened
    }
}
