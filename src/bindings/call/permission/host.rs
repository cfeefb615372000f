//! The surroundings of a call for the core's permission stage: the clock, the audit, the listeners, the toolkit.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use super::{check_arguments, warn};
use crate::bindings::call::state::State;
use crate::bindings::imported::CANCEL_QUESTIONS;
use crate::bindings::into_response::error_text;
use crate::bindings::json;
use crate::bindings::policy::PyPermissions;
use crate::bindings::tool::PyTool;
use crate::bytes::random_bytes;
use crate::call::{CallInfo, CheckedArguments, EventKind, Host, Standing, Unfit};
use crate::policy::{Approvals, AuditRecord, Policy};

/// A call under way, as the surroundings of its own permission stage.
pub(super) struct CallHost<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) state: &'a State,
    pub(super) tool: &'a Bound<'py, PyTool>,
    pub(super) call: &'a CallInfo,
}

impl CallHost<'_, '_> {
    fn permissions(&self) -> &PyPermissions {
        self.tool.get().permissions.get()
    }
}

impl Host for CallHost<'_, '_> {
    type Error = PyErr;

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn nonce(&self) -> PyResult<[u8; 16]> {
        Ok(random_bytes()?)
    }

    fn has_approver(&self) -> bool {
        self.permissions().has_approver()
    }

    fn approvals(&self) -> PyResult<(Arc<Approvals>, Duration)> {
        let approvals = self.permissions().approvals(self.py)?;
        Ok((approvals.get().core()?, approvals.get().lifetime()))
    }

    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String> {
        let Some(sink) = self.permissions().audit(self.py) else { return Ok(()) };
        sink.record(self.py, record).map_err(|error| error_text(self.py, &error))
    }

    fn wants(&self, _: EventKind) -> bool {
        self.permissions().listeners.is_watched()
    }

    fn emit(&self, kind: EventKind, data: Value) {
        let py = self.py;
        self.permissions().listeners.emit(py, kind, self.call, || Ok(json::to_python(py, &data)?.cast_into()?));
    }

    fn check(&self, edited: &Map<String, Value>) -> PyResult<Result<CheckedArguments, Unfit>> {
        let edited = json::to_python(self.py, &Value::Object(edited.clone()))?.cast_into::<PyDict>()?;
        check_arguments(self.py, &self.tool.get().plan, &edited, self.state)
    }

    fn complete(&self, sent: &Value) -> PyResult<CheckedArguments> {
        self.tool.get().plan.completed(self.py, sent.clone(), None, self.state)
    }

    fn find_again(&self) -> Standing {
        let tool = self.tool.get();
        if self.state.toolkit.get(self.py).is_none() {
            return tool.refuse_quarantined().map_or_else(Standing::Gone, |()| Standing::Same);
        }
        match self.state.find_admitted(self.py, &tool.name) {
            // A view makes its own meta tool each time.
            Ok(now) if now.is(self.tool) || now.get().meta.is_some() => Standing::Same,
            Ok(_) => Standing::Replaced,
            Err(reply) => Standing::Gone(reply),
        }
    }

    fn policy_to_extend(&self) -> crate::Result<Arc<Policy>> {
        self.permissions().policy_to_extend(self.py)
    }

    fn cancel_questions(&self) {
        let (py, session) = (self.py, self.call.session_id().map(|id| &**id));
        let cancelled =
            CANCEL_QUESTIONS.get(py).and_then(|cancel_all| cancel_all.call1((&self.tool.get().permissions, session)));
        if let Err(error) = cancelled {
            error.write_unraisable(py, None);
        }
    }

    fn blocking<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.py.detach(work)
    }

    fn warn(&self, text: &str) {
        warn(self.py, text);
    }
}
