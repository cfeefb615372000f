//! `_DialectTool`: the declaration of a tool in the dialect of a provider, made once for each tool and dialect.

use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::Value;

use super::imported::DIALECT_SCHEMAS;
use super::json::{self, DictTemplate};
use super::registration::with_switches;
use super::tool::PyTool;
use super::toolkit::PyToolkit;
use crate::Error;
use crate::mcp::Definition;
use crate::provider::{Declaration, Dialect, mcp_definition};
use crate::schema::FunctionSchema;
use crate::schema::check::{Problem, not_json, render};
use crate::schema::dialect::{Codec, Loss};

/// A tool in the dialect of a provider; `Toolkit.schemas` makes them.
#[pyclass(name = "_DialectTool", module = "toolcrib._core", frozen)]
pub(crate) struct PyDialectTool {
    name: String,
    tool: String,
    schema: DictTemplate,
    codec: Codec,
    report: Vec<Loss>,
    /// The definition of an MCP server, in its dialect.
    definition: Option<Definition>,
}

/// The declarations of a tool by dialect, each with the revision of the toolkit for which it was made.
#[derive(Default)]
pub(crate) struct DialectCache(OnceLock<Box<CachedTools>>);

type CachedTools = [Mutex<Option<(u64, Py<PyDialectTool>)>>; Dialect::ALL.len()];

/// The revision of a declaration that never changes.
const FIXED: u64 = u64::MAX;

impl PyTool {
    /// The tool in a dialect; a meta tool with its current groups.
    pub(crate) fn in_dialect(
        &self,
        py: Python<'_>,
        dialect: Dialect,
        toolkit: &PyToolkit,
    ) -> PyResult<Py<PyDialectTool>> {
        let entry = &self.dialects.0.get_or_init(Box::default)[dialect.index()];
        let entry = || entry.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = if self.meta.is_some() { toolkit.revision() } else { FIXED };
        if let Some((made_at, tool)) = &*entry()
            && *made_at == revision
        {
            return Ok(tool.clone_ref(py));
        }
        let tool = if self.meta.is_some() {
            // A change since the revision was read makes another revision, so that the entry is made again.
            PyDialectTool::new(py, dialect, self, &with_switches(&self.schema, &toolkit.switches()))?
        } else {
            PyDialectTool::new(py, dialect, self, &self.schema)?
        };
        let tool = Py::new(py, tool)?;
        let old = entry().replace((revision, tool.clone_ref(py)));
        drop(old);
        Ok(tool)
    }
}

impl PyDialectTool {
    pub(crate) fn new(py: Python<'_>, dialect: Dialect, tool: &PyTool, schema: &FunctionSchema) -> PyResult<Self> {
        let declaration = match dialect {
            Dialect::Mcp => mcp_definition(&tool.name, schema, tool.output_schema(py).as_ref(), tool.traits.kind),
            other => other.declare(&tool.name, schema),
        };
        let Declaration { name, value, codec, report } = declaration;
        let schema = DictTemplate::new(json::schema_to_python(py, &value)?.cast::<PyDict>()?)?;
        let definition = if dialect == Dialect::Mcp { Definition::read(&value).ok() } else { None };
        Ok(Self { name, tool: tool.name.to_string(), schema, codec, report, definition })
    }

    /// The tool as an MCP server defines it.
    pub(crate) fn definition(&self) -> Option<Definition> {
        self.definition.clone()
    }

    /// Decodes arguments to the shape that the tool expects. Invalid arguments give a problem, never an exception.
    pub(crate) fn decoded<'py>(&self, arguments: &Bound<'py, PyAny>) -> PyResult<Result<Bound<'py, PyAny>, Problem>> {
        let py = arguments.py();
        if self.codec.is_same() {
            return Ok(Ok(arguments.clone()));
        }
        let sent = match json::value_from_python(arguments) {
            Ok(sent) => sent,
            Err(error) => return unless_fatal(py, error).map(|()| Err(not_json(arguments))),
        };
        let decoded = match self.codec.decode(sent) {
            Ok(decoded) => decoded,
            Err(problem) => return Ok(Err(problem)),
        };
        match json::to_python(py, &decoded) {
            Ok(decoded) => Ok(Ok(decoded)),
            Err(error) => unless_fatal(py, error).map(|()| Err(not_json(&decoded))),
        }
    }
}

/// Ignores an exception that a value caused; others, such as `KeyboardInterrupt`, are returned.
fn unless_fatal(py: Python<'_>, error: PyErr) -> PyResult<()> {
    let is_about_values = error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyRecursionError>(py);
    if is_about_values { Ok(()) } else { Err(error) }
}

#[pymethods]
impl PyDialectTool {
    /// The name of the tool in the dialect.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The name of the tool in its toolkit.
    #[getter]
    fn tool_name(&self) -> &str {
        &self.tool
    }

    /// The losses of the dialect: the path, the keyword, and its replacement.
    #[getter]
    fn report(&self) -> Vec<(&str, &str, &str)> {
        self.report.iter().map(|loss| (&*loss.path, &*loss.what, &*loss.instead)).collect()
    }

    /// Decode arguments that a model sent to the shape that the tool expects.
    ///
    /// Args:
    ///     arguments: A dict, or its JSON text.
    ///
    /// Raises:
    ///     UnreadableArgumentsError: If they cannot be decoded.
    fn decode<'py>(&self, arguments: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let refused = |reason: String| Error::UnreadableArguments { tool: self.tool.clone(), reason };
        let arguments = match arguments.cast::<PyString>() {
            Ok(text) => {
                let text = text.to_str().map_err(|_| refused("they have a lone surrogate".to_owned()))?;
                let parsed: Value =
                    serde_json::from_str(text).map_err(|error| refused(format!("they are not valid JSON: {error}")))?;
                json::to_python(arguments.py(), &parsed)
                    .map_err(|_| refused("they have a number with too many digits".to_owned()))?
            }
            Err(_) => arguments.clone(),
        };
        let decoded = self.decoded(&arguments)?;
        Ok(decoded.map_err(|problem| {
            let Problem { path, expected, found } = problem;
            refused(format!("{path}: expected {expected}, got {found}"))
        })?)
    }

    /// Encode arguments of the tool to the shape in which a model sends them.
    ///
    /// Args:
    ///     arguments: The arguments of the tool as JSON values.
    fn encode<'py>(&self, arguments: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let encoded = self.codec.encode_value(&json::value_from_python(arguments)?);
        json::to_python(arguments.py(), &encoded)
    }
}

/// The result of `schemas`: the tools in a dialect, as copies.
pub(crate) fn listing(
    py: Python<'_>,
    dialect: Dialect,
    tools: impl Iterator<Item = PyResult<Py<PyDialectTool>>>,
) -> PyResult<Bound<'_, PyAny>> {
    let (schemas, declared) = (PyList::empty(py), PyList::empty(py));
    for tool in tools {
        let tool = tool?;
        schemas.append(tool.get().schema.copy(py)?)?;
        declared.append(tool)?;
    }
    DIALECT_SCHEMAS.get(py)?.call1((schemas, dialect.name(), declared))
}

/// Parses the name of a dialect.
pub(crate) fn parse(name: &str) -> crate::Result<Dialect> {
    Dialect::parse(name).ok_or_else(|| {
        let known = Dialect::ALL.map(|dialect| format!("`{}`", dialect.name())).join(", ");
        Error::UnknownDialect { name: name.to_owned(), known }
    })
}

/// The response text for arguments that cannot be decoded.
pub(crate) fn refusal(tool: &str, problem: &Problem) -> String {
    render(tool, std::slice::from_ref(problem))
}

/// An optional argument that is the name of a dialect.
pub(crate) struct DialectName(pub(crate) Option<Dialect>);

impl FromPyObject<'_, '_> for DialectName {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: Option<String> = object.extract()?;
        Ok(Self(name.as_deref().map(parse).transpose()?))
    }
}
