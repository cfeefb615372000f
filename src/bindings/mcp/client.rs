//! The client of one MCP server, behind `toolcrib.mcp.McpClient`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::{Value, json};

use super::lock::PyDefinitionFlag;
use super::watch::PyMcpWatch;
use crate::bindings::native::future::{Conversion, PyNativeFuture};
use crate::bindings::native::runtime::Lane;
use crate::bindings::native::{PyNativeTool, generation};
use crate::bindings::{errors, json, log_warning, response};
use crate::mcp::client::{
    CallOptions, Client, ClientError, ClientOptions, EncodingErrors, InvalidTarget, ListedTools, ServerInfo, Target,
    read_config, response_of,
};
use crate::mcp::{Definition, Digest, OtherNames, flags};
use crate::native::{Question, ToolContext};
use crate::sync::lock;

/// The client of one MCP server.
#[pyclass(name = "_McpClient", module = "toolcrib._core", frozen)]
pub(crate) struct PyMcpClient {
    name: String,
    target: Target,
    options: ClientOptions,
    sampler: Option<Py<PyAny>>,
    /// The client of this process; a forked child makes its own.
    current: Mutex<(u64, Client)>,
    /// The runtime of its connection and of its calls.
    lane: Lane,
}

impl PyMcpClient {
    /// The client of this process. One that was inherited by a fork is not touched: its connection belongs to threads that do
    /// not exist here, and any of their locks may be held.
    fn client(&self) -> PyResult<Client> {
        let mut current = lock(&self.current);
        if current.0 != generation() {
            let fresh = Client::new(&self.name, self.target.clone(), self.options.clone()).map_err(errors::mcp)?;
            std::mem::forget(std::mem::replace(&mut *current, (generation(), fresh)));
        }
        Ok(current.1.clone())
    }

    /// Starts an operation of the client, and converts its result on the event loop.
    fn spawn<T: Send + 'static, Fut: Future<Output = Result<T, ClientError>> + Send + 'static>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(Client) -> Fut,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<PyNativeFuture> {
        let operation = operation(self.client()?);
        PyNativeFuture::spawn_in(py, self.lane, async move {
            let result = operation.await;
            Box::new(move |py: Python<'_>| convert(py, result.map_err(errors::mcp)?)) as Conversion
        })
    }
}

#[pymethods]
impl PyMcpClient {
    #[new]
    #[pyo3(signature = (name, target, *, headers, token, ca, env, cwd, encoding_errors, connect_timeout, call_timeout,
        max_requests, sampler, stateless, allow_private_addresses))]
    #[allow(clippy::too_many_arguments, reason = "one class of the package makes it, by keywords")]
    fn new(
        name: String,
        target: &Bound<'_, PyAny>,
        headers: Vec<(String, String)>,
        token: Option<String>,
        ca: Option<PathBuf>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
        encoding_errors: &str,
        connect_timeout: f64,
        call_timeout: f64,
        max_requests: &Bound<'_, PyAny>,
        sampler: Option<Py<PyAny>>,
        stateless: bool,
        allow_private_addresses: bool,
    ) -> PyResult<Self> {
        let mut target = read_target(&name, target)?;
        let stray: &[(&str, bool)] = match &mut target {
            Target::Command(command) => {
                command.env.extend(env);
                command.cwd = cwd.map(Into::into).or(command.cwd.take());
                &[("headers", !headers.is_empty()), ("token", token.is_some()), ("ca", ca.is_some())]
            }
            Target::Http(http) => {
                http.headers.extend(headers);
                http.bearer = token.or(http.bearer.take());
                http.ca = ca.or(http.ca.take());
                http.allow_private_addresses |= allow_private_addresses;
                let is_default = encoding_errors == "replace";
                &[("env", !env.is_empty()), ("cwd", cwd.is_some()), ("encoding_errors", !is_default)]
            }
        };
        if let Some((option, _)) = stray.iter().find(|(_, is_given)| *is_given) {
            let kind = if matches!(target, Target::Http(_)) { "a URL" } else { "a command" };
            return Err(PyValueError::new_err(format!("invalid option `{option}`: it does not apply to {kind}")));
        }
        let mut options = ClientOptions {
            connect_timeout: seconds("connect_timeout", connect_timeout)?,
            call_timeout: seconds("call_timeout", call_timeout)?,
            encoding_errors: encoding_errors_of(encoding_errors)?,
            max_requests: max_requests.extract().map_err(|_| {
                PyValueError::new_err(format!("invalid max_requests: expected a number from 0, got {max_requests}"))
            })?,
            on_warning: Some(Arc::new(log)),
            stateless,
            ..ClientOptions::default()
        };
        if sampler.is_some() {
            // The Python function is called on the event loop of the call.
            options.sampler = Some(Arc::new(|context: ToolContext, request| {
                Box::pin(
                    async move { context.ask(Question::Model { request }).await.map_err(|error| error.to_string()) },
                )
            }));
        }
        let client = Client::new(&name, target.clone(), options.clone()).map_err(errors::mcp)?;
        let (current, lane) = (Mutex::new((generation(), client)), Lane::of_next_client());
        Ok(Self { name, target, options, sampler, current, lane })
    }

    /// True if tools can be listed and called.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.options.stateless || self.is_open()?)
    }

    /// True from `connect` to `close`.
    #[getter]
    fn is_open(&self) -> PyResult<bool> {
        Ok(self.client()?.is_connected())
    }

    /// The facts that the server stated about itself.
    #[getter]
    fn server_info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let info = self.client()?.server_info();
        info.map(|info| json::to_python(py, &info_value(info))).transpose()
    }

    /// The number of messages of the server that were dropped.
    #[getter]
    fn stray_messages(&self) -> PyResult<u64> {
        Ok(self.client()?.stray_messages())
    }

    /// Connect; the result is awaited.
    fn connect(&self, py: Python<'_>) -> PyResult<PyNativeFuture> {
        self.spawn(py, |client| async move { client.connect().await }, |py, _| Ok(py.None()))
    }

    /// Close the connection; the result is awaited.
    fn close(&self, py: Python<'_>) -> PyResult<PyNativeFuture> {
        self.spawn(py, |client| async move { client.close().await }, |py, ()| Ok(py.None()))
    }

    /// List the tools: the fields of each, and the tools that were skipped with the reasons. To be awaited.
    fn list_tools(&self, py: Python<'_>) -> PyResult<PyNativeFuture> {
        let client = self.client()?;
        let list = |client: Client| async move { client.list_tools().await };
        self.spawn(py, list, move |py, listed| {
            let fields = |tool: &Arc<Definition>| fields_of(py, tool, client.digest(&tool.name));
            let tools = listed.tools.iter().map(fields).collect::<PyResult<Vec<_>>>()?;
            (tools, skipped(&listed)).into_py_any(py)
        })
    }

    /// List the tools: the name of each, and the tools that were skipped with the reasons. To be awaited.
    fn list_names(&self, py: Python<'_>) -> PyResult<PyNativeFuture> {
        let list = |client: Client| async move { client.list_tools().await };
        self.spawn(py, list, |py, listed| {
            let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
            (names, skipped(&listed)).into_py_any(py)
        })
    }

    /// Find suspicious definitions among tools of the last list; see `_mcp_flags`.
    fn flags(&self, py: Python<'_>, names: Vec<String>, others: Vec<String>) -> PyResult<PyNativeFuture> {
        let client = self.client()?;
        flagged(py, names.iter().filter_map(|name| client.known(name)).collect(), others)
    }

    /// The tools of the last list by name, each with its digest.
    #[getter]
    fn digests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let digests = PyDict::new(py);
        let client = self.client()?;
        for definition in client.listed().iter().flat_map(|listed| &listed.tools) {
            let digest = client.digest(&definition.name).unwrap_or_else(|| definition.digest());
            digests.set_item(&definition.name, digest.to_string())?;
        }
        Ok(digests)
    }

    /// The tools of the last list that were skipped: the name, the position in the list, and the reason of each.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let listed = self.client()?.listed().unwrap_or_default();
        skipped(&listed).into_py_any(py)
    }

    /// A tool of the last list; None if it is not there.
    #[pyo3(signature = (name, *, wrap_tool_result, timeout))]
    fn tool(&self, name: &str, wrap_tool_result: bool, timeout: Option<f64>) -> PyResult<Option<PyNativeTool>> {
        let client = self.client()?;
        let Some(definition) = client.known(name) else { return Ok(None) };
        // As in AgentScope, 0 is no limit of its own.
        let timeout =
            timeout.filter(|limit| *limit != 0.0).map(|limit| seconds("execution_timeout", limit)).transpose()?;
        let options = CallOptions { timeout, raw: !wrap_tool_result, late: true };
        let sampler = self.sampler.as_ref().map(|sampler| Python::attach(|py| sampler.clone_ref(py)));
        let tool = client.tool(name, definition.clone(), options);
        Ok(Some(PyNativeTool::of_server(tool, &self.name, self.lane, definition, sampler)))
    }

    /// Call a function on the running event loop whenever the list of tools has changed.
    fn watch(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<Py<PyMcpWatch>> {
        PyMcpWatch::start(py, self.lane, self.client()?.changes(), callback)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sampler)
    }
}

/// Logs a warning. Handlers of Python's `logging` may block, so another thread waits for them.
fn log(warning: String) {
    tokio::task::spawn_blocking(move || {
        // The warning is lost if the interpreter is shutting down, or a handler fails.
        Python::try_attach(|py| log_warning(py, &warning).map_err(|error| error.write_unraisable(py, None)));
    });
}

/// A target: text, or the entry of a configuration.
fn read_target(name: &str, target: &Bound<'_, PyAny>) -> PyResult<Target> {
    if let Ok(text) = target.cast::<PyString>() {
        return Target::parse(text.to_str()?).map_err(|error| errors::mcp(error.into()));
    }
    let entry = json::value_from_python(target)?;
    let servers = read_config(&json!({"mcpServers": {name: entry}})).map_err(|error| errors::mcp(error.into()))?;
    let disabled = || InvalidTarget::Config { reason: format!("server `{name}` is disabled") };
    let target = servers.into_iter().next().map(|(_, target)| target);
    target.ok_or_else(|| errors::mcp(disabled().into()))
}

fn encoding_errors_of(name: &str) -> PyResult<EncodingErrors> {
    Ok(match name {
        "strict" => EncodingErrors::Strict,
        "ignore" => EncodingErrors::Ignore,
        "replace" => EncodingErrors::Replace,
        _ => {
            let text = format!("invalid encoding_errors: expected `strict`, `ignore` or `replace`, got `{name}`");
            return Err(PyValueError::new_err(text));
        }
    })
}

/// A time limit in seconds.
fn seconds(option: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).ok().filter(|limit| !limit.is_zero()).ok_or_else(|| {
        PyValueError::new_err(format!("invalid {option}: expected a positive number of seconds, got {value}"))
    })
}

/// The tools of a list that were skipped, with their positions and the reasons.
fn skipped(listed: &ListedTools) -> Vec<(Option<&str>, usize, &str)> {
    listed.problems.iter().map(|skipped| (skipped.tool.as_deref(), skipped.position, &*skipped.reason)).collect()
}

/// The fields of a tool, in the order of `toolcrib.mcp.McpTool`. `digest` is its digest, if that is known.
fn fields_of<'py>(py: Python<'py>, tool: &Definition, digest: Option<Digest>) -> PyResult<Bound<'py, PyTuple>> {
    let object = |entries: &Option<serde_json::Map<String, Value>>| match entries {
        Some(entries) => json::to_python(py, &Value::Object(entries.clone())),
        None => Ok(py.None().into_bound(py)),
    };
    let digest = digest.unwrap_or_else(|| tool.digest()).to_string();
    let schema = json::to_python(py, &Value::Object(tool.input_schema.clone()))?;
    let (output, annotations, meta) = (object(&tool.output_schema)?, object(&tool.annotations)?, object(&tool.meta)?);
    (&tool.name, &tool.title, &tool.description, schema, output, annotations, meta, digest).into_pyobject(py)
}

fn info_value(info: ServerInfo) -> Value {
    json!({
        "name": info.name,
        "version": info.version,
        "title": info.title,
        "instructions": info.instructions,
        "protocolVersion": info.protocol_version,
        "capabilities": info.capabilities,
    })
}

/// The name of a client that is given none: the host of a URL, or the program.
#[pyfunction]
pub(super) fn _mcp_target_name(target: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(match read_target("mcp", target)? {
        Target::Command(command) => {
            let program = Path::new(&command.program).file_stem();
            program.map_or_else(|| command.program.clone(), |stem| stem.to_string_lossy().into_owned())
        }
        Target::Http(http) => {
            let host = http.url.split("://").nth(1).unwrap_or(&http.url);
            let host = host.split(['/', '?', '#']).next().unwrap_or(host);
            // A password may stand before it.
            host.rsplit('@').next().unwrap_or(host).to_owned()
        }
    })
}

/// The fields of a tool as a server lists it, in the order of `toolcrib.mcp.McpTool`.
#[pyfunction]
pub(super) fn _mcp_definition<'py>(tool: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyTuple>> {
    fields_of(tool.py(), &read_definition(tool)?, None)
}

/// The response for a `CallToolResult` of a tool.
#[pyfunction]
pub(super) fn _mcp_response<'py>(
    client: &str,
    result: &Bound<'py, PyDict>,
    tool: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let result = json::value_from_python(result)?;
    response::from_core(tool.py(), response_of(client, &result, read_definition(tool)?))
}

/// Find suspicious definitions. The result, a list of `DefinitionFlag`, is awaited.
///
/// Definitions can be long and many, and so the event loop does not wait for it.
#[pyfunction]
pub(super) fn _mcp_flags(
    py: Python<'_>,
    tools: Vec<Bound<'_, PyDict>>,
    others: Vec<String>,
) -> PyResult<PyNativeFuture> {
    let read = |tool: &Bound<'_, PyDict>| read_definition(tool).map(Arc::new);
    flagged(py, tools.iter().map(read).collect::<PyResult<Vec<_>>>()?, others)
}

fn flagged(py: Python<'_>, definitions: Vec<Arc<Definition>>, others: Vec<String>) -> PyResult<PyNativeFuture> {
    PyNativeFuture::spawn(py, async move {
        let found = tokio::task::spawn_blocking(move || {
            let siblings = definitions.iter().map(|definition| definition.name.as_str());
            let names = OtherNames::new(others.iter().map(String::as_str).chain(siblings));
            let of_tool = |tool: &Definition| {
                let found = flags(tool, &names).into_iter();
                found.map(|flag| PyDefinitionFlag::new(tool.name.clone(), flag)).collect::<Vec<_>>()
            };
            definitions.iter().flat_map(|tool| of_tool(tool)).collect::<Vec<_>>()
        });
        let found = found.await.unwrap_or_default();
        Box::new(move |py: Python<'_>| found.into_py_any(py)) as Conversion
    })
}

fn read_definition(tool: &Bound<'_, PyDict>) -> PyResult<Definition> {
    let tool = json::value_from_python(tool)?;
    Definition::read(&tool).map_err(|error| PyValueError::new_err(format!("invalid tool of an MCP server: {error}")))
}
