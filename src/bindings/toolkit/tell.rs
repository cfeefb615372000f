//! `Toolkit.instructions`: the tools as prompt text.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::prelude::*;

use super::PyToolkit;
use crate::bindings::meta::with_switches;
use crate::bindings::text::{parse_format, write_instructions};
use crate::schema::FunctionSchema;

#[pymethods]
impl PyToolkit {
    /// Write instructions about the tools of all active groups, and how to call them.
    ///
    /// Put them into the system prompt of a model without native tool calling. The same tools give the same text.
    ///
    /// Args:
    ///     format: The format of calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.
    ///
    /// Raises:
    ///     ValueError: If `format` is unknown.
    #[pyo3(signature = (format="xml"))]
    fn instructions(&self, format: &str) -> PyResult<String> {
        let format = parse_format(format)?;
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
        Ok(write_instructions(format, &tools))
    }
}
