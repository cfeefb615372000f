//! The permissions of a toolkit: policy, approver, approvals and audit; and the calls of a toolkit or view that are checked
//! without running, or resumed after an approval.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyToolkit;
use crate::bindings::call::{check, resumed};
use crate::bindings::parameters::{Omittable, flag, optional_instance, optional_seconds};
use crate::bindings::policy::{AuditSink, PyApprovals, PyPolicy};
use crate::bindings::store::PyStore;
use crate::bindings::view::PyToolkitView;

#[pymethods]
impl PyToolkit {
    /// The policy that decides about every call; None if there is none.
    #[getter]
    fn policy(&self, py: Python<'_>) -> Option<Py<PyPolicy>> {
        self.permissions.get().policy(py)
    }

    #[setter]
    fn set_policy(&self, py: Python<'_>, policy: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().use_policy(py, optional_instance("policy", policy)?)
    }

    /// The function that approves calls; None if a call that needs approval ends with a pending value.
    #[getter]
    fn approver(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.permissions.get().approver(py)
    }

    #[setter]
    fn set_approver(&self, approver: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().set_approver(approver)
    }

    /// The seconds after which a missing answer denies the call; None to wait without limit.
    #[getter]
    fn approver_timeout(&self) -> Option<f64> {
        self.permissions.get().approver_timeout()
    }

    #[setter]
    fn set_approver_timeout(&self, seconds: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().set_approver_timeout(optional_seconds("approver_timeout", seconds)?)
    }

    /// True if calls that need approval are denied at once.
    #[getter]
    fn headless(&self) -> bool {
        self.permissions.get().core().is_headless()
    }

    #[setter]
    fn set_headless(&self, headless: Omittable<'_>) -> PyResult<()> {
        self.permissions.get().core().set_headless(flag("headless", &headless, false)?);
        Ok(())
    }

    /// The store that keeps all that has no place of its own; None if there is none.
    #[getter]
    pub(crate) fn store(&self, py: Python<'_>) -> Option<Py<PyStore>> {
        self.permissions.get().store(py)
    }

    /// The store of pending calls, each of which can be answered once; in memory unless it or `store` was set.
    #[getter]
    fn approvals(&self, py: Python<'_>) -> PyResult<Py<PyApprovals>> {
        self.permissions.get().approvals(py)
    }

    #[setter]
    fn set_approvals(&self, py: Python<'_>, approvals: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().set_approvals(py, optional_instance("approvals", approvals)?)
    }

    /// The sink to which every decision is written before it takes effect; None if there is none.
    #[getter]
    fn audit(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.permissions.get().audit(py).map(|sink| sink.given().clone_ref(py))
    }

    #[setter]
    fn set_audit(&self, audit: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let sink = audit.map(|audit| AuditSink::of(&audit)).transpose()?;
        self.permissions.get().set_audit(sink);
        Ok(())
    }

    /// Revoke the approvals for this run: all calls need approval again.
    fn end_run(&self) {
        self.permissions.get().core().grants().forget();
    }
}

/// The methods that take the request of a call, which toolkits and views have in common.
macro_rules! request_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Return the decision about a call; nothing runs, is approved or is written to the audit.
            ///
            /// Args:
            ///     tool_call: The request, as `call_tool_function` takes it.
            ///
            /// Raises:
            ///     TypeError: If `tool_call` is not a call.
            fn check<'py>(slf: &Bound<'py, Self>, tool_call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
                check(slf.as_any(), tool_call)
            }

            /// Continue a call that ended with a pending value, once and in any process that shares the approvals.
            ///
            /// Args:
            ///     pending: The value of the response's `metadata["pending"]`, or its JSON text.
            ///     answer: `"once"`, `"run"`, `"always"`, `"no"`, `"cancel"`, a boolean, or an `Approval`.
            ///     arguments: The arguments to run it with instead; checked against the schema and the rules again.
            ///     by: The name of the approver, for the audit.
            ///
            /// Raises:
            ///     InvalidPendingError: If `pending` is not a pending value.
            ///     InvalidAnswerError: If `answer` is not an answer. Invalid `arguments` raise it in the first step,
            ///         before the approval is used up.
            #[pyo3(signature = (pending, answer, arguments=None, *, by=None))]
            fn resume<'py>(
                slf: &Bound<'py, Self>,
                pending: &Bound<'py, PyAny>,
                answer: &Bound<'py, PyAny>,
                arguments: Option<&Bound<'py, PyAny>>,
                by: Option<&str>,
            ) -> PyResult<Bound<'py, PyAny>> {
                resumed(slf.as_any(), pending, answer, arguments, by)
            }
        }
    };
}

request_methods!(PyToolkit);
request_methods!(PyToolkitView);
