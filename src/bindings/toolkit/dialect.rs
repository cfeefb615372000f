//! What the providers of models are told about the tools, each in its dialect.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};

use super::PyToolkit;
use crate::bindings::dialect::{self, refusal};
use crate::bindings::tool::PyTool;
use crate::call::Answer;
use crate::registry::Tool;
use crate::schema::dialect::Dialect;

/// The name and the arguments of a call, in the toolkit's own words.
type Call<'py> = (String, Bound<'py, PyAny>);

impl PyToolkit {
    /// The switches of the meta tool.
    pub(crate) fn switches(&self) -> Map<String, Value> {
        self.registry().switches()
    }

    /// The tool that is called by this name in a dialect.
    fn called(&self, py: Python<'_>, dialect: Dialect, name: &str) -> Option<Py<PyTool>> {
        let registry = self.registry();
        let by_name = registry.find(name);
        let tool = by_name.or_else(|| registry.tools().find(|tool| dialect.tool_name(&tool.name) == name));
        tool.map(|tool| tool.body.clone_ref(py))
    }

    /// A call that a model made in a dialect; nothing if there is no such tool, or if it may not be called: then there is an answer
    /// to that already.
    pub(crate) fn translate<'py>(
        &self,
        py: Python<'py>,
        dialect: Dialect,
        name: &str,
        arguments: &Bound<'py, PyDict>,
    ) -> PyResult<Result<Option<Call<'py>>, Answer>> {
        let Some(tool) = self.called(py, dialect, name) else { return Ok(Ok(None)) };
        let tool = tool.get();
        if tool.check_extension().is_err() {
            return Ok(Ok(None));
        }
        let told = tool.in_dialect(py, dialect, self)?;
        Ok(match told.get().decoded(arguments.as_any())? {
            Ok(decoded) => Ok(Some((tool.name.to_string(), decoded))),
            Err(_) if self.admit(py, &tool.name).is_err() => Ok(None),
            Err(problem) => Err(Answer::InvalidArguments { text: refusal(&tool.name, &problem) }),
        })
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
        let (schemas, told) = (PyList::empty(py), PyList::empty(py));
        for tool in &tools {
            let tool = tool.get();
            tool.check_extension()?;
            let in_dialect = tool.in_dialect(py, dialect, self)?;
            schemas.append(in_dialect.get().schema_copy(py)?)?;
            told.append(in_dialect)?;
        }
        let module = py.import(intern!(py, "toolcrib.dialects"))?;
        module.call_method1(intern!(py, "DialectSchemas"), (schemas, dialect.name(), told))
    }
}
