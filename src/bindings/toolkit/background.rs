//! What a toolkit runs in the background.

use pyo3::prelude::*;

use super::PyToolkit;
use crate::bindings::background::PyTaskBoard;

impl PyToolkit {
    /// The tasks of this toolkit and their results.
    pub(crate) fn tasks<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTaskBoard>> {
        if let Some(tasks) = self.tasks.get() {
            return Ok(tasks.bind(py));
        }
        // Made outside of the cell: making an object may run other Python code, which may come back here.
        let tasks = Py::new(py, PyTaskBoard::default())?;
        Ok(self.tasks.get_or_init(|| tasks).bind(py))
    }
}

#[pymethods]
impl PyToolkit {
    /// The tasks of this toolkit and their results.
    #[getter]
    fn _tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTaskBoard>> {
        self.tasks(py).cloned()
    }
}
