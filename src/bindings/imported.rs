//! Objects of Python modules that the bindings use.
//!
//! An import that comes late can fail: while the interpreter shuts down there is nothing left to import with, and a frame
//! without builtins has no `__import__`. So an object is looked up once and kept, whatever becomes of its module:
//!
//! - exceptions and parts of the standard library that Python itself has loaded by then, when `_core` is initialised;
//! - parts of the package that import `_core` themselves, by `_core._resolve` on the last line of `toolcrib/__init__.py`;
//! - what is slow to import, at first use. Its import may fail, with an exception like any other.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyMapping;

use super::errors;

/// An attribute of a Python module.
pub(crate) struct Imported {
    module: &'static str,
    name: &'static str,
    object: PyOnceLock<Py<PyAny>>,
}

impl Imported {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, object: PyOnceLock::new() }
    }

    /// The object, imported now if it never was before.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let find = || import_module(py, self.module)?.getattr(self.name).map(Bound::unbind);
        self.object.get_or_try_init(py, find).map(|object| object.bind(py))
    }

    /// The object, if its module has been imported.
    pub(crate) fn if_imported<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        if self.object.get(py).is_none() {
            MODULES.get(py).ok()?.get_item(self.module).ok()?;
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

// Loaded by the package itself.
objects! {
    LIVE_MAPPING = "toolcrib._mapping", "LiveMapping";
    BEGIN_TASK = "toolcrib._background", "begin";
}
static PACKAGE: [&Imported; 2] = [&LIVE_MAPPING, &BEGIN_TASK];

// Imported at first use: most programs do without these, and each brings a slow part of the standard library.
objects! {
    ARTIFACTFLOW_STREAM = "toolcrib.compat.artifactflow.xml_parser", "NativeCallStream";
    DIALECT_SCHEMAS = "toolcrib.dialects", "DialectSchemas";
    TRACED_TEXT = "toolcrib.tracing", "_text";
    ASK_APPROVER = "toolcrib._approver", "ask";
    CANCEL_QUESTIONS = "toolcrib._approver", "cancel_all";
    APPROVAL = "toolcrib.policy", "Approval";
    APPROVAL_REQUEST = "toolcrib.policy", "ApprovalRequest";
    FINISH = "toolcrib._finish", "Finish";
    TAP = "toolcrib.middleware", "tap";
    RUN = "toolcrib._run", "run";
    COPY = "copy", "copy";
    GET_LOGGER = "logging", "getLogger";
}

static IMPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Resolves what is there before the package is, and gives the module the function that resolves the rest.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    IMPORT.get_or_try_init(py, || py.import("builtins")?.getattr("__import__").map(Bound::unbind))?;
    errors::init(py)?;
    resolve_all(py, &STANDARD)?;
    // pyo3 keeps the class `Mapping`, and imports it for the first object that is asked whether it is one.
    let _ = module.cast::<PyMapping>();
    // Not by `add_function`, which would make it a public name.
    module.setattr("_resolve", wrap_pyfunction!(_resolve, module)?)
}

/// Look up what the core uses of the package, which is imported by now.
#[pyfunction]
fn _resolve(py: Python<'_>) -> PyResult<()> {
    resolve_all(py, &PACKAGE)
}

fn resolve_all(py: Python<'_>, objects: &[&Imported]) -> PyResult<()> {
    objects.iter().try_for_each(|object| object.get(py).map(drop))
}

/// Imports a module, also for a frame that has no builtins and so no `__import__`.
pub(crate) fn import_module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match IMPORT.get(py) {
        // A list of names, here one that every module has, gives the module itself and not the package it is in.
        Some(import) => import.bind(py).call1((name, py.None(), py.None(), ("__name__",), 0)),
        None => py.import(name).map(Bound::into_any),
    }
}
