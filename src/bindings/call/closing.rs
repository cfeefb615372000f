//! `aclose` of a call that has a span: finalises the tool's generator inside the span, and ends it then.

use std::sync::Arc;

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi::PySendResult;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::drive::{await_iter, resume};
use super::span::Span;

/// An awaitable around another one, each of whose steps runs inside a span.
#[pyclass(frozen, module = "toolcrib")]
pub(super) struct Closing {
    iterator: Py<PyAny>,
    span: Arc<Span>,
}

impl Closing {
    /// Wraps what `aclose` of the tool's generator gave.
    pub(super) fn wrap(awaitable: Bound<'_, PyAny>, span: Arc<Span>) -> PyResult<Bound<'_, PyAny>> {
        let py = awaitable.py();
        span.settle(py);
        // SAFETY: the thread is attached and the reference owned; null comes with an exception.
        let iterator = unsafe { Bound::from_owned_ptr_or_err(py, await_iter(awaitable.into_ptr())) }?;
        Ok(Bound::new(py, Self { iterator: iterator.unbind(), span })?.into_any())
    }

    /// The generator is finalised, or has failed at that.
    fn over(&self, py: Python<'_>, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyStopIteration>(py) {
            self.span.note(py, &error);
        }
        self.span.end(py);
        error
    }
}

#[pymethods]
impl Closing {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.send(py, &py.None().into_bound(py))
    }

    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        // SAFETY: the thread is attached, both objects are live, and the result is owned.
        let (sent, result) = self.span.run(py, || unsafe { resume(self.iterator.as_ptr(), value.as_ptr()) });
        // SAFETY: as above; null comes with an exception.
        match (sent, unsafe { Bound::from_owned_ptr_or_err(py, result) }) {
            (PySendResult::PYGEN_NEXT, Ok(future)) => Ok(future.unbind()),
            (_, Ok(result)) => Err(self.over(py, PyStopIteration::new_err((result.unbind(),)))),
            (_, Err(error)) => Err(self.over(py, error)),
        }
    }

    #[pyo3(signature = (*arguments))]
    fn throw(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let throw = self.iterator.bind(py).getattr(intern!(py, "throw"))?;
        let thrown = self.span.run(py, || throw.call1(arguments));
        thrown.map(Bound::unbind).map_err(|error| self.over(py, error))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = self.iterator.bind(py).getattr(intern!(py, "close"))?;
        let closed = self.span.run(py, || close.call0());
        self.span.end(py);
        closed.map(drop)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.iterator)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        Python::attach(|py| self.span.end(py));
    }
}
