//! Documents that are kept for a while: the oldest are removed when there are too many, or they are too large or too old.
//!
//! A log has an entry for each of them, with the sum of the sizes of all until then. So the number and size of those that are left are
//! known from the first and the last entry.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::database::{Access, Database, Failure};
use super::document::AddVersion;
use super::operation::{Operation, Record, Records, insert_record, next_number};
use crate::Result;

/// The log of the documents that are kept.
const LOG: &str = "kept-results";

/// The most documents that are removed for a new one, so that none takes long.
const REMOVALS: u64 = 16;

/// The limits of the documents that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLimits {
    /// The most documents.
    pub count: u64,
    /// The most bytes of their contents together.
    pub bytes: u64,
    /// The longest time.
    pub age: Duration,
}

impl Default for KeptLimits {
    /// 10,000 documents, 256 MiB, 7 days.
    fn default() -> Self {
        Self { count: 10_000, bytes: 256 << 20, age: Duration::from_secs(7 * 24 * 3600) }
    }
}

/// Adds a document, and removes the oldest ones that are beyond the limits, unless they were edited.
#[derive(Debug, Clone)]
pub struct KeepDocument {
    /// The first version of the document, whose key is never used again.
    pub document: AddVersion,
    /// The limits.
    pub limits: KeptLimits,
}

impl Operation for KeepDocument {
    type Output = u64;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<u64>, Failure> {
        let version = match self.document.perform(database)? {
            Ok(version) => version,
            Err(refused) => return Ok(Err(refused)),
        };
        Ok(self.limit(database)?.map(|()| version))
    }
}

impl KeepDocument {
    fn limit(&self, database: &mut dyn Database) -> Result<Result<()>, Failure> {
        let AddVersion { space, key, content, .. } = &self.document;
        let now = Timestamp::now().as_millisecond();
        // First, because it locks out other processes.
        let number = match next_number(database, LOG)? {
            Ok(number) => number,
            Err(refused) => return Ok(Err(refused)),
        };
        let last = database.run(
            "SELECT number, record FROM toolcrib_log WHERE space = $1 ORDER BY number DESC LIMIT 1",
            &[LOG.into()],
        )?;
        let total =
            last.into_iter().next().and_then(|row| row.into_iter().nth(1)).map(|cell| Kept::parse(&cell.bytes()));
        let total = total.map_or(0, |last| last.total) + content.len() as u64;
        let record = json!([space, key, content.len(), total, now]).to_string();
        insert_record(database, LOG, number, record.as_bytes())?;
        let oldest = Records { space: LOG.to_owned(), after: 0, limit: REMOVALS }.perform(database)?;
        let oldest = match oldest {
            Ok(oldest) => oldest,
            Err(refused) => return Ok(Err(refused)),
        };
        let age = i64::try_from(self.limits.age.as_millis()).unwrap_or(i64::MAX);
        for Record { number: at, record } in oldest {
            let kept = Kept::parse(&record);
            let is_over = number - at >= self.limits.count
                || total - kept.total + kept.bytes > self.limits.bytes
                || now.saturating_sub(kept.time) > age;
            // The new one stays, however large it is.
            if !is_over || at == number {
                break;
            }
            kept.remove(database, at)?;
        }
        Ok(Ok(()))
    }
}

/// An entry of the log.
#[derive(Debug, Default)]
struct Kept {
    space: String,
    key: String,
    bytes: u64,
    /// The size of all that were ever kept, with this one.
    total: u64,
    /// The time of its writing, in milliseconds since 1970.
    time: i64,
}

impl Kept {
    fn parse(record: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(record).unwrap_or_default();
        let text = |at: usize| value.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |at: usize| value.get(at).and_then(Value::as_u64).unwrap_or_default();
        let time = value.get(4).and_then(Value::as_i64).unwrap_or_default();
        Self { space: text(0), key: text(1), bytes: number(2), total: number(3), time }
    }

    /// Removes the document and its entry. A document that was edited is the work of an agent, and only its entry is removed.
    fn remove(&self, database: &mut dyn Database, number: u64) -> Result<(), Failure> {
        let names = [self.space.as_str().into(), self.key.as_str().into()];
        database.run(
            "DELETE FROM toolcrib_versions WHERE space = $1 AND key = $2 AND NOT EXISTS
             (SELECT 1 FROM toolcrib_versions AS later
              WHERE later.space = toolcrib_versions.space AND later.key = toolcrib_versions.key AND later.version > 1)
             RETURNING version",
            &names,
        )?;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let entry = [LOG.into(), number.into()];
        database.run("DELETE FROM toolcrib_log WHERE space = $1 AND number = $2 RETURNING number", &entry).map(drop)
    }
}
