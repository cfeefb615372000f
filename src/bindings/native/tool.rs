//! `NativeTool`: the Python class of a tool that is written in Rust.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value};

use super::question::Answerers;
use super::run::{NativeCall, PyNativeResponses, PyNativeStep};
use super::runtime::Lane;
use crate::bindings::host::HostFunctions;
use crate::bindings::json;
#[cfg(unix)]
use crate::bindings::process;
use crate::bindings::registration::{
    CallKind, Confirmation, OwnSchema, Parameter, ParameterKind, SelfDescribing, Signature, ToolOptions,
};
use crate::bindings::tool::schema_to_python;
#[cfg(unix)]
use crate::files::raw;
use crate::mcp::Definition;
use crate::native::{NativeTool, tools};
use crate::schema::{Entries, Node};

/// A tool that is written in Rust.
///
/// It is registered like a function. Calling it with keyword arguments returns an async iterator of its responses if it
/// streams, and otherwise an awaitable of its only response; nothing runs before that is awaited.
#[pyclass(name = "NativeTool", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyNativeTool {
    tool: Arc<NativeTool>,
    /// The runtime of its calls.
    lane: Lane,
    /// The name of the MCP client whose server provides it.
    server: Option<Box<str>>,
    /// The tool as that server defines it.
    definition: Option<Arc<Definition>>,
    /// The function that answers its requests to a model.
    sampler: Option<Py<PyAny>>,
    /// A function that is called before each call, without arguments.
    before_call: OnceLock<Py<PyAny>>,
    /// True if `_native_tool` makes it by its name alone.
    is_included: bool,
}

impl From<NativeTool> for PyNativeTool {
    fn from(tool: NativeTool) -> Self {
        let (tool, lane, before_call) = (Arc::new(tool), Lane::Tools, OnceLock::new());
        Self { tool, lane, server: None, definition: None, sampler: None, before_call, is_included: false }
    }
}

impl PyNativeTool {
    /// A tool of an MCP server.
    pub(crate) fn of_server(
        tool: NativeTool,
        client: &str,
        lane: Lane,
        definition: Arc<Definition>,
        sampler: Option<Py<PyAny>>,
    ) -> Self {
        let (tool, server, definition) = (Arc::new(tool), Some(client.into()), Some(definition));
        Self { tool, lane, server, definition, sampler, before_call: OnceLock::new(), is_included: false }
    }

    /// The tool as its MCP server defines it.
    pub(crate) fn definition(&self) -> Option<&Arc<Definition>> {
        self.definition.as_ref()
    }

    /// The description of the tool, without the detour by its Python attributes.
    pub(crate) fn described<'py>(&self) -> SelfDescribing<'py> {
        SelfDescribing {
            name: self.tool.name().to_owned(),
            schema: OwnSchema::Native(self.tool.schema().clone(), self.tool.function().clone()),
            server: self.server.as_deref().map(str::to_owned),
            permission: Some(self.tool.permission().as_str().to_owned()),
            kind: Some(self.tool.kind().as_str().to_owned()),
            confirmation: Confirmation::Silent,
            accepted: None,
            calls_agents: false,
        }
    }

    /// The kind of callable.
    pub(crate) fn call_kind(&self) -> CallKind {
        if self.tool.is_streaming() { CallKind::AsyncGenerator } else { CallKind::Coroutine }
    }

    /// The signature, from the schema. If a parameter is optional and has no default, any keywords are accepted.
    pub(crate) fn signature(&self, py: Python<'_>) -> PyResult<Signature> {
        signature_of(py, self.tool.function().get("parameters").unwrap_or(&Node::Null))
    }

    /// The schema of its structured results.
    pub(crate) fn output_schema(&self) -> Option<&Map<String, Value>> {
        self.tool.output_schema()
    }

    /// Adds the options of the tool itself to those of its registration, which take precedence.
    pub(crate) fn complete(&self, options: &mut ToolOptions<'_>) {
        let tool = &self.tool;
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
        self.tool.name()
    }

    #[getter]
    fn __name__(&self) -> &str {
        self.tool.name()
    }

    /// The description that the model reads.
    #[getter]
    fn description(&self) -> Option<String> {
        self.tool.schema().description()
    }

    /// The schema that the model reads, as a copy.
    #[getter]
    fn json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        schema_to_python(py, self.tool.schema())
    }

    /// The permission that a call needs if no rule matches: `"auto"`, `"confirm"` or `"kind"`.
    #[getter]
    fn permission(&self) -> &'static str {
        self.tool.permission().as_str()
    }

    /// The name of the MCP client whose server provides it.
    #[getter]
    fn mcp_name(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The kind, which rules can match.
    #[getter]
    fn kind(&self) -> &'static str {
        self.tool.kind().as_str()
    }

    /// True if it returns a stream of responses, false if it returns one.
    #[getter]
    fn is_streaming(&self) -> bool {
        self.tool.is_streaming()
    }

    #[pyo3(signature = (**arguments))]
    fn __call__<'py>(&self, py: Python<'py>, arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(before_call) = self.before_call.get() {
            before_call.call0(py)?;
        }
        let arguments = match arguments {
            Some(arguments) => match json::value_from_python(arguments.as_any()) {
                // The model's mistake: text with a lone surrogate, a number that is not finite, or a value that is nested too deep.
                Err(error)
                    if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyRecursionError>(py) =>
                {
                    Err(error.value(py).to_string())
                }
                arguments => Ok(arguments?),
            },
            None => Ok(Value::Object(Map::new())),
        };
        let sampler = self.sampler.as_ref().map(|sampler| sampler.clone_ref(py));
        let answerers = Answerers { host: HostFunctions { sampler, ..HostFunctions::default() }, session: None };
        let call = NativeCall::new(self.tool.clone(), arguments, answerers, self.lane);
        if self.tool.is_streaming() {
            Ok(Bound::new(py, PyNativeResponses::new(call))?.into_any())
        } else {
            Ok(Bound::new(py, PyNativeStep::of_result(call))?.into_any())
        }
    }

    /// Set the function that is called before each call, without arguments. It can be set once.
    fn _set_before_call(&self, function: Py<PyAny>) {
        let _ = self.before_call.set(function);
    }

    fn __repr__(&self) -> String {
        format!("NativeTool(name='{}')", self.tool.name())
    }

    /// Return the tool itself: native tools belong to the process.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        if let Some(server) = &self.server {
            let message = format!("cannot pickle a tool of the MCP client '{server}': it belongs to a connection");
            return Err(PyTypeError::new_err(message));
        }
        if !self.is_included {
            let message =
                format!("cannot pickle the native tool '{}': it has settings of this process", self.tool.name());
            return Err(PyTypeError::new_err(message));
        }
        Ok((py.import("toolcrib._core")?.getattr("_native_tool")?, (self.tool.name().to_owned(),)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sampler)?;
        visit.call(self.before_call.get())
    }
}

/// The signature that a schema describes. If a parameter is optional and has no default, any keywords are accepted.
pub(crate) fn signature_of(py: Python<'_>, schema: &Node) -> PyResult<Signature> {
    let names = schema.get("required").and_then(Node::as_array).unwrap_or_default();
    let required = |name: &str| names.iter().any(|it| it.as_str() == Some(name));
    let mut parameters = Vec::new();
    for (name, property) in schema.get("properties").and_then(Node::as_object).into_iter().flat_map(Entries::iter) {
        let default = match property.get("default") {
            _ if required(name) => None,
            Some(default) => Some(json::to_python(py, &Value::from(default.clone()))?.unbind()),
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
pub(super) fn _native_tool(py: Python<'_>, name: &str) -> PyResult<PyNativeTool> {
    let tool = match name {
        "wait" => tools::wait(),
        #[cfg(unix)]
        "view_text_file" => raw::view_text_file(),
        #[cfg(unix)]
        "write_text_file" => raw::write_text_file(),
        #[cfg(unix)]
        "insert_text_file" => raw::insert_text_file(),
        #[cfg(unix)]
        "execute_shell_command" => process::default_tools(py)?.swap_remove(0),
        #[cfg(unix)]
        "execute_python_code" => process::default_tools(py)?.swap_remove(1),
        other => return Err(PyValueError::new_err(format!("unknown native tool '{other}'"))),
    };
    Ok(PyNativeTool { is_included: true, ..tool.into() })
}
