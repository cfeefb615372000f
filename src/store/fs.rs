//! What a durable file asks of an operating system, call by call, so that each of them can be made to fail.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The calls that reading and replacing a file are made of.
///
/// [`Disk`](super::Disk) makes them for real.
pub trait Fs {
    /// An open file.
    type File;

    /// The path behind the symbolic links that a path ends in; nothing needs to be there.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// What is at a path, if anything is.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn look(&self, path: &Path) -> io::Result<Option<Facts>>;

    /// The names in a folder.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// Opens a file to read, without ever waiting for it, as one would for a pipe.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    /// Makes a file that was not there, for its owner only.
    ///
    /// # Errors
    ///
    /// What the system says; [`ErrorKind::AlreadyExists`] if it was.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Opens a file to write at its end, whoever else does so; makes one for its owner only if there is none.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn append(&self, path: &Path) -> io::Result<Self::File>;

    /// Makes a folder for its owner only, if there is nothing of that name.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// What an open file is.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn facts(&self, file: &Self::File) -> io::Result<Facts>;

    /// Claims a file until it is closed, which the end of the process does too; false if somebody else has it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn claim(&self, file: &Self::File) -> io::Result<bool>;

    /// Lets those use a file who could use another one.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn set_access(&self, file: &Self::File, access: Access) -> io::Result<()>;

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read(&self, file: &mut Self::File, buffer: &mut [u8]) -> io::Result<usize>;

    /// The last byte of a file that was opened to append; none if it is empty.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn last_byte(&self, file: &Self::File) -> io::Result<Option<u8>>;

    /// Writes some of the bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the contents of a file would survive a loss of power.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// The same, without what only tells about the file, such as when it was changed.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;

    /// Gives a file another name, in place of the file that had it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Waits until the names in a folder would survive a loss of power.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Takes a name away.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether it is an ordinary file, and no folder, pipe or device.
    pub is_regular: bool,
    /// How many names it has; none when it was removed while it is open.
    pub names: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Who may use it.
    pub access: Access,
}

/// Who may use a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// The permission bits.
    pub mode: u32,
    /// The owner's number.
    pub owner: u32,
    /// The group's number.
    pub group: u32,
}

/// Makes a call, and makes it again when a signal interrupted it.
pub(crate) fn steadily<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
