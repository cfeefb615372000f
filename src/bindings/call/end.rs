//! The end of a call that does not simply come to its end: errors, cancellation, the deadline.

use pyo3::exceptions::{
    PyException, PyGeneratorExit, PyKeyboardInterrupt, PyRuntimeError, PyStopAsyncIteration, PyStopIteration,
};
use pyo3::prelude::*;
use pyo3::types::PyNone;

use super::python::attached;
use super::python::drive::{Sent, await_iter, send};
use super::state::{Ending, Phase, State, Step};
use super::task;
use crate::bindings::foreign_response::is_interrupted;
use crate::bindings::into_response::error_class;
use crate::bindings::once::intern;
use crate::bindings::registration::CallKind;
use crate::bindings::response;
use crate::bindings::tool::ToolBody;
use crate::call::{ErrorMode, ErrorSource, Reply};

impl State {
    /// An exception came out of the tool, or of what runs in its place: it is answered, or raised.
    #[cold]
    pub(super) fn fail<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        attached(py, |py| match task::is_cancellation(py, &error) {
            Ok(is_cancellation) if self.is_postprocessing_last() => self.fail_last(py, error, is_cancellation),
            Ok(true) => self.interrupted(py, error),
            Ok(false) => self.answer_error(py, error),
            Err(error) => self.raise(py, error),
        })
    }

    /// Ends an interrupted call with a response, which a postprocess function sees first, and then perhaps the cancellation.
    fn end_interrupted<'py>(
        &self,
        py: Python<'py>,
        ending: Ending,
        response: Bound<'py, PyAny>,
        error: Option<PyErr>,
    ) -> Step<'py> {
        let is_postprocess = matches!(self.phase.get(), Phase::Postprocess | Phase::Approval);
        if is_postprocess || self.tool(py).get().postprocess.is_none() {
            return self.finalise_then_end(py, ending, Some(response), error);
        }
        let cold = self.cold();
        cold.ending.set(ending);
        match error {
            Some(error) => cold.error.set(error.into_value(py).into_bound(py).into_any()),
            None => cold.error.clear(py),
        }
        // The tool is finished: a cancellation came out of it.
        self.inner.clear(py);
        match self.in_class(py, response) {
            Ok(response) => self.postprocess(py, response, Phase::Cancelled),
            Err(error) => self.raise(py, error),
        }
    }

    /// True while a postprocess function works on the response of an interrupted call, whose ending is known.
    fn is_postprocessing_last(&self) -> bool {
        self.phase.get() == Phase::Postprocess && self.resume.get() == Phase::Cancelled
    }

    /// The ending of an interrupted call, after its postprocess function.
    pub(super) fn end_postprocessed<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>) -> Step<'py> {
        self.resume.set(Phase::Done);
        let cold = self.cold();
        let error = cold.error.take(py).map(PyErr::from_value);
        self.finalise_then_end(py, cold.ending.get(), Some(response), error)
    }

    /// The postprocess function of an interrupted call failed: the call ends as it would have without it, unless the task was
    /// asked to cancel once more.
    fn fail_last<'py>(&self, py: Python<'py>, error: PyErr, is_cancellation: bool) -> Step<'py> {
        let response = self.cold().response.take(py);
        match response {
            Some(response) if !is_cancellation => {
                self.log_raised(py, self.tool(py).get(), &error);
                self.end_postprocessed(py, response)
            }
            _ => {
                self.resume.set(Phase::Done);
                self.finalise_then_end(py, Ending::Raise, None, Some(error))
            }
        }
    }

    fn answer_error<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        let tool = self.tool(py);
        let phase = self.phase.get();
        let is_postprocess = phase == Phase::Postprocess;
        let is_generator = matches!(phase, Phase::AsyncGenerator | Phase::Generator)
            || (phase == Phase::Job && (self.delivered.get() || tool.get().kind == CallKind::Generator));
        let in_background = self.is_in_background();
        let source = match (is_postprocess, is_generator) {
            (true, _) => ErrorSource::Postprocess,
            (false, true) => ErrorSource::Stream,
            (false, false) => ErrorSource::Function,
        };
        let responds = tool.get().errors.responds(source, in_background);
        let is_answerable = is_answerable(py, &error, tool.get().errors);
        if !responds || !is_answerable {
            if is_answerable {
                self.log_raised(py, tool.get(), &error);
            }
            return self.finalise_then_end(py, Ending::Raise, None, Some(wrap_stop_iteration(py, error)));
        }
        let is_streaming = is_postprocess || is_generator;
        let exception = error.into_value(py).into_bound(py).into_any();
        let (answered, shown) = self.failed(py, tool.get(), &exception, in_background && is_streaming);
        let raised = self.span().map(|span| (span, shown.unwrap_or_else(|| PyErr::from_value(exception.clone()))));
        let cancellation = match self.cancellation_behind(py, exception) {
            Ok(cancellation) => cancellation,
            Err(error) => return self.raise(py, error),
        };
        if let Some((span, raised)) = raised {
            span.get(py).note(py, cancellation.as_ref().unwrap_or(&raised));
        }
        match (answered, cancellation) {
            (Ok(response), Some(error)) if !self.single => {
                self.end_interrupted(py, Ending::Interrupt, response, Some(error))
            }
            (_, Some(error)) => self.finalise_then_end(py, Ending::Raise, None, Some(error)),
            // A postprocess function sees what its tool says, also when that is an error; but not its own errors.
            (Ok(response), None) if !is_postprocess => self.deliver(py, response, Phase::Done),
            (Ok(response), None) => self.finalise_then_end(py, Ending::Respond, Some(response), None),
            (Err(error), None) => self.raise(py, error),
        }
    }

    /// The cancellation that a tool answered with an error of its own, which must not make it undone.
    fn cancellation_behind(&self, py: Python<'_>, exception: Bound<'_, PyAny>) -> PyResult<Option<PyErr>> {
        let Some(cold) = self.cold.get().filter(|cold| cold.cancel_thrown.get()) else { return Ok(None) };
        if self.keeps_cancelled(py) {
            return Ok(None);
        }
        let expired = cold.deadline.take_expiry(py)?;
        if !self.is_asked_to_cancel(py, expired) {
            return Ok(None);
        }
        let cancellation = task::cancellation(py)?;
        cancellation.set_cause(py, Some(PyErr::from_value(exception)));
        Ok(Some(cancellation))
    }

    fn is_in_background(&self) -> bool {
        self.cold.get().is_some_and(|cold| cold.in_background.get())
    }

    /// True for a call in the background that AgentScope's rules apply to: cancelled, it ends with a result that can be
    /// fetched. No other code waits for its task.
    fn keeps_cancelled(&self, py: Python<'_>) -> bool {
        self.is_in_background() && self.tool(py).get().errors == ErrorMode::Compat
    }

    /// A `CancelledError` came out of the tool: the task was asked to cancel, or the deadline passed, or the tool
    /// raised it by itself.
    fn interrupted<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        let expired = match self.cold.get().map(|cold| cold.deadline.take_expiry(py)) {
            Some(Ok(expired)) => expired,
            Some(Err(error)) => return self.raise(py, error),
            None => false,
        };
        let is_requested = self.is_asked_to_cancel(py, expired);
        let is_timeout = expired && !is_requested;
        let is_asked = is_requested && !self.keeps_cancelled(py);
        let answered = if is_timeout {
            let tool = self.tool(py);
            let seconds = tool.get().timeout.unwrap_or_default();
            let reply = match tool.get().body {
                ToolBody::Agent => Reply::AgentTimeout { seconds },
                ToolBody::Python | ToolBody::Native => Reply::Timeout { tool: tool.get().name.to_string(), seconds },
            };
            response::answer(py, &reply)
        } else {
            self.note(py, &error);
            let last = if self.delivered.get() { self.last.get(py) } else { None };
            // The call that a layer or a tool passes on has reported it already.
            if is_asked && last.as_ref().is_some_and(is_interrupted) {
                return self.finalise_then_end(py, Ending::Raise, None, Some(error));
            }
            let is_function = matches!(self.phase.get(), Phase::Coroutine | Phase::Job | Phase::Approval);
            if !is_function && self.keeps_cancelled(py) {
                response::interrupted(py, None, false, &Reply::InterruptedInBackground)
            } else {
                let result = self.result_so_far(py);
                result.and_then(|result| response::interrupted(py, result, is_function, &Reply::Interrupted))
            }
        };
        match answered {
            // A chunk that cannot even be repeated must not come in the way of a cancellation.
            Err(_) if is_asked => self.finalise_then_end(py, Ending::Raise, None, Some(error)),
            Err(error) => self.raise(py, error),
            Ok(_) if is_asked && self.single => self.finalise_then_end(py, Ending::Raise, None, Some(error)),
            Ok(response) if is_asked => self.end_interrupted(py, Ending::Interrupt, response, Some(error)),
            Ok(response) if is_timeout => self.finalise_then_end(py, Ending::Respond, Some(response), None),
            Ok(response) => self.end_interrupted(py, Ending::Respond, response, None),
        }
    }

    /// True if the task was asked to cancel since the call began; a request that the deadline made is already revoked.
    pub(super) fn is_asked_to_cancel(&self, py: Python<'_>, expired: bool) -> bool {
        match (self.cancelling.get(), task::cancelling(py)) {
            (Some(before), Some(now)) => now > before,
            // Requests are not counted: a cancellation that the event loop threw in is taken for one.
            (None, None) => !expired && self.cold.get().is_some_and(|cold| cold.cancel_thrown.get()),
            // The call never gave way to the event loop, so that no other code can have asked.
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Finalises the generator that the tool left open, and ends the call.
    pub(super) fn finalise_then_end<'py>(
        &self,
        py: Python<'py>,
        ending: Ending,
        response: Option<Bound<'py, PyAny>>,
        error: Option<PyErr>,
    ) -> Step<'py> {
        let cold = self.cold();
        cold.ending.set(ending);
        match response {
            Some(response) => cold.response.set(response),
            None => cold.response.clear(py),
        }
        match error {
            Some(error) => cold.error.set(error.into_value(py).into_bound(py).into_any()),
            None => cold.error.clear(py),
        }
        self.awaited.clear(py);
        // Only an error of postprocessing leaves a generator behind that is not finished.
        let open = self.phase.get() == Phase::Postprocess && self.resume.get() != Phase::Done;
        if open && let Some(inner) = self.inner.get(py) {
            let is_async = self.resume.get() == Phase::AsyncGenerator;
            let closer = if is_async { intern!(py, "aclose") } else { intern!(py, "close") };
            let closing = inner.getattr_opt(closer).and_then(|close| close.map(|close| close.call0()).transpose());
            match closing.and_then(|closing| closing.filter(|_| is_async).map(await_iter).transpose()) {
                Ok(Some(iterator)) => {
                    self.awaited.set(iterator);
                    self.phase.set(Phase::Closing);
                    return self.step_closing(py, PyNone::get(py).as_any());
                }
                Ok(None) => {}
                Err(error) => error.write_unraisable(py, Some(&inner)),
            }
        }
        self.end(py)
    }

    /// Goes on finalising the tool's generator.
    pub(super) fn step_closing<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Step<'py> {
        attached(py, |py| {
            let Some(awaited) = self.awaited.get(py) else { return self.end(py) };
            match send(&awaited, value) {
                Sent::Yielded(future) => return Step::Suspend(future),
                Sent::Returned(_) => {}
                Sent::Raised(error) => self.note_closing_error(py, *error),
            }
            self.end(py)
        })
    }

    /// An error while the generator was finalised. Another request to cancel wins over the ending, and a consumer that
    /// asked for the end gets the error; any other is unraisable, because the ending is already known.
    pub(super) fn note_closing_error(&self, py: Python<'_>, error: PyErr) {
        let cold = self.cold();
        if cold.ending.get() == Ending::Closed || task::is_cancellation(py, &error).unwrap_or(false) {
            cold.ending.set(Ending::Raise);
            cold.error.set(error.into_value(py).into_bound(py).into_any());
        } else {
            error.write_unraisable(py, self.inner.get(py).as_ref());
        }
    }

    /// The ending that was decided on.
    pub(super) fn end<'py>(&self, py: Python<'py>) -> Step<'py> {
        if let Some(future) = self.close_opened(py) {
            return Step::Suspend(future);
        }
        let cold = self.cold();
        let response = cold.response.take(py).map(|response| self.as_last(py, response));
        self.finish(py);
        match (cold.ending.get(), response) {
            (Ending::Respond, Some(response)) => Step::Chunk(response),
            (Ending::Interrupt, Some(response)) => {
                self.phase.set(Phase::Cancelled);
                Step::Chunk(response)
            }
            (Ending::Closed, _) => Step::Chunk(py.None().into_bound(py)),
            (Ending::Over | Ending::Respond, _) => Step::End,
            (Ending::Raise | Ending::Interrupt, _) => self.raise_stored(py),
        }
    }

    /// Ends the call with an exception.
    pub(super) fn raise<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        self.finish(py);
        Step::Raise(error.into())
    }

    /// Raises the cancellation that was held back until the interrupted response was delivered.
    #[cold]
    pub(super) fn raise_cancellation<'py>(&self, py: Python<'py>) -> Step<'py> {
        attached(py, |py| {
            self.finish(py);
            self.raise_stored(py)
        })
    }

    fn raise_stored<'py>(&self, py: Python<'py>) -> Step<'py> {
        let error = self.cold().error.take(py);
        let gone = || PyRuntimeError::new_err("the exception of this tool call is gone");
        Step::Raise(error.map_or_else(gone, PyErr::from_value).into())
    }
}

/// An exception that is raised out of a step. `StopIteration` would be taken for the step's result there and
/// `StopAsyncIteration` for the end of the stream, so they go as the cause of another, as they do out of Python's generators.
fn wrap_stop_iteration(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) && !error.is_instance_of::<PyStopAsyncIteration>(py) {
        return error;
    }
    let wrapped = PyRuntimeError::new_err(format!("the tool raised {}", error_class(py, &error)));
    wrapped.set_cause(py, Some(error));
    wrapped
}

/// True for exceptions that may become a response: all but Ctrl-C, the closing of a generator and the cancellation of
/// another event loop. A tool that calls `sys.exit()` must not end the agent, unless AgentScope would let it.
fn is_answerable(py: Python<'_>, error: &PyErr, mode: ErrorMode) -> bool {
    let is_named = |name: &str| error_class(py, error) == name;
    if error.is_instance_of::<PyException>(py) || is_named("PanicException") {
        return true;
    }
    let asks_to_stop = error.is_instance_of::<PyKeyboardInterrupt>(py)
        || error.is_instance_of::<PyGeneratorExit>(py)
        || is_named("Cancelled");
    mode != ErrorMode::Compat && !asks_to_stop
}
