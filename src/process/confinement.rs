//! The files of a sandbox, opened when its tools are made. The rules of the kernel are about these files from then on: a program that
//! replaces one of their names, or a folder above them, by a link gains nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::code_file::Temporary;
use super::links::{Resolved, refuse_writable};
use super::options::{Programs, Sandbox, missing, not_a_folder};
use super::pinned::Pinned;
use crate::Result;

/// Files that programs need in a sandbox, those that exist. Of `/etc` only what everyone may know.
const SYSTEM: [&str; 18] = [
    "/bin",
    "/etc/alternatives",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/usr",
];
/// Devices that programs may write to in a sandbox.
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// The files of a sandbox.
#[derive(Debug)]
pub(super) struct Confinement {
    pub(super) read: Vec<Arc<Pinned>>,
    pub(super) write: Vec<Arc<Pinned>>,
    /// The working directory; that of this process by default.
    cwd: Option<Pinned>,
    /// The folder for temporary files, if there is one.
    pub(super) temporary: Option<Temporary>,
}

impl Confinement {
    /// Opens the files.
    ///
    /// # Errors
    ///
    /// [`crate::Error::InvalidProgramOption`] if one does not exist, or if its path leads through a link that a program may have made.
    pub(super) fn open(programs: &Programs, sandbox: &Sandbox) -> Result<Self> {
        let cwd = programs.cwd.as_deref().map(|folder| {
            let opened = Pinned::open(folder).map_err(|error| missing("cwd", folder, &error))?;
            if opened.is_folder() { Ok(opened) } else { Err(not_a_folder(folder)) }
        });
        let (mut read, mut write) = listed(sandbox)?;
        read.extend(existing(&SYSTEM)?);
        write.extend(existing(&DEVICES)?);
        Ok(Self { read, write, cwd: cwd.transpose()?, temporary: Temporary::open(&std::env::temp_dir()).ok() })
    }

    /// The working directory.
    ///
    /// # Errors
    ///
    /// If it was removed. A folder that has its name by now is another one.
    pub(super) fn cwd(&self) -> io::Result<Option<&Pinned>> {
        match &self.cwd {
            Some(folder) if folder.is_removed() => {
                Err(io::Error::new(io::ErrorKind::NotFound, "its working directory was removed"))
            }
            cwd => Ok(cwd.as_ref()),
        }
    }
}

/// Files and folders that stay the same whatever takes their place.
type PinnedPaths = Vec<Arc<Pinned>>;

/// The files that may be read, and those that may be written.
fn listed(Sandbox { read, write, .. }: &Sandbox) -> Result<(PinnedPaths, PinnedPaths)> {
    let open = |path: &PathBuf| Resolved::open(path).map_err(|error| missing("sandbox", path, &error));
    let open = |paths: &[PathBuf]| paths.iter().map(open).collect::<Result<Vec<_>>>();
    let (readable, writable) = (open(read)?, open(write)?);
    refuse_writable(&readable, &writable).map_err(|(number, error)| {
        let path = read.iter().chain(write).nth(number).map_or(Path::new(""), PathBuf::as_path);
        missing("sandbox", path, &error)
    })?;
    let shared = |paths: Vec<Resolved>| paths.into_iter().map(|path| path.file.shared()).collect();
    Ok((shared(readable), shared(writable)))
}

fn existing(paths: &[&str]) -> Result<PinnedPaths> {
    let open = |path: &&str| match Pinned::open(Path::new(path)).map(Pinned::shared) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => None,
        opened => Some(opened.map_err(|error| missing("sandbox", Path::new(path), &error))),
    };
    paths.iter().filter_map(open).collect()
}
