//! The call that a decision is about: its identity and its arguments.

use std::sync::Arc;

use serde_json::Value;

use super::Resumption;
use crate::call::Reply;
use crate::policy::{Answer, Pending};
use crate::registry::Session;

/// One call, as all of its layers and everything that is recorded of it know it.
#[derive(Debug)]
pub struct CallInfo {
    /// The id that the model gave the call, or one that was made up.
    pub id: String,
    /// The tool that the request names, if it names one.
    pub tool: Option<String>,
    /// The caller, if one is named.
    pub caller: Option<Arc<str>>,
    /// The session that the call is part of, if it is part of one.
    pub session: Option<Arc<Session>>,
    /// The pending call that this one resumes.
    pub resumption: Option<Resumption>,
}

impl CallInfo {
    /// The longest part of a model's name or id that is kept, in characters.
    const LONGEST_NAME: usize = 256;

    /// The call of a request.
    #[must_use]
    pub fn new(id: &str, tool: Option<&str>, caller: Option<Arc<str>>) -> Self {
        let short = |text: &str| match text.len() {
            0..=Self::LONGEST_NAME => text.to_owned(),
            _ => text.chars().take(Self::LONGEST_NAME).collect(),
        };
        Self { id: short(id), tool: tool.map(short), caller, session: None, resumption: None }
    }

    /// The call that resumes a pending one.
    #[must_use]
    pub fn resuming(pending: Pending, answer: Answer, caller: Option<Arc<str>>) -> Self {
        let (id, tool) = (pending.call_id.clone(), Some(pending.tool.clone()));
        Self { id, tool, caller, session: None, resumption: Some(Resumption::new(pending, answer)) }
    }

    /// The same call as a part of a session.
    #[must_use]
    pub fn in_session(self, session: Option<Arc<Session>>) -> Self {
        Self { session, ..self }
    }

    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> Option<&Arc<str>> {
        self.session.as_ref().map(|session| session.id())
    }

    /// The agents that called each other until this call, from the outermost one.
    #[must_use]
    pub fn path(&self) -> Vec<Arc<str>> {
        self.session.as_ref().and_then(|session| session.lineage()).map(|lineage| lineage.path()).unwrap_or_default()
    }

    /// True if an answer that was given before lets a tool run.
    #[must_use]
    pub fn is_approved(&self, tool: &str) -> bool {
        self.resumption.as_ref().is_some_and(|resumption| resumption.is_for(tool))
    }
}

/// Arguments that a decision is about: a copy that is checked and that nothing can change any more.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedArguments {
    /// The arguments that run: as sent, coerced where needed.
    pub sent: Value,
    /// The same in canonical form, in which equal values are equal however they were spelled, with the defaults of parameters that
    /// were not sent: what rules and approvers see.
    pub whole: Value,
}

/// The reason why arguments cannot be decided about.
#[derive(Debug, Clone, PartialEq)]
pub enum Unfit {
    /// They do not fit the schema.
    Refused(Reply),
    /// JSON cannot hold them, so that a rule could not see what it is there to deny.
    Unwritable(String),
}

impl Unfit {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Refused(reply) => reply.text(),
            Self::Unwritable(reason) => reason,
        }
    }
}
