//! What is noted of every decision: one line of JSON, to a file that keeps it or to anything else.

mod line;
mod log;
mod mask;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use log::{AuditLog, Durability};
pub use mask::mask;

use super::canonical::hash;
use super::hex::hex;
use super::moment::rfc3339;
use crate::Result;

/// One decision about one call.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// When it was taken.
    pub time: Timestamp,
    /// The id of the call.
    pub call: &'a str,
    /// The tool's name, as the model wrote it.
    pub tool: &'a str,
    /// What the arguments sum up to; see [`Record::sum_of`].
    pub arguments_hash: [u8; 32],
    /// The arguments themselves, where they are wanted, as [`mask`] left them.
    pub arguments: Option<&'a Value>,
    /// Who calls.
    pub caller: Option<&'a str>,
    /// The id of the rule that decided; none for a default.
    pub rule: Option<&'a str>,
    /// What was decided.
    pub decision: &'a str,
    /// What would have been decided by a rule that only watches.
    pub shadow: Option<&'a str>,
    /// Who was asked, if somebody was.
    pub answered_by: Option<&'a str>,
    /// What they said.
    pub answer: Option<&'a str>,
    /// What came of the call; none while it has not ended.
    pub outcome: Option<&'a str>,
}

impl Record<'_> {
    /// What arguments sum up to for a record: the hash of their one text, with the secrets hidden.
    ///
    /// Two calls that differ in a secret only have the same sum: a short secret could be found from another one by trying.
    #[must_use]
    pub fn sum_of(arguments: &Value, secrets: &[impl AsRef<str>]) -> [u8; 32] {
        if secrets.is_empty() { hash(arguments) } else { hash(&mask(arguments, secrets)) }
    }

    /// The record as a JSON object. Every field is always there, but the arguments, which are so only if they are wanted.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let fields = [
            ("time", rfc3339(self.time).into()),
            ("call_id", self.call.into()),
            ("tool", self.tool.into()),
            ("arguments_hash", format!("sha256:{}", hex(&self.arguments_hash)).into()),
            ("caller", text(self.caller)),
            ("rule", text(self.rule)),
            ("decision", self.decision.into()),
            ("shadow", text(self.shadow)),
            ("answered_by", text(self.answered_by)),
            ("answer", text(self.answer)),
            ("outcome", text(self.outcome)),
        ];
        let mut object: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        object.extend(self.arguments.map(|arguments| ("arguments".to_owned(), arguments.clone())));
        Value::Object(object)
    }

    /// The record as one line, without its end.
    ///
    /// Whatever the texts in it hold, it is one line to every reader, and shows what it says: what breaks lines, moves the
    /// cursor, turns the direction of writing or cannot be seen is escaped.
    #[must_use]
    pub fn to_line(&self) -> String {
        line::one_line(&self.to_value())
    }
}

/// Where records go.
pub trait Sink: Send + Sync {
    /// Takes a record; when it returns, the record is as safe as this sink makes it.
    ///
    /// # Errors
    ///
    /// Whatever keeps the record from being taken. A call that must be accounted for must not run then.
    fn record(&self, record: &Record<'_>) -> Result<()>;
}

impl<F: Fn(&Record<'_>) -> Result<()> + Send + Sync> Sink for F {
    fn record(&self, record: &Record<'_>) -> Result<()> {
        self(record)
    }
}
