//! What can be heard of a call while it is under way.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::policy::rfc3339;

/// What happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It starts.
    CallStart,
    /// A response is delivered.
    Chunk,
    /// Somebody is asked whether it may run.
    PermissionRequest,
    /// It is decided whether it may run.
    PermissionResult,
    /// It has ended, in whatever way.
    CallEnd,
    /// It went wrong.
    Error,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::CallStart, Self::Chunk, Self::PermissionRequest, Self::PermissionResult, Self::CallEnd, Self::Error];

    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallStart => "call_start",
            Self::Chunk => "chunk",
            Self::PermissionRequest => "permission_request",
            Self::PermissionResult => "permission_result",
            Self::CallEnd => "call_end",
            Self::Error => "error",
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self(0b11_1111);

    /// Whether a kind is among them.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

impl FromIterator<EventKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u8))
    }
}

/// One thing that happened to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The id of the call.
    pub call: Arc<str>,
    /// The tool's name, as the model wrote it; none if it wrote none.
    pub tool: Option<Arc<str>>,
    /// Who calls.
    pub caller: Option<Arc<str>>,
    /// When it happened.
    pub time: Timestamp,
    /// What there is to say about it.
    pub data: Value,
}

impl Event {
    /// The event as a JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "type": self.kind.as_str(),
            "call_id": *self.call,
            "tool": self.tool.as_deref(),
            "caller": self.caller.as_deref(),
            "time": rfc3339(self.time),
            "data": self.data,
        })
    }
}
