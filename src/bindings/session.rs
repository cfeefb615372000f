//! `Session`: one conversation over a shared toolkit, with its `Limits` and `Usage`.

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
use super::parameters::{Omittable, class_name, flag, name_list};
use super::saved_state::{Place, SavedState, expected_version};
use super::session_base::SessionBase;
use super::store::PyStoreCall;
use super::toolkit::PyToolkit;
use super::view::PyToolkitView;
use super::{json, log_warning};
use crate::Error;
use crate::registry::{BASIC, SESSION_FORMAT, Session, SessionLimits, SessionState, SessionUsage};
use crate::store::{FileFormat, SavedVersions};
use crate::sync::lock;

/// Limit the calls, retries and tokens of each run of a session.
#[pyclass(name = "Limits", module = "toolcrib", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct PyLimits(pub(super) SessionLimits);

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
#[pyclass(name = "Usage", module = "toolcrib", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyUsage(SessionUsage);

#[pymethods]
impl PyUsage {
    /// The calls of this run that were permitted and had valid arguments, whether they succeeded or not.
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

/// The parts of a new session that the core does not have.
#[derive(Default)]
pub(super) struct SessionParts {
    pub(super) deps: Option<Py<PyAny>>,
    pub(super) parent: Option<Py<PyAny>>,
    pub(super) result_budget: Option<Py<PyResultBudget>>,
}

impl PySession {
    /// The session in the core.
    pub(crate) fn core(&self) -> &Arc<Session> {
        &self.core
    }

    /// A session over a view in it.
    pub(super) fn over(
        py: Python<'_>,
        view: PyToolkitView,
        core: Arc<Session>,
        parts: SessionParts,
    ) -> PyResult<Bound<'_, Self>> {
        let session = Self {
            core,
            deps: Mutex::new(parts.deps),
            result_budget: Mutex::new(parts.result_budget),
            parent: parts.parent,
            state: OnceLock::new(),
            versions: SavedVersions::default(),
        };
        Bound::new(py, PyClassInitializer::from(view).add_subclass(session))
    }

    /// The session of a sub-agent's run; `parent` is the run.
    pub(crate) fn of_agent<'py>(
        py: Python<'py>,
        view: PyToolkitView,
        core: Arc<Session>,
        deps: Option<Py<PyAny>>,
        parent: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let parts = SessionParts { deps, parent: Some(parent.unbind()), ..SessionParts::default() };
        Self::over(py, view, core, parts)
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
        Self::over(tools.py(), view, core, SessionParts { deps, ..SessionParts::default() })
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
            Some(state) => match json::value_from_python(state.bind(py)) {
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
    pub(super) fn check_owner(slf: &Bound<'_, Self>, saved: &SessionState) -> crate::Result<()> {
        let (owner, caller) = (saved.caller.as_deref(), Self::caller(slf).map(|caller| &**caller));
        if owner == caller {
            return Ok(());
        }
        let shown = |caller: Option<&str>| caller.map_or("no caller".to_owned(), |name| format!("caller `{name}`"));
        let reason = format!("the state is that of {}, not of {}", shown(owner), shown(caller));
        Err(Error::InvalidState { reason })
    }

    pub(super) fn restore(slf: &Bound<'_, Self>, saved: &SessionState) -> PyResult<()> {
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
    fn update_tool_groups(
        slf: &Bound<'_, Self>,
        group_names: &Bound<'_, PyAny>,
        active: Omittable<'_>,
    ) -> PyResult<()> {
        let active = flag("active", &active, true)?;
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
        let saved = SessionState::from_value(json::value_from_python(state_dict)?)
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
    ///     path: The file, or a `Store`; then await the result. Without it, the store of the toolkit.
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
    #[pyo3(signature = (path=None, key=None, *, version=None))]
    fn save<'py>(
        slf: &Bound<'py, Self>,
        path: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyAny>>,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<PyStoreCall>> {
        let toolkit = slf.as_super().get().toolkit(slf.py());
        let place = Place::of_toolkit(toolkit, path, key, Some(slf.get().core.id()))?;
        let expected = expected_version(version)?;
        place.save(slf, &Self::saved(slf)?.to_value(), expected)
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

impl SavedState for PySession {
    const FORMAT: &'static FileFormat = &SESSION_FORMAT;

    fn versions(&self) -> &SavedVersions {
        &self.versions
    }
}
