//! Objects of Python modules that the bindings use.
//!
//! A late import can fail: modules are gone while the interpreter shuts down, and a frame without builtins has no
//! `__import__`. So an object is looked up once and kept:
//!
//! - exceptions and parts of the standard library that Python itself has loaded by then, when `_core` is initialised;
//! - parts of the package that every program needs, by `_core._resolve` on the last line of `toolcrib/__init__.py`, because
//!   some of them import `_core` themselves;
//! - those that report failures, when the first toolkit is made: a failure may have no file descriptor left for an import;
//! - objects that are slow to import, at first use. Such an import may raise.
//!
//! CPython locks a module while a thread imports it, and a child that another thread forks meanwhile inherits this lock with no
//! thread to release it. So forks wait for imports: see `toolcrib/_worker.py`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use super::errors;
use crate::bindings::once::GilOnce;

/// An attribute of a Python module.
pub(crate) struct Imported {
    module: &'static str,
    name: &'static str,
    object: GilOnce<Py<PyAny>>,
    /// The name of the module as a Python object, made when it is first looked for.
    key: GilOnce<Py<PyString>>,
}

impl Imported {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, object: GilOnce::new(), key: GilOnce::new() }
    }

    /// The object, imported at first use.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let find = || import_module(py, self.module)?.getattr(self.name).map(Bound::unbind);
        self.object.get_or_try_init(py, find).map(|object| object.bind(py))
    }

    /// The object, if its module has been imported.
    pub(crate) fn if_imported<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        if self.object.get(py).is_none() {
            // Of the dict itself, which raises no exception for a module that is not there.
            let key = self.key.get_or_init(py, || PyString::new(py, self.module).unbind());
            MODULES.get(py).ok()?.cast::<PyDict>().ok()?.get_item(key).ok()??;
        }
        self.get(py).ok()
    }
}

macro_rules! objects {
    ($($name:ident = $module:literal, $object:literal;)*) => {$(
        #[doc = concat!("`", $module, ".", $object, "`.")]
        pub(crate) static $name: Imported = Imported::new($module, $object);
    )*};
}

// Loaded with Python, or with `toolcrib.errors`.
objects! {
    MODULES = "sys", "modules";
    PARTIAL = "functools", "partial";
    METHOD = "types", "MethodType";
    LOCAL_TIME = "time", "localtime";
    FORMAT_TIME = "time", "strftime";
}
static STANDARD: [&Imported; 5] = [&MODULES, &PARTIAL, &METHOD, &LOCAL_TIME, &FORMAT_TIME];

// Loaded with the package.
objects! {
    LIVE_MAPPING = "toolcrib._mapping", "LiveMapping";
    BEGIN_TASK = "toolcrib._background", "begin";
    BEGIN_THREAD = "toolcrib._worker", "begin";
    END_THREAD = "toolcrib._worker", "end";
}
static PACKAGE: [&Imported; 4] = [&LIVE_MAPPING, &BEGIN_TASK, &BEGIN_THREAD, &END_THREAD];

// Imported at first use: most programs do without these, and each brings a slow part of the standard library.
objects! {
    ARTIFACTFLOW_STREAM = "toolcrib.compat.artifactflow.xml_parser", "NativeCallStream";
    DIALECT_SCHEMAS = "toolcrib.dialects", "DialectSchemas";
    TRACED_TEXT = "toolcrib.tracing", "_text";
    START_ANSWER = "toolcrib._question", "start";
    ASK_APPROVER = "toolcrib.policy", "_ask";
    CANCEL_QUESTIONS = "toolcrib.policy", "_cancel_all";
    APPROVAL = "toolcrib.policy", "Approval";
    APPROVAL_REQUEST = "toolcrib.policy", "ApprovalRequest";
    FINISH = "toolcrib._finish", "Finish";
    TAP = "toolcrib.middleware", "tap";
    TOOL_CONTEXT = "toolcrib.context", "ToolContext";
    RUN = "toolcrib._run", "run";
    FINISHED = "toolcrib._run", "finished";
    SERVE_MCP = "toolcrib._serve", "serve_mcp";
    COPY = "copy", "copy";
    DECIMAL = "decimal", "Decimal";
    FRACTION = "fractions", "Fraction";
    GENERIC_ALIAS = "types", "GenericAlias";
}

// Loaded with the first toolkit, as `import toolcrib` does without `logging`.
objects! {
    GET_LOGGER = "logging", "getLogger";
    LOGGER = "toolcrib._failure", "logger";
    LOG_FAILURE = "toolcrib._failure", "log";
    REDACTED_ERROR = "toolcrib._failure", "redacted";
    FAILED_CALL = "toolcrib._failure", "FailedCall";
}
static FAILURE: [&Imported; 5] = [&GET_LOGGER, &LOGGER, &LOG_FAILURE, &REDACTED_ERROR, &FAILED_CALL];

static IMPORT: GilOnce<Py<PyAny>> = GilOnce::new();

/// Resolves the objects of the standard library, and adds `_resolve`, which resolves those of the package.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    IMPORT.get_or_try_init(py, || py.import("builtins")?.getattr("__import__").map(Bound::unbind))?;
    errors::init(py)?;
    resolve_all(py, &STANDARD)?;
    // Makes pyo3 import and keep the class `Mapping`.
    let _ = module.cast::<PyMapping>();
    // Not by `add_function`, which adds the name to `__all__`.
    module.setattr("_resolve", wrap_pyfunction!(_resolve, module)?)
}

/// Resolve the objects of the package, once it is imported.
#[pyfunction]
fn _resolve(py: Python<'_>) -> PyResult<()> {
    resolve_all(py, &PACKAGE)
}

/// Resolves the objects that report failures.
pub(crate) fn prepare_for_failures(py: Python<'_>) -> PyResult<()> {
    resolve_all(py, &FAILURE)
}

fn resolve_all(py: Python<'_>, objects: &[&Imported]) -> PyResult<()> {
    objects.iter().try_for_each(|object| object.get(py).map(drop))
}

/// Imports a module, even from a frame that has no builtins and so no `__import__`.
pub(crate) fn import_module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match IMPORT.get(py) {
        // With a list of names, here one that every module has, the result is the module and not its top-level package.
        Some(import) => import.bind(py).call1((name, py.None(), py.None(), ("__name__",), 0)),
        None => py.import(name).map(Bound::into_any),
    }
}

/// Returns a module that the program has already imported. It is never imported by this.
pub(crate) fn loaded_module<'py>(py: Python<'py>, name: impl IntoPyObject<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let module = MODULES.get(py)?.cast::<PyDict>()?.get_item(name)?;
    // An entry `None` blocks the import of a module.
    Ok(module.filter(|module| !module.is_none()))
}
