//! Responses: made from what a tool gives, postprocessed if the tool says so, with the list of repairs; and the bare value of
//! a call that asks for no response.

use pyo3::prelude::*;
use pyo3::types::PyNone;

use super::chunk::Chunk;
use super::cold::Cold;
use super::python::drive::{Sent, await_iter, is_awaitable, send};
use super::python::{attached, object};
use super::run::{Runnable, runnable};
use super::state::{Ending, Phase, Resumed, State, Step};
use crate::bindings::errors;
use crate::bindings::foreign_response::not_a_response;
use crate::bindings::into_response::{empty, into_response};
use crate::bindings::once::intern;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::tool::ToolBody;
use crate::bindings::tool_call::repairs_to_python;

impl State {
    /// The one result of a function or coroutine, as the last response of the call; something to run comes back as `Err`.
    #[inline(always)]
    pub(super) fn respond<'py>(&self, py: Python<'py>, result: Bound<'py, PyAny>) -> Result<Step<'py>, Runnable<'py>> {
        if self.bare && !self.is_layer() {
            return self.respond_value(py, result);
        }
        if result.get_type_ptr() == response::exact_type(py) {
            return Ok(self.deliver(py, result, Phase::Done));
        }
        if let Some(class) = &self.tool(py).get().response_class {
            if class.holds(&result) {
                return Ok(self.deliver(py, result, Phase::Done));
            }
            if result.is_none() {
                return Ok(self.fail_on_item(py, Phase::Done, not_a_response()));
            }
        }
        if self.is_layer() && result.is_none() {
            return Ok(self.end_of_stream(py)); // no response, in whatever way the middleware ended
        }
        match runnable(result) {
            Ok(runnable) => Err(runnable),
            Err(value) => Ok(match attached(py, |_| into_response(value)) {
                Ok(response) => self.deliver(py, response, Phase::Done),
                Err(error) => self.fail(py, error),
            }),
        }
    }

    /// A value as a response, in the class that the toolkit delivers.
    fn response_of<'py>(&self, py: Python<'py>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.tool(py).get().response_class {
            Some(class) => class.response_of(value),
            None => into_response(value),
        }
    }

    /// One of toolcrib's own responses in the class that the toolkit delivers; any other stays.
    pub(super) fn in_class<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match (self.tool.get(py), self.toolkit.get(py)) {
            (Some(tool), _) => match &tool.get().response_class {
                Some(class) => class.convert(response),
                None => Ok(response),
            },
            (None, Some(toolkit)) => toolkit.get().in_class(response),
            (None, None) => Ok(response),
        }
    }

    /// A step whose response is in the class that the toolkit delivers.
    #[inline]
    pub(super) fn step_in_class<'py>(&self, py: Python<'py>, step: Step<'py>) -> Step<'py> {
        match step {
            Step::Chunk(response) => self.in_class(py, response).map_or_else(Step::raise, Step::Chunk),
            step => step,
        }
    }

    /// One item of a generator. `None` if there is no response to it: the tool goes on.
    #[inline(always)]
    pub(super) fn respond_item<'py>(&self, py: Python<'py>, item: Bound<'py, PyAny>) -> Option<Step<'py>> {
        if self.collects(py) {
            return self.respond_chunk(py, item);
        }
        let phase = self.phase.get();
        self.delivered.set(true);
        if item.get_type_ptr() == response::exact_type(py) {
            return Some(self.deliver(py, item, phase));
        }
        Some(match attached(py, |py| self.response_of(py, item)) {
            Ok(response) => self.deliver(py, response, phase),
            Err(error) => self.fail_on_item(py, phase, error),
        })
    }

    /// The same for a generator whose chunks are collected.
    fn respond_chunk<'py>(&self, py: Python<'py>, item: Bound<'py, PyAny>) -> Option<Step<'py>> {
        let phase = self.phase.get();
        Some(match attached(py, |py| self.collect(py, item)) {
            Ok(Chunk::Part(response)) => {
                self.delivered.set(true);
                self.deliver(py, response, phase)
            }
            Ok(Chunk::Last(response)) => self.deliver(py, response, Phase::Done),
            Ok(Chunk::Completion) => return None,
            Err(error) => self.fail_on_item(py, phase, error),
        })
    }

    /// A result cannot be converted. A generator is not to blame and still open: it is finalised as after an error of
    /// postprocessing.
    #[cold]
    pub(super) fn fail_on_item<'py>(&self, py: Python<'py>, phase: Phase, error: PyErr) -> Step<'py> {
        self.resume.set(phase);
        self.phase.set(Phase::Postprocess);
        self.fail(py, error)
    }

    /// Hands a response to the consumer, through the postprocess function if there is one; the call goes on in `phase`.
    #[inline(always)]
    pub(super) fn deliver<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>, phase: Phase) -> Step<'py> {
        if self.tool(py).get().is_delivery_handled {
            return attached(py, |py| self.deliver_handled(py, response, phase));
        }
        self.hand_over(py, response, phase)
    }

    /// The same for a tool whose responses are postprocessed, or converted to the class of another library.
    fn deliver_handled<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>, phase: Phase) -> Step<'py> {
        let is_postprocessed = self.tool(py).get().postprocess.is_some();
        // Marks are set on toolcrib's own responses only.
        let response = if phase == Phase::Done && !is_postprocessed { self.as_last(py, response) } else { response };
        match self.in_class(py, response) {
            Ok(response) if is_postprocessed => self.postprocess(py, response, phase),
            Ok(response) => self.hand_over(py, response, phase),
            Err(error) => self.raise(py, error),
        }
    }

    #[inline(always)]
    fn hand_over<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>, phase: Phase) -> Step<'py> {
        match phase {
            Phase::Done => {
                let response = if self.delivered.get() { self.as_last(py, response) } else { response };
                if self.is_layer() {
                    // Streams that the middleware left open are closed before its last response is handed over.
                    return attached(py, |py| self.finalise_then_end(py, Ending::Respond, Some(response), None));
                }
                self.finish(py);
                return Step::Chunk(response);
            }
            // Nothing can interrupt a generator that runs inline, so that the last response need not be kept.
            Phase::Generator => self.phase.set(phase),
            _ => {
                self.phase.set(phase);
                self.last.set(response.clone());
            }
        }
        Step::Chunk(response)
    }

    #[cold]
    pub(super) fn postprocess<'py>(&self, py: Python<'py>, response: Bound<'py, PyAny>, phase: Phase) -> Step<'py> {
        // Not in `last`: that is the response that the consumer has seen, and an interruption repeats it.
        self.cold().response.set(response.clone());
        self.resume.set(phase);
        self.phase.set(Phase::Postprocess);
        let function = self.tool(py).get().postprocess.as_ref().map(|function| function.clone_ref(py));
        let replacement = match function {
            Some(function) => function.bind(py).call1((self.request.get(py), response)),
            None => Ok(py.None().into_bound(py)),
        };
        let iterator = match replacement {
            Ok(replacement) if !is_awaitable(&replacement) => return self.postprocessed(py, &replacement),
            Ok(awaitable) => await_iter(awaitable),
            Err(error) => Err(error),
        };
        match iterator {
            Ok(iterator) => {
                self.awaited.set(iterator);
                self.step_postprocess(py, PyNone::get(py).as_any())
            }
            Err(error) => self.fail(py, error),
        }
    }

    /// Goes on waiting for the postprocess function.
    pub(super) fn step_postprocess<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> Step<'py> {
        let Some(awaited) = self.awaited.get(py) else { return self.end_of_stream(py) };
        match send(&awaited, value) {
            Sent::Yielded(future) => Step::Suspend(future),
            Sent::Returned(replacement) => self.postprocessed(py, &replacement),
            Sent::Raised(error) => self.fail(py, *error),
        }
    }

    /// A true result takes the response's place, anything else keeps it.
    pub(super) fn postprocessed<'py>(&self, py: Python<'py>, replacement: &Bound<'py, PyAny>) -> Step<'py> {
        attached(py, |py| {
            self.awaited.clear(py);
            let phase = self.resume.get();
            // An interrupted call ends with the original if the replacement is not a response.
            let slot = &self.cold().response;
            let original = if phase == Phase::Cancelled { slot.get(py) } else { slot.take(py) };
            let response = replacement.is_truthy().and_then(|is_given| match original {
                Some(original) if !is_given => Ok(original),
                Some(original) if phase != Phase::Done => {
                    self.response_of(py, replacement.clone()).map(|response| self.as_chunk(py, response, &original))
                }
                _ => self.response_of(py, replacement.clone()),
            });
            match response {
                Ok(response) if phase == Phase::Cancelled => self.end_postprocessed(py, response),
                Ok(response) => self.hand_over(py, response, phase),
                Err(error) => self.fail(py, error),
            }
        })
    }

    /// A generator has come to its end: the whole result follows, or an empty response if there was none at all. In the
    /// place of another library a stream may be empty.
    pub(super) fn end_of_stream<'py>(&self, py: Python<'py>) -> Step<'py> {
        if !self.whole.is_empty() {
            return attached(py, |py| match self.whole_response(py) {
                Ok(response) => self.deliver(py, response, Phase::Done),
                Err(error) => self.fail(py, error),
            });
        }
        let has_foreign_class = self.tool.get(py).is_some_and(|tool| tool.get().response_class.is_some());
        let is_complete = self.delivered.get() || (has_foreign_class && !self.single);
        if !self.is_layer() && is_complete {
            self.finish(py);
            return Step::End;
        }
        attached(py, |py| {
            if self.is_layer() && !self.delivered.get() {
                return self.end_silent_layer(py);
            }
            if is_complete {
                return self.finalise_then_end(py, Ending::Over, None, None);
            }
            match empty(py) {
                Ok(response) => self.finalise_then_end(py, Ending::Respond, Some(response), None),
                Err(error) => self.finalise_then_end(py, Ending::Raise, None, Some(error)),
            }
        })
    }

    /// A step with the repairs in the metadata of its response: the first one of a call, and every one of a call that
    /// only gives its last.
    #[inline]
    pub(super) fn with_repairs<'py>(&self, py: Python<'py>, cold: &Cold, step: Step<'py>) -> Step<'py> {
        match step {
            Step::Chunk(response) if !cold.repaired.borrow().repairs.is_empty() => attached(py, |py| {
                let repairs = if self.single {
                    cold.repaired.borrow().repairs.clone()
                } else {
                    std::mem::take(&mut cold.repaired.borrow_mut().repairs)
                };
                let repairs = match self.tool.get(py) {
                    Some(tool) => tool.get().plan.redacted(repairs),
                    None => repairs,
                };
                let listed = repairs_to_python(py, &repairs)
                    .and_then(|repairs| response::with_metadata(&response, intern!(py, "repairs"), repairs.as_any()));
                Step::Chunk(listed.unwrap_or_else(|error| {
                    // The response is worth more than the list.
                    error.write_unraisable(py, Some(&response));
                    response
                }))
            }),
            step => step,
        }
    }
}

/// The bare value of a call by `Toolkit.value`: what the function returned, without a response around it. A response is made only
/// for listeners, tracers, the limit of retries and a postprocess function.
impl State {
    /// The one result of a function or coroutine, as the value of the call; something to run comes back as `Err`.
    ///
    /// An awaitable that a function returned is awaited. Anything else is the value as it is, also a generator.
    pub(super) fn respond_value<'py>(
        &self,
        py: Python<'py>,
        result: Bound<'py, PyAny>,
    ) -> Result<Step<'py>, Runnable<'py>> {
        let is_awaited = self.phase.get() == Phase::Coroutine;
        let result = if object::is_stream(&result) || (!is_awaited && is_awaitable(&result)) {
            match runnable(result) {
                Ok(runnable) => return Err(runnable),
                Err(value) => value,
            }
        } else {
            result
        };
        if self.tool(py).get().body != ToolBody::Python && result.is_instance_of::<PyToolResponse>() {
            // The response of a tool that is written in Rust, which has its value or its failure.
            return Ok(attached(py, |py| self.deliver(py, result, Phase::Done)));
        }
        if self.tool(py).get().postprocess.is_some() || self.cold.get().is_some_and(|cold| cold.needs_response()) {
            return Ok(attached(py, |py| self.respond_beside_value(py, result)));
        }
        self.finish(py);
        Ok(Step::Value(result))
    }

    /// Makes a response for the other stages of the call, and keeps the value for its end.
    #[cold]
    fn respond_beside_value<'py>(&self, py: Python<'py>, result: Bound<'py, PyAny>) -> Step<'py> {
        match into_response(result.clone()) {
            Ok(response) => {
                // A postprocess function may replace the response, and its value counts.
                if self.tool(py).get().postprocess.is_none() {
                    self.cold().value.set(result);
                }
                self.deliver(py, response, Phase::Done)
            }
            Err(error) => self.fail(py, error),
        }
    }

    /// The end of a call that gives its value: that of its last response, or the exception if the call has none.
    #[cold]
    pub(super) fn value_of<'py>(&self, py: Python<'py>, last: &Bound<'py, PyAny>) -> Resumed<'py> {
        let value = attached(py, |py| {
            let kept = self.cold.get().and_then(|cold| cold.value.take(py));
            let Ok(last) = last.cast::<PyToolResponse>() else { return Ok(last.clone()) };
            match (kept, response::failure(last)?) {
                (Some(value), _) => Ok(value),
                (None, Some((text, cause))) => Err(errors::call_failed(text, last, cause)),
                (None, None) => response::value(last),
            }
        });
        match value {
            Ok(value) => Resumed::Return(value),
            Err(error) => Resumed::Raise(error.into()),
        }
    }
}
