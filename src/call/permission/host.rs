//! The interface between the permission stage and a driver: the tool, and everything that takes I/O.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{CheckedArguments, Unfit};
use crate::call::{EventKind, Reply};
use crate::policy::{Approvals, AuditRecord, CallFacts, Policy, Redaction, ToolKind};
use crate::store::Write;
use crate::{Error, Result};

/// A tool as the permission stage sees it.
pub trait ToolFacts {
    /// The tool's name.
    fn name(&self) -> &str;

    /// The kind of effect the tool has.
    fn kind(&self) -> ToolKind;

    /// The description that the model is shown.
    fn description(&self) -> Option<String>;

    /// Shows the facts that rules look at.
    fn with_facts<T>(&self, caller: Option<&str>, look: impl FnOnce(&CallFacts<'_>) -> T) -> T;

    /// The hash of the schema.
    fn schema_hash(&self) -> [u8; 32];

    /// The hash of the presets, which no others have, so that an approval is not good for those.
    fn presets_hash(&self) -> [u8; 32];

    /// The secrets of the tool.
    fn redaction(&self) -> Redaction<'_>;
}

/// The state of a tool after an approver was asked about a call of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The call still goes to the same tool.
    Same,
    /// Another tool has the name.
    Replaced,
    /// The call is not admitted any more.
    Gone(Reply),
}

/// The surroundings of a call, which do for the permission stage what takes I/O.
pub trait Host {
    /// A mistake of the developer, which ends the call.
    type Error: From<Error>;

    /// The time.
    fn now(&self) -> Timestamp;

    /// 128 random bits.
    ///
    /// # Errors
    ///
    /// If the system has none.
    fn nonce(&self) -> Result<[u8; 16], Self::Error>;

    /// True if there is an approver to ask.
    fn has_approver(&self) -> bool;

    /// The approvals that make a call pending, and how long an answer counts.
    ///
    /// # Errors
    ///
    /// If there are none and none can be made.
    fn approvals(&self) -> Result<(Arc<Approvals>, Duration), Self::Error>;

    /// Records a decision before it takes effect; see [`set_audited`](super::Permissions::set_audited).
    ///
    /// # Errors
    ///
    /// The reason why it may not be recorded; then the call must not run.
    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String>;

    /// Begins to record a decision; none if that takes a while. Then the driver waits, and reports the result with
    /// [`PermissionStage::written`](super::PermissionStage::written).
    fn begin_record(&self, record: &AuditRecord<'_>) -> Option<Result<(), String>> {
        Some(self.record(record))
    }

    /// Begins a write that a decision waits for; none as for [`begin_record`](Self::begin_record).
    fn begin(&self, write: Write) -> Option<Result<bool>> {
        Some(self.blocking(|| write.wait()))
    }

    /// True if there are listeners for events of a kind.
    fn wants(&self, kind: EventKind) -> bool;

    /// Emits an event of the call.
    fn emit(&self, kind: EventKind, data: Value);

    /// Checks arguments that an approver put in place of the model's, as if the model had sent them.
    ///
    /// # Errors
    ///
    /// A mistake of the developer; arguments that do not fit are the inner error.
    fn check(&self, edited: &Map<String, Value>) -> Result<Result<CheckedArguments, Unfit>, Self::Error>;

    /// Completes arguments that were checked before with the defaults of those that were not sent.
    ///
    /// # Errors
    ///
    /// A default that cannot be made.
    fn complete(&self, sent: &Value) -> Result<CheckedArguments, Self::Error>;

    /// Finds the tool of the call again.
    fn find_again(&self) -> Standing;

    /// The policy that a lasting permission is added to; made if there is none.
    fn policy_to_extend(&self) -> Arc<Policy>;

    /// Ends every question of the same session, or of no session, that is being asked with the answer `cancel`.
    fn cancel_questions(&self);

    /// Does work that may take a while, such as writing a file.
    fn blocking<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Logs a warning for the developer.
    fn warn(&self, text: &str);
}
