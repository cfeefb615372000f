//! Calls that end with a pending value, calls that resume one, and dry runs.

use std::cell::OnceCell;
use std::convert::Infallible;
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
use crate::bindings::call::request::{NO_CALL, Request, block, is_readable};
use crate::bindings::call::state::{Early, Origin, State, Step};
use crate::bindings::imported::FINISHED;
use crate::bindings::into_response::error_text;
use crate::bindings::json;
use crate::bindings::once::intern;
use crate::bindings::policy::value_of;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::tool::PyTool;
use crate::call::path::{self, Clearance, Driver};
use crate::call::{CallInfo, CheckedArguments, Outlook, Reply};
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
    if let Some(toolkit) = state.toolkit.get(py) {
        toolkit.get().warn_of_rules(py);
    }
    let run = DryRun { state: &state, py, name: OnceCell::new() };
    let outlook = match path::begin(&run) {
        Ok(outlook) | Err(DryEnd::Outlook(outlook)) => outlook,
        Err(DryEnd::Raise(error)) => return Err(*error),
    };
    Ok(json::to_python(py, &outlook.to_value(run.name.get().map(String::as_str)))?.cast_into()?)
}

/// A call that is looked at without being run: the driver of stages that have no effect.
struct DryRun<'a, 'py> {
    state: &'a State,
    py: Python<'py>,
    /// The name in the request.
    name: OnceCell<String>,
}

/// The end of a dry run.
enum DryEnd {
    Outlook(Box<Outlook>),
    Raise(Box<PyErr>),
}

impl From<PyErr> for DryEnd {
    fn from(error: PyErr) -> Self {
        Self::Raise(Box::new(error))
    }
}

impl From<Outlook> for DryEnd {
    fn from(outlook: Outlook) -> Self {
        Self::Outlook(Box::new(outlook))
    }
}

impl From<Early<'_>> for DryEnd {
    fn from(early: Early<'_>) -> Self {
        match early {
            Early::Reply(reply) => Outlook::refused(*reply).into(),
            Early::Raise(error) => Self::Raise(error),
            Early::Step(_) | Early::Wait => PyTypeError::new_err(NO_CALL).into(),
        }
    }
}

impl<'py> Driver for DryRun<'_, 'py> {
    type Request = Request<'py>;
    type Tool = Bound<'py, PyTool>;
    type Arguments = CheckedArguments;
    type Permitted = Infallible;
    type Step = Box<Outlook>;
    type Early = DryEnd;

    fn claim(&self) -> Result<(), DryEnd> {
        Ok(())
    }

    fn middleware(&self) -> Result<Option<Box<Outlook>>, DryEnd> {
        Ok(None)
    }

    fn request(&self) -> Result<Request<'py>, DryEnd> {
        Ok(self.state.read_request(self.py)?)
    }

    fn admit(&self, request: &Request<'py>) -> Result<Bound<'py, PyTool>, DryEnd> {
        let name = request.name()?;
        let name = self.name.get_or_init(|| name.to_owned());
        Ok(self.state.find_admitted(self.py, name).map_err(|reply| request.unadmitted(reply.into()))?)
    }

    fn deny_outright(&self, tool: &Bound<'py, PyTool>, _: &Request<'py>) -> Result<Clearance, DryEnd> {
        let call = self.state.info(self.py);
        self.state.in_stage(self.py, tool, &call, |stage| stage.preview(None).map_err(|it| stage.denied(it).into()))
    }

    fn arguments(
        &self,
        tool: &Bound<'py, PyTool>,
        request: Request<'py>,
        _: Clearance,
    ) -> Result<CheckedArguments, DryEnd> {
        let arguments = self.state.certain_arguments(self.py, tool.get(), request)?;
        let checked = tool.get().plan.check_arguments(&arguments, self.state)?;
        let call = self.state.info(self.py);
        Ok(checked.map_err(|unfit| self.state.in_stage(self.py, tool, &call, |stage| stage.unfit(unfit)))?)
    }

    fn permission(&self, tool: &Bound<'py, PyTool>, checked: CheckedArguments) -> Result<Infallible, DryEnd> {
        let (state, py) = (self.state, self.py);
        let mut confirms = false;
        if state.asks_tool(py, tool, &checked) {
            let mut answer = confirmation_of(tool, &checked)?;
            if answer.getattr_opt(intern!(py, "__await__"))?.is_some() {
                answer = FINISHED.get(py)?.call1((answer,))?;
            }
            if answer.is_instance_of::<PyToolResponse>() {
                let text = answer.getattr(intern!(py, "text"))?.extract()?;
                return Err(Outlook::refused(Reply::InvalidArguments { text }).into());
            }
            confirms = answer.getattr(intern!(py, "asks"))?.is_truthy()?;
        }
        Err(state.in_stage(py, tool, &state.info(py), |stage| stage.outlook(&checked, confirms)).into())
    }

    fn count(&self, _: &Bound<'py, PyTool>) -> Result<(), DryEnd> {
        Ok(())
    }

    fn run(&self, _: Bound<'py, PyTool>, permitted: Infallible) -> Box<Outlook> {
        match permitted {}
    }
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
