//! The audit: a record of every decision, one line of JSON each, in an append-only file or any other sink.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};

use super::{Choice, Decision, Redaction, hash, rfc3339};
use crate::bytes::hex;
use crate::json::invisible::{Escaped, is_invisible};
use crate::store::{Append, Disk, Fs, Store, Write, not_regular, parent_of, retry_interrupted, write_all};
use crate::sync::lock;
use crate::{Error, Result};

string_enum! {
    /// The result of a decision for the call.
    pub enum Ruling {
        /// The call runs.
        Run = "run",
        /// The call does not run.
        Denied = "denied",
        /// The call waits for an answer.
        Pending = "pending",
        /// The call does not run, like every other that waited for approval.
        Cancelled = "cancelled",
    }
}

/// One decision about one call.
#[derive(Debug, Clone, Copy)]
pub struct AuditRecord<'a> {
    /// The time of the decision.
    pub time: Timestamp,
    /// The id of the call.
    pub call: &'a str,
    /// The tool's name, as the model wrote it.
    pub tool: &'a str,
    /// The hash of the arguments; see [`AuditRecord::hash_of`].
    pub arguments_hash: [u8; 32],
    /// The redacted arguments, if the audit includes them.
    pub arguments: Option<&'a Value>,
    /// The caller.
    pub caller: Option<&'a str>,
    /// The id of the session.
    pub session: Option<&'a str>,
    /// The agents that called each other until the call, from the outermost one.
    pub path: &'a [Arc<str>],
    /// The id of the rule that decided; none for a default.
    pub rule: Option<&'a str>,
    /// The decision.
    pub decision: Decision,
    /// The decision without shadow mode, if it differs.
    pub shadow: Option<Decision>,
    /// The approver that answered, or the part of toolcrib that decided in its place.
    pub answered_by: Option<&'a str>,
    /// The answer.
    pub answer: Option<Choice>,
    /// The result for the call; none while it is not known.
    pub outcome: Option<Ruling>,
}

impl AuditRecord<'_> {
    /// The hash of arguments for a record: that of their canonical text, redacted.
    ///
    /// Calls that differ only in a secret have the same hash; otherwise a short secret could be found by trying.
    #[must_use]
    pub fn hash_of(arguments: &Value, redaction: &Redaction<'_>) -> [u8; 32] {
        if redaction.is_empty() { hash(arguments) } else { hash(&redaction.arguments(arguments)) }
    }

    /// The record as a JSON object. Every field is present, except `arguments` where the audit does not include them.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let fields = [
            ("time", rfc3339(self.time).into()),
            ("call_id", self.call.into()),
            ("tool", self.tool.into()),
            ("arguments_hash", format!("sha256:{}", hex(&self.arguments_hash)).into()),
            ("caller", text(self.caller)),
            ("session", text(self.session)),
            ("path", self.path.iter().map(|agent| &**agent).collect::<Vec<_>>().into()),
            ("rule", text(self.rule)),
            ("decision", self.decision.as_str().into()),
            ("shadow", text(self.shadow.map(Decision::as_str))),
            ("answered_by", text(self.answered_by)),
            ("answer", text(self.answer.map(Choice::as_str))),
            ("outcome", text(self.outcome.map(Ruling::as_str))),
        ];
        let mut object: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        object.extend(self.arguments.map(|arguments| ("arguments".to_owned(), arguments.clone())));
        Value::Object(object)
    }

    /// The record as one line of JSON, without a line break.
    ///
    /// Line breaks, control characters, direction marks and invisible characters are escaped, so that every reader sees one
    /// line, and sees all of it.
    #[must_use]
    pub fn to_line(&self) -> String {
        one_line(&self.to_value())
    }
}

/// A destination of audit records.
pub trait Sink: Send + Sync {
    /// Stores a record; when it returns, the record is as durable as this sink makes it.
    ///
    /// # Errors
    ///
    /// The reason why it may not be stored. A call that must be audited must not run then.
    fn record(&self, record: &AuditRecord<'_>) -> Result<()>;
}

impl<F: Fn(&AuditRecord<'_>) -> Result<()> + Send + Sync> Sink for F {
    fn record(&self, record: &AuditRecord<'_>) -> Result<()> {
        self(record)
    }
}

/// The number of times that an incomplete last line is read before it counts as torn: while another process writes a line,
/// the system may show only its beginning.
const LAST_LINE_READS: usize = 100;

/// The durability of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Synced before the call goes on: a record survives a loss of power.
    #[default]
    Synced,
    /// Left to the operating system: a record survives the end of the process.
    Buffered,
}

/// An append-only file of records, which several threads and processes may write at once.
///
/// Each record is appended in one step. Where a crash or a full disk left part of a line, the next record
/// begins a new one. So every line is a whole record, or part of a record whose `append` failed, or, rarely, where
/// several processes write at once, empty.
#[derive(Debug)]
pub struct AuditLog<F: Fs = Disk> {
    fs: F,
    path: PathBuf,
    durability: Durability,
    file: Mutex<OpenLog<F::File>>,
}

#[derive(Debug)]
struct OpenLog<T> {
    file: T,
    /// The length of the file when its last line was known to be whole.
    whole: Option<u64>,
}

impl AuditLog {
    /// Opens a file to append to; creates it, readable by its owner only, if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if it is not a regular file, or the system refuses.
    pub fn open(path: &Path, durability: Durability) -> Result<Self> {
        Self::open_on(Disk, path, durability)
    }
}

impl<F: Fs> AuditLog<F> {
    /// [`open`](AuditLog::open) on any file system.
    ///
    /// # Errors
    ///
    /// Those of [`open`](AuditLog::open).
    pub fn open_on(fs: F, path: &Path, durability: Durability) -> Result<Self> {
        let file = Mutex::new(open_log(&fs, path).map_err(|error| Error::access("open", path, &error))?);
        Ok(Self { fs, path: path.to_owned(), durability, file })
    }

    /// Opens the path again after the file was renamed, as log rotation does.
    ///
    /// # Errors
    ///
    /// Those of [`open`](AuditLog::open); then records still go to the old file.
    pub fn reopen(&self) -> Result<()> {
        let new = open_log(&self.fs, &self.path).map_err(|error| Error::access("open", &self.path, &error))?;
        *lock(&self.file) = new;
        Ok(())
    }

    /// Appends a record. Earlier records are never changed.
    ///
    /// # Errors
    ///
    /// [`Error::FileAccess`] if the record may not be stored, as when the disk is full.
    pub fn append(&self, record: &AuditRecord<'_>) -> Result<()> {
        let line = record.to_line();
        let mut open = lock(&self.file);
        let added = self.add(&mut open, &line);
        if added.is_err() {
            open.whole = None;
        }
        added.map_err(|error| Error::access("write", &self.path, &error))
    }

    fn add(&self, open: &mut OpenLog<F::File>, line: &str) -> io::Result<()> {
        let mut info = retry_interrupted(|| self.fs.file_info(&open.file))?;
        if info.names == 0 {
            // The file was removed: what is appended to it would be lost.
            *open = open_log(&self.fs, &self.path)?;
            info = retry_interrupted(|| self.fs.file_info(&open.file))?;
        }
        let is_whole = open.whole == Some(info.size) || self.ends_in_a_whole_line(&open.file)?;
        let bytes = format!("{}{line}\n", if is_whole { "" } else { "\n" }).into_bytes();
        write_all(&self.fs, &mut open.file, &bytes)?;
        open.whole = Some(info.size + bytes.len() as u64);
        match self.durability {
            Durability::Synced => retry_interrupted(|| self.fs.sync_data(&open.file)),
            Durability::Buffered => Ok(()),
        }
    }

    fn ends_in_a_whole_line(&self, file: &F::File) -> io::Result<bool> {
        for _ in 0..LAST_LINE_READS {
            if matches!(retry_interrupted(|| self.fs.last_byte(file))?, None | Some(b'\n')) {
                return Ok(true);
            }
            thread::yield_now();
        }
        Ok(false)
    }
}

fn open_log<F: Fs>(fs: &F, path: &Path) -> io::Result<OpenLog<F::File>> {
    let file = retry_interrupted(|| fs.append(path))?;
    if !retry_interrupted(|| fs.file_info(&file))?.is_regular {
        return Err(not_regular());
    }
    retry_interrupted(|| fs.sync_folder(parent_of(path)))?;
    Ok(OpenLog { file, whole: None })
}

impl<F: Fs + Send + Sync> Sink for AuditLog<F>
where
    F::File: Send,
{
    fn record(&self, record: &AuditRecord<'_>) -> Result<()> {
        self.append(record)
    }
}

/// The log of audit records in a store.
pub const AUDIT_LOG: &str = "audit";

impl Sink for Store {
    fn record(&self, record: &AuditRecord<'_>) -> Result<()> {
        self.defer_record(record).wait().map(drop)
    }
}

impl Store {
    /// The record of a decision as a write, for a caller that must not block.
    #[must_use]
    pub fn defer_record(&self, record: &AuditRecord<'_>) -> Write {
        let append = Append { space: AUDIT_LOG.to_owned(), record: record.to_line().into_bytes() };
        self.write(append, |number| number.map(|_| true))
    }
}

/// Compact JSON in which invisible characters are escaped.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_invisible) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut letters = from.chars();
            if let Some(letter) = letters.next() {
                write!(writer, "{}", Escaped(letter))?;
            }
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

pub(super) fn one_line(value: &Value) -> String {
    let mut bytes = Vec::with_capacity(256);
    // Writing a value to memory does not fail, and what is written is UTF-8.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, OneLine));
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn letters_that_are_more_than_letters_are_escaped() {
        let line = one_line(&json!({"a\u{202e}b": "x\ny\u{85}\u{2028}\u{e0041}é😀"}));

        assert_eq!(line, r#"{"a\u202eb":"x\ny\u0085\u2028\udb40\udc41é😀"}"#);
    }

    proptest! {
        #[test]
        fn a_line_is_json_of_the_same_value(key: String, text in "\\PC*|[\u{0}-\u{2100}]*", number: f64) {
            let value = json!({ key: [text, number, null, true, {}] });

            let line = one_line(&value);

            prop_assert!(!line.contains(is_invisible));
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
