//! The part of a tool in the approval of its calls: it describes a call to the approver, and may want one to be confirmed.
//!
//! Such a tool has a method `__tool_confirm__(arguments, decide)`. It returns an object with `asks`, `summary`, `locations` and
//! `details`, a response if it refuses the arguments, and an awaitable of one of these if that takes time. The call waits for
//! that as it waits for an approver. A run with the same arguments finds the object in its context.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::super::failure::collect_texts;
use super::super::python::drive::await_iter;
use super::super::state::{Early, Phase, State, Step};
use super::Permitted;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::registration::Confirmation;
use crate::bindings::response::PyToolResponse;
use crate::bindings::tool::PyTool;
use crate::call::CheckedArguments;
use crate::policy::mask;

impl State {
    /// Asks the tool; the call waits for an answer that takes time.
    pub(super) fn ask_tool<'py>(
        &self,
        py: Python<'py>,
        tool: &Bound<'py, PyTool>,
        checked: CheckedArguments,
    ) -> Permitted<'py> {
        self.phase.set(Phase::Approval);
        let failed = |error: PyErr| Early::Step(self.fail(py, error));
        let answer = confirmation_of(tool, &checked).map_err(failed)?;
        if answer.getattr_opt(intern!(py, "__await__"))?.is_none() {
            return self.tool_answered(py, tool, checked, &answer);
        }
        self.awaited.set(await_iter(answer).map_err(failed)?);
        self.cold().confirming.replace(Some(Box::new(checked)));
        Err(Early::Wait)
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
        self.cold().confirmed.replace(Some(checked.sent.clone()));
        let next = self.in_stage(py, tool, &self.info(py), |stage| {
            if asks { stage.decide_confirmed(checked) } else { stage.decide(checked) }
        })?;
        let permitted = self.follow(py, tool, next)?;
        // From here on it is the tool that is waited for.
        self.suspended.set(false);
        Ok(permitted)
    }
}

/// Calls the method of the tool. The arguments are those that it would run with, so that they include its presets.
pub(super) fn confirmation_of<'py>(
    tool: &Bound<'py, PyTool>,
    checked: &CheckedArguments,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tool.py();
    let decide = tool.get().traits.confirmation == Confirmation::Decides;
    let arguments = json::to_python(py, &checked.sent)?;
    arguments.cast::<PyDict>()?.update(tool.get().presets(py).as_mapping())?;
    tool.get().registered().bind(py).call_method1(intern!(py, "__tool_confirm__"), (arguments, decide))
}

/// The texts of the secrets in a call.
pub(super) fn secrets_of(py: Python<'_>, tool: &PyTool, arguments: &CheckedArguments) -> Vec<String> {
    if tool.traits.secrets.is_empty() {
        return Vec::new();
    }
    let mut texts = tool.plan.redaction().secret_texts(&arguments.whole);
    for (name, value) in json::entries_of(tool.presets(py)) {
        if tool.traits.secrets.iter().any(|secret| name.eq(&**secret).unwrap_or(false)) {
            collect_texts(&value, &mut texts, DEEPEST);
        }
    }
    texts
}

/// The depth to which descriptions are searched for secrets.
const DEEPEST: usize = 8;

/// A description of a call without the secrets in its texts.
pub(super) fn without_secrets<'py>(
    value: Bound<'py, PyAny>,
    secrets: &[String],
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if secrets.is_empty() || depth > DEEPEST {
        return Ok(value);
    }
    let inner = |value| without_secrets(value, secrets, depth + 1);
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(PyString::new(py, &mask(&text.to_string_lossy(), secrets)).into_any());
    }
    if let Ok(entries) = value.cast_exact::<PyDict>() {
        let shown = PyDict::new(py);
        for (key, value) in json::entries_of(entries) {
            shown.set_item(inner(key)?, inner(value)?)?;
        }
        return Ok(shown.into_any());
    }
    let is_tuple = value.is_exact_instance_of::<PyTuple>();
    if is_tuple || value.is_exact_instance_of::<PyList>() {
        let shown = value.try_iter()?.map(|item| inner(item?)).collect::<PyResult<Vec<_>>>()?;
        return Ok(if is_tuple { PyTuple::new(py, shown)?.into_any() } else { PyList::new(py, shown)?.into_any() });
    }
    Ok(value)
}
