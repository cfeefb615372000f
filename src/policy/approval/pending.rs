//! Pending calls: calls that wait for an approval, as plain data that any store can keep.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::key::{Key, KeyId};
use crate::bytes::{from_hex, hex};
use crate::json::canonical;
use crate::{Error, Result};

const TYPE: &str = "toolcrib.pending";
/// Version 1 had the id of the call in place of an id of its own.
const VERSION: u64 = 2;
const PURPOSE: &str = "pending";

/// The depth limit of arguments, so that a pending call, and the document it is stored in, can be parsed again.
const MAX_DEPTH: usize = 120;

/// A call that waits for an approval.
///
/// It survives a restart in any store that keeps JSON unchanged. Every field is signed, and only the
/// [`Approvals`](super::Approvals) that made it can check the signature: a changed field is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// The random bytes of its own id, which make it unique.
    pub nonce: [u8; 16],
    /// The id that the model gave the call, which other calls may have as well.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments that were shown and that will run, without presets.
    pub arguments: Value,
    /// The caller.
    pub caller: Option<String>,
    /// The session or run that the call is part of.
    pub session: Option<String>,
    /// The hash of the tool's schema.
    pub schema_hash: [u8; 32],
    /// The keyed hash of the tool's presets, which does not help to guess them.
    pub presets_hash: [u8; 32],
    /// The time when the approval was asked for.
    pub created: Timestamp,
    /// The time from which no answer counts.
    pub expires: Timestamp,
    /// The id of the key that signed it.
    pub key: [u8; 8],
    /// The signature of all fields above.
    pub signature: [u8; 32],
}

impl Pending {
    /// Its id: 32 hexadecimal digits that no other pending call has.
    #[must_use]
    pub fn id(&self) -> String {
        hex(&self.nonce)
    }

    /// The pending call as JSON; see [`from_value`](Self::from_value).
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = self.unsigned();
        value.insert("signature".to_owned(), hex(&self.signature).into());
        Value::Object(value)
    }

    /// Parses a pending call from JSON; the signature is verified when it is claimed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPending`] with the invalid field.
    pub fn from_value(value: &Value) -> Result<Self> {
        let fields = PendingFields::of(value)?;
        Ok(Self {
            nonce: fields.bytes("id", "32 hexadecimal digits")?,
            call_id: fields.text("call_id")?,
            tool: fields.text("tool")?,
            arguments: fields.arguments()?,
            caller: fields.optional_text("caller")?,
            session: fields.optional_text("session")?,
            schema_hash: fields.bytes("schema_hash", "64 hexadecimal digits")?,
            presets_hash: fields.bytes("presets_hash", "64 hexadecimal digits")?,
            created: fields.time("created")?,
            expires: fields.time("expires")?,
            key: fields.bytes::<{ size_of::<KeyId>() }>("key", "16 hexadecimal digits")?,
            signature: fields.bytes("signature", "64 hexadecimal digits")?,
        })
    }

    /// All fields but the signature.
    fn unsigned(&self) -> Map<String, Value> {
        let fields = json!({
            "type": TYPE,
            "version": VERSION,
            "id": self.id(),
            "call_id": self.call_id,
            "tool": self.tool,
            "arguments": self.arguments,
            "caller": self.caller,
            "session": self.session,
            "schema_hash": hex(&self.schema_hash),
            "presets_hash": hex(&self.presets_hash),
            "created": rfc3339(self.created),
            "expires": rfc3339(self.expires),
            "key": hex(&self.key),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn signed_text(&self) -> String {
        canonical(&Value::Object(self.unsigned()))
    }

    pub(super) fn sign(&mut self, key: &Key) {
        self.key = key.id();
        self.signature = key.sign(PURPOSE, self.signed_text().as_bytes());
    }

    pub(super) fn is_signed_by(&self, key: &Key) -> bool {
        key.verifies(PURPOSE, self.signed_text().as_bytes(), &self.signature)
    }
}

/// Refuses arguments that are not an object, or nested too deeply to be parsed again.
pub(super) fn check_arguments(arguments: &Value) -> Result<()> {
    if !arguments.is_object() {
        return Err(wrong("arguments", "an object", Some(arguments)));
    }
    let mut level: Vec<&Value> = vec![arguments];
    for _ in 0..MAX_DEPTH {
        level = level.into_iter().flat_map(parts).collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    let found = "a deeper value".to_owned();
    Err(Error::InvalidPending { field: "arguments".to_owned(), expected: "at most 120 levels deep", found })
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(entries) => Box::new(entries.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn wrong(field: &str, expected: &'static str, found: Option<&Value>) -> Error {
    let found = match found {
        None => "nothing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Bool(_)) => "a boolean".to_owned(),
        Some(Value::Number(number)) => format!("the number {number}"),
        // Long enough for a hash, short enough for a message.
        Some(Value::String(text)) => format!("the string {:?}", text.chars().take(80).collect::<String>()),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
    };
    Error::InvalidPending { field: field.to_owned(), expected, found }
}

const NAMES: [&str; 14] = [
    "type",
    "version",
    "id",
    "call_id",
    "tool",
    "arguments",
    "caller",
    "session",
    "schema_hash",
    "presets_hash",
    "created",
    "expires",
    "key",
    "signature",
];

/// The fields of a JSON object that should be a pending call.
struct PendingFields<'a>(&'a Map<String, Value>);

impl<'a> PendingFields<'a> {
    fn of(value: &'a Value) -> Result<Self> {
        let fields = value.as_object().ok_or_else(|| wrong("$", "an object", Some(value)))?;
        if fields.get("type").and_then(Value::as_str) != Some(TYPE) {
            return Err(wrong("type", "`toolcrib.pending`", fields.get("type")));
        }
        if fields.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(wrong("version", "2, the version that this toolcrib supports", fields.get("version")));
        }
        match fields.iter().find(|(name, _)| !NAMES.contains(&name.as_str())) {
            Some((name, found)) => Err(wrong(name, "no such field", Some(found))),
            None => Ok(Self(fields)),
        }
    }

    fn read<T>(&self, name: &str, expected: &'static str, read: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
        let found = self.0.get(name);
        found.and_then(read).ok_or_else(|| wrong(name, expected, found))
    }

    fn text(&self, name: &str) -> Result<String> {
        self.read(name, "a string", |found| found.as_str().map(str::to_owned))
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>> {
        self.read(name, "a string or null", |found| match found {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(text.clone())),
            _ => None,
        })
    }

    fn time(&self, name: &str) -> Result<Timestamp> {
        self.read(name, "a time such as `2026-01-31T09:30:00.000Z`", |found| {
            // Each time has one spelling, like every other field.
            let text = found.as_str()?;
            text.parse().ok().map(to_millisecond).filter(|time| rfc3339(*time) == text)
        })
    }

    fn bytes<const N: usize>(&self, name: &str, expected: &'static str) -> Result<[u8; N]> {
        self.read(name, expected, |found| from_hex(found.as_str()?))
    }

    fn arguments(&self) -> Result<Value> {
        let arguments = self.read("arguments", "an object", Some)?;
        check_arguments(arguments)?;
        Ok(arguments.clone())
    }
}

/// Formats a time as RFC 3339 in UTC with milliseconds, such as `2026-01-31T09:30:00.000Z`.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    format!("{:.3}", to_millisecond(time))
}

/// Truncates a time to milliseconds, so that its text is exact.
pub(super) fn to_millisecond(time: Timestamp) -> Timestamp {
    from_millisecond(time.as_millisecond())
}

/// The time after a duration, at most the last one that can be represented.
pub(super) fn after(time: Timestamp, life: Duration) -> Timestamp {
    let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    from_millisecond(time.as_millisecond().saturating_add(life))
}

fn from_millisecond(millisecond: i64) -> Timestamp {
    // Whole seconds, because not every millisecond of the last second can be represented.
    let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_millisecond(millisecond.clamp(first * 1000, last * 1000)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_formatted_in_utc_with_milliseconds() {
        let time: Timestamp = "2026-01-31T10:30:00.1239+01:00".parse().unwrap();

        assert_eq!(rfc3339(time), "2026-01-31T09:30:00.123Z");
        assert_eq!(rfc3339(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn no_life_is_too_long_for_the_calendar() {
        let last = after(Timestamp::UNIX_EPOCH, Duration::MAX);

        assert_eq!(rfc3339(last).parse::<Timestamp>().unwrap(), last);
        assert_eq!(to_millisecond(Timestamp::MIN), rfc3339(Timestamp::MIN).parse().unwrap());
    }
}
