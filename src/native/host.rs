//! The host of the permission stage in the native driver: clock, audit, approvals and events.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{NativeTool, Toolkit};
use crate::bytes::random_bytes;
use crate::call::{CallInfo, CheckedArguments, Event, EventKind, Host, Reply, Standing, Unfit};
use crate::policy::{Approvals, AuditRecord, Policy};
use crate::registry::{Registry, Tool};
use crate::{Error, Result};

/// The host of one call, while it holds the registry's lock.
pub(super) struct NativeHost<'a> {
    toolkit: &'a Toolkit,
    registry: &'a Registry<NativeTool>,
    call: &'a CallInfo,
    /// The tool about which an approver was asked.
    asked: Option<&'a Tool<NativeTool>>,
}

impl<'a> NativeHost<'a> {
    pub(super) fn new(
        toolkit: &'a Toolkit,
        registry: &'a Registry<NativeTool>,
        call: &'a CallInfo,
        asked: Option<&'a Tool<NativeTool>>,
    ) -> Self {
        Self { toolkit, registry, call, asked }
    }

    /// The tool of the call.
    fn tool(&self) -> Option<&Tool<NativeTool>> {
        self.asked.or_else(|| self.registry.find(self.call.tool.as_deref()?))
    }

    /// The tool that a call of this name has at present.
    fn admitted(&self, name: &str) -> Result<&Tool<NativeTool>, Reply> {
        let admitted = self.registry.admit(name, self.toolkit.view.as_deref());
        admitted.map_err(|denial| Reply::refusing(name, &denial))
    }
}

/// The reply to a call whose tool is gone.
fn unknown(call: &CallInfo) -> Reply {
    Reply::UnknownTool { name: call.tool.clone().unwrap_or_default(), similar: None }
}

impl Host for NativeHost<'_> {
    type Error = Error;

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn nonce(&self) -> Result<[u8; 16]> {
        random_bytes()
    }

    fn has_approver(&self) -> bool {
        self.toolkit.state.approver().is_some()
    }

    fn approvals(&self) -> Result<(Arc<Approvals>, Duration)> {
        self.toolkit.state.approvals()
    }

    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String> {
        match self.toolkit.state.audit() {
            Some(audit) => audit.record(record).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    fn wants(&self, kind: EventKind) -> bool {
        self.toolkit.events().wants(kind)
    }

    fn emit(&self, kind: EventKind, data: Value) {
        emit(self.toolkit, kind, &self.call.id, self.call.tool.as_deref().unwrap_or_default(), || data);
    }

    fn check(&self, edited: &Map<String, Value>) -> Result<Result<CheckedArguments, Unfit>> {
        Ok(match self.tool() {
            Some(tool) => tool.check_edited(edited),
            None => Err(Unfit::Refused(unknown(self.call))),
        })
    }

    fn complete(&self, sent: &Value) -> Result<CheckedArguments> {
        Ok(match self.tool() {
            Some(tool) => tool.complete(sent),
            None => CheckedArguments { sent: sent.clone(), whole: sent.clone() },
        })
    }

    fn find_again(&self) -> Standing {
        let Some(asked) = self.tool() else {
            return Standing::Gone(unknown(self.call));
        };
        match self.admitted(&asked.name) {
            Ok(now) if Arc::ptr_eq(&now.schema, &asked.schema) => Standing::Same,
            Ok(_) => Standing::Replaced,
            Err(reply) => Standing::Gone(reply),
        }
    }

    fn policy_to_extend(&self) -> Arc<Policy> {
        let permissions = self.toolkit.permissions();
        permissions.policy().unwrap_or_else(|| {
            let policy = Arc::<Policy>::default();
            permissions.set_policy(Some(policy.clone()));
            policy
        })
    }

    fn cancel_questions(&self) {
        self.toolkit.cancel_questions();
    }

    fn warn(&self, text: &str) {
        tracing::warn!(target: "toolcrib", "{text}");
    }
}

/// Emits an event of a call, if there are listeners for its kind.
pub(super) fn emit(toolkit: &Toolkit, kind: EventKind, call: &str, tool: &str, data: impl FnOnce() -> Value) {
    let events = toolkit.events();
    if events.wants(kind) {
        let session = toolkit.current_session();
        let event = Event {
            kind,
            call: call.into(),
            tool: Some(tool.into()),
            caller: toolkit.caller.clone(),
            session: session.as_ref().map(|session| session.id().clone()),
            path: session.and_then(|session| session.lineage().map(|run| run.path())).unwrap_or_default(),
            time: Timestamp::now(),
            data: data(),
        };
        events.emit(event);
    }
}
