//! SQLite: a store in one file, or in memory.
//!
//! On Linux `locks.c` changes the locks of this copy of SQLite, so that another copy in the same process is as harmless as
//! another process. Elsewhere, and where files are moved or removed by hand, a store that has lost its file refuses.

use std::cell;
use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::database::{Access, Cell, Database, Failure, Recovery};
use super::fs::{Disk, Fs, retry_interrupted};
use crate::{Error, Result};

/// The name of the format in messages.
const FORMAT: &str = "SQLite";

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The first tries have less time between them, so that a process that writes all the time does not keep the others away.
const QUICK_TRIES: i32 = 200;

/// The time between two of the first tries.
const QUICK_PAUSE: Duration = Duration::from_micros(500);

/// The number of prepared statements that are kept.
const STATEMENTS: usize = 64;

/// The error of a store that has lost one of its files.
const LOST: &str =
    "its file or one of those beside it was moved, removed or replaced while it was open: open the store again";

/// The suffixes of the journal of a database, and of the index of the journal, which holds the locks as well.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// A connection to a SQLite database.
pub(super) struct Sqlite {
    connection: Connection,
    /// The files that it has open; none in memory.
    files: Vec<OpenFile>,
}

/// A file by its path, and what was there when it was opened.
struct OpenFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl OpenFile {
    fn new(path: PathBuf) -> Self {
        let identity = identity(&path);
        Self { path, identity }
    }

    fn is_there(&self) -> bool {
        identity(&self.path) == self.identity
    }
}

/// The device and inode of a file; none if there is none.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

impl Sqlite {
    /// Opens a database in memory.
    pub(super) fn in_memory() -> Result<Self> {
        let refused = |error: rusqlite::Error| failed("sqlite::memory:", &error);
        Ok(Self { connection: Connection::open_in_memory().map_err(refused)?, files: Vec::new() })
    }

    /// Opens a file, which is created, readable by its owner only, if it does not exist.
    ///
    /// A lock of another process is waited for as long as `timeout`.
    pub(super) fn open(path: &Path, timeout: Duration) -> Result<Self> {
        TIMEOUT.set(timeout);
        match retry_interrupted(|| create(path)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::access("open", path, &error));
            }
            _ => {}
        }
        let shown = path.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connected = Connection::open_with_flags(path, flags).and_then(|mut connection| {
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            connection.busy_handler(Some(wait))?;
            // Readers and the writer do not block each other, and a commit is one synced write.
            retry_busy(|| connection.pragma_update(None, "journal_mode", "wal"))?;
            connection.pragma_update(None, "synchronous", "full")?;
            // The journal and its index are there from the first transaction on, for as long as the connection is.
            retry_busy(|| connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())))?;
            // They lie beside the file that a link leads to.
            let linked = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let beside = BESIDE.map(|suffix| {
                let mut name = linked.clone().into_os_string();
                name.push(suffix);
                name.into()
            });
            let files = std::iter::once(path.to_owned()).chain(beside).map(OpenFile::new).collect();
            Ok(Self { connection, files })
        });
        connected.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Error::ForeignFile { path: shown, format: FORMAT },
            Some(ErrorCode::DatabaseCorrupt) => Error::DamagedFile { path: shown, reason: error.to_string() },
            _ => failed(&format!("sqlite:{shown}"), &error),
        })
    }

    /// Fails if others that open the database do not get the same files, so that neither sees the locks and writes of the other.
    fn check_files(&self) -> Result<(), Failure> {
        if self.files.iter().all(OpenFile::is_there) {
            return Ok(());
        }
        Err(Failure { reason: LOST.to_owned(), recovery: Recovery::GiveUp })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.check_files().is_err() {
            // Its journal belongs to no file that others see, or it does not know what others have added to it.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// Creates a file, readable by its owner only, unless there is one.
///
/// No descriptor of it is ever opened: to close one would drop the locks that another copy of SQLite in this process may have.
#[cfg(target_os = "linux")]
fn create(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    match mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
        // A file system without this call.
        Err(rustix::io::Errno::PERM | rustix::io::Errno::OPNOTSUPP) => Disk.create(path).map(drop),
        made => Ok(made?),
    }
}

#[cfg(not(target_os = "linux"))]
fn create(path: &Path) -> io::Result<()> {
    Disk.create(path).map(drop)
}

fn failed(store: &str, error: &rusqlite::Error) -> Error {
    Error::StoreFailed { store: store.to_owned(), reason: error.to_string() }
}

thread_local! {
    /// The time for which the thread of a store waits for a lock.
    static TIMEOUT: cell::Cell<Duration> = const { cell::Cell::new(Duration::ZERO) };
    /// The time of the first try.
    static SINCE: cell::Cell<Option<Instant>> = const { cell::Cell::new(None) };
}

/// Waits for another process before a lock is tried again.
fn wait(tries: i32) -> bool {
    if tries == 0 {
        SINCE.set(Some(Instant::now()));
    }
    thread::sleep(if tries < QUICK_TRIES { QUICK_PAUSE } else { PAUSE });
    SINCE.get().is_some_and(|since| since.elapsed() < TIMEOUT.get())
}

/// Repeats what fails while another process changes the journal, for which SQLite does not wait by itself.
fn retry_busy<T>(mut action: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let since = Instant::now();
    loop {
        match action() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && since.elapsed() < TIMEOUT.get() =>
            {
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let recovery = match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ConstraintViolation
                | ErrorCode::DiskFull
                | ErrorCode::TooBig,
            ) => Recovery::GiveUp,
            _ => Recovery::Reconnect,
        };
        Self { reason: error.to_string(), recovery }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
            ValueRef::Null | ValueRef::Real(_) => Self::Integer(0),
        }
    }
}

impl Database for Sqlite {
    fn bytes_type(&self) -> &'static str {
        "BLOB"
    }

    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        let sql = if access == Access::Read { "BEGIN" } else { "BEGIN IMMEDIATE" };
        let begun = self.connection.prepare_cached(sql).and_then(|mut begin| begin.execute(()));
        // Before anything is written over what others have written, and before an error that this causes opens other files.
        self.check_files().inspect_err(|_| {
            let _ = self.roll_back();
        })?;
        Ok(begun.map(drop)?)
    }

    fn run(&mut self, sql: &'static str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(parameters))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((0..columns).map(|column| Ok(row.get_ref(column)?.into())).collect::<rusqlite::Result<_>>()?);
        }
        Ok(found)
    }

    fn create(&mut self, sql: &str) -> Result<(), Failure> {
        Ok(self.connection.execute_batch(sql)?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute(()));
        self.check_files()?;
        Ok(committed.map(drop)?)
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        // A failed statement may have rolled back by itself.
        if self.connection.is_autocommit() { Ok(()) } else { Ok(self.connection.execute_batch("ROLLBACK")?) }
    }
}
