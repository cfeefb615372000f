//! `ArgumentReader`: arguments that arrive in pieces.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::json;
use super::parameters::{Omittable, optional_text, string};
use super::tool_call::PyToolCall;
use crate::call::ToolCall;
use crate::call::repair::ArgumentStream;

/// Parse the arguments of one call while they arrive.
///
/// Each piece is scanned once, so that all of them together take time in proportion to their length.
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
    #[pyo3(signature = (name=Omittable(None), id=None), text_signature = "(name='', id=None)")]
    fn new(name: Omittable<'_>, id: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let name = optional_text("name", name.0.as_ref())?.unwrap_or_default();
        Ok(Self { name, id: optional_text("id", id)?, stream: Mutex::default() })
    }

    /// Add the next piece.
    fn feed(&self, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        let delta = string("delta", delta)?.to_str()?;
        self.stream().feed(delta);
        Ok(())
    }

    /// The arguments so far: complete values, and strings as far as they have arrived.
    ///
    /// This takes time in proportion to the text so far.
    #[getter]
    fn partial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = self.stream().partial();
        Ok(json::to_python(py, &Value::Object(arguments))?.cast_into::<PyDict>()?)
    }

    /// The text so far.
    #[getter]
    fn text(&self) -> String {
        self.stream().text().to_owned()
    }

    /// True if the text is one complete object. Text behind it may be more of the arguments.
    #[getter]
    fn is_complete(&self) -> bool {
        self.stream().is_complete()
    }

    /// Parse the whole text, with repairs if it is not valid JSON.
    ///
    /// Returns:
    ///     The call, with the name and id of the reader.
    fn finish(&self) -> PyToolCall {
        let stream = self.stream();
        let mut call = ToolCall::with_arguments(&self.name, stream.finish());
        call.id.clone_from(&self.id);
        call.raw = Some(stream.text().to_owned());
        PyToolCall { call }
    }
}
