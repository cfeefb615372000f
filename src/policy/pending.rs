//! A call that waits for somebody's answer, as plain data that can be kept anywhere.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::hex::{from_hex, hex};
use super::key::{Key, KeyId};
use super::moment::{rfc3339, to_millisecond};
use crate::json::canonical;
use crate::{Error, Result};

const TYPE: &str = "toolcrib.pending";
const VERSION: u64 = 1;
const PURPOSE: &str = "pending";

/// How deep arguments may be nested, so that a pending call, and what it is kept in, can be read again.
const DEEPEST: usize = 120;

/// A call that waits for somebody's answer.
///
/// It survives a restart in any store that keeps JSON as it is. Every field is bound by the signature, which only the
/// [`Approvals`](super::Approvals) that made it can check: whoever changes any of them gets a refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// The id of the call.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments that were shown and that will run, without presets.
    pub arguments: Value,
    /// Who wants to call it.
    pub caller: Option<String>,
    /// The session or run that the call is part of.
    pub session: Option<String>,
    /// What the tool's schema summed up to.
    pub schema_hash: [u8; 32],
    /// What the tool's presets summed up to, in a form that does not help to guess them.
    pub presets_hash: [u8; 32],
    /// When it was asked.
    pub created: Timestamp,
    /// The moment from which no answer counts.
    pub expires: Timestamp,
    /// What makes this call different from every other one.
    pub nonce: [u8; 16],
    /// Which key signed it.
    pub key: [u8; 8],
    /// The proof that nothing above was changed.
    pub signature: [u8; 32],
}

impl Pending {
    /// The JSON object that [`from_value`](Self::from_value) reads.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = self.unsigned();
        value.insert("signature".to_owned(), hex(&self.signature).into());
        Value::Object(value)
    }

    /// Reads a pending call from JSON; whether it is genuine, a claim tells.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPending`] names the field that is wrong, what should be there and what is.
    pub fn from_value(value: &Value) -> Result<Self> {
        let fields = Fields::of(value)?;
        Ok(Self {
            id: fields.text("id")?,
            tool: fields.text("tool")?,
            arguments: fields.arguments()?,
            caller: fields.optional_text("caller")?,
            session: fields.optional_text("session")?,
            schema_hash: fields.bytes("schema_hash", "64 hexadecimal digits")?,
            presets_hash: fields.bytes("presets_hash", "64 hexadecimal digits")?,
            created: fields.time("created")?,
            expires: fields.time("expires")?,
            nonce: fields.bytes("nonce", "32 hexadecimal digits")?,
            key: fields.bytes::<{ size_of::<KeyId>() }>("key", "16 hexadecimal digits")?,
            signature: fields.bytes("signature", "64 hexadecimal digits")?,
        })
    }

    /// Everything but the signature.
    fn unsigned(&self) -> Map<String, Value> {
        let fields = json!({
            "type": TYPE,
            "version": VERSION,
            "id": self.id,
            "tool": self.tool,
            "arguments": self.arguments,
            "caller": self.caller,
            "session": self.session,
            "schema_hash": hex(&self.schema_hash),
            "presets_hash": hex(&self.presets_hash),
            "created": rfc3339(self.created),
            "expires": rfc3339(self.expires),
            "nonce": hex(&self.nonce),
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

/// Refuses arguments that are no object, or nested too deeply to be read again.
pub(super) fn check_arguments(arguments: &Value) -> Result<()> {
    if !arguments.is_object() {
        return Err(wrong("arguments", "an object", Some(arguments)));
    }
    let mut level: Vec<&Value> = vec![arguments];
    for _ in 0..DEEPEST {
        level = level.into_iter().flat_map(parts).collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    let found = "something deeper".to_owned();
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
        Some(Value::String(text)) => format!("the text {:?}", text.chars().take(80).collect::<String>()),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
    };
    Error::InvalidPending { field: field.to_owned(), expected, found }
}

const NAMES: [&str; 14] = [
    "type",
    "version",
    "id",
    "tool",
    "arguments",
    "caller",
    "session",
    "schema_hash",
    "presets_hash",
    "created",
    "expires",
    "nonce",
    "key",
    "signature",
];

/// The fields of what may be a pending call.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn of(value: &'a Value) -> Result<Self> {
        let fields = value.as_object().ok_or_else(|| wrong("$", "an object", Some(value)))?;
        if fields.get("type").and_then(Value::as_str) != Some(TYPE) {
            return Err(wrong("type", "`toolcrib.pending`", fields.get("type")));
        }
        if fields.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(wrong("version", "1, all that this toolcrib reads", fields.get("version")));
        }
        match fields.iter().find(|(name, _)| !NAMES.contains(&name.as_str())) {
            Some((name, found)) => Err(wrong(name, "left out", Some(found))),
            None => Ok(Self(fields)),
        }
    }

    fn read<T>(&self, name: &str, expected: &'static str, read: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
        let found = self.0.get(name);
        found.and_then(read).ok_or_else(|| wrong(name, expected, found))
    }

    fn text(&self, name: &str) -> Result<String> {
        self.read(name, "a text", |found| found.as_str().map(str::to_owned))
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>> {
        self.read(name, "a text or null", |found| match found {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(text.clone())),
            _ => None,
        })
    }

    fn time(&self, name: &str) -> Result<Timestamp> {
        self.read(name, "a time such as `2026-01-31T09:30:00.000Z`", |found| {
            found.as_str()?.parse().ok().map(to_millisecond)
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
