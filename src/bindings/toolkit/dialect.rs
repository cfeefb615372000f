//! What the providers of models are told about the tools, each in its dialect.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::PyToolkit;
use crate::bindings::dialect::{self, listing};
use crate::bindings::tool::PyTool;
use crate::provider::Dialect;
use crate::registry::Tool;

impl PyToolkit {
    /// The switches of the meta tool.
    pub(crate) fn switches(&self) -> Map<String, Value> {
        self.registry().switches()
    }

    /// The tool that is called by this name in a dialect.
    pub(crate) fn called(&self, py: Python<'_>, dialect: Dialect, name: &str) -> Option<Py<PyTool>> {
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
    /// What the dialect has no word for is encoded in what it has; calls come back with
    /// `call_tool_function(call, dialect=...)`.
    ///
    /// Args:
    ///     dialect: `"openai"`, `"openai_strict"`, `"openai_responses"`, `"openai_responses_strict"`, `"anthropic"`,
    ///         `"gemini"` or `"mcp"`.
    ///     group_names: The groups to describe besides `basic`, whether they are active or not.
    ///
    /// Returns:
    ///     A list of what the provider takes, with `report`, `decode` and `encode`. Its dicts are copies, yours to change.
    ///
    /// Raises:
    ///     UnknownDialectError: If there is no such dialect.
    ///     UnknownGroupError: If a name is not that of a group.
    #[pyo3(signature = (dialect, group_names=None))]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn schemas<'py>(
        &self,
        py: Python<'py>,
        dialect: &str,
        group_names: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dialect = dialect::parse(dialect)?;
        let body = |tool: &Tool<Py<PyTool>>| tool.body.clone_ref(py);
        let tools: Vec<Py<PyTool>> = match group_names {
            None => self.registry().listed().map(body).collect(),
            Some(names) => self.registry().listed_in(&names)?.map(body).collect(),
        };
        let told = tools.iter().map(|tool| {
            tool.get().check_extension()?;
            tool.get().in_dialect(py, dialect, self)
        });
        listing(py, dialect, told)
    }
}
