//! Calls that end with a pending value, calls that resume one, and dry runs.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::answer_of;
use super::confirm::confirmation_of;
use crate::Error;
use crate::bindings::call::cold::Cold;
use crate::bindings::call::python::{attached, object};
use crate::bindings::call::request::{NO_CALL, block, is_readable};
use crate::bindings::call::state::{Early, Origin, State, Step};
use crate::bindings::imported::FINISHED;
use crate::bindings::into_response::error_text;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::policy::value_of;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::tool::PyTool;
use crate::call::{CallInfo, Outlook, Reply, Unfit};
use crate::policy::Pending;

/// The stream that resumes a pending call. Its first step decides whether that is possible.
pub(crate) fn resumed<'py>(
    origin: &Bound<'py, PyAny>,
    pending: &Bound<'py, PyAny>,
    answer: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyAny>>,
    by: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = origin.py();
    let pending = Pending::from_value(&read_pending(pending)?)?;
    let answer = answer_of(answer, arguments, by)?;
    let edited = answer.edited.clone().map(Value::Object);
    let input = json::to_python(py, edited.as_ref().unwrap_or(&pending.arguments))?;
    let request = block(PyString::new(py, &pending.tool).as_any(), &input)?;
    request.set_item(intern!(py, "id"), &pending.call_id)?;
    let state = State::stream(Origin::of(origin)?, request.into_any());
    let (caller, session) = (state.caller(py), state.session(py));
    state.join(Some(Arc::new(CallInfo::resuming(pending, answer, caller).in_session(session))));
    object::new(py, || state)
}

impl State {
    /// Uses the pending value of a resumed call up before anything runs.
    #[inline]
    pub(in crate::bindings::call) fn claim_approval<'py>(
        &self,
        py: Python<'py>,
        cold: &Cold,
    ) -> Result<(), Early<'py>> {
        if cold.is_to_claim() { attached(py, |py| self.claim(py)) } else { Ok(()) }
    }

    #[cold]
    fn claim<'py>(&self, py: Python<'py>) -> Result<(), Early<'py>> {
        let Some(call) = self.known_info() else { return Ok(()) };
        let Some(resumption) = call.resumption.as_ref() else { return Ok(()) };
        let tool = match self.find_admitted(py, &resumption.pending().tool) {
            Ok(tool) => tool,
            Err(reply) => {
                // The name of an altered call is not what the model called.
                if let Some(toolkit) = self.toolkit.get(py) {
                    let approvals = toolkit.get().permissions(py).get().approvals(py)?;
                    approvals.get().core()?.verify(resumption.pending()).map_err(PyErr::from)?;
                }
                return Err(reply.into());
            }
        };
        match self.in_stage(py, &tool, &call, |stage| stage.claim(resumption))? {
            Some(next) => Err(self.end_by(py, &tool, next)),
            None => Ok(()),
        }
    }

    /// Ends the call with a pending value, with which it can be resumed later.
    pub(super) fn end_pending<'py>(&self, py: Python<'py>, pending: &Pending) -> Early<'py> {
        let response = json::to_python(py, &pending.to_value()).and_then(|value| {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "pending"), value)?;
            let reply = Reply::Pending { tool: pending.tool.clone() };
            response::answer_with(py, &reply, Some(metadata.into_any()))
        });
        self.finish(py);
        Early::Step(response.map_or_else(Step::raise, Step::Chunk))
    }
}

/// The JSON of what should be a pending call.
fn read_pending(pending: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = pending.py();
    value_of(pending, "a pending call").map_err(|cause| {
        if !cause.is_instance_of::<PyException>(py) {
            return cause;
        }
        let (field, expected) = ("$".to_owned(), "the JSON object that a pending response has");
        let found = format!("what cannot be read ({})", error_text(py, &cause));
        let error = PyErr::from(Error::InvalidPending { field, expected, found });
        error.set_cause(py, Some(cause));
        error
    })
}

/// Reports the outcome that a call of a toolkit or through a view would have.
pub(crate) fn check<'py>(origin: &Bound<'py, PyAny>, call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = origin.py();
    if !is_readable(call) {
        return Err(PyTypeError::new_err(NO_CALL));
    }
    let state = State::stream(Origin::of(origin)?, call.clone());
    let mut name = None;
    let outlook = match outlook(py, &state, &mut name) {
        Ok(outlook) => outlook,
        Err(Early::Reply(reply)) => Outlook::refused(*reply),
        Err(Early::Raise(error)) => return Err(*error),
        Err(Early::Step(_)) => return Err(PyTypeError::new_err(NO_CALL)),
    };
    Ok(json::to_python(py, &outlook.to_value(name.as_deref()))?.cast_into()?)
}

/// The stages of a call up to the permission stage, which only says what it would do.
fn outlook<'py>(py: Python<'py>, state: &State, name: &mut Option<String>) -> Result<Outlook, Early<'py>> {
    let request = state.read_request(py)?;
    let name = name.insert(request.name()?.to_owned());
    let tool = state.find_admitted(py, name).map_err(|reply| request.unadmitted(reply.into()))?;
    let checked = match state.certain_arguments(py, tool.get(), request) {
        Ok(arguments) => tool.get().plan.check_arguments(&arguments, state)?,
        Err(Early::Reply(reply)) => Err(Unfit::Refused(*reply)),
        Err(early) => return Err(early),
    };
    let mut confirms = false;
    if let Ok(checked) = &checked
        && state.asks_tool(py, &tool, checked)
    {
        let mut answer = confirmation_of(&tool, checked)?;
        if answer.getattr_opt(intern!(py, "__await__"))?.is_some() {
            answer = FINISHED.get(py)?.call1((answer,))?;
        }
        if answer.is_instance_of::<PyToolResponse>() {
            let text = answer.getattr(intern!(py, "text"))?.extract()?;
            return Ok(Outlook::refused(Reply::InvalidArguments { text }));
        }
        confirms = answer.getattr(intern!(py, "asks"))?.is_truthy()?;
    }
    Ok(state.in_stage(py, &tool, &state.info(py), |stage| stage.outlook(checked, confirms)))
}

/// The arguments that rules see in a call, and the same redacted; arguments that do not fit are left as they are.
pub(crate) fn explained_arguments(py: Python<'_>, tool: &PyTool, sent: &Value) -> PyResult<(Value, Value)> {
    let input = json::to_python(py, sent)?;
    if let Ok(input) = input.cast::<PyDict>()
        && let Ok(checked) = tool.plan.check_arguments(input, &())?
    {
        let shown = tool.plan.redaction().arguments(&checked.whole);
        return Ok((checked.whole, shown));
    }
    let whole = tool.plan.completed(py, sent.clone(), None, &())?.whole;
    let shown = tool.plan.redaction().unchecked(whole.clone());
    Ok((whole, shown))
}
