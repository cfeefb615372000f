//! `AgentRun`: the run of an agent as its loop sees it. Calling it emits an event.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::{Map, Value};

use crate::agent::{Activity, BudgetUse, Lineage, activity_event};
use crate::bindings::call::{CallPort, made_up_id};
use crate::bindings::host::HostFunctions;
use crate::bindings::imported::TOOL_CONTEXT;
use crate::bindings::into_response::as_json;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::parameters::text;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::session::PySession;
use crate::bindings::toolkit::PyToolkit;
use crate::call::CallInfo;

/// The run of a sub-agent, as its loop sees it: call it to emit an event, which is progress in the stream.
///
/// A loop gets it as its third argument: `emit("THOUGHT_CHUNK", text="I look for birds")`.
#[pyclass(name = "AgentRun", module = "toolcrib", frozen)]
pub(crate) struct PyAgentRun {
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) port: Py<CallPort>,
    /// The name of the tool that the agent is registered as.
    pub(crate) tool: Arc<str>,
    pub(crate) caller: Option<Arc<str>>,
    /// The session of the call.
    pub(crate) session: Option<Py<PySession>>,
    pub(crate) toolkit: Py<PyToolkit>,
    /// The functions that it reaches in the middle of its run.
    pub(crate) host: HostFunctions,
    pub(crate) started: Instant,
    /// The seconds that the run has.
    pub(crate) time: Option<f64>,
    /// The context of the call, made when it is first asked for.
    pub(crate) context: OnceLock<Py<PyAny>>,
}

impl PyAgentRun {
    /// The identity of the call. A call without an id of its own gets one when it is first asked for.
    fn call(&self, py: Python<'_>) -> Arc<CallInfo> {
        let session = self.session.as_ref().map(|session| session.bind(py).get().core().clone());
        let make = || CallInfo::new(&made_up_id(), Some(&self.tool), self.caller.clone()).in_session(session);
        self.port.get().info(make)
    }

    /// Counts tokens of the run for the session that called the agent.
    pub(crate) fn count_for_caller(&self, py: Python<'_>, tokens: u64) {
        if let Some(session) = &self.session {
            session.bind(py).get().count_below(py, tokens);
        }
    }

    fn emitted<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        data: &Map<String, Value>,
    ) -> PyResult<Bound<'py, PyToolResponse>> {
        let known = Activity::parse(&kind.to_ascii_uppercase());
        let text = match known {
            Some(activity) => activity.text(data),
            None => data.get("text").and_then(Value::as_str).unwrap_or(kind).to_owned(),
        };
        let kind = known.map_or(kind, |activity| activity.as_str());
        let activity = activity_event(kind, &self.lineage.path(), data);
        let metadata = PyDict::new(py);
        metadata.set_item(intern!(py, "activity"), json::to_python(py, &activity)?)?;
        response::progress(py, PyString::new(py, &text), metadata)
    }
}

#[pymethods]
impl PyAgentRun {
    /// Emit an event of the agent: the stream of its call gives a response of mode `"progress"`.
    ///
    /// The response's `metadata["activity"]` has the name of the agent, the path of callers, the kind and the data.
    ///
    /// Args:
    ///     kind: The kind of event: `"THOUGHT_CHUNK"` (`text`), `"TOOL_CALL_START"` (`name`, `args`), `"TOOL_CALL_END"`
    ///         (`name`, `output`), `"ERROR"` (`error`, `context`), or any text of your own; or a response of mode
    ///         `"progress"`, which is passed on.
    ///     **data: The data of the event, as JSON values.
    #[pyo3(signature = (kind, /, **data))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        data: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let report = if kind.is_instance_of::<PyToolResponse>() {
            kind.clone()
        } else {
            let kind = text("kind", kind)?;
            let mut entries = Map::new();
            for (name, value) in data.map(json::entries_of).unwrap_or_default() {
                entries.insert(name.to_string(), as_json(&value));
            }
            self.emitted(py, &kind, &entries)?.into_any()
        };
        self.port.get().report(py, report)
    }

    /// The name of the agent.
    #[getter]
    fn agent(&self) -> &str {
        self.lineage.agent()
    }

    /// The names of the agents that called each other, from the outermost one to this one.
    #[getter]
    pub(crate) fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.lineage.path().iter().map(|name| &**name))
    }

    /// The context of the call that started the run.
    #[getter]
    pub(crate) fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(context) = self.context.get() {
            return Ok(context.bind(py).clone());
        }
        let left = self.time.map(|time| time - self.started.elapsed().as_secs_f64());
        let HostFunctions { asker, sampler, log } = &self.host;
        let (call, session) = (self.call(py), self.session.as_ref());
        let caller = call.caller.as_deref();
        let fields = (&self.port, &*self.tool, &call.id, caller, session, left, asker, sampler, log);
        let context = TOOL_CONTEXT.get(py)?.call1(fields)?.unbind();
        Ok(self.context.get_or_init(|| context).bind(py).clone())
    }

    /// The turns, calls and tokens that all agents of the tree have used so far.
    #[getter]
    fn used<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let BudgetUse { turns, calls, tokens } = self.lineage.budget().used();
        let used = PyDict::new(py);
        for (name, count) in [("turns", turns), ("calls", calls), ("tokens", tokens)] {
            used.set_item(name, count)?;
        }
        Ok(used)
    }

    /// Take a turn of the budget that all agents of the tree share.
    ///
    /// Returns:
    ///     None, or a text if the budget is used up: then the run has to end.
    fn take_turn(&self) -> Option<String> {
        self.lineage.budget().take_turn().err().map(|exhausted| exhausted.to_string())
    }

    fn __repr__(&self) -> String {
        let path = self.lineage.path();
        format!("AgentRun(path={:?})", path.iter().map(|name| &**name).collect::<Vec<_>>())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit and the session clear themselves, which breaks reference cycles.
        visit.call(&self.port)?;
        visit.call(&self.session)?;
        visit.call(&self.toolkit)?;
        self.host.traverse(&visit)?;
        visit.call(self.context.get())
    }
}
