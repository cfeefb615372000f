//! `Toolkit`: the registry of tools, and the methods that Python users call. `call_tool_function` is in [`super::call`].
//!
//! - here: the class itself, its switches, and the live mappings of tools and groups;
//! - `registration` adds and removes tools, `extend` adds extended models, the meta tool and middlewares;
//! - `groups` manages groups and makes views;
//! - `describe` writes the schemas of tools for models;
//! - `quarantine` takes tools out of service until they are accepted;
//! - `permission` holds the policy, the approver and the audit, and the calls that wait for approval;
//! - `state` saves and restores groups, and manages skills.

mod describe;
mod extend;
mod groups;
mod permission;
mod quarantine;
mod registration;
mod state;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString, PyTuple};

pub(crate) use extend::group_switches;
pub(crate) use groups::role_view;

use super::background::PyTaskBoard;
use super::budget::PyResultBudget;
use super::group::{PyToolGroup, groups_by_name};
use super::parameters::{Omittable, choice, class_name, flag, optional_instance, optional_seconds, optional_text};
use super::policy::{AuditSink, PyPermissions};
use super::registration::Behaviour;
use super::tool::PyTool;
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ChunkRule, ErrorMode, Reply, RunIn};
use crate::registry::{BASIC, Denial, Group, Registry, View};
use crate::skill::Skills;
use crate::store::SavedVersions;
use crate::sync::lock;

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
    /// The function that answers the questions of tools.
    asker: Mutex<Option<Py<PyAny>>>,
    /// The versions of its groups in stores.
    saved: SavedVersions,
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

    /// The function that answers the questions of tools.
    pub(crate) fn asker<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        lock(&self.asker).as_ref().map(|asker| asker.bind(py).clone())
    }

    /// Finds a tool, even if its group is inactive.
    pub(crate) fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        self.registry().find(name).map(|tool| tool.body.bind(py).clone())
    }

    /// Finds the tool of a call, if one of its groups is active.
    #[inline]
    pub(crate) fn admit<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Reply> {
        let denial = match self.registry().admit(name, None) {
            Ok(tool) => return Ok(tool.body.bind(py).clone()),
            Err(denial) => denial,
        };
        Err(self.refusal(name, &denial, None))
    }

    /// The reply to a call that is not admitted, with the name that was probably meant. AgentScope's texts are kept to the
    /// letter.
    #[cold]
    fn refusal(&self, name: &str, denial: &Denial, view: Option<&View>) -> Reply {
        let reply = Reply::refusing(name, denial);
        if self.is_compatible() { reply } else { reply.suggesting(self.registry().similar(name, view)) }
    }

    /// True if the toolkit behaves as AgentScope's, which is silent about most mistakes.
    pub(crate) fn is_compatible(&self) -> bool {
        self.behaviour().errors == ErrorMode::Compat
    }
}

#[pymethods]
impl PyToolkit {
    #[new]
    #[pyo3(
        signature = (*arguments, **_options),
        text_signature = "(agent_skill_instruction=None, agent_skill_template=None, *, arguments='coerce', \
                          errors='respond', run_in='thread', repair='on', policy=None, approver=None, \
                          approver_timeout=None, headless=False, approvals=None, audit=None, asker=None, \
                          error_formatter=None, result_budget=None, tools=())"
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
            asker: Mutex::default(),
            saved: SavedVersions::default(),
        })
    }

    /// The policy, the approvals and the listeners, which the toolkit shares with its tools.
    #[getter]
    fn _permissions<'py>(&self, py: Python<'py>) -> Bound<'py, PyPermissions> {
        self.permissions.bind(py).clone()
    }

    #[pyo3(signature = (
        agent_skill_instruction=None, agent_skill_template=None, *, arguments=Omittable(None), errors=Omittable(None),
        run_in=Omittable(None), repair=Omittable(None), policy=None, approver=None, approver_timeout=None,
        headless=Omittable(None), approvals=None, audit=None, asker=None,
        error_formatter=None, result_budget=None, tools=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the switches of a toolkit")]
    fn __init__(
        slf: &Bound<'_, Self>,
        agent_skill_instruction: Option<&Bound<'_, PyAny>>,
        agent_skill_template: Option<&Bound<'_, PyAny>>,
        arguments: Omittable<'_>,
        errors: Omittable<'_>,
        run_in: Omittable<'_>,
        repair: Omittable<'_>,
        policy: Option<&Bound<'_, PyAny>>,
        approver: Option<Bound<'_, PyAny>>,
        approver_timeout: Option<&Bound<'_, PyAny>>,
        headless: Omittable<'_>,
        approvals: Option<&Bound<'_, PyAny>>,
        audit: Option<Bound<'_, PyAny>>,
        asker: Option<Bound<'_, PyAny>>,
        error_formatter: Option<Bound<'_, PyAny>>,
        result_budget: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let this = slf.get();
        let instruction = skill_text("agent_skill_instruction", agent_skill_instruction)?;
        let template = optional_text("agent_skill_template", agent_skill_template)?;
        let behaviour = Behaviour {
            arguments: mode("arguments", &arguments, ArgumentMode::parse, "'coerce', 'check' or 'pass'")?,
            repair: mode("repair", &repair, RepairMode::parse, "'on', 'explain' or 'off'")?,
            errors: mode("errors", &errors, ErrorMode::parse, "'respond', 'raise' or 'compat'")?,
            run_in: mode("run_in", &run_in, RunIn::parse, "'thread', 'inline' or 'process'")?,
            chunks: ChunkRule::default(),
        };
        this.skills().describe_with(instruction.as_deref(), template.as_deref())?;
        *this.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
        let permissions = this.permissions.get();
        permissions.set_policy(optional_instance("policy", policy)?);
        permissions.set_approver(approver)?;
        permissions.set_approver_timeout(optional_seconds("approver_timeout", approver_timeout)?)?;
        permissions.core().set_headless(flag("headless", &headless, false)?);
        permissions.set_approvals(optional_instance("approvals", approvals)?);
        permissions.set_audit(audit.map(|audit| AuditSink::of(&audit)).transpose()?);
        this.set_asker(asker)?;
        permissions.set_error_formatter(error_formatter)?;
        this.set_result_budget(result_budget)?;
        tools.map_or(Ok(()), |tools| register_all(slf, tools))
    }

    /// The function that answers the questions of tools; None if they cannot ask.
    #[getter(asker)]
    fn get_asker<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.asker(py)
    }

    #[setter]
    fn set_asker(&self, asker: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(asker) = asker.as_ref().filter(|asker| !asker.is_callable()) {
            let class = asker.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("asker must be callable, not {class}")));
        }
        let old = std::mem::replace(&mut *lock(&self.asker), asker.map(Bound::unbind));
        drop(old);
        Ok(())
    }

    /// The largest size of all results; None if it is not limited.
    #[getter]
    fn result_budget(&self, py: Python<'_>) -> Option<Py<PyResultBudget>> {
        self.permissions.get().result_budget(py)
    }

    #[setter]
    fn set_result_budget(&self, budget: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.permissions.get().set_result_budget(PyResultBudget::read("result_budget", budget)?);
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
        self.asker.try_lock().map_or(Ok(()), |asker| visit.call(&*asker))?;
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

/// Reads one of the words of an option; the default if it is not given.
fn mode<T: Default>(
    option: &str,
    argument: &Omittable<'_>,
    parse: impl FnOnce(&str) -> Option<T>,
    choices: &str,
) -> PyResult<T> {
    let Some(word) = optional_text(option, argument.0.as_ref())? else { return Ok(T::default()) };
    choice(option, &word, parse(&word), choices)
}

/// Reads the first positional argument, in whose place tools are passed by mistake.
fn skill_text(parameter: &str, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    match argument {
        Some(other) if !other.is_instance_of::<PyString>() => Err(PyTypeError::new_err(format!(
            "{parameter} must be a string, not {}: pass tools as `tools=`",
            class_name(other)
        ))),
        argument => optional_text(parameter, argument),
    }
}

/// Registers the callables of a list.
fn register_all(toolkit: &Bound<'_, PyToolkit>, tools: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_list = !tools.is_callable() && !tools.is_instance_of::<PyString>() && !tools.is_instance_of::<PyDict>();
    let items =
        tools.try_iter().ok().filter(|_| is_list).ok_or_else(|| {
            PyTypeError::new_err(format!("tools must be a list of callables, not {}", class_name(tools)))
        })?;
    for tool in items {
        toolkit.call_method1("register_tool_function", (tool?,))?;
    }
    Ok(())
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
        groups_by_name(py, groups, &View::default())
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
