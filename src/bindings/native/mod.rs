//! Native tools in Python: Rust code that runs on a tokio runtime of its own and is awaited on the caller's event loop.
//!
//! Read [`tool`], the class that is registered in a toolkit; then [`run`], the awaitable or async iterator that calling it
//! returns; then `question`, the answers to its questions; then [`runtime`], the tokio runtime of this process. The threads of the runtime never attach to Python:
//! responses reach the loop as plain data, through the completion queue of `worker`.

pub(crate) mod future;
mod question;
mod run;
pub(crate) mod runtime;
mod tool;

use pyo3::prelude::*;

pub(crate) use run::{PyNativeResponses, identify};
pub(crate) use runtime::generation;
pub(crate) use tool::{PyNativeTool, signature_of};

/// Adds the classes, and the functions that stop the runtime before the interpreter ends and reset it in a forked child.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNativeTool>()?;
    super::add_internal::<future::PyNativeFuture>(module)?;
    super::add_internal::<question::PyReply>(module)?;
    // Not by `add_function`, which would make it a public name.
    module.setattr("_native_tool", wrap_pyfunction!(tool::_native_tool, module)?)?;
    runtime::install(module)
}
