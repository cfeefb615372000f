//! Who may do what: the policy of a toolkit, whom it asks, where it keeps approvals and notes decisions.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyToolkit;
use crate::bindings::call::{check, resumed};
use crate::bindings::policy::{AuditSink, PyApprovals, PyPolicy};

#[pymethods]
impl PyToolkit {
    /// The rules that every call is judged by; None if there are none.
    #[getter]
    fn policy(&self, py: Python<'_>) -> Option<Py<PyPolicy>> {
        self.permissions.get().policy(py)
    }

    #[setter]
    fn set_policy(&self, policy: Option<Py<PyPolicy>>) {
        self.permissions.get().set_policy(policy);
    }

    /// Who is asked about calls that need approval; None if such a call ends with a pending value.
    #[getter]
    fn approver(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.permissions.get().approver(py)
    }

    #[setter]
    fn set_approver(&self, approver: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().set_approver(approver)
    }

    /// After how many seconds no answer is a no; None to wait as long as it takes.
    #[getter]
    fn approver_timeout(&self) -> Option<f64> {
        self.permissions.get().approver_timeout()
    }

    #[setter]
    fn set_approver_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.permissions.get().set_approver_timeout(seconds)
    }

    /// Whether nobody can be asked, so that what would need approval is denied at once.
    #[getter]
    fn headless(&self) -> bool {
        self.permissions.get().core().is_headless()
    }

    #[setter]
    fn set_headless(&self, headless: bool) {
        self.permissions.get().core().set_headless(headless);
    }

    /// What makes pending calls and lets each be answered once; in memory unless it was set.
    #[getter]
    fn approvals(&self, py: Python<'_>) -> PyResult<Py<PyApprovals>> {
        self.permissions.get().approvals(py)
    }

    #[setter]
    fn set_approvals(&self, approvals: Option<Py<PyApprovals>>) {
        self.permissions.get().set_approvals(approvals);
    }

    /// Where every decision is noted before it takes effect; None if nowhere.
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

    /// Forget what was allowed for this run: everything is asked about again.
    fn end_run(&self) {
        self.permissions.get().core().grants().forget();
    }

    /// Say what would become of a call; nothing runs, nobody is asked, and nothing is noted.
    ///
    /// Args:
    ///     tool_call: The request, as `call_tool_function` takes it.
    ///
    /// Raises:
    ///     TypeError: If `tool_call` can be no call at all.
    fn check<'py>(slf: &Bound<'py, Self>, tool_call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        check(slf.as_any(), tool_call)
    }

    /// Go on with a call that ended with a pending value, once and in any process that shares the approvals.
    ///
    /// Args:
    ///     pending: What was in the response's `metadata["pending"]`, or its JSON text.
    ///     answer: `"once"`, `"run"`, `"always"`, `"no"`, `"cancel"`, a boolean, or an `Approval`.
    ///     arguments: What to run it with instead; checked against the schema and the rules again.
    ///     by: Who answered, for the audit.
    ///
    /// Raises:
    ///     InvalidPendingError: If `pending` is no pending value.
    ///     InvalidAnswerError: If `answer` is none. Edited arguments that do not fit raise it in the first step, before
    ///         anything is used up.
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
