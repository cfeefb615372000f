//! Callables that describe themselves: the tools of an MCP server, as AgentScope's clients hand them out, and tools that
//! are objects with a name and a schema.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString};

/// What such a callable says of itself. The schema is its owner's, who keeps it: it must only be read.
pub(crate) struct Described<'py> {
    pub(crate) name: String,
    pub(crate) schema: Bound<'py, PyAny>,
    /// The name of the MCP client.
    pub(crate) server: Option<String>,
    /// Whether somebody has to agree to each call, as a word.
    pub(crate) permission: Option<String>,
}

impl<'py> Described<'py> {
    /// Reads what a callable says of itself, if it does.
    pub(crate) fn read(callable: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = callable.py();
        if callable.is_exact_instance_of::<PyFunction>() {
            return Ok(None);
        }
        let (Some(name), Some(schema)) =
            (callable.getattr_opt(intern!(py, "name"))?, callable.getattr_opt(intern!(py, "json_schema"))?)
        else {
            return Ok(None);
        };
        let Ok(name) = name.cast::<PyString>() else { return Ok(None) };
        let server = match callable.getattr_opt(intern!(py, "mcp_name"))? {
            Some(server) => match server.cast::<PyString>() {
                Ok(server) => Some(server.extract()?),
                Err(_) => return Ok(None),
            },
            None if schema.is_instance_of::<PyDict>() => None,
            // Something else of that name, a method of a pydantic model say.
            None => return Ok(None),
        };
        Ok(Some(Self { name: name.extract()?, schema, server, permission: permission_of(callable)? }))
    }
}

/// The word, or the member of an enumeration that has it as its value.
fn permission_of(callable: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = callable.py();
    let Some(permission) = callable.getattr_opt(intern!(py, "permission"))? else { return Ok(None) };
    let permission = permission.getattr_opt(intern!(py, "value"))?.unwrap_or(permission);
    Ok(permission.cast::<PyString>().ok().map(|word| word.to_string_lossy().into_owned()))
}
