//! The start of a sub-agent's run: its lineage is checked, its session is opened, and its loop is called.
//!
//! From there on the call is like any other: the stream drives the coroutine or async generator of the loop itself, so that
//! cancelling it, closing it and its deadline reach everything that the loop awaits.

use std::sync::OnceLock;
use std::time::Instant;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::context::CallPort;
use super::state::State;
use crate::agent::Lineage;
use crate::bindings::agent::{PyAgentRun, PyAgentTool};
use crate::bindings::response;
use crate::bindings::view::PyToolkitView;
use crate::call::Reply;

/// The start of a run.
pub(super) enum AgentStart<'py> {
    /// The coroutine or async generator of the loop.
    Running(Bound<'py, PyAny>),
    /// The agent may not be called here.
    Refused(Bound<'py, PyAny>),
}

impl State {
    /// Starts the run of an agent with inputs that were checked.
    #[cold]
    pub(super) fn start_agent<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyAny>) -> PyResult<AgentStart<'py>> {
        let tool = self.tool(py);
        let function = tool.get().function.bind(py);
        let agent = function.cast::<PyAgentTool>()?.get();
        let Some(toolkit) = self.toolkit.get(py) else {
            return Err(PyRuntimeError::new_err("a call of an agent needs a toolkit"));
        };
        let caller = self.viewed(py);
        let outer = caller.as_ref().and_then(|view| view.get().session());
        let lineage = Lineage::enter(outer.and_then(|it| it.lineage()), agent.agent().clone(), agent.limits());
        let lineage = match lineage {
            Ok(lineage) => lineage,
            Err(refusal) => return Ok(AgentStart::Refused(response::answer(py, &Reply::AgentRefused(refusal))?)),
        };
        let port = if let Some(port) = self.port(py) {
            port
        } else {
            let port = Bound::new(py, CallPort::default())?;
            self.cold().port.set(port.clone().into_any());
            port
        };
        if !self.single || self.known_info().is_some() {
            // The request has the id of the call, which the run cannot read later.
            let info = self.info(py);
            port.get().set_info(info);
        }
        let session = caller.as_ref().and_then(PyToolkitView::session_object);
        let run = PyAgentRun {
            lineage: lineage.clone(),
            port: port.unbind(),
            tool: tool.get().name.clone(),
            caller: caller.as_ref().and_then(|view| view.get().caller()).cloned(),
            session: session.map(Bound::unbind),
            toolkit: toolkit.to_owned().unbind(),
            host: self.host(py),
            started: Instant::now(),
            time: shorter(agent.time(), tool.get().timeout),
            context: OnceLock::new(),
        };
        let run = Bound::new(py, run)?;
        let session = agent.open(&toolkit.to_owned(), caller.as_ref(), &lineage, &run)?;
        agent.start(inputs, &session, &run).map(AgentStart::Running)
    }
}

/// The shorter of two times, if there are any.
fn shorter(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
