//! Native tools in Python: Rust code that runs on a tokio runtime of our own and is awaited on the caller's event loop.
//!
//! `runtime` owns the runtime of this process; `job` is one run of a tool as the loop sees it; `tool` is the class that is
//! registered in a toolkit; `awaitable` is what calling it gives, so that it is driven like a coroutine or an async
//! generator. The threads of the runtime never attach to Python: responses reach the loop as plain data, through the
//! completion queue of `worker`.

mod awaitable;
mod job;
mod runtime;
mod tool;

use pyo3::prelude::*;

pub(crate) use awaitable::PyNativeResponses;
pub(crate) use tool::PyNativeTool;

/// Adds the classes, and what stops the runtime before the interpreter ends and forgets it in a forked child.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNativeTool>()?;
    // Not by `add_function`, which would make it a public name.
    module.setattr("_native_tool", wrap_pyfunction!(tool::_native_tool, module)?)?;
    runtime::install(module)
}
