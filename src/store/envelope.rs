//! The form of a saved file: what it is, in which version, and a checksum that tells whether it is whole.

use std::path::Path;

use serde_json::{Map, Value};

use super::checksum::sha256;
use crate::{Error, Result};

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name, the first thing in the file.
    pub name: &'static str,
    /// The version that is written, and the newest that can be read. It grows with every entry that is added, so that
    /// nothing is lost on a program that does not know the entry.
    pub version: u64,
    /// The largest size in bytes.
    pub limit: usize,
}

/// What was in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The version that wrote it.
    pub version: u64,
    /// The value that was saved.
    pub value: Value,
}

impl Format {
    /// Writes a value as the content of a file.
    pub(super) fn seal(&self, path: &Path, value: &Value) -> Result<Vec<u8>> {
        let mut file = Map::new();
        file.insert("format".to_owned(), self.name.into());
        file.insert("version".to_owned(), self.version.into());
        file.insert("checksum".to_owned(), self.checksum(self.version, value).into());
        file.insert("state".to_owned(), value.clone());
        let bytes = format!("{:#}\n", Value::Object(file)).into_bytes();
        if bytes.len() > self.limit {
            return Err(Error::FileTooLarge { path: path.display().to_string(), limit: self.limit });
        }
        Ok(bytes)
    }

    /// Reads the content of a file.
    pub(super) fn open(&self, path: &Path, bytes: &[u8]) -> Result<Saved> {
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
        let version = version.ok_or_else(|| damaged("it has no version"))?;
        if version > self.version {
            return Err(Error::NewerFile { path: shown(), version, known: self.version });
        }
        let value = file.get_mut("state").map(Value::take).ok_or_else(|| damaged("it has no state"))?;
        if file.get("checksum").and_then(Value::as_str) != Some(&*self.checksum(version, &value)) {
            return Err(damaged("its checksum is not that of its state"));
        }
        Ok(Saved { version, value })
    }

    /// Whether text that cannot be read begins as a file of this format does.
    fn is_named_in(&self, bytes: &[u8]) -> bool {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(128)]);
        start.contains("\"format\"") && start.contains(&format!("\"{}\"", self.name))
    }

    /// Sums up the value without its layout, so that a file may be laid out anew.
    fn checksum(&self, version: u64, value: &Value) -> String {
        format!("sha256:{}", sha256(format!("{}\0{version}\0{value}", self.name).as_bytes()))
    }
}
