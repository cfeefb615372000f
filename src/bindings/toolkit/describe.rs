//! Descriptions of the tools for models: schemas, the dialects of providers, and instructions as text.

use std::sync::{Arc, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use serde_json::{Map, Value};

use super::PyToolkit;
use crate::bindings::dialect::{self, listing};
use crate::bindings::parameters::{optional_name_list, optional_text, text};
use crate::bindings::registration::with_switches;
use crate::bindings::text::{parse_format, write_instructions};
use crate::bindings::tool::PyTool;
use crate::provider::Dialect;
use crate::registry::Tool;
use crate::schema::FunctionSchema;

#[pymethods]
impl PyToolkit {
    /// Describe the tools of all active groups, in the order of their registration.
    ///
    /// Args:
    ///     group_names: The groups to describe besides `basic`, even if they are inactive.
    ///
    /// Returns:
    ///     A `{"type": "function", "function": {...}}` for each tool. They are copies, which you may change.
    ///
    /// Raises:
    ///     UnknownGroupError: If a group is unknown.
    #[pyo3(signature = (group_names=None))]
    fn get_json_schemas<'py>(
        &self,
        py: Python<'py>,
        group_names: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let group_names: Option<Vec<String>> = optional_name_list("group_names", group_names)?;
        self.prepare_use(py, None)?;
        let tools = self.listed(py, group_names.as_deref())?;
        let schemas = tools.iter().map(|tool| {
            let tool = tool.get();
            if tool.extension.is_some() {
                tool.check_extension()?;
            }
            if tool.meta.is_some() { self.meta_schema_copy(py, tool) } else { tool.schema_copy(py) }
        });
        PyList::new(py, schemas.collect::<PyResult<Vec<_>>>()?)
    }

    /// Return the schemas as JSON text, which is cached until something changes.
    pub(crate) fn get_json_schemas_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        self.prepare_use(py, None)?;
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

impl PyToolkit {
    /// The tools of the active groups, or of `basic` and the named ones.
    fn listed(&self, py: Python<'_>, group_names: Option<&[String]>) -> crate::Result<Vec<Py<PyTool>>> {
        let body = |tool: &Tool<Py<PyTool>>| tool.body.clone_ref(py);
        let registry = self.registry();
        Ok(match group_names {
            None => registry.listed().map(body).collect(),
            Some(names) => registry.listed_in(names)?.map(body).collect(),
        })
    }

    /// The parameters of the meta tool, one for each group.
    pub(crate) fn switches(&self) -> Map<String, Value> {
        self.registry().switches()
    }

    /// Finds a tool by its name in a dialect.
    pub(crate) fn find_in_dialect(&self, py: Python<'_>, dialect: Dialect, name: &str) -> Option<Py<PyTool>> {
        let registry = self.registry();
        let by_name = registry.find(name);
        let tool = by_name.or_else(|| registry.tools().find(|tool| dialect.tool_name(&tool.name) == name));
        tool.map(|tool| tool.body.clone_ref(py))
    }
}

#[pymethods]
impl PyToolkit {
    /// Describe the tools of all active groups in the dialect of a provider.
    ///
    /// Features that the dialect lacks are encoded in those that it has; `call_tool_function(call, dialect=...)` decodes calls.
    ///
    /// Args:
    ///     dialect: `"openai"`, `"openai_strict"`, `"openai_responses"`, `"openai_responses_strict"`, `"anthropic"`,
    ///         `"gemini"`, `"bedrock"` or `"mcp"`.
    ///     group_names: The groups to describe besides `basic`, even if they are inactive.
    ///
    /// Returns:
    ///     The declarations for the provider, with `report`, `decode` and `encode`. The dicts are copies, which you may change.
    ///
    /// Raises:
    ///     UnknownDialectError: If there is no such dialect.
    ///     UnknownGroupError: If a group is unknown.
    #[pyo3(signature = (dialect, group_names=None))]
    fn schemas<'py>(
        &self,
        py: Python<'py>,
        dialect: &Bound<'py, PyAny>,
        group_names: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dialect = dialect::parse(&text("dialect", dialect)?)?;
        let group_names: Option<Vec<String>> = optional_name_list("group_names", group_names)?;
        self.prepare_use(py, None)?;
        let tools = self.listed(py, group_names.as_deref())?;
        let declared = tools.iter().map(|tool| {
            tool.get().check_extension()?;
            tool.get().in_dialect(py, dialect, self)
        });
        listing(py, dialect, declared)
    }
}

#[pymethods]
impl PyToolkit {
    /// Describe the tools of all active groups, and the syntax of calls, as text.
    ///
    /// Put it into the system prompt of a model that has no tool calling of its own. The same tools give the same text.
    ///
    /// Args:
    ///     format: The syntax of calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.
    ///
    /// Raises:
    ///     ValueError: If there is no such format.
    #[pyo3(signature = (format=None), text_signature = "($self, format='xml')")]
    fn instructions(&self, py: Python<'_>, format: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        self.prepare_use(py, None)?;
        let format = parse_format(optional_text("format", format)?.as_deref().unwrap_or("xml"))?;
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
