//! `RegisteredToolFunction`: a tool in a toolkit, as Python sees it.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use super::call::{Plan, stream_of};
use super::callable::{Callable, Kind};
use super::copying::Template;
use super::dialect::Told;
use super::extension::Extension;
use super::imported::{TAP, import_module};
use super::json;
use super::meta::MetaTool;
use super::policy::{PyPermissions, presets_hash};
use super::register::no_presets;
use super::traits::Traits;
use crate::call::{ErrorMode, RunIn};
use crate::policy::{AllowCache, hash};
use crate::registry::{Memberships, Tool};
use crate::schema::FunctionSchema;

/// A tool in a toolkit.
///
/// It is made by registering and cannot be changed; register it anew with `"override"` instead.
#[pyclass(name = "RegisteredToolFunction", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyTool {
    /// The registry has the same.
    pub(crate) name: Arc<str>,
    /// The groups that hold it, which the registry keeps up to date.
    pub(crate) seat: Arc<Memberships>,
    pub(crate) tags: Arc<[Box<str>]>,
    pub(crate) schema: Arc<FunctionSchema>,
    pub(crate) traits: Arc<Traits>,
    /// What it shares with its toolkit.
    pub(crate) permissions: Py<PyPermissions>,
    /// Whether it may run without a question.
    pub(crate) allow_cache: AllowCache,
    /// What the schema sums up to, once somebody was to approve a call.
    pub(crate) schema_hash: OnceLock<Box<[u8; 32]>>,
    pub(crate) original_name: Option<Box<str>>,
    /// The MCP server it comes from.
    pub(crate) server: Option<Box<str>>,
    /// If there are any.
    pub(crate) presets: Option<Py<PyDict>>,
    pub(crate) postprocess: Option<Py<PyAny>>,
    /// What is called: what the developer registered, without a partial around it; a structured finish is around it.
    pub(crate) function: Py<PyAny>,
    pub(crate) kind: Kind,
    pub(crate) run_in: RunIn,
    pub(crate) timeout: Option<f64>,
    /// A call is answered at once and goes on in the background.
    pub(crate) async_execution: bool,
    pub(crate) errors: ErrorMode,
    pub(crate) plan: Plan,
    /// The schema as Python objects, made when it is first listed.
    pub(crate) listed: PyOnceLock<Box<Template>>,
    /// The same in the dialects of providers.
    pub(crate) told: Told,
    /// What a model adds to the schema, if there is one.
    pub(crate) extension: Option<Box<Extension>>,
    /// Whether its schema follows the groups of its toolkit.
    pub(crate) meta: Option<Box<MetaTool>>,
}

impl PyTool {
    /// The tool as the registry keeps it, in the groups its seat names.
    pub(crate) fn entry(body: Py<Self>) -> Tool<Py<Self>> {
        let tool = body.get();
        let (group, more) = tool.seat.with(|group, more| (group.clone(), more.into()));
        let (name, tags) = (tool.name.clone(), tool.tags.clone());
        let (memberships, schema) = (tool.seat.clone(), tool.schema.clone());
        Tool { name, group, more, tags, memberships, schema, body }
    }

    /// The schema for a caller to keep: a copy.
    pub(crate) fn schema_copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let make = || schema_to_python(py, &self.schema).and_then(|schema| Template::new(&schema)).map(Box::new);
        self.listed.get_or_try_init(py, make)?.copy(py)
    }

    /// Whether it is known to change nothing, so that arguments which may not be complete do no harm.
    pub(crate) fn is_read_only(&self) -> bool {
        self.traits.kind.is_read_only()
    }

    /// The schema without what a model adds to it.
    pub(crate) fn original_schema(&self) -> &Arc<FunctionSchema> {
        self.extension.as_ref().map_or(&self.schema, |extension| &extension.original)
    }

    /// What the schema sums up to.
    pub(crate) fn schema_hash(&self) -> [u8; 32] {
        **self.schema_hash.get_or_init(|| Box::new(hash(&self.schema.value())))
    }

    /// The presets, which are only to be read.
    pub(crate) fn presets<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyDict>
    where
        'py: 'a,
    {
        self.presets.as_ref().map_or_else(|| no_presets(py), |presets| presets.bind(py))
    }

    /// The hash of the presets.
    pub(crate) fn presets_hash(&self, py: Python<'_>) -> [u8; 32] {
        presets_hash(self.presets(py))
    }

    /// What was registered, without a structured finish around it.
    pub(crate) fn registered(&self) -> &Py<PyAny> {
        self.extension
            .as_ref()
            .and_then(|extension| extension.finish.as_ref())
            .map_or(&self.function, |it| &it.function)
    }

    /// The same tool, told about and called in another way.
    pub(crate) fn with(
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
            tags: self.tags.clone(),
            schema,
            traits: self.traits.clone(),
            permissions: self.permissions.clone_ref(py),
            allow_cache: self.allow_cache.renewed(),
            schema_hash: OnceLock::new(),
            original_name: self.original_name.clone(),
            server: self.server.clone(),
            presets: self.presets.as_ref().map(|presets| presets.clone_ref(py)),
            postprocess: self.postprocess.as_ref().map(|function| function.clone_ref(py)),
            function,
            kind: self.kind,
            run_in: self.run_in,
            timeout: self.timeout,
            errors: self.errors,
            async_execution: self.async_execution,
            plan,
            listed: PyOnceLock::new(),
            told: Told::default(),
            extension,
            meta: self.meta.as_ref().map(|_| Box::default()),
        }
    }

    /// What a worker thread runs, and what to call when the work is given up.
    pub(crate) fn errand<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        if self.run_in != RunIn::Process {
            return Ok((self.function.bind(py).clone(), None));
        }
        let call = process(py)?.call_method1(intern!(py, "ProcessCall"), (self.registered(),))?;
        let kill = call.getattr(intern!(py, "kill"))?;
        let finish = self.extension.as_ref().and_then(|extension| extension.finish.as_ref());
        let call = finish.map_or(Ok(call.clone()), |finish| finish.around(&call, Kind::Function))?;
        Ok((call, Some(kill)))
    }
}

/// A schema as Python objects.
pub(crate) fn schema_to_python<'py>(py: Python<'py>, schema: &FunctionSchema) -> PyResult<Bound<'py, PyDict>> {
    Ok(json::schema_to_python(py, &schema.value())?.cast_into::<PyDict>()?)
}

/// The module that runs functions in child processes.
fn process(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    import_module(py, "toolcrib._process")
}

/// Where a tool runs: what was asked for, as far as it makes a difference to this kind of function.
pub(crate) fn place(callable: &Callable<'_>, wanted: RunIn, timeout: Option<f64>) -> PyResult<RunIn> {
    if timeout.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
        return Err(PyValueError::new_err("timeout must be a positive number of seconds"));
    }
    let is_async = matches!(callable.kind, Kind::Coroutine | Kind::AsyncGenerator);
    match wanted {
        RunIn::Process => {
            process(callable.function.py())?.call_method1("check_importable", (&callable.function,))?;
            Ok(RunIn::Process)
        }
        RunIn::Thread if !is_async => Ok(RunIn::Thread),
        RunIn::Inline if !is_async && timeout.is_some() => Err(PyValueError::new_err(format!(
            "tool `{}` is synchronous and runs inline, where nothing can stop it: \
             a timeout needs run_in=\"thread\" or run_in=\"process\"",
            callable.name
        ))),
        RunIn::Thread | RunIn::Inline => Ok(RunIn::Inline),
    }
}

#[pymethods]
impl PyTool {
    /// The name a model calls it by.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The name of the group it belongs to: the first, if it is in several.
    #[getter]
    fn group(&self) -> String {
        self.seat.group().name().to_owned()
    }

    /// The names of all groups it belongs to, in the order they took it in.
    #[getter]
    fn groups(&self) -> Vec<String> {
        self.seat.groups().iter().map(|group| group.name().to_owned()).collect()
    }

    /// What views can choose it by, besides groups and names.
    #[getter]
    fn tags(&self) -> Vec<&str> {
        self.tags.iter().map(|tag| &**tag).collect()
    }

    /// Where it comes from.
    #[getter]
    #[allow(clippy::unused_self, reason = "a field of AgentScope's class that has one value so far")]
    fn source(&self) -> &'static str {
        "function"
    }

    /// What was registered, without the partial around it.
    #[getter]
    fn original_func(&self, py: Python<'_>) -> Py<PyAny> {
        self.registered().clone_ref(py)
    }

    /// What the model is told without an extended model, as a copy.
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

    /// What the model is told, with the fields of the extended model and, for the meta tool, its groups: a copy.
    #[getter]
    fn extended_json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_extension()?;
        match MetaTool::toolkit_of(py, self)? {
            Some(toolkit) => toolkit.get().meta_schema_copy(py, self),
            None => self.schema_copy(py),
        }
    }

    /// The arguments that the model cannot see, what a partial has bound included, as a copy.
    #[getter]
    fn preset_kwargs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.presets(py).copy()
    }

    /// The callable's own name, if the tool has another one.
    #[getter]
    fn original_name(&self) -> Option<&str> {
        self.original_name.as_deref()
    }

    /// The name of the MCP client whose server offers it.
    #[getter]
    fn mcp_name(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// What is called with each response.
    #[getter]
    fn postprocess_func(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.postprocess.as_ref().map(|function| function.clone_ref(py))
    }

    /// Where it runs; asynchronous tools run on the caller's event loop, which is `"inline"`.
    #[getter]
    fn run_in(&self) -> &'static str {
        match self.run_in {
            RunIn::Thread => "thread",
            RunIn::Inline => "inline",
            RunIn::Process => "process",
        }
    }

    /// After how many seconds a call is ended.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout
    }

    /// Whether a call is answered at once and goes on in the background.
    #[getter]
    fn async_execution(&self) -> bool {
        self.async_execution
    }

    /// What it does to the world.
    #[getter]
    fn kind(&self) -> &'static str {
        self.traits.kind.as_str()
    }

    /// Whether it runs by itself or somebody has to agree, if no rule says otherwise.
    #[getter]
    fn permission(&self) -> &'static str {
        self.traits.permission.as_str()
    }

    /// The parameters whose values are shown to nobody but the tool.
    #[getter]
    fn secrets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.traits.secrets.iter().map(AsRef::as_ref))
    }

    /// Other names of parameters, each with the name it stands for, as a copy.
    #[getter]
    fn aliases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.traits.aliases().into_py_dict(py)
    }

    /// Call this tool, whether its group is on or not.
    ///
    /// Middlewares of the toolkit take no part in it.
    ///
    /// Args:
    ///     arguments: What a model would send: presets cannot be overridden here either.
    ///     stream_print: Called with each response as it passes, and awaited if it is asynchronous.
    ///
    /// Returns:
    ///     A stream that can be awaited, which gives the stream itself, and iterated.
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

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.permissions)?;
        visit.call(&self.presets)?;
        visit.call(&self.postprocess)?;
        visit.call(&self.function)?;
        self.extension.as_ref().map_or(Ok(()), |extension| extension.traverse(&visit))?;
        self.plan.traverse(&visit)
    }
}
