//! Warnings for the developer, through Python's own logging.

use pyo3::prelude::*;

use super::imported::GET_LOGGER;

/// Warns in the log `toolcrib`.
pub(crate) fn warning(py: Python<'_>, text: &str) -> PyResult<()> {
    let logger = GET_LOGGER.get(py)?.call1(("toolcrib",))?;
    logger.call_method1("warning", (text,))?;
    Ok(())
}
