//! The bare value of a call by `Toolkit.value`: what the function returned, without a response around it. A response is
//! made only for those who look at one: listeners and tracers, the limit of retries, a postprocess function.

use pyo3::prelude::*;

use super::python::drive::is_awaitable;
use super::python::{attached, object};
use super::run::{Runnable, runnable};
use super::state::{Phase, Resumed, State, Step};
use crate::bindings::errors;
use crate::bindings::into_response::into_response;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::tool::ToolBody;

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
