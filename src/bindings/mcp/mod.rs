//! MCP for Python.
//!
//! - `lock` writes and verifies the lock file of a toolkit.

mod lock;

use pyo3::prelude::*;

/// Adds the classes to the module.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lock::install(module)
}
