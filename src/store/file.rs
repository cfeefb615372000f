//! JSON files with a format, a version and a checksum, and bounded reads of files.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::atomic::replace;
use super::fs::{Fs, not_regular, retry_interrupted};
use crate::bytes::hex;
use crate::{Error, Result};

/// Saves a value in a file, replacing its content.
///
/// # Errors
///
/// [`Error::FileTooLarge`] if it could not be loaded again, and [`Error::FileAccess`] if the system refuses; then the file has
/// its old content, or, where only the last step failed, the new one.
pub fn save<F: Fs>(fs: &F, path: &Path, format: &FileFormat, value: &Value) -> Result<()> {
    replace(fs, path, &format.seal(path, value)?)
}

/// Loads the value that a file holds.
///
/// # Errors
///
/// One for each reason: a file that is missing, foreign, damaged, too large, or written by a newer version.
pub fn load<F: Fs>(fs: &F, path: &Path, format: &FileFormat) -> Result<Saved> {
    format.open(path, &whole(fs, path, format.limit)?)
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFormat {
    /// The name, the first entry of the file.
    pub name: &'static str,
    /// The version that is written, and the newest that can be read. It grows with every new entry, so that
    /// an older program does not lose the entry.
    pub version: u64,
    /// The largest size in bytes.
    pub limit: usize,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The version of the format.
    pub version: u64,
    /// The value that was saved.
    pub value: Value,
}

/// The content of a file, as it is written.
#[derive(Serialize)]
struct Sealed<'a> {
    format: &'static str,
    version: u64,
    checksum: String,
    state: &'a Value,
}

impl FileFormat {
    /// The content of a file with this value.
    pub(crate) fn seal(&self, path: &Path, value: &Value) -> Result<Vec<u8>> {
        let checksum = self.checksum(self.version, value);
        let sealed = Sealed { format: self.name, version: self.version, checksum, state: value };
        let mut bytes =
            serde_json::to_vec_pretty(&sealed).map_err(|error| Error::InvalidState { reason: error.to_string() })?;
        bytes.push(b'\n');
        if bytes.len() > self.limit {
            return Err(Error::FileTooLarge { path: path.display().to_string(), limit: self.limit });
        }
        Ok(bytes)
    }

    /// Parses the content of a file.
    pub(crate) fn open(&self, path: &Path, bytes: &[u8]) -> Result<Saved> {
        let shown = || path.display().to_string();
        let damaged = |reason: &str| Error::DamagedFile { path: shown(), reason: reason.to_owned() };
        let foreign = || Error::ForeignFile { path: shown(), format: self.name };
        if bytes.is_empty() {
            return Err(damaged("it is empty"));
        }
        let mut file: Value = match serde_json::from_slice(bytes) {
            Ok(file) => file,
            Err(error) if self.is_named_in(bytes) => return Err(damaged(&error.to_string())),
            Err(_) => return Err(foreign()),
        };
        if file.get("format").and_then(Value::as_str) != Some(self.name) {
            return Err(foreign());
        }
        let version = file.get("version").and_then(Value::as_u64).filter(|version| *version > 0);
        let version = version.ok_or_else(|| damaged("missing `version`"))?;
        if version > self.version {
            return Err(Error::NewerFile { path: shown(), version, known: self.version });
        }
        let value = file.get_mut("state").map(Value::take).ok_or_else(|| damaged("missing `state`"))?;
        if file.get("checksum").and_then(Value::as_str) != Some(&*self.checksum(version, &value)) {
            return Err(damaged("the checksum does not match the state"));
        }
        Ok(Saved { version, value })
    }

    /// True if invalid JSON begins like a file of this format.
    fn is_named_in(&self, bytes: &[u8]) -> bool {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(128)]);
        start.contains("\"format\"") && start.contains(&format!("\"{}\"", self.name))
    }

    /// The checksum of the value regardless of its layout, so that a file may be reformatted.
    fn checksum(&self, version: u64, value: &Value) -> String {
        format!("sha256:{}", sha256(format!("{}\0{version}\0{value}", self.name).as_bytes()))
    }
}

/// The size of a read, in bytes.
const CHUNK: usize = 64 * 1024;

/// Reads a whole file.
///
/// # Errors
///
/// [`Error::MissingFile`], [`Error::FileTooLarge`] if it is longer than the limit, and [`Error::FileAccess`] if it is
/// not a regular file or the system refuses.
pub fn whole<F: Fs>(fs: &F, path: &Path, limit: usize) -> Result<Vec<u8>> {
    let bytes = head(fs, path, limit.saturating_add(1))?;
    if bytes.len() > limit {
        return Err(Error::FileTooLarge { path: path.display().to_string(), limit });
    }
    Ok(bytes)
}

/// Reads the beginning of a file, up to the limit.
///
/// # Errors
///
/// [`Error::MissingFile`], and [`Error::FileAccess`] if it is not a regular file or the system refuses.
pub fn head<F: Fs>(fs: &F, path: &Path, limit: usize) -> Result<Vec<u8>> {
    read(fs, path, limit).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::MissingFile { path: path.display().to_string() },
        _ => Error::access("read", path, &error),
    })
}

fn read<F: Fs>(fs: &F, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = retry_interrupted(|| fs.open(path))?;
    if !retry_interrupted(|| fs.file_info(&file))?.is_regular {
        return Err(not_regular());
    }
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK.min(limit)];
    while bytes.len() < limit {
        let wanted = chunk.len().min(limit - bytes.len());
        match retry_interrupted(|| fs.read(&mut file, &mut chunk[..wanted]))? {
            0 => break,
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(bytes)
}

/// The SHA-256 hash as 64 hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
