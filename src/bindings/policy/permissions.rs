//! `_Permissions`: the policy, approver, approvals, audit, error formatter and result budgets that a toolkit shares with its
//! tools, and its listeners.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::{AuditSink, PyApprovals, PyPolicy};
use crate::bindings::budget::PyResultBudget;
use crate::bindings::events::Listeners;
use crate::bindings::parameters::class_name;
use crate::bindings::store::PyStore;
use crate::call::Permissions;
use crate::policy::Policy;
use crate::sync::lock;

/// Settings that a toolkit shares with its tools: permissions, error formatter and result budgets; and its listeners.
#[pyclass(name = "_Permissions", module = "toolcrib._core", frozen, weakref)]
#[derive(Default)]
pub(crate) struct PyPermissions {
    core: Permissions,
    settings: Mutex<PermissionSettings>,
    /// True once the toolkit or one of its groups has had a budget.
    has_budgets: AtomicBool,
    /// True once the toolkit has had an error formatter.
    has_formatter: AtomicBool,
    pub(crate) listeners: Listeners,
    /// The state of the rules that was last checked for unknown names, and the problems that were logged.
    checked: AtomicU64,
    logged: Mutex<HashSet<String>>,
}

/// The settings that a developer makes.
#[derive(Default)]
struct PermissionSettings {
    policy: Option<Py<PyPolicy>>,
    approver: Option<Py<PyAny>>,
    /// Seconds within which an approver has to answer.
    approver_timeout: Option<f64>,
    approvals: Option<Py<PyApprovals>>,
    audit: Option<AuditSink>,
    /// The place of all that has no place of its own.
    store: Option<Py<PyStore>>,
    /// The function that describes exceptions of tools to the model.
    error_formatter: Option<Py<PyAny>>,
    /// The budget of all results, and those of the tools of groups, by their names.
    result_budget: Option<Py<PyResultBudget>>,
    group_budgets: HashMap<String, Py<PyResultBudget>>,
}

impl PyPermissions {
    /// The rules and grants.
    pub(crate) fn core(&self) -> &Permissions {
        &self.core
    }

    /// The rules, if they were not checked for unknown names since they changed.
    pub(crate) fn rules_to_check(&self) -> Option<Arc<Policy>> {
        let stamp = self.core.stamp()?.number();
        if self.checked.load(Ordering::Relaxed) == stamp || self.checked.swap(stamp, Ordering::Relaxed) == stamp {
            return None;
        }
        self.core.policy()
    }

    /// Lets the rules be checked again.
    pub(crate) fn forget_check(&self) {
        self.checked.store(0, Ordering::Relaxed);
    }

    /// True for the first report of a problem.
    pub(crate) fn is_new_problem(&self, text: &str) -> bool {
        lock(&self.logged).insert(text.to_owned())
    }

    fn settings(&self) -> MutexGuard<'_, PermissionSettings> {
        lock(&self.settings)
    }

    /// Changes a setting. The old value is dropped without the lock, because that may run Python code.
    fn set<T>(&self, change: impl FnOnce(&mut PermissionSettings) -> T) {
        let old = change(&mut self.settings());
        drop(old);
    }

    pub(crate) fn policy(&self, py: Python<'_>) -> Option<Py<PyPolicy>> {
        self.settings().policy.as_ref().map(|policy| policy.clone_ref(py))
    }

    pub(crate) fn set_policy(&self, policy: Option<Py<PyPolicy>>) {
        self.core.set_policy(policy.as_ref().map(|policy| policy.get().rules().clone()));
        self.set(|settings| std::mem::replace(&mut settings.policy, policy));
    }

    /// Sets the policy, whose lasting permissions are saved in the store, unless it has a place for them. Without a policy, the saved
    /// ones become one.
    pub(crate) fn use_policy(&self, py: Python<'_>, policy: Option<Py<PyPolicy>>) -> PyResult<()> {
        let policy = match (policy, self.store(py)) {
            (policy, None) => policy,
            (Some(policy), Some(store)) => {
                saving_in(py, policy.get().rules(), &store)?;
                Some(policy)
            }
            (None, Some(store)) => {
                let policy = PyPolicy::default();
                saving_in(py, policy.rules(), &store)?;
                if policy.rules().rules().is_empty() { None } else { Some(Py::new(py, policy)?) }
            }
        };
        self.set_policy(policy);
        Ok(())
    }

    /// The policy to which a lasting permission is added; made if there is none.
    pub(crate) fn policy_to_extend(&self, py: Python<'_>) -> Arc<Policy> {
        if let Some(policy) = self.policy(py) {
            return policy.get().rules().clone();
        }
        let policy = PyPolicy::default();
        let rules = policy.rules().clone();
        if let Some(store) = self.store(py) {
            // Those that the store had are known since the toolkit was made, and this is part of a call.
            rules.save_in(store.get().core());
        }
        if let Ok(policy) = Py::new(py, policy) {
            self.set_policy(Some(policy));
        }
        rules
    }

    /// The place of all that has no place of its own.
    pub(crate) fn store(&self, py: Python<'_>) -> Option<Py<PyStore>> {
        self.settings().store.as_ref().map(|store| store.clone_ref(py))
    }

    pub(crate) fn set_store(&self, store: Option<Py<PyStore>>) {
        self.set(|settings| std::mem::replace(&mut settings.store, store));
    }

    pub(crate) fn approver(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.settings().approver.as_ref().map(|approver| approver.clone_ref(py))
    }

    pub(crate) fn has_approver(&self) -> bool {
        self.settings().approver.is_some()
    }

    pub(crate) fn set_approver(&self, approver: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(other) = approver.as_ref().filter(|approver| !approver.is_callable()) {
            let kind = other.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("an approver must be callable, not {kind}")));
        }
        self.set(|settings| std::mem::replace(&mut settings.approver, approver.map(Bound::unbind)));
        Ok(())
    }

    /// The number of seconds within which an approver has to answer.
    pub(crate) fn approver_timeout(&self) -> Option<f64> {
        self.settings().approver_timeout
    }

    pub(crate) fn set_approver_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        if seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(PyValueError::new_err("approver_timeout must be a positive number of seconds"));
        }
        self.set(|settings| settings.approver_timeout = seconds);
        Ok(())
    }

    /// The approvals that were set, or new ones in the store or in memory.
    pub(crate) fn approvals(&self, py: Python<'_>) -> PyResult<Py<PyApprovals>> {
        if let Some(approvals) = self.kept_approvals(py) {
            return Ok(approvals);
        }
        // Made without the lock, and kept only if no other thread was faster.
        let fresh = match self.store(py) {
            Some(store) => PyApprovals::in_store(store.bind(py))?,
            None => PyApprovals::in_memory()?,
        };
        let fresh = Py::new(py, fresh)?;
        self.set(|settings| {
            settings.approvals.get_or_insert(fresh);
        });
        self.kept_approvals(py)
            .ok_or_else(|| PyValueError::new_err("the approvals of the toolkit were removed meanwhile"))
    }

    fn kept_approvals(&self, py: Python<'_>) -> Option<Py<PyApprovals>> {
        self.settings().approvals.as_ref().map(|approvals| approvals.clone_ref(py))
    }

    /// Sets the approvals. Those in the store are made at once, because that reads their key.
    pub(crate) fn set_approvals(&self, py: Python<'_>, approvals: Option<Py<PyApprovals>>) -> PyResult<()> {
        self.set(|settings| std::mem::replace(&mut settings.approvals, approvals));
        if self.store(py).is_some() { self.approvals(py).map(drop) } else { Ok(()) }
    }

    pub(crate) fn error_formatter<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        if !self.has_formatter.load(Ordering::Relaxed) {
            return None;
        }
        self.settings().error_formatter.as_ref().map(|formatter| formatter.bind(py).clone())
    }

    pub(crate) fn set_error_formatter(&self, formatter: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(other) = formatter.as_ref().filter(|formatter| !formatter.is_callable()) {
            let class = class_name(other);
            return Err(PyTypeError::new_err(format!("error_formatter must be callable, not {class}")));
        }
        self.has_formatter.fetch_or(formatter.is_some(), Ordering::Relaxed);
        self.set(|settings| std::mem::replace(&mut settings.error_formatter, formatter.map(Bound::unbind)));
        Ok(())
    }

    /// True if the toolkit or one of its groups may have a budget.
    pub(crate) fn has_budgets(&self) -> bool {
        self.has_budgets.load(Ordering::Relaxed)
    }

    pub(crate) fn result_budget(&self, py: Python<'_>) -> Option<Py<PyResultBudget>> {
        self.settings().result_budget.as_ref().map(|budget| budget.clone_ref(py))
    }

    pub(crate) fn set_result_budget(&self, budget: Option<Py<PyResultBudget>>) {
        self.has_budgets.fetch_or(budget.is_some(), Ordering::Relaxed);
        self.set(|settings| std::mem::replace(&mut settings.result_budget, budget));
    }

    /// The budgets of the groups of these names.
    pub(crate) fn group_budgets<'a>(
        &self,
        py: Python<'_>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Py<PyResultBudget>> {
        let settings = self.settings();
        let budgets = names.into_iter().filter_map(|name| settings.group_budgets.get(name));
        budgets.map(|budget| budget.clone_ref(py)).collect()
    }

    /// Sets or removes the budget of a group.
    pub(crate) fn set_group_budget(&self, name: &str, budget: Option<Py<PyResultBudget>>) {
        self.has_budgets.fetch_or(budget.is_some(), Ordering::Relaxed);
        self.set(|settings| match budget {
            Some(budget) => settings.group_budgets.insert(name.to_owned(), budget),
            None => settings.group_budgets.remove(name),
        });
    }

    pub(crate) fn audit(&self, py: Python<'_>) -> Option<AuditSink> {
        self.settings().audit.as_ref().map(|sink| sink.clone_ref(py))
    }

    pub(crate) fn set_audit(&self, audit: Option<AuditSink>) {
        self.core.set_audited(audit.is_some());
        self.set(|settings| std::mem::replace(&mut settings.audit, audit));
    }
}

#[pymethods]
impl PyPermissions {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.listeners.traverse(&visit)?;
        // A thread that holds the lock uses the settings, so they are not garbage.
        let Ok(settings) = self.settings.try_lock() else { return Ok(()) };
        visit.call(&settings.policy)?;
        visit.call(&settings.approver)?;
        visit.call(&settings.approvals)?;
        visit.call(&settings.store)?;
        visit.call(&settings.error_formatter)?;
        visit.call(&settings.result_budget)?;
        settings.group_budgets.values().try_for_each(|budget| visit.call(budget))?;
        settings.audit.as_ref().map_or(Ok(()), |sink| sink.traverse(&visit))
    }

    fn __clear__(&self) {
        self.listeners.clear();
        self.core.set_policy(None);
        self.core.set_audited(false);
        self.set(std::mem::take);
    }
}

/// Lets a policy save its lasting permissions in a store, unless it has a place for them.
fn saving_in(py: Python<'_>, policy: &Policy, store: &Py<PyStore>) -> crate::Result<()> {
    let store = store.get().core();
    if policy.has_store() { Ok(()) } else { py.detach(|| policy.use_store(store)) }
}
