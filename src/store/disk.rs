//! The real file system.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};

use super::{Access, Facts, Fs};

/// How many links are followed, as Linux does, before they are taken for a circle.
const LINKS: usize = 40;

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl From<Metadata> for Facts {
    #[cfg(unix)]
    fn from(metadata: Metadata) -> Self {
        let access = Access { mode: metadata.mode() & 0o7777, owner: metadata.uid(), group: metadata.gid() };
        Self { is_regular: metadata.is_file(), names: metadata.nlink(), size: metadata.len(), access }
    }

    #[cfg(not(unix))]
    fn from(metadata: Metadata) -> Self {
        Self { is_regular: metadata.is_file(), names: 1, size: metadata.len(), access: Access::default() }
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

    fn look(&self, path: &Path) -> io::Result<Option<Facts>> {
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
        // A pipe without a writer would keep the opener waiting.
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

    fn facts(&self, file: &File) -> io::Result<Facts> {
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
    fn set_access(&self, file: &File, access: Access) -> io::Result<()> {
        let own = Facts::from(file.metadata()?).access;
        if (own.owner, own.group) != (access.owner, access.group) {
            // Only the superuser may give files away; for everyone else the new file is their own.
            let _ = std::os::unix::fs::fchown(file, Some(access.owner), Some(access.group));
        }
        file.set_permissions(fs::Permissions::from_mode(access.mode))
    }

    #[cfg(not(unix))]
    fn set_access(&self, _file: &File, _access: Access) -> io::Result<()> {
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
        // Moves the place that is read from; what is appended goes to the end in any case.
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
            // Some network file systems cannot do this for a folder.
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
