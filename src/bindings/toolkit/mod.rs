//! `Toolkit`: the registry of tools, and the methods that Python users call. `call_tool_function` is in [`super::call`].
//!
//! - here: the class itself, its switches, and the live mappings of tools and groups;
//! - `registration` adds and removes tools, `extend` adds extended models, the meta tool and middlewares;
//! - `groups` manages groups and makes views;
//! - `describe` writes the schemas of tools for models;
//! - `permission` holds the policy, the approver and the audit, and the calls that wait for approval;
//! - `state` saves and restores groups, and manages skills.

mod describe;
mod extend;
mod groups;
mod permission;
mod registration;
mod state;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString, PyTuple};

pub(crate) use extend::group_switches;

use super::background::PyTaskBoard;
use super::group::{PyToolGroup, groups_by_name};
use super::parameters::choice;
use super::policy::{AuditSink, PyApprovals, PyPermissions, PyPolicy};
use super::registration::Behaviour;
use super::tool::PyTool;
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ChunkRule, ErrorMode, Reply, RunIn};
use crate::registry::{BASIC, Group, Registry};
use crate::skill::Skills;

/// Keep tools, describe them to a model, and call them.
///
/// A toolkit may be used from several threads and event loops at once. It is always true, even if it is empty.
#[pyclass(name = "Toolkit", module = "toolcrib._core", frozen, subclass, weakref)]
pub(crate) struct PyToolkit {
    registry: Mutex<Registry<Py<PyTool>>>,
    /// Set by `__init__`, so that a subclass may have a constructor of its own.
    behaviour: Mutex<Behaviour>,
    /// The serialised listing, with the revision for which it was made.
    listing: Mutex<Option<(u64, Py<PyBytes>)>>,
    /// True if an extended model that does not fit raises only where the schema is read, as in AgentScope.
    defers_conflicts: AtomicBool,
    /// The skills, with the templates of their prompt.
    skills: Mutex<Skills>,
    /// The background tasks, made when the first one starts.
    tasks: OnceLock<Py<PyTaskBoard>>,
    /// The permissions, which it shares with its tools.
    permissions: Py<PyPermissions>,
    /// The middlewares, outermost first, in a Python list that is made on first use.
    middlewares: OnceLock<Py<PyList>>,
}

impl PyToolkit {
    fn registry(&self) -> MutexGuard<'_, Registry<Py<PyTool>>> {
        // Each method leaves the registry consistent, even after a panic.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn behaviour(&self) -> Behaviour {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The description of a tool, even if its group is inactive.
    pub(crate) fn description(&self, name: &str) -> Option<String> {
        let registry = self.registry();
        registry.find(name)?.body.get().schema.description()
    }

    /// The permissions, which the toolkit shares with its tools.
    pub(crate) fn permissions<'py>(&self, py: Python<'py>) -> &Bound<'py, PyPermissions> {
        self.permissions.bind(py)
    }

    /// Finds a tool, even if its group is inactive.
    pub(crate) fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        self.registry().find(name).map(|tool| tool.body.bind(py).clone())
    }

    /// Finds the tool of a call, if one of its groups is active.
    #[inline]
    pub(crate) fn admit<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Reply> {
        match self.registry().admit(name, None) {
            Ok(tool) => Ok(tool.body.bind(py).clone()),
            Err(denial) => Err(Reply::refusing(name, &denial)),
        }
    }
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
            defers_conflicts: AtomicBool::new(false),
            skills: Mutex::default(),
            tasks: OnceLock::new(),
            permissions: Py::new(arguments.py(), PyPermissions::default())?,
            middlewares: OnceLock::new(),
        })
    }

    /// The policy, the approvals and the listeners, which the toolkit shares with its tools.
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
            chunks: ChunkRule::default(),
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

    /// Deliver the chunks of tools that are registered from now on as the tools give them.
    fn _deliver_as_given(&self) {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner).chunks = ChunkRule::AsGiven;
    }

    /// Remove all tools and all groups except `basic`; skills and middlewares stay.
    fn clear(&self) {
        let removed = self.registry().clear();
        drop(removed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.tasks.get())?;
        visit.call(&self.permissions)?;
        // While a thread holds the lock, it uses the toolkit, which is then not garbage.
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

#[pymethods]
impl PyToolkit {
    fn _find_tool(&self, name: &Bound<'_, PyString>) -> Option<Py<PyTool>> {
        // A string that is not valid Unicode is not a name.
        let text = name.to_str().ok()?;
        self.registry().find(text).map(|tool| tool.body.clone_ref(name.py()))
    }

    fn _find_group(&self, name: &Bound<'_, PyString>) -> Option<PyToolGroup> {
        let text = name.to_str().ok().filter(|text| *text != BASIC)?;
        self.registry().group(text).ok().map(Into::into)
    }

    fn _all_tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tools: Vec<Py<PyTool>> = self.registry().tools().map(|tool| tool.body.clone_ref(py)).collect();
        tools.iter().map(|tool| (&*tool.get().name, tool)).into_py_dict(py)
    }

    fn _all_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups: Vec<Arc<Group>> = self.registry().groups().cloned().collect();
        groups_by_name(py, groups)
    }
}

impl PyToolkit {
    /// The background tasks of this toolkit and their results.
    pub(crate) fn tasks<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTaskBoard>> {
        if let Some(tasks) = self.tasks.get() {
            return Ok(tasks.bind(py));
        }
        // Made outside of the cell: creating an object may run other Python code, which may get here again.
        let tasks = Py::new(py, PyTaskBoard::default())?;
        Ok(self.tasks.get_or_init(|| tasks).bind(py))
    }
}

#[pymethods]
impl PyToolkit {
    /// The background tasks of this toolkit and their results.
    #[getter]
    fn _tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTaskBoard>> {
        self.tasks(py).cloned()
    }
}
