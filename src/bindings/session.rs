//! `Session`: one conversation over a shared toolkit, with its `Limits` and `Usage`.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyTuple, PyType};
use serde_json::{Map, Value};

use super::agent::PyAgentRun;
use super::budget::PyResultBudget;
use super::imported::GENERIC_ALIAS;
use super::into_response::error_text;
use super::parameters::{Omittable, class_name, name_list};
use super::role::PyRoles;
use super::store::{Place, PyStoreCall, StateEntry, expected_version};
use super::toolkit::{PyToolkit, role_view};
use super::view::{PyToolkitView, filter};
use super::{json, log_warning};
use crate::Error;
use crate::bytes::{hex, random_bytes};
use crate::registry::{BASIC, Filter, SESSION_FORMAT, Session, SessionLimits, SessionState, SessionUsage, View};
use crate::store::{self, Disk, SavedVersions};
use crate::sync::lock;

/// Limit the calls, retries and tokens of each run of a session.
#[pyclass(name = "Limits", module = "toolcrib", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct PyLimits(SessionLimits);

/// Reads a number of a limit or ledger.
fn number(name: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    if !given.is_instance_of::<PyInt>() || given.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("{name} must be an integer, not {}", class_name(given))));
    }
    given.extract().map_err(|_| PyValueError::new_err(format!("{name} must be from 0 to 2**64 - 1, not {given}")))
}

#[pymethods]
impl PyLimits {
    #[new]
    #[pyo3(signature = (*, calls=None, retries=None, tokens=None))]
    fn new(
        calls: Option<&Bound<'_, PyAny>>,
        retries: Option<&Bound<'_, PyAny>>,
        tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let limit = |name: &str, given: Option<&Bound<'_, PyAny>>| given.map(|given| number(name, given)).transpose();
        Ok(Self(SessionLimits {
            calls: limit("calls", calls)?,
            retries: limit("retries", retries)?,
            tokens: limit("tokens", tokens)?,
        }))
    }

    /// The number of calls that may run; None for no limit.
    #[getter]
    fn calls(&self) -> Option<u64> {
        self.0.calls
    }

    /// The number of times that a tool may be called again after a failure, until it succeeds; None for no limit.
    #[getter]
    fn retries(&self) -> Option<u64> {
        self.0.retries
    }

    /// The number of tokens that may be reported with `Session.add_tokens`; None for no limit.
    #[getter]
    fn tokens(&self) -> Option<u64> {
        self.0.tokens
    }

    fn __repr__(&self) -> String {
        let fields = [("calls", self.0.calls), ("retries", self.0.retries), ("tokens", self.0.tokens)];
        let given = fields.into_iter().filter_map(|(name, limit)| Some(format!("{name}={}", limit?)));
        format!("Limits({})", given.collect::<Vec<_>>().join(", "))
    }
}

/// The counters of a session at one moment.
#[pyclass(name = "Usage", module = "toolcrib", frozen)]
pub(crate) struct PyUsage(SessionUsage);

#[pymethods]
impl PyUsage {
    /// The calls of this run that were admitted and permitted, whether they succeeded or not.
    #[getter]
    fn calls(&self) -> u64 {
        self.0.calls
    }

    /// The tokens of this run.
    #[getter]
    fn tokens(&self) -> u64 {
        self.0.tokens
    }

    /// The calls of all runs.
    #[getter]
    fn total_calls(&self) -> u64 {
        self.0.total_calls
    }

    /// The tokens of all runs.
    #[getter]
    fn total_tokens(&self) -> u64 {
        self.0.total_tokens
    }

    /// The failures in a row of each tool whose last call failed; counted only while `retries` are limited.
    #[getter]
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let failures = PyDict::new(py);
        self.0.failures.iter().try_for_each(|(tool, count)| failures.set_item(&**tool, count))?;
        Ok(failures)
    }

    fn __repr__(&self) -> String {
        let SessionUsage { calls, tokens, total_calls, total_tokens, .. } = self.0;
        format!("Usage(calls={calls}, tokens={tokens}, total_calls={total_calls}, total_tokens={total_tokens})")
    }
}

/// One conversation over a shared toolkit: a view with its own group switches, approvals, limits and state.
///
/// `Toolkit.session` and `ToolkitView.session` make sessions. What one session switches, another does not see.
#[pyclass(name = "Session", module = "toolcrib", frozen, extends = PyToolkitView)]
pub(crate) struct PySession {
    core: Arc<Session>,
    deps: Mutex<Option<Py<PyAny>>>,
    /// The largest size of the results of its calls.
    result_budget: Mutex<Option<Py<PyResultBudget>>>,
    /// The context of the call that it belongs to, or the run of a sub-agent, which makes it.
    parent: Option<Py<PyAny>>,
    /// The values of the program, in a dict that is made on first use.
    state: OnceLock<Py<PyDict>>,
    /// The versions of the session in stores.
    versions: SavedVersions,
}

/// The arguments of a new session.
struct SessionOptions<'a, 'py> {
    role: Omittable<'py>,
    roles: Option<&'a Bound<'py, PyRoles>>,
    filter: Filter,
    deps: Option<Bound<'py, PyAny>>,
    parent: Option<Bound<'py, PyAny>>,
    limits: Option<PyLimits>,
    result_budget: Option<&'a Bound<'py, PyAny>>,
}

/// The toolkit or view that a session is made of.
struct SessionBase {
    toolkit: Py<PyToolkit>,
    view: View,
    caller: Option<Arc<str>>,
}

impl From<&Bound<'_, PyToolkit>> for SessionBase {
    fn from(toolkit: &Bound<'_, PyToolkit>) -> Self {
        Self { toolkit: toolkit.clone().unbind(), view: View::default(), caller: None }
    }
}

impl From<&Bound<'_, PyToolkitView>> for SessionBase {
    fn from(view: &Bound<'_, PyToolkitView>) -> Self {
        let this = view.get();
        let toolkit = this.toolkit(view.py()).clone().unbind();
        Self { toolkit, view: this.selection().clone(), caller: this.caller().cloned() }
    }
}

impl SessionBase {
    fn open<'py>(
        self,
        py: Python<'py>,
        id: Option<String>,
        caller: Option<String>,
        options: SessionOptions<'_, 'py>,
    ) -> PyResult<Bound<'py, PySession>> {
        let result_budget = PyResultBudget::read("result_budget", options.result_budget)?;
        let (mut view, mut caller) = (self.view, caller.map(Arc::from).or(self.caller));
        if let Some(role) = &options.role.0 {
            let (of_role, name) = role_view(role, options.roles)?;
            view = view.intersected(&of_role);
            caller = caller.or(name.map(Arc::from));
        }
        let id = match id {
            Some(id) if id.is_empty() => return Err(PyValueError::new_err("id must be a text that is not empty")),
            Some(id) => id,
            None => hex(&random_bytes::<16>()?),
        };
        let core = Arc::new(Session::new(&id, options.limits.unwrap_or_default().0));
        let view = view.narrowed(options.filter).in_session(core.clone());
        let base = PyToolkitView::new(self.toolkit, view, caller);
        let deps = Mutex::new(options.deps.map(Bound::unbind));
        let parent = options.parent.map(Bound::unbind);
        let session = PySession {
            core,
            deps,
            result_budget: Mutex::new(result_budget),
            parent,
            state: OnceLock::new(),
            versions: SavedVersions::default(),
        };
        Bound::new(py, PyClassInitializer::from(base).add_subclass(session))
    }

    /// Continues a saved session; `path` is the place in messages.
    fn restore<'py>(
        self,
        py: Python<'py>,
        saved: Value,
        path: &Path,
        options: SessionOptions<'_, 'py>,
    ) -> PyResult<Bound<'py, PySession>> {
        let saved = SessionState::from_value(saved)
            .map_err(|reason| Error::DamagedFile { path: path.display().to_string(), reason })?;
        // A view with a caller continues the sessions of this caller only.
        let caller = saved.caller.clone().filter(|_| self.caller.is_none());
        let session = self.open(py, Some(saved.id.clone()), caller, options)?;
        PySession::check_owner(&session, &saved)?;
        PySession::restore(&session, &saved)?;
        Ok(session)
    }
}

impl PySession {
    /// The session in the core.
    pub(crate) fn core(&self) -> &Arc<Session> {
        &self.core
    }

    /// The session of a sub-agent's run; `parent` is the run.
    pub(crate) fn of_agent<'py>(
        py: Python<'py>,
        view: PyToolkitView,
        core: Arc<Session>,
        deps: Option<Py<PyAny>>,
        parent: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let session = Self {
            core,
            deps: Mutex::new(deps),
            result_budget: Mutex::default(),
            parent: Some(parent.unbind()),
            state: OnceLock::new(),
            versions: SavedVersions::default(),
        };
        Bound::new(py, PyClassInitializer::from(view).add_subclass(session))
    }

    /// The session of an MCP client over a toolkit or view, whose caller it keeps if it has one.
    pub(crate) fn of_client<'py>(
        tools: &Bound<'py, PyAny>,
        core: Arc<Session>,
        caller: Arc<str>,
        deps: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let base = match tools.cast::<PyToolkitView>() {
            Ok(view) => SessionBase::from(view),
            Err(_) => SessionBase::from(tools.cast::<PyToolkit>()?),
        };
        let view = base.view.in_session(core.clone());
        let view = PyToolkitView::new(base.toolkit, view, Some(base.caller.unwrap_or(caller)));
        let (deps, versions, result_budget) = (Mutex::new(deps), SavedVersions::default(), Mutex::default());
        let session = Self { core, deps, result_budget, parent: None, state: OnceLock::new(), versions };
        Bound::new(tools.py(), PyClassInitializer::from(view).add_subclass(session))
    }

    /// Counts tokens of the agents that this session called; their budget has counted them already.
    pub(crate) fn count_below(&self, py: Python<'_>, tokens: u64) {
        self.core.count_below(tokens);
        if let Some(run) = self.parent.as_ref().and_then(|parent| parent.bind(py).cast::<PyAgentRun>().ok()) {
            run.get().count_for_caller(py, tokens);
        }
    }

    fn caller<'a>(slf: &'a Bound<'_, Self>) -> Option<&'a Arc<str>> {
        slf.as_super().get().caller()
    }

    /// The part that is saved.
    fn saved(slf: &Bound<'_, Self>) -> PyResult<SessionState> {
        let (py, this) = (slf.py(), slf.get());
        let state = match this.state.get() {
            None => Map::new(),
            Some(state) => match json::from_python(state.bind(py)).map(Value::from) {
                Ok(Value::Object(state)) => state,
                Ok(_) => Map::new(),
                Err(error) => {
                    let reason = format!(
                        "invalid state of session `{}`: expected JSON values only: {}",
                        this.core.id(),
                        error_text(py, &error)
                    );
                    let invalid = PyErr::from(Error::InvalidState { reason });
                    invalid.set_cause(py, Some(error));
                    return Err(invalid);
                }
            },
        };
        Ok(this.core.saved(Self::caller(slf).map(|caller| &**caller), state))
    }

    /// Refuses the state of another caller.
    fn check_owner(slf: &Bound<'_, Self>, saved: &SessionState) -> crate::Result<()> {
        let (owner, caller) = (saved.caller.as_deref(), Self::caller(slf).map(|caller| &**caller));
        if owner == caller {
            return Ok(());
        }
        let shown = |caller: Option<&str>| caller.map_or("no caller".to_owned(), |name| format!("caller `{name}`"));
        let reason = format!("the state is that of {}, not of {}", shown(owner), shown(caller));
        Err(Error::InvalidState { reason })
    }

    fn restore(slf: &Bound<'_, Self>, saved: &SessionState) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let state = json::to_python(py, &Value::Object(saved.state.clone()))?.cast_into::<PyDict>()?;
        let current = this.state(py);
        current.clear();
        current.update(state.as_mapping())?;
        this.core.restore(saved);
        Ok(())
    }
}

#[pymethods]
impl PySession {
    /// Support `Session[Deps]` in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        GENERIC_ALIAS.get(cls.py())?.call1((cls, item))
    }

    /// The id, which is part of approvals, events, audit records and spans.
    #[getter]
    fn id(&self) -> &str {
        self.core.id()
    }

    /// The dependencies of its tools: any object. They are not saved.
    #[getter]
    pub(crate) fn deps(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.deps).as_ref().map(|deps| deps.clone_ref(py))
    }

    /// The context of the call that the session belongs to, if a sub-agent works in it.
    #[getter]
    fn parent<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(parent) = &self.parent else { return Ok(None) };
        match parent.bind(py).cast::<PyAgentRun>() {
            Ok(run) => run.get().context(py).map(Some),
            Err(_) => Ok(Some(parent.bind(py).clone())),
        }
    }

    /// The names of the agents that called each other, from the outermost one; empty outside of sub-agents.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let path = self.core.lineage().map(|lineage| lineage.path()).unwrap_or_default();
        PyTuple::new(py, path.iter().map(|agent| &**agent))
    }

    #[setter]
    fn set_deps(&self, deps: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut *lock(&self.deps), deps);
        drop(old);
    }

    /// Your own values, which are saved with the session: a dict of JSON values.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        if let Some(state) = self.state.get() {
            return state.bind(py).clone();
        }
        // Made outside of the cell, because creating an object may run other Python code.
        let state = PyDict::new(py).unbind();
        self.state.get_or_init(|| state).bind(py).clone()
    }

    /// The limits of each run; setting them keeps the counters.
    #[getter]
    fn limits(&self) -> PyLimits {
        PyLimits(self.core.limits())
    }

    #[setter]
    fn set_limits(&self, limits: Option<PyLimits>) {
        self.core.set_limits(limits.unwrap_or_default().0);
    }

    /// The largest size of the results of its calls; None if it has no budget. It is not saved.
    #[getter]
    pub(crate) fn result_budget(&self, py: Python<'_>) -> Option<Py<PyResultBudget>> {
        lock(&self.result_budget).as_ref().map(|budget| budget.clone_ref(py))
    }

    #[setter]
    fn set_result_budget(&self, budget: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let budget = PyResultBudget::read("result_budget", budget)?;
        let old = std::mem::replace(&mut *lock(&self.result_budget), budget);
        drop(old);
        Ok(())
    }

    /// The counters of calls, tokens and failures, as they are now.
    #[getter]
    fn usage(&self) -> PyUsage {
        PyUsage(self.core.usage())
    }

    /// Count tokens that were used for this session, for the limit `tokens`.
    ///
    /// Raises:
    ///     TypeError: If `count` is not an integer.
    ///     ValueError: If it is negative.
    fn add_tokens(&self, count: &Bound<'_, PyAny>) -> PyResult<()> {
        let tokens = number("count", count)?;
        self.core.add_tokens(tokens);
        let run = self.parent.as_ref().and_then(|parent| parent.bind(count.py()).cast::<PyAgentRun>().ok());
        if let Some(run) = run {
            run.get().count_for_caller(count.py(), tokens);
        }
        Ok(())
    }

    /// End the run: revoke its approvals, and let the counters of the limits begin again.
    ///
    /// Group switches, `state` and the totals of `usage` stay.
    fn end_run(&self) {
        self.core.end_run();
    }

    /// Switch groups on or off, for this session only.
    ///
    /// Groups that the session does not show are ignored. `basic` is always active: naming it logs a warning in `toolcrib`.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is neither a string nor a list of strings.
    ///     UnknownGroupError: If a group is unknown. Then nothing changes.
    fn update_tool_groups(slf: &Bound<'_, Self>, group_names: &Bound<'_, PyAny>, active: bool) -> PyResult<()> {
        let (py, group_names) = (slf.py(), name_list::<Vec<String>, _>("group_names", group_names)?);
        slf.as_super().get().toolkit(py).get().check_groups(&group_names)?;
        if group_names.iter().any(|name| name == BASIC) {
            log_warning(py, "the 'basic' tool group is always active")?;
        }
        let view = slf.as_super().get();
        view.toolkit(py).get().with_registry(|registry| {
            let shown = view.selection().switchable_groups(registry).into_iter();
            let named = shown.filter(|group| group_names.iter().any(|name| name == group.name()));
            slf.get().core.switch(named.map(|group| (&**group, active)));
        });
        Ok(())
    }

    /// Return the state of the session as JSON values: `id`, `caller`, `groups`, `usage` and `state`.
    ///
    /// The selection of tools, `limits`, `deps` and approvals are not part of it.
    ///
    /// Raises:
    ///     InvalidStateError: If `state` has a value that JSON cannot represent.
    fn state_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        Ok(json::to_python(slf.py(), &Self::saved(slf)?.to_value())?.cast_into()?)
    }

    /// Restore what `state_dict` returned; approvals of the run are revoked.
    ///
    /// Raises:
    ///     InvalidStateError: If it is not a valid state, or that of another session or caller. Then nothing changes.
    fn load_state_dict(slf: &Bound<'_, Self>, state_dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let refused = |reason: String| Error::InvalidState { reason };
        let saved = SessionState::from_value(json::from_python(state_dict)?.into())
            .map_err(|reason| refused(format!("invalid state of a session: {reason}")))?;
        if saved.id != **slf.get().core.id() {
            let reason = format!("the state is that of session `{}`, not of `{}`", saved.id, slf.get().core.id());
            return Err(refused(reason).into());
        }
        Self::check_owner(slf, &saved)?;
        Self::restore(slf, &saved)
    }

    /// Save the session to a file, which is replaced atomically, or to a store; see `Toolkit.load_session`.
    ///
    /// Args:
    ///     path: The file, or a `Store`; then await the result.
    ///     key: The name of the entry in the store, by default the id of the session.
    ///     version: The version that the entry must have: 0 if there must be none. By default the one that this session
    ///         has loaded or saved last.
    ///
    /// Returns:
    ///     None for a file; for a store an awaitable of the new version.
    ///
    /// Raises:
    ///     InvalidStateError: If `state` has a value that JSON cannot represent.
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     FileTooLargeError: If the state is larger than 16 MiB.
    ///     VersionConflictError: If the entry has another version; its `version` is the current one.
    ///     StoreError: If the store fails.
    #[pyo3(signature = (path, key=None, *, version=None))]
    fn save<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<PyStoreCall>> {
        let expected = expected_version(version)?;
        let saved = Self::saved(slf)?.to_value();
        match Place::of(path, key, Some(slf.get().core.id()))? {
            Place::File(path) => {
                slf.py().detach(|| store::save(&Disk, &path, &SESSION_FORMAT, &saved))?;
                Ok(None)
            }
            Place::Entry(store, key) => {
                let entry = StateEntry { store, key, format: &SESSION_FORMAT };
                Ok(Some(entry.save(slf, &saved, expected, |owner| {
                    owner.cast::<Self>().ok().map(|session| &session.get().versions)
                })?))
            }
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let id = slf.get().core.id();
        match Self::caller(slf) {
            None => format!("Session(id={id:?})"),
            Some(caller) => format!("Session(id={id:?}, caller={caller:?})"),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.state.get())?;
        // A thread that holds the lock uses the session, which is then not garbage.
        visit.call(&self.parent)?;
        self.result_budget.try_lock().map_or(Ok(()), |budget| visit.call(&*budget))?;
        self.deps.try_lock().map_or(Ok(()), |deps| visit.call(&*deps))
    }

    fn __clear__(&self) {
        self.set_deps(None);
        let budget = lock(&self.result_budget).take();
        drop(budget);
    }
}

/// The methods that make sessions, which toolkits and views have in common.
macro_rules! session_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Begin a session: one conversation, with group switches, approvals, limits and state of its own.
            ///
            /// Args:
            ///     id: Its id, which it must have again to resume pending calls; random if it is None.
            ///     caller: The name of the caller, for policies and audits; that of the view or role if it is None.
            ///     role: The name of a role, or a role, that limits the tools, as in `Toolkit.view_for`. None shows nothing.
            ///     roles: The roles in which the name is looked up.
            ///     groups: The groups whose tools are visible while they are active, as in `Toolkit.view`.
            ///     names: The tools that are visible.
            ///     exclude: The tools that are hidden.
            ///     tags: Tags of which a tool must have one.
            ///     deps: The dependencies of its tools: any object.
            ///     parent: The context of the call that it belongs to, for the session of a sub-agent.
            ///     limits: The limits of each run.
            ///     result_budget: The largest size of the results of its calls: a `ResultBudget`, or a number of characters.
            ///
            /// Raises:
            ///     TypeError: If one of the lists is not a list of strings, or `role` is not a role.
            ///     ValueError: If the id is empty.
            #[pyo3(
                name = "session",
                signature = (
                    *, id=None, caller=None, role=Omittable(None), roles=None, groups=None, names=None, exclude=None,
                    tags=None, deps=None, parent=None, limits=None, result_budget=None
                ),
                text_signature = "($self, *, id=None, caller=None, role=..., roles=None, groups=None, names=None, \
                                  exclude=(), tags=None, deps=None, parent=None, limits=None, result_budget=None)"
            )]
            #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
            fn begin_session<'py>(
                slf: &Bound<'py, Self>,
                id: Option<String>,
                caller: Option<String>,
                role: Omittable<'py>,
                roles: Option<&Bound<'py, PyRoles>>,
                groups: Option<&Bound<'py, PyAny>>,
                names: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                tags: Option<&Bound<'py, PyAny>>,
                deps: Option<Bound<'py, PyAny>>,
                parent: Option<Bound<'py, PyAny>>,
                limits: Option<PyLimits>,
                result_budget: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PySession>> {
                let filter = filter(groups, names, exclude, tags)?;
                let options = SessionOptions { role, roles, filter, deps, parent, limits, result_budget };
                SessionBase::from(slf).open(slf.py(), id, caller, options)
            }

            /// Continue a session that `Session.save` wrote to a file or store: id, caller, switches, counters and state.
            ///
            /// The selection of tools, the dependencies and the limits are not saved: pass them again.
            ///
            /// Args:
            ///     path: The file, or a `Store`; then await the result.
            ///     key: The name of the entry in the store: the id of the session, unless it was saved under another key.
            ///     role: See `session`.
            ///     roles: See `session`.
            ///     groups: See `session`.
            ///     names: See `session`.
            ///     exclude: See `session`.
            ///     tags: See `session`.
            ///     deps: See `session`.
            ///     limits: See `session`.
            ///
            /// Raises:
            ///     MissingFileError: If there is no such file.
            ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            ///     ForeignFileError: If it was not written by `Session.save`.
            ///     DamagedFileError: If it was modified or truncated.
            ///     NewerFileError: If a newer version of toolcrib wrote it.
            ///     FileTooLargeError: If it is larger than 16 MiB.
            #[pyo3(
                signature = (
                    path, key=None, *, role=Omittable(None), roles=None, groups=None, names=None, exclude=None, tags=None,
                    deps=None, limits=None
                ),
                text_signature = "($self, path, key=None, *, role=..., roles=None, groups=None, names=None, exclude=(), \
                                  tags=None, deps=None, limits=None)"
            )]
            #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
            fn load_session<'py>(
                slf: &Bound<'py, Self>,
                path: &Bound<'py, PyAny>,
                key: Option<&Bound<'py, PyAny>>,
                role: Omittable<'py>,
                roles: Option<&Bound<'py, PyRoles>>,
                groups: Option<&Bound<'py, PyAny>>,
                names: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                tags: Option<&Bound<'py, PyAny>>,
                deps: Option<Bound<'py, PyAny>>,
                limits: Option<PyLimits>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let (py, filter) = (slf.py(), filter(groups, names, exclude, tags)?);
                match Place::of(path, key, None)? {
                    Place::File(path) => {
                        let saved = py.detach(|| store::load(&Disk, &path, &SESSION_FORMAT))?;
                        let (parent, result_budget) = (None, None);
                        let options = SessionOptions { role, roles, filter, deps, parent, limits, result_budget };
                        Ok(SessionBase::from(slf).restore(py, saved.value, &path, options)?.into_any())
                    }
                    Place::Entry(store, key) => {
                        let entry = StateEntry { store, key, format: &SESSION_FORMAT };
                        // An omitted role is no item.
                        let role = PyTuple::new(py, role.0)?;
                        let held = (slf, role, roles, deps).into_pyobject(py)?;
                        let call = entry.load(&held, move |held, mut loaded| {
                            type Held<'py> =
                                (Bound<'py, $class>, Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyRoles>>, Option<Bound<'py, PyAny>>);
                            let (slf, role, roles, deps): Held<'_> = held.extract()?;
                            let role = Omittable(role.into_iter().next());
                            let (roles, parent, result_budget) = (roles.as_ref(), None, None);
                            let options = SessionOptions { role, roles, filter, deps, parent, limits, result_budget };
                            let (value, place) = (loaded.value.take(), loaded.place());
                            let session = SessionBase::from(&slf).restore(held.py(), value, &place, options)?;
                            loaded.seen(&session.get().versions);
                            Ok(session.into_any().unbind())
                        });
                        Ok(Bound::new(py, call)?.into_any())
                    }
                }
            }
        }
    };
}

session_methods!(PyToolkit);
session_methods!(PyToolkitView);
