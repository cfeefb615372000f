//! Replaces the content of a file in one step.
//!
//! The new content is written to a temporary file, which then takes the name of the old one. A writer locks its temporary file,
//! and the operating system releases the lock when the writer dies. So the next writer can distinguish a file that is
//! being written from one that was left behind, and removes the latter.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::file::sha256;
use super::fs::{FileAccess, Fs, not_regular, parent_of, retry_interrupted, write_all};
use crate::bytes::{hex, random_bytes};
use crate::{Error, Result};

/// The number of attempts of a writer whose temporary file is removed.
const REPLACE_TRIES: usize = 10;

/// Replaces the content of a file, so that readers, also after a crash, find the old content or the new one.
///
/// Symbolic links are followed. An existing file keeps its permissions; a new one is accessible to its owner only.
///
/// # Errors
///
/// [`Error::FileAccess`] if the path is not that of a regular file, or the system refuses.
pub fn replace<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: &io::Error| Error::access("write", path, error);
    let target = retry_interrupted(|| fs.resolve(path)).map_err(|error| failed(&error))?;
    let name = target.file_name().ok_or_else(|| failed(&io::Error::other("it does not end in a file name")))?;
    let folder = parent_of(&target);
    let old = retry_interrupted(|| fs.path_info(&target)).map_err(|error| failed(&error))?;
    if old.is_some_and(|old| !old.is_regular) {
        return Err(failed(&not_regular()));
    }
    sweep(fs, folder, name);
    let mut tries = REPLACE_TRIES;
    loop {
        tries -= 1;
        let (new, mut file) = create_temporary(fs, folder, name).map_err(|error| failed(&error))?;
        let filled = fill(fs, &mut file, bytes, old.map(|old| old.access));
        match filled.and_then(|()| retry_interrupted(|| fs.rename(&new, &target))) {
            Ok(()) => break,
            // Another writer removed the file as left behind, which is possible where files cannot be locked.
            Err(error) if error.kind() == ErrorKind::NotFound && tries > 0 => {}
            Err(error) => {
                let _ = retry_interrupted(|| fs.remove(&new));
                return Err(failed(&error));
            }
        }
    }
    retry_interrupted(|| fs.sync_folder(folder)).map_err(|error| Error::access("sync", path, &error))
}

fn fill<F: Fs>(fs: &F, file: &mut F::File, bytes: &[u8], access: Option<FileAccess>) -> io::Result<()> {
    if let Some(access) = access {
        retry_interrupted(|| fs.set_access(file, access))?;
    }
    write_all(fs, file, bytes)?;
    retry_interrupted(|| fs.sync(file))
}

const SUFFIX: &str = ".tmp";

/// The number of names that are tried for a temporary file.
const NAME_TRIES: usize = 100;

/// The prefix of all temporary files for a target; it has the same length for every target.
fn prefix(target: &OsStr) -> String {
    format!(".toolcrib-{}-", &sha256(target.as_encoded_bytes())[..16])
}

fn random_name(target: &OsStr) -> io::Result<String> {
    Ok(format!("{}{}{SUFFIX}", prefix(target), hex(&random_bytes::<8>().map_err(io::Error::other)?)))
}

/// Creates a temporary file and locks it.
fn create_temporary<F: Fs>(fs: &F, folder: &Path, target: &OsStr) -> io::Result<(PathBuf, F::File)> {
    for _ in 0..NAME_TRIES {
        let path = folder.join(random_name(target)?);
        let file = match retry_interrupted(|| fs.create(&path)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        match is_ours(fs, &file) {
            Ok(true) => return Ok((path, file)),
            Ok(false) => {}
            Err(error) => {
                let _ = fs.remove(&path);
                return Err(error);
            }
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

/// True if the file still exists after the moment in which it was not locked yet.
fn is_ours<F: Fs>(fs: &F, file: &F::File) -> io::Result<bool> {
    match retry_interrupted(|| fs.claim(file)) {
        Ok(true) => Ok(retry_interrupted(|| fs.file_info(file))?.names > 0),
        Ok(false) => Ok(false),
        // Where files cannot be locked at all, no writer removes them either.
        Err(_) => Ok(true),
    }
}

/// Removes the temporary files that writers of the same target left behind when they died. Errors are ignored.
fn sweep<F: Fs>(fs: &F, folder: &Path, target: &OsStr) {
    let prefix = prefix(target);
    let Ok(names) = retry_interrupted(|| fs.list(folder)) else { return };
    let is_temporary = |name: &&OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
    };
    for name in names.iter().filter(is_temporary) {
        let path = folder.join(name);
        let Ok(file) = retry_interrupted(|| fs.open(&path)) else { continue };
        if retry_interrupted(|| fs.claim(&file)).unwrap_or(false) {
            let _ = retry_interrupted(|| fs.remove(&path));
        }
    }
}
