//! `ArgumentReader`: arguments that arrive piece by piece.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::json;
use super::tool_call::PyToolCall;
use crate::call::ToolCall;
use crate::call::repair::ArgumentStream;

/// Read the arguments of one call as they arrive.
///
/// Each piece is looked at once, so that all of them together take time in proportion to their length.
#[pyclass(name = "ArgumentReader", module = "toolcrib", frozen)]
pub(crate) struct PyArgumentReader {
    name: String,
    id: Option<String>,
    stream: Mutex<ArgumentStream>,
}

impl PyArgumentReader {
    fn stream(&self) -> MutexGuard<'_, ArgumentStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyArgumentReader {
    #[new]
    #[pyo3(signature = (name="", id=None))]
    fn new(name: &str, id: Option<String>) -> Self {
        Self { name: name.to_owned(), id, stream: Mutex::default() }
    }

    /// Take the next piece.
    fn feed(&self, delta: &str) {
        self.stream().feed(delta);
    }

    /// What can be shown so far: values that are complete, and strings as far as they go.
    ///
    /// Asking takes time in proportion to what has arrived.
    #[getter]
    fn partial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = self.stream().partial();
        Ok(json::to_python(py, &Value::Object(arguments))?.cast_into::<PyDict>()?)
    }

    /// What has arrived.
    #[getter]
    fn text(&self) -> String {
        self.stream().text().to_owned()
    }

    /// Whether the object is complete.
    #[getter]
    fn is_complete(&self) -> bool {
        self.stream().is_complete()
    }

    /// Read all that has arrived, mended where it is no JSON.
    ///
    /// Returns:
    ///     The call, under the name and the id that the reader was made with.
    fn finish(&self) -> PyToolCall {
        let stream = self.stream();
        let mut call = ToolCall::with_arguments(&self.name, stream.finish());
        call.id.clone_from(&self.id);
        call.raw = Some(stream.text().to_owned());
        PyToolCall { call }
    }
}
