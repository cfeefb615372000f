//! The function of a registered agent: its loop, and the tools that the session of a run has.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::run::PyAgentRun;
use crate::agent::{BudgetLimits, Lineage, TreeLimits};
use crate::bindings::json;
use crate::bindings::native::signature_of;
use crate::bindings::parameters::{class_name, optional_name_list};
use crate::bindings::registration::{CallKind, Signature, ToolOptions, kind_of};
use crate::bindings::session::PySession;
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::view::PyToolkitView;
use crate::policy::ToolKind;
use crate::registry::{Filter, NameSet, Registry, Session, SessionLimits, View};

/// The function of a registered agent. Calling it returns the inputs, with which the call then starts the run.
#[pyclass(name = "_AgentTool", module = "toolcrib._core", frozen, weakref)]
pub(crate) struct PyAgentTool {
    name: Arc<str>,
    description: String,
    parameters: Py<PyDict>,
    run: Py<PyAny>,
    kind: CallKind,
    tools: AgentTools,
    limits: TreeLimits,
    session_limits: SessionLimits,
    /// The seconds after which a run should be over, which its tools see as their deadline.
    time: Option<f64>,
    /// True if the stream of the call ends the run at that time, and not the loop itself.
    is_timed: bool,
    /// True once the names of its tools were looked up.
    is_checked: AtomicBool,
}

/// The tools of an agent.
struct AgentTools {
    /// The tools among which the others select; all of the toolkit if it is empty.
    base: Option<View>,
    names: Option<NameSet>,
    groups: Option<NameSet>,
    /// The selection, if it is the same for each run.
    fixed: Option<View>,
}

impl AgentTools {
    fn new(base: Option<View>, names: Option<NameSet>, groups: Option<NameSet>) -> Self {
        let base_or_all = base.clone().unwrap_or_default();
        let fixed = match (&names, &groups) {
            (Some(names), None) => {
                Some(base_or_all.narrowed(Filter { names: Some(names.clone()), ..Filter::default() }))
            }
            (None, Some(groups)) => {
                let groups = Some(groups.clone());
                Some(base_or_all.narrowed(Filter { groups, ..without_agents() }))
            }
            (None, None) => Some(base_or_all.narrowed(without_agents())),
            // The union of both is resolved for each run, so that it has tools that were added to a group.
            (Some(_), Some(_)) => None,
        };
        Self { base, names, groups, fixed }
    }

    /// True if the agent has the tools of its caller, but for agents.
    fn is_inherited(&self) -> bool {
        self.base.is_none() && self.names.is_none() && self.groups.is_none()
    }

    /// The selection for a run that begins now.
    fn selection<B>(&self, registry: &Registry<B>, caller: Option<&View>) -> View {
        match (&self.fixed, caller) {
            (Some(_), Some(caller)) if self.is_inherited() => caller.narrowed(without_agents()),
            (Some(fixed), _) => fixed.clone(),
            (None, _) => {
                let mut names = self.names.clone().unwrap_or_default();
                let members = self.groups.iter().flatten().flat_map(|group| registry.members(group));
                let is_tool = |name: &&str| registry.find(name).is_some_and(|tool| !tool.is_agent);
                names.extend(members.filter(is_tool).map(Into::into));
                let base = self.base.clone().unwrap_or_default();
                base.narrowed(Filter { names: Some(names), ..Filter::default() })
            }
        }
    }

    /// Activates the groups that are named, and those of the tools that are named, in the session of a run.
    fn switch_on<B>(&self, registry: &Registry<B>, session: &Session) {
        let named = self.groups.iter().flatten().filter_map(|group| registry.group(group).ok());
        let tools = self.names.iter().flatten().filter_map(|name| registry.find(name));
        let holders = tools.filter(|tool| !tool.is_active()).flat_map(|tool| tool.groups().cloned());
        for group in named.chain(holders).filter(|group| !group.is_active()) {
            session.switch([(&*group, true)]);
        }
    }
}

fn without_agents() -> Filter {
    Filter { without_agents: true, ..Filter::default() }
}

impl PyAgentTool {
    /// The kind of callable that the loop is.
    pub(crate) fn call_kind(&self) -> CallKind {
        self.kind
    }

    /// The signature, from the schema.
    pub(crate) fn signature(&self, py: Python<'_>) -> PyResult<Signature> {
        signature_of(py, &json::from_python(self.parameters.bind(py))?)
    }

    /// Adds the options of an agent to those of its registration, which take precedence.
    pub(crate) fn complete(&self, options: &mut ToolOptions<'_>) {
        options.given.kind.get_or_insert_with(|| ToolKind::Think.as_str().to_owned());
        if self.is_timed {
            options.timeout = options.timeout.or(self.time);
        }
    }

    /// The limits of the tree below a run.
    pub(crate) fn limits(&self) -> TreeLimits {
        self.limits
    }

    /// The name that lineages know the agent by.
    pub(crate) fn agent(&self) -> &Arc<str> {
        &self.name
    }

    /// The seconds that a run has.
    pub(crate) fn time(&self) -> Option<f64> {
        self.time
    }

    /// Opens the session of a run.
    pub(crate) fn open<'py>(
        &self,
        toolkit: &Bound<'py, PyToolkit>,
        caller: Option<&Bound<'py, PyToolkitView>>,
        lineage: &Arc<Lineage>,
        run: &Bound<'py, PyAgentRun>,
    ) -> PyResult<Bound<'py, PySession>> {
        let py = toolkit.py();
        let view = caller.map(Bound::get);
        let outer = view.and_then(PyToolkitView::session);
        self.warn_of_unknown(py, toolkit.get())?;
        let core = Session::new(&self.session_id(outer), self.session_limits);
        let core = Arc::new(core.of_agent(lineage.clone()).within(outer.cloned()));
        let selected = if let (Some(fixed), true) = (&self.tools.fixed, view.is_none() && self.tools.is_inherited()) {
            fixed.in_session(core.clone())
        } else {
            if let Some(outer) = outer.filter(|_| self.tools.is_inherited()) {
                core.copy_switches(outer);
            }
            toolkit.get().with_registry(|registry| {
                self.tools.switch_on(registry, &core);
                self.tools.selection(registry, view.map(PyToolkitView::selection)).in_session(core.clone())
            })
        };
        let owner = caller.and_then(PyToolkitView::session_object);
        let deps = owner.and_then(|owner| owner.get().deps(py));
        let caller = view.and_then(PyToolkitView::caller).cloned();
        let base = PyToolkitView::new(toolkit.clone().unbind(), selected, caller).hosted_as(py, view);
        PySession::of_agent(py, base, core, deps, run.clone().into_any())
    }

    /// Calls the loop.
    pub(crate) fn start<'py>(
        &self,
        inputs: &Bound<'py, PyAny>,
        session: &Bound<'py, PySession>,
        run: &Bound<'py, PyAgentRun>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run.bind(inputs.py()).call1((inputs, session, run))
    }

    /// Warns in the first run of names of tools and groups that are unknown: those that were registered since are known by then.
    fn warn_of_unknown(&self, py: Python<'_>, toolkit: &PyToolkit) -> PyResult<()> {
        if self.is_checked.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (groups, names) = (self.tools.groups.clone(), self.tools.names.clone());
        let place = format!("of agent `{}`", self.name);
        toolkit.warn_of_unknown_in(py, &Filter { groups, names, ..Filter::default() }, &place)
    }

    /// An id for the session of a run, which no other has. Nothing depends on its being hard to guess.
    fn session_id(&self, outer: Option<&Arc<Session>>) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let unique = RandomState::new().hash_one((RUNS.fetch_add(1, Ordering::Relaxed), SystemTime::now()));
        let (outer, unique) = (outer.map_or("", |outer| outer.id()), format!("{unique:016x}"));
        let separator = if outer.is_empty() { "" } else { "/" };
        [outer, separator, &self.name, "-", &unique].concat()
    }
}

/// Reads a limit: none, or a number that is not negative.
fn limit(name: &str, given: Option<i64>) -> PyResult<Option<u64>> {
    let refused = |_| PyValueError::new_err(format!("{name} must not be negative"));
    given.map(|given| u64::try_from(given).map_err(refused)).transpose()
}

#[pymethods]
impl PyAgentTool {
    #[new]
    #[pyo3(signature = (
        name, description, parameters, run, *, tools=None, groups=None, view=None, depth=5, turns=None, calls=None,
        budget_tokens=None, tokens=None, time=None, is_timed=false
    ))]
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn new(
        name: &str,
        description: String,
        parameters: Bound<'_, PyDict>,
        run: Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
        view: Option<&Bound<'_, PyToolkitView>>,
        depth: usize,
        turns: Option<i64>,
        calls: Option<i64>,
        budget_tokens: Option<i64>,
        tokens: Option<i64>,
        time: Option<f64>,
        is_timed: bool,
    ) -> PyResult<Self> {
        let kind = kind_of(&run)?;
        if !kind.is_async() {
            let class = class_name(&run);
            return Err(PyTypeError::new_err(format!(
                "run must be a coroutine function or an async generator function, not {class}"
            )));
        }
        let base = view.map(|view| view.get().selection().clone());
        let budget = BudgetLimits {
            turns: limit("turns", turns)?,
            calls: limit("calls", calls)?,
            tokens: limit("tokens", budget_tokens)?,
        };
        Ok(Self {
            name: name.into(),
            description,
            parameters: json::deep_copy(&parameters)?.unbind(),
            run: run.unbind(),
            kind,
            tools: AgentTools::new(base, optional_name_list("tools", tools)?, optional_name_list("groups", groups)?),
            limits: TreeLimits { depth, budget },
            session_limits: SessionLimits { tokens: limit("tokens", tokens)?, ..SessionLimits::default() },
            time,
            is_timed,
            is_checked: AtomicBool::new(false),
        })
    }

    /// The name of the agent.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// The schema that the caller's model reads.
    #[getter]
    fn json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (schema, function) = (PyDict::new(py), PyDict::new(py));
        function.set_item("name", &*self.name)?;
        function.set_item("parameters", json::deep_copy(self.parameters.bind(py))?)?;
        function.set_item("description", &self.description)?;
        schema.set_item("type", "function")?;
        schema.set_item("function", function)?;
        Ok(schema)
    }

    /// The loop of the agent.
    #[getter]
    fn run(&self, py: Python<'_>) -> Py<PyAny> {
        self.run.clone_ref(py)
    }

    #[pyo3(signature = (**inputs))]
    #[allow(clippy::unused_self, reason = "pyo3 requires this signature")]
    fn __call__<'py>(&self, py: Python<'py>, inputs: Option<Bound<'py, PyDict>>) -> Bound<'py, PyDict> {
        inputs.unwrap_or_else(|| PyDict::new(py))
    }

    fn __repr__(&self) -> String {
        format!("_AgentTool(name='{}')", self.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit of the tool clears itself, which breaks reference cycles.
        visit.call(&self.parameters)?;
        visit.call(&self.run)
    }
}
