//! The part of a tool in the approval of its calls: it describes a call to the approver, and may want one to be confirmed.
//!
//! Such a tool has a method `__tool_confirm__(arguments, decide)`. It returns an object with `asks`, `summary`, `locations` and
//! `details`, a response if it refuses the arguments, and an awaitable of one of these if that takes time. The call waits for
//! that as it waits for an approver.

use pyo3::intern;
use pyo3::prelude::*;

use super::super::python::drive::await_iter;
use super::super::state::{Early, Phase, State, Step};
use super::Permitted;
use crate::bindings::json;
use crate::bindings::registration::Confirmation;
use crate::bindings::response::PyToolResponse;
use crate::bindings::tool::PyTool;
use crate::call::CheckedArguments;
use crate::policy::Decision;

impl State {
    /// True if the tool has a part in the approval of a call: it decides about it, or describes it to the approver.
    pub(super) fn asks_tool<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: &CheckedArguments,
    ) -> bool {
        let confirmation = tool.get().traits.confirmation;
        confirmation != Confirmation::Silent
            && self.in_stage(py, tool, &self.info(py), |stage| {
                let (_, verdict) = stage.route(checked);
                match verdict.decision {
                    Decision::Ask => true,
                    Decision::Allow => verdict.rule().is_none() && confirmation == Confirmation::Decides,
                    Decision::Deny => false,
                }
            })
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
        let decide = tool.get().traits.confirmation == Confirmation::Decides;
        let function = tool.get().registered().bind(py);
        let arguments = json::to_python(py, &checked.sent)?;
        let answer = function.call_method1(intern!(py, "__tool_confirm__"), (arguments, decide)).map_err(failed)?;
        if answer.getattr_opt(intern!(py, "__await__"))?.is_none() {
            return self.tool_answered(py, tool, checked, &answer);
        }
        self.awaited.set(await_iter(answer).map_err(failed)?);
        self.cold().confirming.replace(Some(Box::new(checked)));
        Ok(None)
    }

    /// Goes on with the answer of the tool.
    pub(super) fn tool_answered<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: CheckedArguments,
        answer: &Bound<'py, PyAny>,
    ) -> Permitted<'py> {
        if answer.is_instance_of::<PyToolResponse>() {
            self.finish(py);
            return Err(Early::Step(Step::Chunk(answer.clone())));
        }
        let asks = answer.getattr(intern!(py, "asks"))?.is_truthy()?;
        self.cold().confirmation.set(answer.clone());
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
}
