//! `NativeTool`: a tool that is Rust code, as Python sees it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value};

use super::awaitable::{PyNativeResponses, PyNativeStep, Source};
use crate::bindings::json;
use crate::bindings::registration::CallKind;
use crate::bindings::registration::ToolOptions;
use crate::bindings::registration::{Parameter, ParameterKind, Signature};
use crate::bindings::tool::schema_to_python;
use crate::native::{NativeTool, ToolContext, tools};

/// A tool that is Rust code.
///
/// It is registered like a function. Calling it with keyword arguments gives an async iterator of its responses if it
/// streams, and otherwise an awaitable of its one response; nothing runs before that is awaited.
#[pyclass(name = "NativeTool", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyNativeTool(NativeTool);

impl PyNativeTool {
    /// What calling it gives.
    pub(crate) fn call_kind(&self) -> CallKind {
        if self.0.is_streaming() { CallKind::AsyncGenerator } else { CallKind::Coroutine }
    }

    /// Its parameters: those of the schema. If one may be left out that has no default, they are any keywords.
    pub(crate) fn signature(&self, py: Python<'_>) -> PyResult<Signature> {
        let schema = self.0.schema().parameters().value();
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

    /// Adds what the tool's developer said to what is said at its registration, which counts more.
    pub(crate) fn complete(&self, options: &mut ToolOptions<'_>) {
        let tool = &self.0;
        options.timeout = options.timeout.or_else(|| tool.timeout().map(|limit| limit.as_secs_f64()));
        options.given.kind.get_or_insert_with(|| tool.kind().as_str().to_owned());
        options.given.tags.extend(tool.tags().iter().map(|tag| tag.to_string()));
    }
}

#[pymethods]
impl PyNativeTool {
    /// The name that it is registered under if no other is given.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn __name__(&self) -> &str {
        self.0.name()
    }

    /// What the model is told about it.
    #[getter]
    fn description(&self) -> Option<String> {
        self.0.schema().description()
    }

    /// The schema that the model is told, as a copy.
    #[getter]
    fn json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        schema_to_python(py, self.0.schema())
    }

    /// Whether each call must be confirmed if no rule says otherwise: `"auto"` or `"confirm"`.
    #[getter]
    fn permission(&self) -> &'static str {
        self.0.permission().as_str()
    }

    /// Whether it gives a stream of responses, or one.
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
        let context = ToolContext::of(self.0.name());
        let source = Source::new(self.0.clone(), context, arguments);
        if self.0.is_streaming() {
            Ok(Bound::new(py, PyNativeResponses::new(source))?.into_any())
        } else {
            Ok(Bound::new(py, PyNativeStep::of_result(source))?.into_any())
        }
    }

    fn __repr__(&self) -> String {
        format!("NativeTool(name='{}')", self.0.name())
    }

    /// Native tools belong to the process: a copy is the tool itself.
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

fn parameter(py: Python<'_>, name: &str, kind: ParameterKind, default: Option<Py<PyAny>>) -> Parameter {
    Parameter { name: PyString::intern(py, name).unbind(), kind, default, annotation: None }
}

/// The tool of a name that comes with toolcrib.
#[pyfunction]
pub(super) fn _native_tool(name: &str) -> PyResult<PyNativeTool> {
    match name {
        "wait" => Ok(PyNativeTool(tools::wait())),
        other => Err(PyValueError::new_err(format!("unknown native tool '{other}'"))),
    }
}
