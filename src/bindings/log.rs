//! What the developer should hear about without being stopped, through Python's own logging.

use pyo3::prelude::*;

/// Warns in the log `toolcrib`.
pub(crate) fn warning(py: Python<'_>, text: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("toolcrib",))?;
    logger.call_method1("warning", (text,))?;
    Ok(())
}
