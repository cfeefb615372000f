//! What a developer has set: the policy, who is asked, where approvals are kept, where decisions are noted.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::PyDesk;
use crate::bindings::policy::{PyApprovals, PyPolicy, Sink};
use crate::policy::Policy;

/// There are rules.
pub(super) const RULED: u8 = 1;
/// Decisions are noted.
pub(super) const AUDITED: u8 = 2;

#[derive(Default)]
pub(super) struct Terms {
    policy: Option<(Py<PyPolicy>, Arc<Policy>)>,
    approver: Option<Py<PyAny>>,
    /// How many seconds an approver has.
    patience: Option<f64>,
    headless: bool,
    approvals: Option<Py<PyApprovals>>,
    audit: Option<Sink>,
}

impl Terms {
    pub(super) fn policy_revision(&self) -> Option<u64> {
        self.policy.as_ref().map(|(_, rules)| rules.revision())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.policy.as_ref().map(|(policy, _)| policy))?;
        visit.call(&self.approver)?;
        visit.call(&self.approvals)?;
        self.audit.as_ref().map_or(Ok(()), |sink| sink.traverse(visit))
    }
}

/// Who is asked, and how long they have.
pub(crate) struct Asked {
    pub(crate) approver: Option<Py<PyAny>>,
    pub(crate) patience: Option<f64>,
    pub(crate) headless: bool,
}

impl PyDesk {
    pub(super) fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a term; what it takes the place of is dropped when the lock is not held.
    fn set<T>(&self, change: impl FnOnce(&mut Terms) -> T) {
        let (old, marks) = {
            let mut terms = self.terms();
            let old = change(&mut terms);
            let ruled = if terms.policy.is_some() { RULED } else { 0 };
            let audited = if terms.audit.is_some() { AUDITED } else { 0 };
            (old, ruled | audited)
        };
        self.marks.store(marks, Ordering::Relaxed);
        drop(old);
    }

    pub(super) fn drop_terms(&self) {
        self.set(std::mem::take);
    }

    /// The rules, if there are any.
    pub(super) fn rules(&self) -> Option<Arc<Policy>> {
        self.terms().policy.as_ref().map(|(_, rules)| rules.clone())
    }

    pub(crate) fn policy(&self, py: Python<'_>) -> Option<Py<PyPolicy>> {
        self.terms().policy.as_ref().map(|(policy, _)| policy.clone_ref(py))
    }

    pub(crate) fn set_policy(&self, policy: Option<Py<PyPolicy>>) {
        let policy = policy.map(|policy| {
            let rules = policy.get().rules().clone();
            (policy, rules)
        });
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.set(|terms| std::mem::replace(&mut terms.policy, policy));
    }

    pub(crate) fn asked(&self, py: Python<'_>) -> Asked {
        let terms = self.terms();
        let approver = terms.approver.as_ref().map(|approver| approver.clone_ref(py));
        Asked { approver, patience: terms.patience, headless: terms.headless }
    }

    pub(crate) fn set_approver(&self, approver: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(other) = approver.as_ref().filter(|approver| !approver.is_callable()) {
            let kind = other.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("an approver must be callable, not {kind}")));
        }
        self.set(|terms| std::mem::replace(&mut terms.approver, approver.map(Bound::unbind)));
        Ok(())
    }

    pub(crate) fn set_patience(&self, seconds: Option<f64>) -> PyResult<()> {
        if seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(PyValueError::new_err("approver_timeout must be a positive number of seconds"));
        }
        self.set(|terms| terms.patience = seconds);
        Ok(())
    }

    pub(crate) fn set_headless(&self, headless: bool) {
        self.set(|terms| terms.headless = headless);
    }

    /// Where approvals are kept: what was set, or else in memory.
    pub(crate) fn approvals(&self, py: Python<'_>) -> PyResult<Py<PyApprovals>> {
        if let Some(approvals) = self.kept_approvals(py) {
            return Ok(approvals);
        }
        // Made where no lock is held, and kept only if nobody was faster.
        let fresh = Py::new(py, PyApprovals::in_memory()?)?;
        self.set(|terms| {
            terms.approvals.get_or_insert(fresh);
        });
        self.kept_approvals(py).ok_or_else(|| PyValueError::new_err("the approvals were taken away meanwhile"))
    }

    pub(crate) fn kept_approvals(&self, py: Python<'_>) -> Option<Py<PyApprovals>> {
        self.terms().approvals.as_ref().map(|approvals| approvals.clone_ref(py))
    }

    pub(crate) fn set_approvals(&self, approvals: Option<Py<PyApprovals>>) {
        self.set(|terms| std::mem::replace(&mut terms.approvals, approvals));
    }

    pub(crate) fn audit(&self, py: Python<'_>) -> Option<Sink> {
        self.terms().audit.as_ref().map(|sink| sink.clone_ref(py))
    }

    pub(crate) fn set_audit(&self, audit: Option<Sink>) {
        self.set(|terms| std::mem::replace(&mut terms.audit, audit));
    }
}
