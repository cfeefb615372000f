//! The Model Context Protocol in Python: [`client`] connects to servers and makes native tools of theirs.

mod client;
mod watch;

use pyo3::prelude::*;

/// Adds the classes that `toolcrib.mcp` is made of.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    super::add_internal::<client::PyMcpClient>(module)?;
    module.setattr("_mcp_target_name", wrap_pyfunction!(client::_mcp_target_name, module)?)
}
