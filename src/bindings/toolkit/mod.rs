//! `Toolkit`: the registry, and the one way to call. Its methods are in one file for each of their subjects.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

mod background;
mod describe;
mod dialect;
mod extend;
mod groups;
mod mappings;
mod membership;
mod meta;
mod middleware;
mod permission;
mod registration;
mod skills;
mod state;
mod tell;
mod view;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

pub(crate) use meta::wanted;

use super::background::PyTaskBoard;
use super::policy::{AuditSink, PyApprovals, PyPermissions, PyPolicy};
use super::register::Behaviour;
use super::tool::PyTool;
use crate::call::repair::RepairMode;
use crate::call::{Answer, ArgumentMode, ErrorMode, RunIn};
use crate::registry::Registry;
use crate::skill::Skills;

/// Keep tools, tell a model about them, and call them.
///
/// A toolkit may be used from several threads and event loops at once. It is always true, also when it is empty.
#[pyclass(name = "Toolkit", module = "toolcrib._core", frozen, subclass, weakref)]
pub(crate) struct PyToolkit {
    registry: Mutex<Registry<Py<PyTool>>>,
    /// Set by `__init__`, so that a subclass may have a constructor of its own.
    behaviour: Mutex<Behaviour>,
    /// The serialised listing with the revision it was made at.
    listing: Mutex<Option<(u64, Py<PyBytes>)>>,
    /// Whether an extended model that does not fit is told of only where the schema is read, as AgentScope does.
    tells_conflicts_late: AtomicBool,
    /// The folders of instructions, and how the agent is told about them.
    skills: Mutex<Skills>,
    /// What runs in the background, once something has.
    tasks: OnceLock<Py<PyTaskBoard>>,
    /// What it shares with its tools.
    permissions: Py<PyPermissions>,
    /// The middlewares, outermost first; a list of Python's that is made when it is first asked for.
    middlewares: OnceLock<Py<PyList>>,
}

impl PyToolkit {
    fn registry(&self) -> MutexGuard<'_, Registry<Py<PyTool>>> {
        // The registry is whole between any two of its methods, also when a panic came in between.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn behaviour(&self) -> Behaviour {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a model is told about a tool, whether its group is on or not.
    pub(crate) fn description(&self, name: &str) -> Option<String> {
        let registry = self.registry();
        registry.find(name)?.body.get().schema.description()
    }

    /// What the toolkit shares with its tools.
    pub(crate) fn permissions<'py>(&self, py: Python<'py>) -> &Bound<'py, PyPermissions> {
        self.permissions.bind(py)
    }

    /// Finds a tool, whether its group is on or not.
    pub(crate) fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        self.registry().find(name).map(|tool| tool.body.bind(py).clone())
    }

    /// Finds the tool of a call and sees whether a group of it is on.
    #[inline]
    pub(crate) fn admit<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Answer> {
        match self.registry().admit(name, None) {
            Ok(tool) => Ok(tool.body.bind(py).clone()),
            Err(denial) => Err(Answer::refusing(name, &denial)),
        }
    }
}

fn choice<T>(option: &str, word: &str, parsed: Option<T>, choices: &str) -> PyResult<T> {
    parsed.ok_or_else(|| PyValueError::new_err(format!("{option} must be {choices}, not '{word}'")))
}

#[pymethods]
impl PyToolkit {
    #[new]
    #[pyo3(
        signature = (*arguments, **_options),
        text_signature = "(agent_skill_instruction=None, agent_skill_template=None, *, arguments='coerce', \
                          errors='respond', run_in='thread', repair='on', policy=None, approver=None, \
                          approver_timeout=None, headless=False, approvals=None, audit=None)"
    )]
    fn new(arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self {
            registry: Mutex::default(),
            behaviour: Mutex::default(),
            listing: Mutex::default(),
            tells_conflicts_late: AtomicBool::new(false),
            skills: Mutex::default(),
            tasks: OnceLock::new(),
            permissions: Py::new(arguments.py(), PyPermissions::default())?,
            middlewares: OnceLock::new(),
        })
    }

    /// What the toolkit shares with its tools about who may do what, and who hears of it.
    #[getter]
    fn _permissions<'py>(&self, py: Python<'py>) -> Bound<'py, PyPermissions> {
        self.permissions.bind(py).clone()
    }

    #[pyo3(signature = (
        agent_skill_instruction=None, agent_skill_template=None, *, arguments="coerce", errors="respond",
        run_in="thread", repair="on", policy=None, approver=None, approver_timeout=None, headless=false,
        approvals=None, audit=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the switches of a toolkit")]
    fn __init__(
        &self,
        agent_skill_instruction: Option<&str>,
        agent_skill_template: Option<&str>,
        arguments: &str,
        errors: &str,
        run_in: &str,
        repair: &str,
        policy: Option<Py<PyPolicy>>,
        approver: Option<Bound<'_, PyAny>>,
        approver_timeout: Option<f64>,
        headless: bool,
        approvals: Option<Py<PyApprovals>>,
        audit: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let run_in_mode = RunIn::parse(run_in).filter(|mode| *mode != RunIn::Process);
        let behaviour = Behaviour {
            arguments: choice("arguments", arguments, ArgumentMode::parse(arguments), "'coerce', 'check' or 'pass'")?,
            repair: choice("repair", repair, RepairMode::parse(repair), "'on', 'explain' or 'off'")?,
            errors: choice("errors", errors, ErrorMode::parse(errors), "'respond', 'raise' or 'compat'")?,
            run_in: choice("run_in", run_in, run_in_mode, "'thread' or 'inline'")?,
        };
        self.skills().describe_with(agent_skill_instruction, agent_skill_template)?;
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
        let permissions = self.permissions.get();
        permissions.set_policy(policy);
        permissions.set_approver(approver)?;
        permissions.set_approver_timeout(approver_timeout)?;
        permissions.core().set_headless(headless);
        permissions.set_approvals(approvals);
        permissions.set_audit(audit.map(|audit| AuditSink::of(&audit)).transpose()?);
        Ok(())
    }

    /// Remove all tools and all groups but `basic`; skills and middlewares stay.
    fn clear(&self) {
        let removed = self.registry().clear();
        drop(removed);
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.tasks.get())?;
        visit.call(&self.permissions)?;
        // A thread that holds the lock is using the toolkit, which is then not garbage.
        if let Ok(registry) = self.registry.try_lock() {
            registry.tools().try_for_each(|tool| visit.call(&tool.body))?;
        }
        // The collector clears the list itself.
        self.traverse_middlewares(&visit)
    }

    fn __clear__(&self) {
        self.clear();
    }
}
