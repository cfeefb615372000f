//! Callables that describe themselves: the tools of an MCP server, as AgentScope's clients hand them out.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyString};

/// What such a callable says of itself. The schema is its client's, which keeps it: it must only be read.
pub(crate) struct Described<'py> {
    pub(crate) name: String,
    pub(crate) schema: Bound<'py, PyAny>,
    /// The name of the client.
    pub(crate) server: String,
}

impl<'py> Described<'py> {
    /// Reads what a callable says of itself, if it does.
    pub(crate) fn read(callable: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = callable.py();
        if callable.is_exact_instance_of::<PyFunction>() {
            return Ok(None);
        }
        let Some(server) = callable.getattr_opt(intern!(py, "mcp_name"))? else { return Ok(None) };
        let (Some(name), Some(schema)) =
            (callable.getattr_opt(intern!(py, "name"))?, callable.getattr_opt(intern!(py, "json_schema"))?)
        else {
            return Ok(None);
        };
        let (Ok(server), Ok(name)) = (server.cast::<PyString>(), name.cast::<PyString>()) else { return Ok(None) };
        Ok(Some(Self { name: name.extract()?, schema, server: server.extract()? }))
    }
}
