//! The audit: a record of every decision, one line of JSON, in a file that keeps it or anywhere else.

mod line;
mod log;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use log::{AuditLog, Durability};

use super::hex::hex;
use super::moment::rfc3339;
use super::{Choice, Decision, Redaction};
use crate::Result;
use crate::json::hash;

/// The result of a decision for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ruling {
    /// The call runs.
    Run,
    /// The call does not run.
    Denied,
    /// The call waits for an answer.
    Pending,
    /// The call does not run, like every other that waited for approval.
    Cancelled,
}

impl Ruling {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Denied => "denied",
            Self::Pending => "pending",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One decision about one call.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// When it was taken.
    pub time: Timestamp,
    /// The id of the call.
    pub call: &'a str,
    /// The tool's name, as the model wrote it.
    pub tool: &'a str,
    /// The hash of the arguments; see [`Record::sum_of`].
    pub arguments_hash: [u8; 32],
    /// The arguments themselves, where they are wanted, redacted.
    pub arguments: Option<&'a Value>,
    /// Who calls.
    pub caller: Option<&'a str>,
    /// The id of the rule that decided; none for a default.
    pub rule: Option<&'a str>,
    /// What was decided.
    pub decision: Decision,
    /// What would have been decided without shadow mode, if that is something else.
    pub shadow: Option<Decision>,
    /// The approver that answered, or the part of toolcrib that decided in its place.
    pub answered_by: Option<&'a str>,
    /// The answer.
    pub answer: Option<Choice>,
    /// The result for the call; none while it is not known.
    pub outcome: Option<Ruling>,
}

impl Record<'_> {
    /// The hash of arguments for a record: that of their canonical text, redacted.
    ///
    /// Two calls that differ in a secret only have the same hash: a short secret could be found from another one by trying.
    #[must_use]
    pub fn sum_of(arguments: &Value, redaction: &Redaction<'_>) -> [u8; 32] {
        if redaction.is_empty() { hash(arguments) } else { hash(&redaction.arguments(arguments)) }
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
