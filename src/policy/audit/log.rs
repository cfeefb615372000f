//! A file of records, one line each, that is only ever added to.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Record, Sink};
use crate::store::{Disk, Fs, steadily};
use crate::{Error, Result};

/// How often one looks at part of a line before it is taken for what is left of one: while another process writes a line,
/// the system may show its beginning.
const LOOKS: usize = 100;

/// When a record is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Before the next thing happens: it survives a loss of power.
    #[default]
    Synced,
    /// When the system gets to it: it survives the end of the process.
    Buffered,
}

/// A file of records, which several threads and processes may add to at once.
///
/// Each record goes to the end of the file in one step. Where a crash or a full disk left part of a line, the next record
/// begins a new one; so every line is a whole record, or what is left of one that nobody was told was noted, or, rarely, where
/// several processes write at once, empty.
#[derive(Debug)]
pub struct AuditLog<F: Fs = Disk> {
    fs: F,
    path: PathBuf,
    durability: Durability,
    file: Mutex<Appending<F::File>>,
}

#[derive(Debug)]
struct Appending<T> {
    file: T,
    /// The length of the file when its last line was surely whole.
    whole: Option<u64>,
}

impl AuditLog {
    /// Opens a file to add to; makes it, for its owner only, if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if it is no regular file, or the system refuses.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        Self::open_on(Disk, path, durability)
    }
}

impl<F: Fs> AuditLog<F> {
    /// [`open`](AuditLog::open) on any file system.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_on(fs: F, path: &Path, durability: Durability) -> Result<Self> {
        let file = Mutex::new(appending(&fs, path).map_err(|error| Error::access("open", path, &error))?);
        Ok(Self { fs, path: path.to_owned(), durability, file })
    }

    /// Opens the file of that path anew, after somebody gave the old one another name.
    ///
    /// # Errors
    ///
    /// As when it was opened; then records still go to the old one.
    pub fn reopen(&self) -> Result<()> {
        let new = appending(&self.fs, &self.path).map_err(|error| Error::access("open", &self.path, &error))?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Adds a record. Whatever happens, the records before it stay.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if the record may not be there, as when the disk is full.
    pub fn append(&self, record: &Record<'_>) -> Result<()> {
        let line = record.to_line();
        let mut appending = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let added = self.add(&mut appending, &line);
        if added.is_err() {
            appending.whole = None;
        }
        added.map_err(|error| Error::access("write", &self.path, &error))
    }

    fn add(&self, appending: &mut Appending<F::File>, line: &str) -> io::Result<()> {
        let mut facts = steadily(|| self.fs.facts(&appending.file))?;
        if facts.names == 0 {
            // Nobody would ever read what is added to a file that was removed.
            *appending = self::appending(&self.fs, &self.path)?;
            facts = steadily(|| self.fs.facts(&appending.file))?;
        }
        let is_whole = appending.whole == Some(facts.size) || self.ends_in_a_whole_line(&appending.file)?;
        let bytes = format!("{}{line}\n", if is_whole { "" } else { "\n" }).into_bytes();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match steadily(|| self.fs.write(&mut appending.file, rest))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
        appending.whole = Some(facts.size + bytes.len() as u64);
        match self.durability {
            Durability::Synced => steadily(|| self.fs.sync_data(&appending.file)),
            Durability::Buffered => Ok(()),
        }
    }

    fn ends_in_a_whole_line(&self, file: &F::File) -> io::Result<bool> {
        for _ in 0..LOOKS {
            if matches!(steadily(|| self.fs.last_byte(file))?, None | Some(b'\n')) {
                return Ok(true);
            }
            thread::yield_now();
        }
        Ok(false)
    }
}

fn appending<F: Fs>(fs: &F, path: &Path) -> io::Result<Appending<F::File>> {
    let file = steadily(|| fs.append(path))?;
    if !steadily(|| fs.facts(&file))?.is_regular {
        return Err(io::Error::other("it is not a regular file"));
    }
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    steadily(|| fs.sync_folder(folder))?;
    Ok(Appending { file, whole: None })
}

impl<F: Fs + Send + Sync> Sink for AuditLog<F>
where
    F::File: Send,
{
    fn record(&self, record: &Record<'_>) -> Result<()> {
        self.append(record)
    }
}
