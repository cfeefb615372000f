//! Reading files that may be anything, within a limit.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::fs::{Fs, steadily};
use crate::{Error, Result};

const PIECE: usize = 64 * 1024;

/// Reads a whole file.
///
/// # Errors
///
/// [`Error::MissingFile`], [`Error::FileTooLarge`] if it is longer than the limit, and [`Error::FileAccess`] if it is
/// not a file or the system refuses.
pub fn whole<F: Fs>(fs: &F, path: &Path, limit: usize) -> Result<Vec<u8>> {
    let bytes = head(fs, path, limit.saturating_add(1))?;
    if bytes.len() > limit {
        return Err(Error::FileTooLarge { path: path.display().to_string(), limit });
    }
    Ok(bytes)
}

/// Reads the beginning of a file, as many bytes as the limit allows.
///
/// # Errors
///
/// [`Error::MissingFile`], and [`Error::FileAccess`] if it is not a file or the system refuses.
pub fn head<F: Fs>(fs: &F, path: &Path, limit: usize) -> Result<Vec<u8>> {
    read(fs, path, limit).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::MissingFile { path: path.display().to_string() },
        _ => Error::access("read", path, &error),
    })
}

fn read<F: Fs>(fs: &F, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = steadily(|| fs.open(path))?;
    if !steadily(|| fs.facts(&file))?.is_regular {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE.min(limit)];
    while bytes.len() < limit {
        let wanted = piece.len().min(limit - bytes.len());
        match steadily(|| fs.read(&mut file, &mut piece[..wanted]))? {
            0 => break,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
    Ok(bytes)
}
