//! The file that the supervisor is executed from: in memory, or removed from the disk once it is open.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;

use super::environment::private_folder;
use crate::sync::lock;

/// The supervisor, compiled from `supervisor.c`.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/supervisor"));

/// The exit code of the supervisor without arguments.
const USAGE: i32 = 64;
/// The number of times that a file is tried to be executed while another process has it open for writing.
const TRIES: u32 = 50;

/// The file of this process. A Python program locks it only with the GIL held, so that it is free at a fork.
static CURRENT: Mutex<Option<Arc<Executable>>> = Mutex::new(None);

/// An open file with the supervisor in it.
#[derive(Debug)]
pub(crate) struct Executable {
    file: File,
    /// Device and number of the file: a program that becomes a daemon may close all descriptors and reuse their numbers.
    identity: (u64, u64),
}

impl Executable {
    /// The file of this process, which is made by the first call.
    ///
    /// # Errors
    ///
    /// If this system can execute neither a file in memory nor one in the folder for temporary files.
    pub(crate) fn current() -> io::Result<Arc<Self>> {
        let mut current = lock(&CURRENT);
        match current.take() {
            Some(executable) if executable.is_intact() => Ok(current.insert(executable).clone()),
            lost => {
                // Its number belongs to another file, which must not be closed.
                std::mem::forget(lost);
                Ok(current.insert(Arc::new(Self::new()?)).clone())
            }
        }
    }

    fn new() -> io::Result<Self> {
        in_memory().and_then(Self::tried).or_else(|_| on_disk().and_then(Self::tried))
    }

    /// The descriptor of the file.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// The path by which a child of this process executes it. The descriptor is closed by that.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor()).into()
    }

    fn is_intact(&self) -> bool {
        identity(&self.file).is_ok_and(|identity| identity == self.identity)
    }

    /// Executes it once, without arguments, because a system may forbid it.
    fn tried(file: File) -> io::Result<Self> {
        let executable = Self { identity: identity(&file)?, file };
        let mut tries = 0;
        loop {
            let mut command = Command::new(executable.path());
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match command.process_group(0).status() {
                Ok(status) if status.code() == Some(USAGE) => return Ok(executable),
                Ok(status) => return Err(io::Error::other(format!("the supervisor ended with {status}"))),
                // A process that another thread is starting has inherited the descriptor for writing.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "the types of the fields depend on the architecture")]
fn identity(file: &File) -> io::Result<(u64, u64)> {
    let facts = fstat(file)?;
    Ok((facts.st_dev as u64, facts.st_ino as u64))
}

/// A file in memory that cannot be changed any more.
fn in_memory() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match memfd_create("toolcrib-supervisor", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create("toolcrib-supervisor", flags), // a kernel before 6.3
        created => created,
    };
    let mut file = File::from(created?);
    file.write_all(PROGRAM)?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

/// A file in a private folder, both of which are removed at once.
fn on_disk() -> io::Result<File> {
    let folder = private_folder(&std::env::temp_dir())?;
    let path = folder.join("supervisor");
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path).and_then(|mut file| {
        file.write_all(PROGRAM)?;
        drop(file);
        File::open(&path)
    });
    // What could not be created cannot be removed.
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir(&folder);
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_is_executed_from_memory_and_from_a_removed_file() {
        for make in [in_memory, on_disk] {
            let executable = Executable::tried(make().unwrap()).unwrap();

            assert!(executable.is_intact());
        }
    }

    #[test]
    fn the_file_in_memory_cannot_be_changed() {
        let mut file = in_memory().unwrap();

        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
    }

    #[test]
    fn all_programs_of_a_process_share_one_file() {
        let (first, second) = (Executable::current().unwrap(), Executable::current().unwrap());

        assert!(Arc::ptr_eq(&first, &second));
    }
}
