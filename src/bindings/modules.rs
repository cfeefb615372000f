//! The modules that the program has imported: asked about, never imported for the sake of the question.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::imported::MODULES;

/// The module of that name, if the program has imported it.
pub(crate) fn imported<'py>(py: Python<'py>, name: impl IntoPyObject<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let module = MODULES.get(py)?.cast::<PyDict>()?.get_item(name)?;
    // `None` is what stands there to keep a module from being imported.
    Ok(module.filter(|module| !module.is_none()))
}
