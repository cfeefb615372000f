//! What survives a restart: files that are always whole, whatever happens while they are written.
//!
//! [`save`] and [`load`] keep a JSON value under a format's name and version, with a checksum. A save replaces the file
//! in one step: whoever reads it, also after a crash, finds what was there before or what was saved, never a mixture.
//! Of several writers at once the last wins, whole. All of it goes through [`Fs`], which a test can make fail.

mod atomic;
mod checksum;
mod disk;
mod envelope;
mod fs;
mod read;
mod temporary;

use std::path::Path;

use serde_json::Value;

pub use atomic::replace;
pub use checksum::sha256;
pub use disk::Disk;
pub use envelope::{Format, Saved};
pub(crate) use fs::steadily;
pub use fs::{Access, Facts, Fs};
pub use read::{head, whole};

use crate::Result;

/// Keeps a value in a file, in place of what the file held.
///
/// # Errors
///
/// [`Error::FileTooLarge`](crate::Error::FileTooLarge) if it could not be loaded again, and
/// [`Error::FileAccess`](crate::Error::FileAccess) if the system refuses; then the file is what it was, or, where only
/// the last step failed, what was saved.
pub fn save<F: Fs>(fs: &F, path: &Path, format: &Format, value: &Value) -> Result<()> {
    replace(fs, path, &format.seal(path, value)?)
}

/// Reads the value that a file keeps.
///
/// # Errors
///
/// One for each way in which the file can be no such file: missing, foreign, damaged, too large, or written by a newer
/// version.
pub fn load<F: Fs>(fs: &F, path: &Path, format: &Format) -> Result<Saved> {
    format.open(path, &whole(fs, path, format.limit)?)
}
