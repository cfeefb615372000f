//! Replacing the content of a file in one step.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::fs::{Access, Fs, steadily};
use super::temporary;
use crate::{Error, Result};

/// How often a writer starts anew whose temporary file was taken away.
const TRIES: usize = 10;

/// Puts bytes in the place of what a file holds, so that readers and crashes find the old content or the new one.
///
/// A symbolic link is written through. A file that is there keeps its permissions; a new one is for its owner only.
///
/// # Errors
///
/// [`Error::FileAccess`] if the path leads to something that is not a file, or the system refuses.
pub fn replace<F: Fs>(fs: &F, path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: &io::Error| Error::access("write", path, error);
    let target = steadily(|| fs.resolve(path)).map_err(|error| failed(&error))?;
    let name = target.file_name().ok_or_else(|| failed(&io::Error::other("it does not end in a name")))?;
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let old = steadily(|| fs.look(&target)).map_err(|error| failed(&error))?;
    if old.is_some_and(|old| !old.is_regular) {
        return Err(failed(&io::Error::other("it is not a regular file")));
    }
    temporary::sweep(fs, folder, name);
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let (new, mut file) = temporary::create(fs, folder, name).map_err(|error| failed(&error))?;
        let filled = fill(fs, &mut file, bytes, old.map(|old| old.access));
        match filled.and_then(|()| steadily(|| fs.rename(&new, &target))) {
            Ok(()) => break,
            // Somebody took the file for one that was left behind, which is possible where files cannot be claimed.
            Err(error) if error.kind() == ErrorKind::NotFound && tries > 0 => {}
            Err(error) => {
                let _ = steadily(|| fs.remove(&new));
                return Err(failed(&error));
            }
        }
    }
    steadily(|| fs.sync_folder(folder)).map_err(|error| Error::access("make sure of", path, &error))
}

fn fill<F: Fs>(fs: &F, file: &mut F::File, bytes: &[u8], access: Option<Access>) -> io::Result<()> {
    if let Some(access) = access {
        steadily(|| fs.set_access(file, access))?;
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        match steadily(|| fs.write(file, rest))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => rest = &rest[written..],
        }
    }
    steadily(|| fs.sync(file))
}
