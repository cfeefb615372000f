//! Data that survives a restart: JSON values in files that are always whole, and a database that several processes share.
//!
//! [`save`] and [`load`] keep a JSON value in a file, under a format's name and version, with a checksum. A save replaces the
//! file in one step: a reader, also after a crash, finds the previous content or the saved one, never a mixture.
//! Of several writers at once the last wins, whole. Read `file` (save, load, the file format, bounded reads), `atomic`
//! (replacing a file, which the file tools do as well) and `fs` (the file system as a trait, which a test can make fail).
//!
//! [`Store`] is a database: SQLite in a file, or PostgreSQL for several machines. A value has a version, and a writer that has
//! not seen the current one is refused. Read `operation` (what can be done, in SQL that both databases understand) with `document` and `kept`, `database`
//! (the trait of a database, and its URL), `sqlite` with `locks.c`, `postgres` with `tls`, `worker` (the thread that owns the
//! connection and commits in groups) with `queue`, `handle` ([`Store`]) and `fork` (connections never cross a fork).

mod atomic;
mod database;
mod document;
mod file;
mod fork;
mod fs;
mod handle;
mod kept;
mod operation;
mod postgres;
mod queue;
mod sqlite;
mod tls;
mod worker;

pub use atomic::replace;
pub(crate) use atomic::{FileLock, Folder, TEMPORARY, Temporary};
pub use database::{Access, Cell, Database, Failure, Recovery};
pub use document::{AddVersion, Latest, RemoveDocument, Summaries, Summary, Version, Versions};
pub use file::{FileFormat, Saved, head, load, save, whole};
pub use fork::{prepare_fork, renew_after_fork, resume_after_fork};
pub use fs::{Disk, FileAccess, FileInfo, Fs};
pub(crate) use fs::{not_regular, parent_of, retry_interrupted, write_all};
pub use handle::{SavedVersions, Store, TIMEOUT, Write};
pub use kept::{KeepDocument, KeptLimits};
pub use operation::{Append, Claim, Delete, Entries, Entry, Get, Keys, Operation, Put, Record, Records};
pub(crate) use operation::{Forget, PutNext};
