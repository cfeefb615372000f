//! The file system calls that a durable file needs, as a trait, so that tests can make each of them fail.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// The operating system calls for reading and replacing files; [`Disk`] is the real implementation.
///
/// Every method fails with the error of the operating system.
#[allow(clippy::missing_errors_doc, reason = "said once, for the whole trait")]
pub trait Fs {
    /// An open file.
    type File;

    /// Follows the symbolic links at the end of a path; the target need not exist.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// The metadata of the file at a path, if it exists.
    fn path_info(&self, path: &Path) -> io::Result<Option<FileInfo>>;

    /// The names in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// Opens a file for reading, without blocking, as opening a pipe would.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    /// Creates a file that must not exist, accessible to its owner only.
    ///
    /// [`ErrorKind::AlreadyExists`] if it does.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Opens a file for appending, also by several processes; creates it, accessible to its owner only, if it does not exist.
    fn append(&self, path: &Path) -> io::Result<Self::File>;

    /// Creates a folder, accessible to its owner only, unless it exists.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// The metadata of an open file.
    fn file_info(&self, file: &Self::File) -> io::Result<FileInfo>;

    /// Locks a file until it is closed, at the latest when the process ends; false if another process holds the lock.
    fn claim(&self, file: &Self::File) -> io::Result<bool>;

    /// Sets the owner and the permissions of a file.
    fn set_access(&self, file: &Self::File, access: FileAccess) -> io::Result<()>;

    /// Reads some bytes; none at the end.
    fn read(&self, file: &mut Self::File, buffer: &mut [u8]) -> io::Result<usize>;

    /// The last byte of a file that was opened to append; none if it is empty.
    fn last_byte(&self, file: &Self::File) -> io::Result<Option<u8>>;

    /// Writes some of the bytes.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the content of a file survives a loss of power.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// The same without metadata such as the time of the last change.
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file, replacing the file that has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Waits until the names in a folder survive a loss of power.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// True for a regular file, false for a folder, pipe or device.
    pub is_regular: bool,
    /// The number of its names; zero if it was removed while it is open.
    pub names: u64,
    /// Its length in bytes.
    pub size: u64,
    /// The owner and permissions.
    pub access: FileAccess,
}

/// The owner and permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileAccess {
    /// The permission bits.
    pub mode: u32,
    /// The id of the owner.
    pub owner: u32,
    /// The id of the group.
    pub group: u32,
}

/// Makes a system call, again if a signal interrupted it.
pub(crate) fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The most symbolic links that are followed, as in Linux.
const LINKS: usize = 40;

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl From<Metadata> for FileInfo {
    #[cfg(unix)]
    fn from(metadata: Metadata) -> Self {
        let access = FileAccess { mode: metadata.mode() & 0o7777, owner: metadata.uid(), group: metadata.gid() };
        Self { is_regular: metadata.is_file(), names: metadata.nlink(), size: metadata.len(), access }
    }

    #[cfg(not(unix))]
    fn from(metadata: Metadata) -> Self {
        Self { is_regular: metadata.is_file(), names: 1, size: metadata.len(), access: FileAccess::default() }
    }
}

impl Fs for Disk {
    type File = File;

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    let target = fs::read_link(&path)?;
                    path = path.parent().unwrap_or(Path::new("")).join(target);
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => return Ok(path),
            }
        }
        Err(io::Error::other("too many symbolic links"))
    }

    fn path_info(&self, path: &Path) -> io::Result<Option<FileInfo>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        // Opening a pipe without a writer would block.
        #[cfg(unix)]
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        options.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        options.open(path)
    }

    fn append(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        options.mode(0o600).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        options.open(path)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        builder.mode(0o700);
        match builder.create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            done => done,
        }
    }

    fn file_info(&self, file: &File) -> io::Result<FileInfo> {
        Ok(file.metadata()?.into())
    }

    fn claim(&self, file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    #[cfg(unix)]
    fn set_access(&self, file: &File, access: FileAccess) -> io::Result<()> {
        let own = FileInfo::from(file.metadata()?).access;
        if (own.owner, own.group) != (access.owner, access.group) {
            // Only the superuser may change the owner; otherwise the new file belongs to the current user.
            let _ = std::os::unix::fs::fchown(file, Some(access.owner), Some(access.group));
        }
        file.set_permissions(fs::Permissions::from_mode(access.mode))
    }

    #[cfg(not(unix))]
    fn set_access(&self, _file: &File, _access: FileAccess) -> io::Result<()> {
        Ok(())
    }

    fn read(&self, file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
        file.read(buffer)
    }

    fn last_byte(&self, mut file: &File) -> io::Result<Option<u8>> {
        if file.metadata()?.len() == 0 {
            return Ok(None);
        }
        let mut byte = [0];
        // Moves the read position only; appending always writes at the end.
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut byte)?;
        Ok(Some(byte[0]))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // Some network file systems do not support this for folders.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            done => done,
        }
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Writes all bytes.
pub(crate) fn write_all<F: Fs>(fs: &F, file: &mut F::File, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match retry_interrupted(|| fs.write(file, rest))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => rest = &rest[written..],
        }
    }
    Ok(())
}

/// The folder of a path; `.` for a bare name.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// The error for a folder, pipe or device in place of a file.
pub(crate) fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}
