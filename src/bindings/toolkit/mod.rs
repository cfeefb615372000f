//! `Toolkit`: the registry of tools, and the methods that Python users call. `call_tool_function` is in [`super::call`].
//!
//! - here: the class itself, its switches, and the live mappings of tools and groups;
//! - `admission` finds the tool of a call;
//! - `registration` adds and removes tools, `extend` adds extended models, the meta tool and middlewares;
//! - `groups` manages groups and makes views;
//! - `describe` writes the schemas of tools for models;
//! - `record` makes tools from plain records, for copies and for edited tools;
//! - `quarantine` takes tools out of service until they are accepted;
//! - `permission` holds the policy, the approver and the audit, and the calls that wait for approval;
//! - `state` saves and restores groups, and manages skills.

mod admission;
mod describe;
mod extend;
mod groups;
mod permission;
mod quarantine;
mod record;
mod registration;
mod rules;
mod state;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use admission::RecentlyAdmitted;
pub(crate) use extend::group_switches;
pub(crate) use groups::role_view;

use super::background::PyTaskBoard;
use super::budget::PyResultBudget;
use super::call::{make_stub, stub_tool};
use super::foreign_response::ResponseClass;
use super::group::{PyToolGroup, groups_by_name};
use super::host::HostFunctions;
use super::imported;
use super::parameters::{
    Omittable, choice, class_name, flag, no_unknown, optional_instance, optional_seconds, optional_text, wrong_type,
};
use super::policy::{AuditSink, PyPermissions};
use super::registration::Behaviour;
use super::store::PyStore;
use super::tool::PyTool;
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ChunkRule, ErrorMode, RunIn};
use crate::registry::{BASIC, Group, Registry, View};
use crate::skill::Skills;
use crate::store::SavedVersions;
use crate::sync::lock;

/// Keep tools, describe them to a model, and call them.
///
/// A toolkit may be used from several threads and event loops at once. It is always true, even if it is empty.
#[pyclass(name = "Toolkit", module = "toolcrib._core", frozen, subclass, weakref)]
pub(crate) struct PyToolkit {
    registry: Mutex<Registry<Py<PyTool>>>,
    recent: RecentlyAdmitted,
    /// Set by `__init__`, so that a subclass may have a constructor of its own.
    behaviour: Mutex<Behaviour>,
    /// The serialised listing, with the revision for which it was made.
    listing: Mutex<Option<(u64, Py<PyBytes>)>>,
    /// True if an extended model that does not fit raises only where the schema is read, as in AgentScope.
    defers_conflicts: AtomicBool,
    /// The class of its responses, if it is that of another library.
    response_class: OnceLock<ResponseClass>,
    /// The tool that stands for its middlewares, if it has such a class.
    layer: OnceLock<Py<PyTool>>,
    /// The function that is called before tools are listed or called.
    before_use: OnceLock<Py<PyAny>>,
    /// The object that writes the spans of calls, if they are not toolcrib's own.
    conventions: OnceLock<Py<PyAny>>,
    /// The skills, with the templates of their prompt.
    skills: Mutex<Skills>,
    /// The background tasks, made when the first one starts.
    tasks: OnceLock<Py<PyTaskBoard>>,
    /// The permissions, which it shares with its tools.
    permissions: Py<PyPermissions>,
    /// The middlewares, outermost first, in a Python list that is made on first use.
    middlewares: OnceLock<Py<PyList>>,
    /// The functions that tools reach in the middle of a call.
    host: Mutex<HostFunctions>,
    /// The versions of its groups in stores.
    saved: SavedVersions,
}

impl PyToolkit {
    fn registry(&self) -> MutexGuard<'_, Registry<Py<PyTool>>> {
        // Each method leaves the registry consistent, even after a panic.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The registry for a change that may remove tools.
    fn registry_to_change(&self, py: Python<'_>) -> MutexGuard<'_, Registry<Py<PyTool>>> {
        self.recent.forget(py);
        self.registry()
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

    /// The functions that tools reach in the middle of a call.
    pub(crate) fn host(&self, py: Python<'_>) -> HostFunctions {
        lock(&self.host).clone_ref(py)
    }

    /// The class of its responses, if it is that of another library.
    fn response_class(&self, py: Python<'_>) -> Option<ResponseClass> {
        self.response_class.get().map(|class| class.clone_ref(py))
    }

    /// One of toolcrib's own responses in the class that the toolkit delivers.
    pub(crate) fn in_class<'py>(&self, response: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.response_class.get() {
            Some(class) => class.convert(response),
            None => Ok(response),
        }
    }

    /// The tool that stands for a middleware of this toolkit.
    pub(crate) fn layer_tool(&self, py: Python<'_>) -> PyResult<Py<PyTool>> {
        let errors = self.behaviour().errors;
        let Some(class) = self.response_class(py) else { return stub_tool(py, errors) };
        if let Some(layer) = self.layer.get() {
            return Ok(layer.clone_ref(py));
        }
        let layer = make_stub(py, errors, Some(class))?;
        Ok(self.layer.get_or_init(|| layer).clone_ref(py))
    }

    /// Finds a tool, even if its group is inactive.
    pub(crate) fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        self.registry().find(name).map(|tool| tool.body.bind(py).clone())
    }
}

#[pymethods]
impl PyToolkit {
    #[new]
    #[pyo3(
        signature = (*arguments, **_options),
        text_signature = "(agent_skill_instruction=None, agent_skill_template=None, *, arguments='coerce', \
                          errors='respond', run_in='thread', repair='on', policy=None, approver=None, \
                          approver_timeout=None, headless=False, approvals=None, audit=None, store=None, \
                          asker=None, sampler=None, error_formatter=None, result_budget=None, tools=())"
    )]
    fn new(arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        imported::prepare_for_failures(arguments.py())?;
        let registry = Registry::default();
        Ok(Self {
            recent: RecentlyAdmitted::new(registry.shared_revision()),
            registry: Mutex::new(registry),
            behaviour: Mutex::default(),
            listing: Mutex::default(),
            defers_conflicts: AtomicBool::new(false),
            response_class: OnceLock::new(),
            layer: OnceLock::new(),
            before_use: OnceLock::new(),
            conventions: OnceLock::new(),
            skills: Mutex::default(),
            tasks: OnceLock::new(),
            permissions: Py::new(arguments.py(), PyPermissions::default())?,
            middlewares: OnceLock::new(),
            host: Mutex::default(),
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
        headless=Omittable(None), approvals=None, audit=None, store=None, asker=None, sampler=None,
        error_formatter=None, result_budget=None, tools=None, **unknown
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
        store: Option<&Bound<'_, PyAny>>,
        asker: Option<Bound<'_, PyAny>>,
        sampler: Option<Bound<'_, PyAny>>,
        error_formatter: Option<Bound<'_, PyAny>>,
        result_budget: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        no_unknown::<Self>("__init__", unknown)?;
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
        let store: Option<Py<PyStore>> = optional_instance("store", store)?;
        let audit = audit.or_else(|| store.as_ref().map(|store| store.bind(slf.py()).clone().into_any()));
        permissions.set_store(store);
        permissions.use_policy(slf.py(), optional_instance("policy", policy)?)?;
        permissions.set_approver(approver)?;
        permissions.set_approver_timeout(optional_seconds("approver_timeout", approver_timeout)?)?;
        permissions.core().set_headless(flag("headless", &headless, false)?);
        permissions.set_approvals(slf.py(), optional_instance("approvals", approvals)?)?;
        permissions.set_audit(audit.map(|audit| AuditSink::of(&audit)).transpose()?);
        this.set_asker(asker)?;
        this.set_sampler(sampler)?;
        permissions.set_error_formatter(error_formatter)?;
        this.set_result_budget(result_budget)?;
        tools.map_or(Ok(()), |tools| register_all(slf, tools))
    }

    /// The function that answers the questions of tools; None if they cannot ask.
    #[getter(asker)]
    fn get_asker(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.host(py).asker
    }

    #[setter]
    fn set_asker(&self, asker: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let asker = callable("asker", asker)?;
        let old = std::mem::replace(&mut lock(&self.host).asker, asker);
        drop(old);
        Ok(())
    }

    /// The function that answers the requests of tools to a model; None if they cannot ask one.
    #[getter(sampler)]
    fn get_sampler(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.host(py).sampler
    }

    #[setter]
    fn set_sampler(&self, sampler: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let sampler = callable("sampler", sampler)?;
        let old = std::mem::replace(&mut lock(&self.host).sampler, sampler);
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

    /// From now on, deliver responses of this class, which has the first six fields of `ToolResponse`.
    ///
    /// A response of this class that a tool returns is delivered as it is. Call it before anything is registered.
    fn _respond_with(&self, response_class: Bound<'_, PyType>) {
        let _ = self.response_class.set(ResponseClass::new(response_class));
    }

    /// Return a response in the class that the toolkit delivers.
    fn _delivered<'py>(&self, response: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.in_class(response)
    }

    /// Remove all tools and all groups except `basic`; skills and middlewares stay.
    fn clear(&self, py: Python<'_>) {
        let removed = self.registry_to_change(py).clear();
        drop(removed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.tasks.get())?;
        self.host.try_lock().map_or(Ok(()), |host| host.traverse(&visit))?;
        visit.call(&self.permissions)?;
        self.response_class.get().map_or(Ok(()), |class| class.traverse(&visit))?;
        visit.call(self.layer.get())?;
        visit.call(self.before_use.get())?;
        visit.call(self.conventions.get())?;
        // While a thread holds the lock, it uses the toolkit, which is then not garbage.
        if let Ok(registry) = self.registry.try_lock() {
            registry.tools().try_for_each(|tool| visit.call(&tool.body))?;
        }
        self.recent.traverse(&visit)?;
        // The collector clears the list itself.
        self.traverse_middlewares(&visit)
    }

    fn __clear__(&self, py: Python<'_>) {
        self.clear(py);
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

/// Reads a function that may be `None`.
fn callable(parameter: &str, argument: Option<Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    match argument.as_ref().filter(|argument| !argument.is_callable()) {
        Some(other) => Err(wrong_type(parameter, "callable", other)),
        None => Ok(argument.map(Bound::unbind)),
    }
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
