//! The Model Context Protocol in Python: [`client`] connects to servers and makes native tools of theirs, which `watch`
//! follows; `server` is a toolkit, view or session behind a server that runs in threads of the native runtime, and whose
//! calls, each a `served_call`, run on the event loop that serves; `lock` writes and verifies the lock file of a toolkit.

mod client;
mod lock;
mod served_call;
mod server;
mod watch;

use pyo3::prelude::*;

use crate::mcp::client::redefined;
use crate::mcp::provider_name;

/// Adds the classes that `toolcrib.mcp` is made of.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    super::add_internal::<client::PyMcpClient>(module)?;
    super::add_internal::<watch::PyMcpWatch>(module)?;
    super::add_internal::<server::PyMcpServer>(module)?;
    super::add_internal::<served_call::PyServedCall>(module)?;
    lock::install(module)?;
    module.setattr("_mcp_target_name", wrap_pyfunction!(client::_mcp_target_name, module)?)?;
    module.setattr("_mcp_definition", wrap_pyfunction!(client::_mcp_definition, module)?)?;
    module.setattr("_mcp_flags", wrap_pyfunction!(client::_mcp_flags, module)?)?;
    module.setattr("_mcp_response", wrap_pyfunction!(client::_mcp_response, module)?)?;
    module.setattr("_mcp_redefined", wrap_pyfunction!(_mcp_redefined, module)?)?;
    module.setattr("_mcp_tool_name", wrap_pyfunction!(_mcp_tool_name, module)?)
}

/// The name under which a tool of a server is registered: valid for every provider, and not among the `taken`.
#[pyfunction]
fn _mcp_tool_name(server: &str, namespace: Option<&str>, name: &str, taken: &Bound<'_, PyAny>) -> String {
    provider_name(server, namespace, name, |name| taken.contains(name).unwrap_or(false))
}

/// The reason of the quarantine of a tool whose server has changed its definition.
#[pyfunction]
fn _mcp_redefined(client: &str) -> String {
    redefined(client)
}
