//! The file that the supervisor is executed from: in memory, or on the disk without a name.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat};
use rustix::io::Errno;

use super::pinned::Pinned;
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
    file: Pinned,
    descriptor: i32,
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
            Some(executable) if executable.file.is_intact() => Ok(current.insert(executable).clone()),
            _ => Ok(current.insert(Arc::new(Self::new()?)).clone()),
        }
    }

    fn new() -> io::Result<Self> {
        in_memory().and_then(Self::tried).or_else(|_| on_disk().and_then(Self::tried))
    }

    /// The descriptor of the file.
    pub(crate) fn descriptor(&self) -> i32 {
        self.descriptor
    }

    /// The path by which a child of this process executes it. The descriptor is closed by that.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor()).into()
    }

    /// Executes it once, without arguments, because a system may forbid it.
    fn tried(file: File) -> io::Result<Self> {
        let executable = Self { descriptor: file.as_raw_fd(), file: Pinned::new(file)? };
        let mut tries = 0;
        loop {
            let mut command = Command::new(executable.path());
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match command.process_group(0).status() {
                Ok(status) if status.code() == Some(USAGE) => return Ok(executable),
                Ok(status) => return Err(io::Error::other(format!("the supervisor ended with {status}"))),
                // It was executed. Its status is lost if this process ignores SIGCHLD, or reaps all children elsewhere.
                Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => return Ok(executable),
                // A process that another thread is starting has inherited the descriptor for writing.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
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

/// A file in the folder for temporary files that never has a name, so that no program can change it.
fn on_disk() -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(openat(CWD, std::env::temp_dir(), flags, Mode::RWXU)?);
    file.write_all(PROGRAM)?;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_is_executed_from_memory_and_from_a_file_without_a_name() {
        for make in [in_memory, on_disk] {
            let executable = Executable::tried(make().unwrap()).unwrap();

            assert!(executable.file.is_intact());
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
