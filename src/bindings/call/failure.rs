//! The answer that an exception of a tool is turned into.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use crate::bindings::modules::imported;
use crate::bindings::value::error_text;
use crate::call::Answer;

/// Answers for an exception.
pub(super) fn answer_for(py: Python<'_>, error: &PyErr) -> Answer {
    let message = error_text(py, error);
    if is_mcp_error(py, error) { Answer::McpFailed { message } } else { Answer::Failed { message } }
}

/// Whether it is the MCP SDK, if the program uses that, saying that a server answered with an error.
fn is_mcp_error(py: Python<'_>, error: &PyErr) -> bool {
    // The interpreter's own exceptions, which are most, need no question.
    // SAFETY: a live type.
    if unsafe { ffi::PyType_GetFlags(error.get_type(py).as_type_ptr()) } & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
        return false;
    }
    let is_one = || {
        let Some(exceptions) = imported(py, intern!(py, "mcp.shared.exceptions"))? else { return Ok(false) };
        error.value(py).is_instance(&exceptions.getattr(intern!(py, "McpError"))?)
    };
    is_one().unwrap_or(false)
}
