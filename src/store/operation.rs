//! The operations of a store, in SQL that both databases understand, and the tables that they use.
//!
//! An operation is plain data, so that a group of them can be repeated one by one if their common transaction fails. It writes
//! nothing if it refuses.

use jiff::Timestamp;

use super::database::{Access, Cell, Database, Failure};
use crate::{Error, Result};

/// The versions of the tables, each as the statements that make it out of the one before.
const MIGRATIONS: [&[&str]; 2] = [&[
    "CREATE TABLE toolcrib_entries (
        space TEXT NOT NULL, key TEXT NOT NULL, version BIGINT NOT NULL, value {bytes} NOT NULL, changed BIGINT NOT NULL,
        PRIMARY KEY (space, key)
    )",
    "CREATE TABLE toolcrib_versions (
        space TEXT NOT NULL, key TEXT NOT NULL, version BIGINT NOT NULL, about {bytes} NOT NULL, content {bytes} NOT NULL,
        changed BIGINT NOT NULL, PRIMARY KEY (space, key, version)
    )",
    "CREATE TABLE toolcrib_log (
        space TEXT NOT NULL, number BIGINT NOT NULL, record {bytes} NOT NULL, PRIMARY KEY (space, number)
    )",
    "CREATE TABLE toolcrib_claims (key TEXT NOT NULL PRIMARY KEY, expires BIGINT NOT NULL)",
    "CREATE INDEX toolcrib_claims_by_end ON toolcrib_claims (expires)",
], &[
    "CREATE INDEX toolcrib_versions_removed ON toolcrib_versions (space, key, version) WHERE length(about) = 0",
]];

/// The number of milliseconds for which a claim is kept after its end: more than the clocks of two machines differ.
const KEPT_AFTER_END: i64 = 24 * 3600 * 1000;

/// The longest name of a space or key, in bytes.
const MAX_NAME: usize = 1024;

/// The space of the entries that the store keeps for itself.
const OWN: &str = "toolcrib";

/// The space of the entries whose versions number the records of logs and the values of spaces.
const LOGS: &str = "toolcrib-logs";

/// The entry with the end of the last claim that was forgotten.
const HORIZON: &str = "claims-horizon";

/// Something that a store does in one transaction.
pub trait Operation: Send + 'static {
    /// The result.
    type Output: Send + 'static;

    /// The kind of the transaction.
    const ACCESS: Access;

    /// Does it. The inner error is a refusal, after which the transaction goes on.
    ///
    /// # Errors
    ///
    /// The failure of the database, after which the transaction is repeated or given up.
    fn perform(&self, database: &mut dyn Database) -> Result<Result<Self::Output>, Failure>;
}

/// Creates the tables, or brings them to the newest version.
pub(super) fn migrate(database: &mut dyn Database, store: &str) -> Result<Result<()>, Failure> {
    database.create("CREATE TABLE IF NOT EXISTS toolcrib_schema (version BIGINT NOT NULL)")?;
    let version = version(database)?;
    let known = MIGRATIONS.len();
    let Some(steps) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..)) else {
        let (path, version) = (store.to_owned(), version.unsigned_abs());
        return Ok(Err(Error::NewerFile { path, version, known: known as u64 }));
    };
    if steps.is_empty() {
        return Ok(Ok(()));
    }
    let bytes = database.bytes_type();
    for statement in steps.iter().flat_map(|statements| statements.iter()) {
        database.create(&statement.replace("{bytes}", bytes))?;
    }
    database.create(&format!("DELETE FROM toolcrib_schema; INSERT INTO toolcrib_schema VALUES ({known})"))?;
    Ok(Ok(()))
}

fn version(database: &mut dyn Database) -> Result<i64, Failure> {
    let rows = database.run("SELECT version FROM toolcrib_schema", &[])?;
    Ok(rows.into_iter().flatten().next().map_or(0, Cell::integer))
}

/// True if the tables have the newest version. This only reads, so that it does not wait until another process has written.
pub(super) fn is_migrated(database: &mut dyn Database) -> bool {
    let Ok(()) = database.begin(Access::Read) else { return false };
    let is_newest = version(database).is_ok_and(|version| usize::try_from(version) == Ok(MIGRATIONS.len()));
    database.roll_back().is_ok() && is_newest
}

/// Refuses names that a database cannot keep.
pub(super) fn check_names(space: &str, key: &str) -> Result<()> {
    for (what, name) in [("space", space), ("key", key)] {
        let reason = match name {
            "" => "it is empty",
            _ if name.contains('\0') => "it contains a null character",
            _ if name.len() > MAX_NAME => "it is longer than 1024 bytes",
            _ => continue,
        };
        return Err(Error::InvalidStoreKey { what, key: name.chars().take(80).collect(), reason });
    }
    Ok(())
}

pub(super) fn now() -> Cell {
    Timestamp::now().as_millisecond().into()
}

pub(super) fn time(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(millisecond).unwrap_or_default()
}

pub(super) fn number(cell: Cell) -> u64 {
    cell.integer().unsigned_abs()
}

pub(super) fn cell(number: u64) -> Cell {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// The cells of a row, one after the other.
pub(super) fn next(row: &mut impl Iterator<Item = Cell>) -> Cell {
    row.next().unwrap_or(Cell::Integer(0))
}

/// A value with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Vec<u8>,
    /// The number of times that it was written.
    pub version: u64,
}

/// Reads a value.
#[derive(Debug, Clone)]
pub struct Get {
    /// The space, which separates the keys of different uses.
    pub space: String,
    /// The key.
    pub key: String,
}

impl Operation for Get {
    type Output = Option<Entry>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Option<Entry>>, Failure> {
        if let Err(error) = check_names(&self.space, &self.key) {
            return Ok(Err(error));
        }
        let rows = database.run(
            "SELECT version, value FROM toolcrib_entries WHERE space = $1 AND key = $2 AND length(value) > 0",
            &[self.space.as_str().into(), self.key.as_str().into()],
        )?;
        Ok(Ok(rows.into_iter().next().map(|row| {
            let mut row = row.into_iter();
            let version = number(next(&mut row));
            Entry { version, value: next(&mut row).bytes() }
        })))
    }
}

/// Writes a value, if its version is the expected one. The result is the new version.
#[derive(Debug, Clone)]
pub struct Put {
    /// The space.
    pub space: String,
    /// The key.
    pub key: String,
    /// The value, which must not be empty.
    pub value: Vec<u8>,
    /// The version that the writer has seen: zero if there was no value, none if any version may be replaced.
    pub expected: Option<u64>,
}

impl Operation for Put {
    type Output = u64;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<u64>, Failure> {
        if let Err(error) = check_names(&self.space, &self.key) {
            return Ok(Err(error));
        }
        let (space, key) = (Cell::from(self.space.as_str()), Cell::from(self.key.as_str()));
        let value = Cell::from(self.value.as_slice());
        let written = match self.expected {
            None => database.run(
                "INSERT INTO toolcrib_entries (space, key, version, value, changed) VALUES ($1, $2, 1, $3, $4)
                 ON CONFLICT (space, key) DO UPDATE SET
                 version = toolcrib_entries.version + 1, value = excluded.value, changed = excluded.changed RETURNING version",
                &[space, key, value, now()],
            )?,
            // A removed value leaves its version behind, so that a writer from before cannot take the new value for the old.
            Some(0) => database.run(
                "INSERT INTO toolcrib_entries (space, key, version, value, changed) VALUES ($1, $2, 1, $3, $4)
                 ON CONFLICT (space, key) DO UPDATE SET
                 version = toolcrib_entries.version + 1, value = excluded.value, changed = excluded.changed
                 WHERE length(toolcrib_entries.value) = 0 RETURNING version",
                &[space, key, value, now()],
            )?,
            Some(expected) => database.run(
                "UPDATE toolcrib_entries SET version = version + 1, value = $1, changed = $2
                 WHERE space = $3 AND key = $4 AND version = $5 AND length(value) > 0 RETURNING version",
                &[value, now(), space, key, cell(expected)],
            )?,
        };
        match written.into_iter().flatten().next() {
            Some(version) => Ok(Ok(number(version))),
            None => conflict(database, &self.space, &self.key, self.expected),
        }
    }
}

/// The refusal of a writer that has not seen the current version.
fn conflict<T>(
    database: &mut dyn Database,
    space: &str,
    key: &str,
    expected: Option<u64>,
) -> Result<Result<T>, Failure> {
    let current = Get { space: space.to_owned(), key: key.to_owned() }.perform(database)?;
    let version = current.ok().flatten().map_or(0, |entry| entry.version);
    Ok(Err(Error::VersionConflict { key: key.to_owned(), expected: expected.unwrap_or_default(), version }))
}

/// Removes a value, if its version is the expected one. The result is false if there was none and none was expected.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The space.
    pub space: String,
    /// The key.
    pub key: String,
    /// The version that the caller has seen; none if any may be removed.
    pub expected: Option<u64>,
}

impl Operation for Delete {
    type Output = bool;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<bool>, Failure> {
        if let Err(error) = check_names(&self.space, &self.key) {
            return Ok(Err(error));
        }
        let expected = self.expected.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        let removed = database.run(
            "UPDATE toolcrib_entries SET version = version + 1, value = $1, changed = $2
             WHERE space = $3 AND key = $4 AND length(value) > 0 AND (version = $5 OR $5 < 0) RETURNING version",
            &[(&[][..]).into(), now(), self.space.as_str().into(), self.key.as_str().into(), expected.into()],
        )?;
        match (removed.is_empty(), self.expected) {
            (false, _) => Ok(Ok(true)),
            (true, None) => Ok(Ok(false)),
            (true, expected) => conflict(database, &self.space, &self.key, expected),
        }
    }
}

/// Lists the keys of a space, sorted.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The space.
    pub space: String,
}

impl Operation for Keys {
    type Output = Vec<String>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<String>>, Failure> {
        let rows = database.run(
            "SELECT key FROM toolcrib_entries WHERE space = $1 AND length(value) > 0",
            &[self.space.as_str().into()],
        )?;
        let mut keys: Vec<String> = rows.into_iter().flatten().map(Cell::text).collect();
        keys.sort_unstable();
        Ok(Ok(keys))
    }
}

/// Reads all values of a space, sorted by their keys.
#[derive(Debug, Clone)]
pub struct Entries {
    /// The space.
    pub space: String,
}

impl Operation for Entries {
    type Output = Vec<(String, Entry)>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<(String, Entry)>>, Failure> {
        let rows = database.run(
            "SELECT key, version, value FROM toolcrib_entries WHERE space = $1 AND length(value) > 0",
            &[self.space.as_str().into()],
        )?;
        let entry = |row: Vec<Cell>| {
            let mut row = row.into_iter();
            let (key, version) = (next(&mut row).text(), number(next(&mut row)));
            (key, Entry { version, value: next(&mut row).bytes() })
        };
        let mut entries: Vec<(String, Entry)> = rows.into_iter().map(entry).collect();
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Ok(entries))
    }
}

/// Removes a value together with its version: for keys that are never used again.
#[derive(Debug, Clone)]
pub(crate) struct Forget {
    pub(crate) space: &'static str,
    pub(crate) key: String,
}

impl Forget {
    pub(crate) fn perform(&self, database: &mut dyn Database) -> Result<(), Failure> {
        let names = [self.space.into(), self.key.as_str().into()];
        database.run("DELETE FROM toolcrib_entries WHERE space = $1 AND key = $2 RETURNING version", &names).map(drop)
    }
}

/// Writes a value under a new key, which is never used again. Its version is higher than those of all that were written before
/// it to the same space.
#[derive(Debug, Clone)]
pub(crate) struct PutNext {
    pub(crate) space: &'static str,
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
}

impl Operation for PutNext {
    type Output = u64;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<u64>, Failure> {
        let number = match next_number(database, self.space)? {
            Ok(number) => number,
            Err(refused) => return Ok(Err(refused)),
        };
        database.run(
            // A commit whose answer was lost is tried again.
            "INSERT INTO toolcrib_entries (space, key, version, value, changed) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (space, key) DO UPDATE SET version = excluded.version RETURNING version",
            &[self.space.into(), self.key.as_str().into(), cell(number), self.value.as_slice().into(), now()],
        )?;
        Ok(Ok(number))
    }
}

/// The next number of a log or space.
pub(super) fn next_number(database: &mut dyn Database, space: &str) -> Result<Result<u64>, Failure> {
    // The version of an entry counts. It stays locked until the commit, so the numbers become visible in their order, and a
    // reader that continues after the last one misses none.
    Put { space: LOGS.to_owned(), key: space.to_owned(), value: b"log".to_vec(), expected: None }.perform(database)
}

/// Appends a record to a log. The result is its number, which is higher than those before.
#[derive(Debug, Clone)]
pub struct Append {
    /// The log.
    pub space: String,
    /// The record.
    pub record: Vec<u8>,
}

impl Operation for Append {
    type Output = u64;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<u64>, Failure> {
        let number = match next_number(database, &self.space)? {
            Ok(number) => number,
            Err(refused) => return Ok(Err(refused)),
        };
        insert_record(database, &self.space, number, &self.record)?;
        Ok(Ok(number))
    }
}

/// Inserts a record of a log under the next number.
pub(super) fn insert_record(
    database: &mut dyn Database,
    space: &str,
    number: u64,
    record: &[u8],
) -> Result<(), Failure> {
    let sql = "INSERT INTO toolcrib_log (space, number, record) VALUES ($1, $2, $3) RETURNING number";
    database.run(sql, &[space.into(), cell(number), record.into()]).map(drop)
}

/// A record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub number: u64,
    /// Its content.
    pub record: Vec<u8>,
}

/// Reads records of a log, oldest first.
#[derive(Debug, Clone)]
pub struct Records {
    /// The log.
    pub space: String,
    /// The number after which to begin.
    pub after: u64,
    /// The most records.
    pub limit: u64,
}

impl Operation for Records {
    type Output = Vec<Record>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<Record>>, Failure> {
        let rows = database.run(
            "SELECT number, record FROM toolcrib_log WHERE space = $1 AND number > $2 ORDER BY number LIMIT $3",
            &[self.space.as_str().into(), cell(self.after), cell(self.limit)],
        )?;
        let record = |row: Vec<Cell>| {
            let mut row = row.into_iter();
            let number = number(next(&mut row));
            Record { number, record: next(&mut row).bytes() }
        };
        Ok(Ok(rows.into_iter().map(record).collect()))
    }
}

/// Claims a key: true for the first claim by any process, false for all others.
///
/// It is forgotten a day after its end. The end of the last one that was forgotten is kept: what ends no later is refused, even if the
/// clock is set back.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The key.
    pub key: String,
    /// The end, in milliseconds since 1970.
    pub expires: i64,
    /// The current time, in the same form.
    pub now: i64,
    /// A space whose entry of the same key is removed by the first claim.
    pub releases: Option<&'static str>,
}

impl Operation for Claim {
    type Output = bool;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<bool>, Failure> {
        let mut horizon = || -> Result<i64, Failure> {
            let entry = Get { space: OWN.to_owned(), key: HORIZON.to_owned() }.perform(database)?.ok().flatten();
            let text = entry.and_then(|entry| String::from_utf8(entry.value).ok());
            Ok(text.and_then(|text| text.parse().ok()).unwrap_or(i64::MIN))
        };
        let horizon = horizon()?;
        if self.expires <= horizon {
            return Ok(Ok(false));
        }
        let claimed = database.run(
            "INSERT INTO toolcrib_claims (key, expires) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING RETURNING key",
            &[self.key.as_str().into(), self.expires.into()],
        )?;
        let over = self.now.saturating_sub(KEPT_AFTER_END);
        let expired =
            database.run("DELETE FROM toolcrib_claims WHERE expires <= $1 RETURNING expires", &[over.into()])?;
        if let Some(last) = expired.into_iter().flatten().map(Cell::integer).max()
            && last > horizon
        {
            let value = last.to_string().into_bytes();
            let raise = Put { space: OWN.to_owned(), key: HORIZON.to_owned(), value, expected: None };
            let _ = raise.perform(database)?;
        }
        if let (false, Some(space)) = (claimed.is_empty(), self.releases) {
            Forget { space, key: self.key.clone() }.perform(database)?;
        }
        Ok(Ok(!claimed.is_empty()))
    }
}
