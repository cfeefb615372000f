//! The file with the code of a Python program, in a private folder. Both are known by descriptors, so that a program that may write to
//! the folder for temporary files cannot redirect their making, the right to read them, or their removal.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use super::pinned::Pinned;
use crate::bytes::{hex, random_bytes};

/// The folder for temporary files.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    folder: Pinned,
}

/// A file with code.
#[derive(Debug)]
pub(super) struct CodeFile {
    pub(super) path: PathBuf,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only a supervisor removes the file by it"))]
    pub(super) folder: OwnedFd,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only a sandbox needs it"))]
    pub(super) file: File,
}

impl Temporary {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, folder: Pinned::open(path)? })
    }

    /// Writes code to a file in a new folder that only this user has access to.
    pub(super) fn write(&self, code: &str) -> io::Result<CodeFile> {
        const FILE: &str = "code.py";
        let random = random_bytes::<16>().map_err(io::Error::other)?;
        let name = format!("toolcrib-{}", hex(&random));
        let parent = self.folder.get()?;
        mkdirat(parent, &name, Mode::RWXU)?;
        let write = || {
            let as_folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = openat(parent, &name, as_folder, Mode::empty())?;
            let as_new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&folder, FILE, as_new, Mode::RUSR | Mode::WUSR)?);
            file.write_all(code.as_bytes()).inspect_err(|_| {
                let _ = unlinkat(&folder, FILE, AtFlags::empty());
            })?;
            Ok(CodeFile { path: self.path.join(&name).join(FILE), folder, file })
        };
        write().inspect_err(|_| {
            let _ = unlinkat(parent, &name, AtFlags::REMOVEDIR);
        })
    }
}

impl CodeFile {
    /// The folder if it still exists. A supervisor has removed it unless the program has put files beside the code.
    pub(super) fn left_folder(&self) -> Option<PathBuf> {
        self.path.parent().filter(|folder| folder.exists()).map(Path::to_owned)
    }
}
