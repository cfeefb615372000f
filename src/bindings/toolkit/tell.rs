//! What a model without tool calling is told in its prompt.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::prelude::*;

use super::PyToolkit;
use crate::bindings::meta::with_switches;
use crate::bindings::tell::{form, tell};
use crate::schema::FunctionSchema;

#[pymethods]
impl PyToolkit {
    /// Tell a model in words about the tools of all active groups, and how to write a call of one.
    ///
    /// Put it into the system prompt of a model that has no tool calling of its own. The same tools give the same text.
    ///
    /// Args:
    ///     format: How calls are written: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.
    ///
    /// Raises:
    ///     ValueError: If there is no such format.
    #[pyo3(signature = (format="xml"))]
    fn instructions(&self, format: &str) -> PyResult<String> {
        let form = form(format)?;
        let mut tools: Vec<(Arc<str>, Arc<FunctionSchema>)> = Vec::new();
        {
            let registry = self.registry();
            for tool in registry.listed() {
                let body = tool.body.get();
                body.check_extension()?;
                let schema = match body.meta {
                    None => tool.schema.clone(),
                    Some(_) => Arc::new(with_switches(&tool.schema, &registry.switches())),
                };
                tools.push((body.name.clone(), schema));
            }
        }
        Ok(tell(form, &tools))
    }
}
