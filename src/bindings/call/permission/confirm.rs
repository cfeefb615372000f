//! The part of a tool in the approval of its calls: it describes a call to the approver, and may want one to be confirmed.
//!
//! Such a tool has a method `__tool_confirm__(arguments, decide)`. It returns an object with `asks`, `summary`, `locations` and
//! `details`, or `None`; if it is to decide, also an awaitable of one. The call waits for that as it waits for an approver.

use pyo3::intern;
use pyo3::prelude::*;

use super::super::python::drive::await_iter;
use super::super::state::{Early, Phase, State};
use super::Permitted;
use crate::bindings::json;
use crate::bindings::registration::Confirmation;
use crate::bindings::tool::PyTool;
use crate::call::{CheckedArguments, Waiting};

impl State {
    /// True if the tool itself decides whether a call needs approval.
    pub(super) fn asks_tool<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: &CheckedArguments,
    ) -> bool {
        tool.get().traits.confirmation == Confirmation::Decides
            && self.in_stage(py, tool, &self.info(py), |stage| stage.asks_tool(checked))
    }

    /// Asks the tool; the call waits for an answer that takes time.
    pub(super) fn ask_tool<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: CheckedArguments,
    ) -> Permitted<'py> {
        self.phase.set(Phase::Approval);
        let failed = |error: PyErr| Early::Step(self.fail(py, error));
        let answer = self.confirmation(py, tool, &checked, true).map_err(failed)?;
        if answer.getattr_opt(intern!(py, "__await__"))?.is_none() {
            return self.tool_answered(py, tool, checked, &answer);
        }
        self.awaited.set(await_iter(answer).map_err(failed)?);
        self.cold().confirming.replace(Some(Box::new(checked)));
        Ok(None)
    }

    /// Goes on with the answer of the tool: `None` if it has no objection.
    pub(super) fn tool_answered<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: CheckedArguments,
        answer: &Bound<'py, PyAny>,
    ) -> Permitted<'py> {
        let asks = !answer.is_none() && answer.getattr(intern!(py, "asks"))?.is_truthy()?;
        if !answer.is_none() {
            self.cold().confirmation.set(answer.clone());
        }
        let next = self.in_stage(py, tool, &self.info(py), |stage| {
            if asks { stage.decide_confirmed(checked) } else { stage.decide(checked) }
        })?;
        let permitted = self.follow(py, tool, next)?;
        if permitted.is_some() {
            // From here on it is the tool that is waited for.
            self.suspended.set(false);
        }
        Ok(permitted)
    }

    /// The description of a call for the approver, if the tool gives one.
    pub(super) fn described<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        waiting: &Waiting,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let known = self.cold().confirmation.take(py);
        if known.is_some() || tool.get().traits.confirmation == Confirmation::Silent {
            return Ok(known);
        }
        let described = self.confirmation(py, tool, waiting.arguments(), false)?;
        Ok((!described.is_none()).then_some(described))
    }

    fn confirmation<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: &CheckedArguments,
        decide: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = json::to_python(py, &checked.sent)?;
        tool.get().registered().bind(py).call_method1(intern!(py, "__tool_confirm__"), (arguments, decide))
    }
}
