//! `NativeTool`: the Python class of a tool that is written in Rust.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value};

use super::question::Answerers;
use super::run::{NativeCall, PyNativeResponses, PyNativeStep};
use crate::bindings::json;
use crate::bindings::registration::{CallKind, Parameter, ParameterKind, Signature, ToolOptions};
use crate::bindings::tool::schema_to_python;
use crate::native::{NativeTool, tools};

/// A tool that is written in Rust.
///
/// It is registered like a function. Calling it with keyword arguments returns an async iterator of its responses if it
/// streams, and otherwise an awaitable of its only response; nothing runs before that is awaited.
#[pyclass(name = "NativeTool", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyNativeTool(NativeTool);

impl From<NativeTool> for PyNativeTool {
    fn from(tool: NativeTool) -> Self {
        Self(tool)
    }
}

impl PyNativeTool {
    /// The kind of callable.
    pub(crate) fn call_kind(&self) -> CallKind {
        if self.0.is_streaming() { CallKind::AsyncGenerator } else { CallKind::Coroutine }
    }

    /// The signature, from the schema. If a parameter is optional and has no default, any keywords are accepted.
    pub(crate) fn signature(&self, py: Python<'_>) -> PyResult<Signature> {
        signature_of(py, self.0.schema().parameters().value())
    }

    /// Adds the options of the tool itself to those of its registration, which take precedence.
    pub(crate) fn complete(&self, options: &mut ToolOptions<'_>) {
        let tool = &self.0;
        options.timeout = options.timeout.or_else(|| tool.timeout().map(|limit| limit.as_secs_f64()));
        options.given.kind.get_or_insert_with(|| tool.kind().as_str().to_owned());
        options.given.tags.extend(tool.tags().iter().map(ToString::to_string));
    }
}

#[pymethods]
impl PyNativeTool {
    /// The name under which it is registered by default.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn __name__(&self) -> &str {
        self.0.name()
    }

    /// The description that the model reads.
    #[getter]
    fn description(&self) -> Option<String> {
        self.0.schema().description()
    }

    /// The schema that the model reads, as a copy.
    #[getter]
    fn json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        schema_to_python(py, self.0.schema())
    }

    /// The permission that a call needs if no rule matches: `"auto"`, `"confirm"` or `"kind"`.
    #[getter]
    fn permission(&self) -> &'static str {
        self.0.permission().as_str()
    }

    /// True if it returns a stream of responses, false if it returns one.
    #[getter]
    fn is_streaming(&self) -> bool {
        self.0.is_streaming()
    }

    #[pyo3(signature = (**arguments))]
    fn __call__<'py>(&self, py: Python<'py>, arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = match arguments {
            Some(arguments) => Value::from(json::from_python(arguments.as_any())?),
            None => Value::Object(Map::new()),
        };
        let call = NativeCall::new(self.0.clone(), arguments, Answerers::default());
        if self.0.is_streaming() {
            Ok(Bound::new(py, PyNativeResponses::new(call))?.into_any())
        } else {
            Ok(Bound::new(py, PyNativeStep::of_result(call))?.into_any())
        }
    }

    fn __repr__(&self) -> String {
        format!("NativeTool(name='{}')", self.0.name())
    }

    /// Return the tool itself: native tools belong to the process.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("toolcrib._core")?.getattr("_native_tool")?, (self.0.name().to_owned(),)))
    }
}

/// The signature that a schema describes. If a parameter is optional and has no default, any keywords are accepted.
pub(crate) fn signature_of(py: Python<'_>, schema: &Value) -> PyResult<Signature> {
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|it| it == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut parameters = Vec::new();
    for (name, property) in properties {
        let default = match property.get("default") {
            _ if required(name) => None,
            Some(default) => Some(json::to_python(py, default)?.unbind()),
            None => {
                parameters = vec![parameter(py, "arguments", ParameterKind::VarKeyword, None)];
                break;
            }
        };
        parameters.push(parameter(py, name, ParameterKind::KeywordOnly, default));
    }
    Ok(Signature { parameters, by_name: true, lacks_receiver: false, flags: None })
}

fn parameter(py: Python<'_>, name: &str, kind: ParameterKind, default: Option<Py<PyAny>>) -> Parameter {
    Parameter { name: PyString::intern(py, name).unbind(), kind, default, annotation: None, is_context: false }
}

/// A tool that comes with toolcrib, by its name.
#[pyfunction]
pub(super) fn _native_tool(name: &str) -> PyResult<PyNativeTool> {
    match name {
        "wait" => Ok(PyNativeTool(tools::wait())),
        other => Err(PyValueError::new_err(format!("unknown native tool '{other}'"))),
    }
}
