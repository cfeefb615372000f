//! The Python extension module: converts arguments, calls the core, converts results.
//!
//! Along the path of a tool:
//!
//! 1. [`registration`] turns a callable into a [`tool`], with a JSON Schema from [`schema`];
//! 2. [`toolkit`] keeps the tools; [`group`], [`role`] and [`view`] select some of them, a [`session`] for one
//!    conversation; [`dialect`] and `tell` describe them to
//!    models;
//! 3. [`tool_call`], [`text`], `artifactflow` and [`argument_reader`] read what a model sends;
//! 4. [`call`] runs a tool: requests, arguments, which [`typed`] converts, [`policy`], middlewares, the stream. Synchronous functions run in [`worker`],
//!    Rust tools in [`native`], sub-agents in sessions that [`agent`] opens, and [`background`] keeps calls that continue after their response;
//! 5. [`response`] is a chunk of the result, made by [`into_response`], in the class of another library by [`foreign_response`], and
//!    written for providers by [`result_message`];
//!    [`events`] and [`trace`] report what happens.
//!
//! Beside the path: [`store`] keeps data across restarts, [`saved_state`] the state of objects there and in files, `files` has the file systems of file tools, `process` the settings of
//! programs, [`agent`] has the definitions of sub-agents, [`declared`] the schemas of declared tools, [`mcp`] connects to servers and
//! serves tools to other programs, [`roster`] is the base of a compatibility package, [`json`] converts JSON, [`rule_value`] shows defaults to
//! policy rules, [`parameters`] reads arguments of methods, [`imported`] finds Python objects, [`once`] keeps what is made at first
//! use, [`errors`] maps errors to exceptions. [`mcp`] has the lock file of tool definitions.
#![allow(
    clippy::doc_markdown,
    clippy::needless_pass_by_value,
    reason = "pyo3 shows doc comments as Python's documentation, and hands over converted arguments by value"
)]

mod agent;
mod allocator;
mod argument_parser;
mod argument_reader;
mod background;
mod budget;
mod call;
mod declared;
mod dialect;
mod errors;
mod events;
#[cfg(unix)]
mod files;
mod foreign_response;
mod group;
mod host;
mod imported;
mod into_response;
mod json;
mod mcp;
mod model;
mod native;
mod once;
mod parameters;
mod policy;
#[cfg(unix)]
mod process;
mod registration;
mod response;
mod result_message;
mod role;
mod roster;
mod rule_value;
mod saved_state;
mod schema;
mod session;
mod session_base;
mod store;
mod text;
mod tool;
mod tool_call;
mod toolkit;
mod trace;
mod typed;
mod view;
mod worker;

use std::ffi::CString;

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

#[cfg(Py_GIL_DISABLED)]
compile_error!(
    "toolcrib cannot be built for a free-threaded Python: its types rely on the global interpreter lock. \
     Use a build of CPython without the `t` in its version"
);

/// The module's own allocations; the interpreter keeps its allocator.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// The extension module behind the package `toolcrib`.
///
/// pyo3 uses multi-phase initialisation, so CPython would load the module into any interpreter that shares the main lock; the
/// first line refuses that. CPython itself refuses an interpreter with its own lock, because the slot that allows it is not set.
/// `gil_used` makes a free-threaded Python enable its lock, but `PYTHON_GIL=0` overrides that, so such builds are refused at
/// compile time above.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    call::refuse_second_interpreter(module.py())?;
    imported::init(module)?;
    module.add_class::<toolkit::PyToolkit>()?;
    module.add_class::<tool::PyTool>()?;
    module.add_class::<group::PyToolGroup>()?;
    module.add_class::<view::PyToolkitView>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<session::PyLimits>()?;
    module.add_class::<session::PyUsage>()?;
    module.add_class::<role::PyRole>()?;
    module.add_class::<role::PyRoles>()?;
    module.add_class::<response::PyToolResponse>()?;
    module.add_class::<budget::PyResultBudget>()?;
    module.add_class::<policy::PyPolicy>()?;
    module.add_class::<policy::PyApprovals>()?;
    module.add_class::<policy::PyExplanation>()?;
    module.add_class::<events::PyEvent>()?;
    tool_call::install(module)?;
    agent::install(module)?;
    module.add_class::<argument_reader::PyArgumentReader>()?;
    text::install(module)?;
    add_internal::<roster::PyToolRoster>(module)?;
    add_internal::<dialect::PyDialectTool>(module)?;
    add_internal::<declared::PyDeclaredSchema>(module)?;
    add_internal::<policy::PyPermissions>(module)?;
    add_internal::<background::PyTaskBoard>(module)?;
    add_internal::<events::PyEventQueue>(module)?;
    add_internal::<worker::AwaitableJob>(module)?;
    add_internal::<call::Completion>(module)?;
    add_internal::<argument_parser::PyArgumentParser>(module)?;
    add_internal::<call::PyResponseModels>(module)?;
    add_internal::<call::PyModelCalls>(module)?;
    add_internal::<call::PyModelStream>(module)?;
    // Not by `add_function`, which adds the name to `__all__`.
    module.setattr("__version__", env!("CARGO_PKG_VERSION"))?;
    module.setattr("_as_response", wrap_pyfunction!(into_response::_as_response, module)?)?;
    module.setattr("_check_call", wrap_pyfunction!(parameters::_check_call, module)?)?;
    module.setattr("_read_toml", wrap_pyfunction!(json::_read_toml, module)?)?;
    module.setattr("_name_list", wrap_pyfunction!(parameters::_name_list, module)?)?;
    module.setattr("_did_you_mean", wrap_pyfunction!(parameters::_did_you_mean, module)?)?;
    worker::install(module)?;
    native::init(module)?;
    store::install(module)?;
    mcp::install(module)?;
    #[cfg(unix)]
    files::install(module)?;
    #[cfg(unix)]
    process::install(module)?;
    trace::install(module)?;
    call::init(module, &module.py().get_type::<toolkit::PyToolkit>())
}

/// Adds a class that only the package itself uses. `add_class` would add its name to `__all__`.
fn add_internal<T: PyTypeInfo>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<T>();
    module.setattr(class.name()?, class)
}

/// Warns the developer of a probable mistake, by Python's `warnings`.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// Logs a warning in Python's logger `toolcrib`.
pub(crate) fn log_warning(py: Python<'_>, text: &str) -> PyResult<()> {
    let logger = imported::GET_LOGGER.get(py)?.call1(("toolcrib",))?;
    logger.call_method1("warning", (text,))?;
    Ok(())
}
