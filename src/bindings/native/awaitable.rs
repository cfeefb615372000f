//! What calling a native tool gives: an awaitable, or an async iterator, that drives its job.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use serde_json::Value;

use super::job::NativeJob;
use crate::bindings::worker::Step;
use crate::native::{NativeTool, ToolContext};

/// A call of a native tool that starts when it is first polled.
#[derive(Clone)]
pub(super) struct Source(Arc<Mutex<State>>);

enum State {
    Fresh(Box<(NativeTool, ToolContext, Value)>),
    Running(NativeJob),
    Over,
}

impl Source {
    pub(super) fn new(tool: NativeTool, context: ToolContext, arguments: Value) -> Self {
        Self(Arc::new(Mutex::new(State::Fresh(Box::new((tool, context, arguments))))))
    }

    fn poll(&self, py: Python<'_>) -> PyResult<Step> {
        // An event loop may run Python code while it makes a future, and that code may come back here.
        let Ok(mut state) = self.0.try_lock() else {
            return Err(PyRuntimeError::new_err("the native tool is already awaited"));
        };
        if let State::Fresh(call) = &mut *state {
            let (tool, context, arguments) = &mut **call;
            let (context, arguments) = (std::mem::take(context), std::mem::take(arguments));
            let started = NativeJob::start(py, tool, context, arguments);
            *state = State::Over;
            *state = State::Running(started?);
        }
        match &mut *state {
            State::Running(job) => job.poll(py),
            State::Fresh(_) | State::Over => Ok(Step::Done(None)),
        }
    }

    /// Gives the call up.
    fn abandon(&self) {
        if let Ok(mut state) = self.0.try_lock() {
            *state = State::Over;
        }
    }
}

/// The responses of a native tool that streams.
#[pyclass(name = "_NativeResponses", module = "toolcrib._core", frozen)]
pub(crate) struct PyNativeResponses(Source);

impl PyNativeResponses {
    pub(super) fn new(source: Source) -> Self {
        Self(source)
    }

    /// The next response, without the awaitable that [`__anext__`](Self::__anext__) makes and the exception that tells
    /// its result.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<Step> {
        self.0.poll(py)
    }
}

#[pymethods]
impl PyNativeResponses {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self) -> PyNativeStep {
        PyNativeStep { source: self.0.clone(), wanted: Wanted::Chunk }
    }

    /// End the tool.
    fn aclose(&self) -> PyNativeStep {
        PyNativeStep { source: self.0.clone(), wanted: Wanted::End }
    }
}

/// An awaitable of one response, or of the end.
#[pyclass(name = "_NativeStep", module = "toolcrib._core", frozen)]
pub(super) struct PyNativeStep {
    source: Source,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Wanted {
    /// The next response of several.
    Chunk,
    /// The one response.
    Result,
    /// That there are no more.
    End,
}

impl PyNativeStep {
    pub(super) fn of_result(source: Source) -> Self {
        Self { source, wanted: Wanted::Result }
    }

    /// A future to hand to the event loop, or the outcome as Python tells it: by an exception.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Wanted::End = self.wanted {
            self.source.abandon();
            return Err(PyStopIteration::new_err(()));
        }
        match (self.source.poll(py)?, self.wanted) {
            (Step::Wait(future), _) => Ok(future),
            (Step::Chunk(response), wanted) => {
                if let Wanted::Result = wanted {
                    self.source.abandon();
                }
                Err(PyStopIteration::new_err((response,)))
            }
            (Step::Raised(error), _) => Err(error),
            (Step::Done(_), Wanted::Result) => {
                Err(PyRuntimeError::new_err("cannot reuse the call of a native tool that was awaited already"))
            }
            (Step::Done(_), Wanted::Chunk | Wanted::End) => Err(PyStopAsyncIteration::new_err(())),
        }
    }
}

#[pymethods]
impl PyNativeStep {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    /// Go on; the event loop has nothing to say.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    /// End the tool with an exception, a cancellation say.
    #[pyo3(signature = (error, value=None, traceback=None))]
    fn throw(
        &self,
        error: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        self.source.abandon();
        Err(PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(error).clone()))
    }

    /// End the tool.
    fn close(&self) {
        self.source.abandon();
    }
}
