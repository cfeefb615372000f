//! `RegisteredToolFunction`: a tool in a toolkit.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use serde_json::{Map, Value};

use super::budget::PyResultBudget;
use super::call::{Plan, stream_of};
use super::dialect::DialectCache;
use super::foreign_response::ResponseClass;
use super::imported::{TAP, import_module};
use super::json::{self, DictTemplate};
use super::native::PyNativeTool;
use super::policy::{PyPermissions, presets_hash};
use super::registration::{CallKind, Callable, Extension, MetaTool, ToolTraits, no_presets};
use super::schema::return_schema;
use crate::bindings::once::{GilOnce, intern};
use crate::call::{ChunkRule, ErrorMode, Reply, RunIn};
use crate::policy::{AllowCache, hash};
use crate::provider::mcp_output_schema;
use crate::registry::{Denial, Memberships, Tool};
use crate::schema::FunctionSchema;

/// A tool in a toolkit.
///
/// It is made by registration and cannot be changed; register it again with `"override"` instead.
#[pyclass(name = "RegisteredToolFunction", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyTool {
    /// The same object as in the registry.
    pub(crate) name: Arc<str>,
    /// Its groups, its tags and its quarantine, which the registry keeps up to date.
    pub(crate) seat: Arc<Memberships>,
    pub(crate) schema: Arc<FunctionSchema>,
    pub(crate) traits: Arc<ToolTraits>,
    /// The permissions, which it shares with its toolkit.
    pub(crate) permissions: Py<PyPermissions>,
    /// Cached decisions of the policy to allow it.
    pub(crate) allow_cache: AllowCache,
    /// The hash of the schema, computed when an approval needs it.
    pub(crate) schema_hash: OnceLock<Box<[u8; 32]>>,
    /// Names that most tools do not have.
    pub(crate) other_names: Option<Box<OtherNames>>,
    /// The presets, if there are any.
    pub(crate) presets: Option<Py<PyDict>>,
    pub(crate) postprocess: Option<Py<PyAny>>,
    /// The class of its responses, if it is that of another library.
    pub(crate) response_class: Option<ResponseClass>,
    /// True if its responses are postprocessed or converted.
    pub(crate) is_delivery_handled: bool,
    /// The largest size of its results.
    pub(crate) result_budget: Option<Py<PyResultBudget>>,
    /// The function that is called: the registered one without partials, wrapped if it is a finish function.
    pub(crate) function: Py<PyAny>,
    pub(crate) kind: CallKind,
    /// The kind of code behind the function.
    pub(crate) body: ToolBody,
    pub(crate) run_in: RunIn,
    pub(crate) timeout: Option<f64>,
    /// True if a call returns at once and continues in the background.
    pub(crate) async_execution: bool,
    pub(crate) errors: ErrorMode,
    pub(crate) chunks: ChunkRule,
    pub(crate) plan: Plan,
    /// The schema as Python objects, made when it is first listed.
    pub(crate) template: GilOnce<Box<DictTemplate>>,
    /// The schema in the dialects of providers.
    pub(crate) dialects: DialectCache,
    /// The extended model, if there is one.
    pub(crate) extension: Option<Box<Extension>>,
    /// The schema cache of a meta tool; `None` for any other tool.
    pub(crate) meta: Option<Box<MetaTool>>,
}

/// The names of a tool besides its own.
#[derive(Clone)]
pub(crate) struct OtherNames {
    /// The name of the callable, if the tool has another one.
    original: Option<Box<str>>,
    /// The MCP server that provides it.
    server: Option<Box<str>>,
}

impl OtherNames {
    /// The names in a box; `None` if there are none.
    pub(crate) fn of(original: Option<String>, server: Option<String>) -> Option<Box<Self>> {
        let is_any = original.is_some() || server.is_some();
        is_any.then(|| Box::new(Self { original: original.map(Into::into), server: server.map(Into::into) }))
    }
}

/// The kind of code behind the function of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolBody {
    /// A Python callable.
    Python,
    /// A tool that is written in Rust.
    Native,
    /// The run of an agent, in a session of its own.
    Agent,
}

impl PyTool {
    /// The entry of a tool in the registry.
    pub(crate) fn entry(body: Py<Self>) -> Tool<Py<Self>> {
        let tool = body.get();
        let (group, more) = tool.seat.with(|group, more| (group.clone(), more.into()));
        let (name, tags) = (tool.name.clone(), tool.seat.tags());
        let (memberships, schema) = (tool.seat.clone(), tool.schema.clone());
        let is_agent = tool.body == ToolBody::Agent || tool.traits.calls_agents;
        let quarantine = tool.seat.quarantine();
        Tool { name, group, more, tags, is_agent, quarantine, memberships, schema, body }
    }

    /// Refuses a call of this tool by itself while it is quarantined.
    pub(crate) fn refuse_quarantined(&self) -> Result<(), Reply> {
        self.seat.quarantine().map_or(Ok(()), |reason| Err(Reply::refusing(&self.name, &Denial::Quarantined(reason))))
    }

    /// The MCP server that provides it.
    pub(crate) fn server(&self) -> Option<&str> {
        self.other_names.as_ref()?.server.as_deref()
    }

    /// A copy of the schema.
    pub(crate) fn schema_copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let make = || schema_to_python(py, &self.schema).and_then(|schema| DictTemplate::new(&schema)).map(Box::new);
        self.template.get_or_try_init(py, make)?.copy(py)
    }

    /// The schema of its structured results, from the return annotation; none if that says nothing about them.
    pub(crate) fn output_schema(&self, py: Python<'_>) -> Option<Map<String, Value>> {
        let function = self.function.bind(py);
        if let Ok(native) = function.cast::<PyNativeTool>() {
            return native.get().output_schema().cloned();
        }
        // A function that postprocesses results may replace them, and a stream has none.
        let is_single = matches!(self.kind, CallKind::Function | CallKind::Coroutine);
        if self.body != ToolBody::Python || !is_single || self.postprocess.is_some() || self.extension.is_some() {
            return None;
        }
        mcp_output_schema(return_schema(function)?.into())
    }

    /// True if it changes nothing, so that incomplete arguments do no harm.
    pub(crate) fn is_read_only(&self) -> bool {
        self.traits.kind.is_read_only()
    }

    /// The schema without the fields of an extended model.
    pub(crate) fn original_schema(&self) -> &Arc<FunctionSchema> {
        self.extension.as_ref().map_or(&self.schema, |extension| &extension.original)
    }

    /// The hash of the schema.
    pub(crate) fn schema_hash(&self) -> [u8; 32] {
        **self.schema_hash.get_or_init(|| Box::new(hash(&self.schema.value())))
    }

    /// The presets, which must not be modified.
    pub(crate) fn presets<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyDict>
    where
        'py: 'a,
    {
        self.presets.as_ref().map_or_else(|| no_presets(py), |presets| presets.bind(py))
    }

    /// The hash of the presets.
    pub(crate) fn presets_hash(&self, py: Python<'_>) -> [u8; 32] {
        presets_hash(self.presets(py), self.registered().bind(py))
    }

    /// The registered function, without the wrapper of a finish function.
    pub(crate) fn registered(&self) -> &Py<PyAny> {
        self.extension
            .as_ref()
            .and_then(|extension| extension.finish.as_ref())
            .map_or(&self.function, |it| &it.function)
    }

    /// A copy of the tool with another schema, plan and function.
    pub(crate) fn rebuilt(
        &self,
        py: Python<'_>,
        schema: Arc<FunctionSchema>,
        plan: Plan,
        function: Py<PyAny>,
        extension: Option<Box<Extension>>,
    ) -> Self {
        Self {
            name: self.name.clone(),
            seat: self.seat.clone(),
            schema,
            traits: self.traits.clone(),
            permissions: self.permissions.clone_ref(py),
            allow_cache: self.allow_cache.renewed(),
            schema_hash: OnceLock::new(),
            other_names: self.other_names.clone(),
            presets: self.presets.as_ref().map(|presets| presets.clone_ref(py)),
            postprocess: self.postprocess.as_ref().map(|function| function.clone_ref(py)),
            response_class: self.response_class.as_ref().map(|class| class.clone_ref(py)),
            is_delivery_handled: self.is_delivery_handled,
            result_budget: self.result_budget.as_ref().map(|budget| budget.clone_ref(py)),
            function,
            kind: self.kind,
            body: self.body,
            run_in: self.run_in,
            timeout: self.timeout,
            errors: self.errors,
            chunks: self.chunks,
            async_execution: self.async_execution,
            plan,
            template: GilOnce::new(),
            dialects: DialectCache::default(),
            extension,
            meta: self.meta.as_ref().map(|_| Box::default()),
        }
    }

    /// The function that calls it in a child process, and the function that ends the process; see [`Job`](super::worker::Job).
    pub(crate) fn process_call<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let call = process_module(py)?.call_method1(intern!(py, "ProcessCall"), (self.registered(),))?;
        let end = call.getattr(intern!(py, "end"))?;
        let finish = self.extension.as_ref().and_then(|extension| extension.finish.as_ref());
        let call = finish.map_or(Ok(call.clone()), |finish| finish.wrap(&call, CallKind::Function, self.chunks))?;
        Ok((call, end))
    }
}

/// Makes the dict of a schema.
pub(crate) fn schema_to_python<'py>(py: Python<'py>, schema: &FunctionSchema) -> PyResult<Bound<'py, PyDict>> {
    Ok(json::schema_to_python(py, &schema.value())?.cast_into::<PyDict>()?)
}

/// The module that runs functions in child processes.
fn process_module(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    import_module(py, "toolcrib._process")
}

/// The place where a tool runs: asynchronous functions run inline, unless they run in a process.
pub(crate) fn effective_run_in(callable: &Callable<'_>, wanted: RunIn, timeout: Option<f64>) -> PyResult<RunIn> {
    if timeout.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
        return Err(PyValueError::new_err("timeout must be a positive number of seconds"));
    }
    let is_async = callable.kind.is_async();
    match wanted {
        RunIn::Process => {
            process_module(callable.function.py())?.call_method1("check_importable", (&callable.function,))?;
            Ok(RunIn::Process)
        }
        RunIn::Thread if !is_async => Ok(RunIn::Thread),
        RunIn::Inline if !is_async && timeout.is_some() => Err(PyValueError::new_err(format!(
            "tool `{}` is synchronous and runs inline, where it cannot be stopped: \
             a timeout needs run_in=\"thread\" or run_in=\"process\"",
            callable.name
        ))),
        RunIn::Thread | RunIn::Inline => Ok(RunIn::Inline),
    }
}

#[pymethods]
impl PyTool {
    /// The name by which a model calls it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The name of its group: the first, if it is in several.
    #[getter]
    fn group(&self) -> String {
        self.seat.group().name().to_owned()
    }

    /// The names of all its groups, in the order in which it was added to them.
    #[getter]
    fn groups(&self) -> Vec<String> {
        self.seat.groups().iter().map(|group| group.name().to_owned()).collect()
    }

    /// The reason why it is quarantined; None if it is not. See `Toolkit.quarantine`.
    #[getter]
    fn quarantined(&self) -> Option<String> {
        self.seat.quarantine().map(|reason| reason.to_string())
    }

    /// The tags by which views and rules select it.
    #[getter]
    fn tags(&self) -> Vec<String> {
        self.seat.tags().iter().map(ToString::to_string).collect()
    }

    /// The kind of its source.
    #[getter]
    #[allow(clippy::unused_self, reason = "a field of AgentScope's class that has one value so far")]
    fn source(&self) -> &'static str {
        "function"
    }

    /// The registered function, without partials.
    #[getter]
    fn original_func(&self, py: Python<'_>) -> Py<PyAny> {
        self.registered().clone_ref(py)
    }

    /// A copy of the schema, without the fields of an extended model.
    #[getter]
    fn json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.extension {
            None => self.schema_copy(py),
            Some(extension) => schema_to_python(py, &extension.original),
        }
    }

    /// The model whose fields are added to the schema; see `Toolkit.set_extended_model`.
    #[getter]
    fn extended_model(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.extension.as_ref().map(|extension| extension.model.clone_ref(py))
    }

    /// A copy of the schema, with the fields of the extended model and, for the meta tool, the groups.
    #[getter]
    fn extended_json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_extension()?;
        match MetaTool::toolkit_of(py, self)? {
            Some(toolkit) => toolkit.get().meta_schema_copy(py, self),
            None => self.schema_copy(py),
        }
    }

    /// A copy of the arguments that the model cannot see, including those that a partial has bound.
    #[getter]
    fn preset_kwargs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.presets(py).copy()
    }

    /// The name of the callable, if the tool has another one.
    #[getter]
    fn original_name(&self) -> Option<&str> {
        self.other_names.as_ref()?.original.as_deref()
    }

    /// The name of the MCP client whose server offers it.
    #[getter]
    fn mcp_name(&self) -> Option<&str> {
        self.server()
    }

    /// The function that is called with each response.
    #[getter]
    fn postprocess_func(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.postprocess.as_ref().map(|function| function.clone_ref(py))
    }

    /// The largest size of its results, apart from the budgets of other places; None if it has none.
    #[getter]
    fn result_budget(&self, py: Python<'_>) -> Option<Py<PyResultBudget>> {
        self.result_budget.as_ref().map(|budget| budget.clone_ref(py))
    }

    /// The place where it runs; `"inline"` for asynchronous tools, which run on the caller's event loop.
    #[getter]
    fn run_in(&self) -> &'static str {
        match self.run_in {
            RunIn::Thread => "thread",
            RunIn::Inline => "inline",
            RunIn::Process => "process",
        }
    }

    /// The seconds after which a call is ended.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout
    }

    /// True if a call returns at once and continues in the background.
    #[getter]
    fn async_execution(&self) -> bool {
        self.async_execution
    }

    /// The kind of effect that it has.
    #[getter]
    fn kind(&self) -> &'static str {
        self.traits.kind.as_str()
    }

    /// `"auto"`, `"confirm"` or `"kind"`: whether each call needs approval, unless a rule decides otherwise.
    #[getter]
    fn permission(&self) -> &'static str {
        self.traits.permission.as_str()
    }

    /// The parameters whose values are redacted.
    #[getter]
    fn secrets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.traits.secrets.iter().map(AsRef::as_ref))
    }

    /// The meaning of plain values that it yields: `"add"` or `"replace"`; None if chunks are delivered as given.
    #[getter]
    fn chunks(&self) -> Option<&'static str> {
        match self.chunks {
            ChunkRule::Add => Some("add"),
            ChunkRule::Replace => Some("replace"),
            ChunkRule::AsGiven => None,
        }
    }

    /// A copy of the alternative names of parameters, each with the parameter.
    #[getter]
    fn aliases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.traits.aliases().into_py_dict(py)
    }

    /// Call this tool, even if its group is inactive, but not while it is quarantined.
    ///
    /// Middlewares of the toolkit are not called.
    ///
    /// Args:
    ///     arguments: The arguments as a model would send them; presets cannot be overridden.
    ///     stream_print: A function that is called with each response, and awaited if it is asynchronous.
    ///
    /// Returns:
    ///     A stream that can be iterated, and awaited, which returns the stream itself.
    #[pyo3(signature = (*, arguments, stream_print=None))]
    fn call<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyAny>,
        stream_print: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shown = match stream_print {
            Some(function) => Some(TAP.get(py)?.call1((function,))?),
            None => None,
        };
        stream_of(slf, arguments, shown.as_ref())
    }

    fn __repr__(&self) -> String {
        format!("RegisteredToolFunction(name='{}', group='{}')", self.name, self.seat.group().name())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.permissions)?;
        visit.call(&self.presets)?;
        visit.call(&self.postprocess)?;
        self.response_class.as_ref().map_or(Ok(()), |class| class.traverse(&visit))?;
        visit.call(&self.result_budget)?;
        visit.call(&self.function)?;
        self.extension.as_ref().map_or(Ok(()), |extension| extension.traverse(&visit))?;
        self.plan.traverse(&visit)
    }
}
