//! MCP in Python.
//!
//! Read `server`: a toolkit, view or session behind a server that runs in threads of the native runtime, and whose calls run
//! on the event loop that serves; then `served_call`, one of these calls.

mod served_call;
mod server;

use pyo3::prelude::*;

/// Adds the classes, which only the package itself uses.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    super::add_internal::<server::PyMcpServer>(module)?;
    super::add_internal::<served_call::PyServedCall>(module)
}
