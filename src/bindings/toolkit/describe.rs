//! What the model is told about the tools.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::PoisonError;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::PyToolkit;
use crate::bindings::meta::with_switches;
use crate::bindings::tool::PyTool;
use crate::registry::Tool;

#[pymethods]
impl PyToolkit {
    /// Describe the tools of all active groups, in the order they were registered.
    ///
    /// Args:
    ///     group_names: The groups to describe besides `basic`, whether they are active or not.
    ///
    /// Returns:
    ///     One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.
    ///
    /// Raises:
    ///     UnknownGroupError: If a name is not that of a group.
    #[pyo3(signature = (group_names=None))]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn get_json_schemas<'py>(&self, py: Python<'py>, group_names: Option<Vec<String>>) -> PyResult<Bound<'py, PyList>> {
        let body = |tool: &Tool<Py<PyTool>>| tool.body.clone_ref(py);
        let tools: Vec<Py<PyTool>> = match group_names {
            None => self.registry().listed().map(body).collect(),
            Some(names) => self.registry().listed_in(&names)?.map(body).collect(),
        };
        let schemas = tools.iter().map(|tool| {
            let tool = tool.get();
            if tool.extension.is_some() {
                tool.check_extension()?;
            }
            if tool.meta.is_some() { self.meta_schema_copy(py, tool) } else { tool.schema_copy(py) }
        });
        PyList::new(py, schemas.collect::<PyResult<Vec<_>>>()?)
    }

    /// Give the same list as JSON text, which is kept until something changes.
    fn get_json_schemas_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = self.registry();
        let revision = registry.revision();
        if let Some((made_at, bytes)) = &*listing
            && *made_at == revision
        {
            return Ok(bytes.clone_ref(py));
        }
        let mut text = String::from("[");
        for (index, tool) in registry.listed().enumerate() {
            if index > 0 {
                text.push(',');
            }
            let body = tool.body.get();
            body.check_extension()?;
            match body.meta {
                None => text.extend(tool.schema.text()),
                Some(_) => text.extend(with_switches(&tool.schema, &registry.switches()).text()),
            }
        }
        text.push(']');
        let bytes = PyBytes::new(py, text.as_bytes()).unbind();
        *listing = Some((revision, bytes.clone_ref(py)));
        Ok(bytes)
    }
}
