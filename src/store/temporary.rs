//! The file that a new content is written to before it takes the place of the old one.
//!
//! A writer claims its temporary file, and the system gives the claim up when the writer dies. So the next writer can
//! tell a file that is being written from one that was left behind, and takes the latter away.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::checksum::sha256;
use super::fs::{Fs, steadily};

const SUFFIX: &str = ".tmp";

/// How often another name is tried.
const TRIES: usize = 100;

/// How the names of all temporary files for a target begin; it has the same length for every target.
fn prefix(target: &OsStr) -> String {
    format!(".toolcrib-{}-", &sha256(target.as_encoded_bytes())[..16])
}

fn unused_name(target: &OsStr) -> OsString {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let part = RandomState::new().hash_one((std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    format!("{}{part:016x}{SUFFIX}", prefix(target)).into()
}

/// Makes a temporary file and claims it.
pub(super) fn create<F: Fs>(fs: &F, folder: &Path, target: &OsStr) -> io::Result<(PathBuf, F::File)> {
    for _ in 0..TRIES {
        let path = folder.join(unused_name(target));
        let file = match steadily(|| fs.create(&path)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        match ours(fs, &file) {
            Ok(true) => return Ok((path, file)),
            Ok(false) => {}
            Err(error) => {
                let _ = fs.remove(&path);
                return Err(error);
            }
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "no free name was found for a temporary file"))
}

/// Whether the file is still there after the moment in which nobody had claimed it.
fn ours<F: Fs>(fs: &F, file: &F::File) -> io::Result<bool> {
    match steadily(|| fs.claim(file)) {
        Ok(true) => Ok(steadily(|| fs.facts(file))?.names > 0),
        Ok(false) => Ok(false),
        // Where files cannot be claimed at all, nobody takes them away either.
        Err(_) => Ok(true),
    }
}

/// Takes away what writers of the same target left behind when they died. What cannot be taken away stays.
pub(super) fn sweep<F: Fs>(fs: &F, folder: &Path, target: &OsStr) {
    let prefix = prefix(target);
    let Ok(names) = steadily(|| fs.list(folder)) else { return };
    let is_temporary = |name: &&OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
    };
    for name in names.iter().filter(is_temporary) {
        let path = folder.join(name);
        let Ok(file) = steadily(|| fs.open(&path)) else { continue };
        if steadily(|| fs.claim(&file)).unwrap_or(false) {
            let _ = steadily(|| fs.remove(&path));
        }
    }
}
