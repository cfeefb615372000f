//! `DialectTool`: a tool as one provider is told of it, made once for each tool and dialect.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::Value;

use super::imported::DIALECT_SCHEMAS;
use super::json;
use super::meta::with_switches;
use super::tool::PyTool;
use super::toolkit::PyToolkit;
use crate::Error;
use crate::schema::FunctionSchema;
use crate::schema::check::{Problem, not_json, render};
use crate::schema::dialect::{Codec, Declaration, Dialect, Loss};

/// A tool in the dialect of a provider; `Toolkit.schemas` makes them.
#[pyclass(name = "DialectTool", module = "toolcrib._core", frozen)]
pub(crate) struct PyDialectTool {
    name: String,
    tool: String,
    schema: Py<PyDict>,
    codec: Codec,
    report: Vec<Loss>,
}

/// What a tool has been told as, by dialect, with the revision that it was made at.
#[derive(Default)]
pub(crate) struct Told(OnceLock<Box<Kept>>);

type Kept = [Mutex<Option<(u64, Py<PyDialectTool>)>>; Dialect::ALL.len()];

/// The revision of what never changes.
const FIXED: u64 = u64::MAX;

impl PyTool {
    /// The tool in a dialect; a meta tool is told as it is at this moment.
    pub(crate) fn in_dialect(
        &self,
        py: Python<'_>,
        dialect: Dialect,
        toolkit: &PyToolkit,
    ) -> PyResult<Py<PyDialectTool>> {
        let place = &self.told.0.get_or_init(Box::default)[dialect.index()];
        let place = || place.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = if self.meta.is_some() { toolkit.revision() } else { FIXED };
        if let Some((made_at, told)) = &*place()
            && *made_at == revision
        {
            return Ok(told.clone_ref(py));
        }
        let told = if self.meta.is_some() {
            // What changes in between is seen as a change later.
            PyDialectTool::new(py, dialect, &self.name, &with_switches(&self.schema, &toolkit.switches()))?
        } else {
            PyDialectTool::new(py, dialect, &self.name, &self.schema)?
        };
        let told = Py::new(py, told)?;
        let old = place().replace((revision, told.clone_ref(py)));
        drop(old);
        Ok(told)
    }
}

impl PyDialectTool {
    pub(crate) fn new(py: Python<'_>, dialect: Dialect, tool: &str, schema: &FunctionSchema) -> PyResult<Self> {
        let Declaration { name, value, codec, report } = dialect.declare(tool, schema);
        let schema = json::schema_to_python(py, &value)?.cast_into::<PyDict>()?.unbind();
        Ok(Self { name, tool: tool.to_owned(), schema, codec, report })
    }

    /// The arguments in the shape that the tool expects, or what is wrong with them. What a model sends never raises.
    pub(crate) fn decoded<'py>(&self, arguments: &Bound<'py, PyAny>) -> PyResult<Result<Bound<'py, PyAny>, Problem>> {
        let py = arguments.py();
        if self.codec.is_same() {
            return Ok(Ok(arguments.clone()));
        }
        let sent = match json::from_python(arguments) {
            Ok(sent) => sent,
            Err(error) => return unless_fatal(py, error).map(|()| Err(not_json(arguments))),
        };
        let decoded = match self.codec.decode(sent.into()) {
            Ok(decoded) => decoded,
            Err(problem) => return Ok(Err(problem)),
        };
        match json::to_python(py, &decoded) {
            Ok(decoded) => Ok(Ok(decoded)),
            Err(error) => unless_fatal(py, error).map(|()| Err(not_json(&decoded))),
        }
    }
}

/// Drops an exception that a value caused; one that is not about values, such as `KeyboardInterrupt`, is raised.
fn unless_fatal(py: Python<'_>, error: PyErr) -> PyResult<()> {
    let is_about_values = error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyRecursionError>(py);
    if is_about_values { Ok(()) } else { Err(error) }
}

#[pymethods]
impl PyDialectTool {
    /// The name that the provider is told.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The name that the tool has in its toolkit.
    #[getter]
    fn tool_name(&self) -> &str {
        &self.tool
    }

    /// What the dialect cannot say: where, what, and how the model is told instead.
    #[getter]
    fn report(&self) -> Vec<(&str, &str, &str)> {
        self.report.iter().map(|loss| (&*loss.path, &*loss.what, &*loss.instead)).collect()
    }

    /// Bring arguments that a model sent to the shape that the tool expects.
    ///
    /// Args:
    ///     arguments: A dict, or its JSON text.
    ///
    /// Raises:
    ///     UnreadableArgumentsError: If they cannot be brought back.
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

    /// Bring arguments of the tool to the shape in which a model sends them.
    ///
    /// Args:
    ///     arguments: What the tool would be called with, as JSON has it.
    fn encode<'py>(&self, arguments: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let encoded = self.codec.encode_value(&json::from_python(arguments)?.into());
        json::to_python(arguments.py(), &encoded)
    }
}

/// What `schemas` gives: the tools in a dialect, as copies.
pub(crate) fn listing(
    py: Python<'_>,
    dialect: Dialect,
    tools: impl Iterator<Item = PyResult<Py<PyDialectTool>>>,
) -> PyResult<Bound<'_, PyAny>> {
    let (schemas, told) = (PyList::empty(py), PyList::empty(py));
    for tool in tools {
        let tool = tool?;
        schemas.append(json::copy_dict(tool.get().schema.bind(py))?)?;
        told.append(tool)?;
    }
    DIALECT_SCHEMAS.get(py)?.call1((schemas, dialect.name(), told))
}

/// The dialect of a name.
pub(crate) fn parse(name: &str) -> crate::Result<Dialect> {
    Dialect::parse(name).ok_or_else(|| {
        let known = Dialect::ALL.map(|dialect| format!("`{}`", dialect.name())).join(", ");
        Error::UnknownDialect { name: name.to_owned(), known }
    })
}

/// What a model is told of arguments that cannot be brought back.
pub(crate) fn refusal(tool: &str, problem: &Problem) -> String {
    render(tool, std::slice::from_ref(problem))
}

/// A dialect by its name, or none.
pub(crate) struct Named(pub(crate) Option<Dialect>);

impl FromPyObject<'_, '_> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: Option<String> = object.extract()?;
        Ok(Self(name.as_deref().map(parse).transpose()?))
    }
}
