//! What the model is told about the tools.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::PoisonError;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::PyToolkit;
use crate::bindings::tool::PyTool;

#[pymethods]
impl PyToolkit {
    /// Describe the tools of all active groups, in the order they were registered.
    ///
    /// Returns:
    ///     One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.
    fn get_json_schemas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tools: Vec<Py<PyTool>> = self.registry().listed().map(|tool| tool.body.clone_ref(py)).collect();
        let schemas = tools.iter().map(|tool| tool.get().schema_copy(py)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, schemas)
    }

    /// Give the same list as JSON text, which is kept until something changes.
    fn get_json_schemas_bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = self.registry();
        let revision = registry.revision();
        if let Some((made_at, bytes)) = &*listing
            && *made_at == revision
        {
            return bytes.clone_ref(py);
        }
        let mut text = String::from("[");
        for (index, tool) in registry.listed().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.extend(tool.schema.text());
        }
        text.push(']');
        let bytes = PyBytes::new(py, text.as_bytes()).unbind();
        *listing = Some((revision, bytes.clone_ref(py)));
        bytes
    }
}
