//! Awaitables of jobs: [`AwaitableJob`] for its result, [`JobEnd`] for the end of a generator that is being closed,
//! [`AbandonedEnd`] for the end of one that was abandoned.

use std::sync::Arc;

use pyo3::exceptions::{PyGeneratorExit, PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::job::{Job, JobCore, JobStep};
use crate::bindings::into_response::error_class;

/// Makes a class with `__next__` an awaitable that is its own iterator.
macro_rules! await_itself {
    ($class:ty) => {
        #[pymethods]
        impl $class {
            fn __await__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
        }
    };
}
pub(crate) use await_itself;

/// Makes a class with `step` and `abandon` an awaitable that event loops drive like a coroutine.
macro_rules! await_by_steps {
    ($class:ty) => {
        $crate::bindings::worker::await_itself!($class);

        #[pymethods]
        impl $class {
            fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.step(py)
            }

            /// Resume; the value is ignored.
            fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                self.step(py)
            }

            /// Abandon it, and raise an exception such as a cancellation.
            ///
            /// `throw(class, value, traceback)` is accepted as generators do.
            #[pyo3(signature = (error, value=None, traceback=None))]
            fn throw(
                &self,
                error: &Bound<'_, PyAny>,
                value: Option<&Bound<'_, PyAny>>,
                traceback: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                let _ = traceback;
                self.abandon();
                Err(PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(error).clone()))
            }

            /// Abandon it.
            fn close(&self) {
                self.abandon();
            }
        }
    };
}
pub(crate) use await_by_steps;

/// One call in a worker thread, to be awaited once. Dropping it abandons the call.
#[pyclass(name = "_AwaitableJob", module = "toolcrib._core", frozen)]
pub(crate) struct AwaitableJob(Job);

await_itself!(AwaitableJob);

#[pymethods]
impl AwaitableJob {
    #[new]
    fn new(function: Bound<'_, PyAny>, argument: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = function.py();
        let arguments = PyTuple::new(py, [argument])?;
        Ok(Self(Job::start(py, "function".into(), function, arguments, None, 1, None)?))
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        await_step(py, self.0.poll(py)?).unwrap_or_else(|| {
            self.0.abandon();
            Err(PyTypeError::new_err("the function must not return a generator"))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.0.traverse(&visit)
    }
}

/// The end of a generator that is being closed, to be awaited once. Dropping it stops waiting.
#[pyclass(name = "_JobEnd", module = "toolcrib._core", frozen)]
pub(super) struct JobEnd(pub(super) Arc<JobCore>);

await_itself!(JobEnd);

#[pymethods]
impl JobEnd {
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            if let Some(result) = await_step(py, self.0.poll(py)?) {
                return result;
            }
        }
    }

    /// Stops waiting, and raises the exception; `throw(class, value, traceback)` is accepted as generators do.
    #[pyo3(signature = (error, value=None, _traceback=None))]
    fn throw(
        &self,
        error: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(error.py());
        Err(PyErr::from_value(value.unwrap_or(error)))
    }

    /// Stops waiting; the generator is closed all the same.
    fn close(&self, py: Python<'_>) {
        self.0.abandon_unread(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }
}

impl Drop for JobEnd {
    fn drop(&mut self) {
        Python::try_attach(|py| self.close(py));
    }
}

/// The end of a generator that was abandoned before, to be awaited once. Errors of its end are reported elsewhere.
#[pyclass(name = "_AbandonedEnd", module = "toolcrib._core", frozen)]
pub(super) struct AbandonedEnd(pub(super) Arc<JobCore>);

await_itself!(AbandonedEnd);

#[pymethods]
impl AbandonedEnd {
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.0.poll_closed(py)? {
            Some(waiter) => Ok(waiter),
            None => Err(PyStopIteration::new_err(())),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }
}

/// One step of `await`: a waiter to yield, or the exception by which an iterator ends. `None` for a chunk.
fn await_step(py: Python<'_>, step: JobStep) -> Option<PyResult<Py<PyAny>>> {
    match step {
        JobStep::Wait(waiter) => Some(Ok(waiter)),
        JobStep::Done(value) => Some(Err(PyStopIteration::new_err((value.unwrap_or_else(|| py.None()),)))),
        JobStep::Raised(error) => Some(Err(wrap_protocol_exception(py, error))),
        JobStep::Chunk(_) => None,
    }
}

/// Replaces an exception of user code that would count as a step of the awaiting protocol: a `StopIteration` as a return
/// value, the other two as the end of the coroutine that awaits. As for generators (PEP 479), a `RuntimeError` takes its
/// place and has it as its cause.
fn wrap_protocol_exception(py: Python<'_>, error: PyErr) -> PyErr {
    let is_protocol = error.is_instance_of::<PyStopIteration>(py)
        || error.is_instance_of::<PyStopAsyncIteration>(py)
        || error.is_instance_of::<PyGeneratorExit>(py);
    if !is_protocol {
        return error;
    }
    let class = error_class(py, &error);
    let replacement = PyRuntimeError::new_err(format!("a function that ran in a thread raised {class}"));
    replacement.set_cause(py, Some(error));
    replacement
}
