//! `Errand`: one call in a worker thread, as something that Python code can await.

use std::mem::ManuallyDrop;

use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Job, Step};

/// One call in a worker thread, to be awaited once. Giving it up gives the work up.
#[pyclass(name = "Errand", module = "toolcrib._core", frozen)]
pub(crate) struct Errand {
    job: Job,
}

#[pymethods]
impl Errand {
    #[new]
    fn new(function: Bound<'_, PyAny>, argument: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = function.py();
        let arguments = PyTuple::new(py, [argument])?;
        Ok(Self { job: Job::start(py, function, arguments, None, 1, None)? })
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.job.poll(py)? {
            Step::Wait(waiter) => Ok(waiter),
            Step::Done(value) => Err(PyStopIteration::new_err((value.unwrap_or_else(|| py.None()),))),
            Step::Raised(error) => Err(error),
            Step::Chunk(_) => {
                self.job.abandon();
                Err(PyTypeError::new_err("it gives a generator, of which nobody reads more than the first item"))
            }
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.job.visit(&mut |object| {
            // SAFETY: the job keeps the object alive while it is visited, and its reference is neither taken nor given.
            let object =
                ManuallyDrop::new(unsafe { Bound::from_owned_ptr(Python::assume_attached(), object) }.unbind());
            result = visit.call(&*object);
            std::ffi::c_int::from(result.is_err())
        });
        result
    }
}
