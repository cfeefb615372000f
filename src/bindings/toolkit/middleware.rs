//! What is put around every call.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::PyToolkit;

impl PyToolkit {
    /// Whether calls go through middlewares.
    #[inline]
    pub(crate) fn has_middlewares(&self, py: Python<'_>) -> bool {
        self.middlewares.get().is_some_and(|list| !list.bind(py).is_empty())
    }

    /// The middlewares, outermost first.
    pub(crate) fn middlewares<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyList> {
        if let Some(list) = self.middlewares.get() {
            return list.bind(py);
        }
        let list = PyList::empty(py).unbind();
        self.middlewares.get_or_init(|| list).bind(py)
    }

    pub(super) fn traverse_middlewares(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.middlewares.get().map_or(Ok(()), |list| visit.call(list))
    }
}

#[pymethods]
impl PyToolkit {
    /// Put a middleware around every call, inside of those registered before.
    ///
    /// It is called with `{"tool_call": block}` and with a handler, `next_handler(**kwargs)`, that gives the stream of
    /// what is further in. It may be an async generator function, or anything that returns a stream or a response,
    /// directly or when awaited.
    ///
    /// Args:
    ///     middleware: The callable.
    ///
    /// Raises:
    ///     TypeError: If it cannot be called.
    fn register_middleware(&self, middleware: &Bound<'_, PyAny>) -> PyResult<()> {
        if !middleware.is_callable() {
            let kind = middleware.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("a middleware must be callable, not {kind}")));
        }
        self.middlewares(middleware.py()).append(middleware)
    }

    /// The middlewares, outermost first. The list is the toolkit's own: what is done to it holds for the calls that begin
    /// after that.
    #[getter]
    fn _middlewares<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.middlewares(py).clone()
    }
}
