//! A tool as a view hands it out: it says of itself what the tool says, and is called through the view.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use super::call::stream_through;
use super::imported::TAP;
use super::tool::PyTool;
use super::view::PyToolkitView;

/// A tool of a view, which passes for a `RegisteredToolFunction`: calls of it are the view's, with its caller, and only of
/// what it shows.
#[pyclass(name = "RegisteredToolFunction", module = "toolcrib", frozen)]
pub(crate) struct ToolInView {
    pub(super) tool: Py<PyTool>,
    pub(super) view: Py<PyToolkitView>,
}

#[pymethods]
impl ToolInView {
    #[getter]
    #[allow(clippy::unused_self, reason = "the signature that pyo3 asks for")]
    fn __class__<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        py.get_type::<PyTool>()
    }

    /// What the model is told of it through the view: the meta tool names the groups of the view only.
    #[getter]
    fn extended_json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.view.get().schema_copy(py, self.tool.get())
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.tool.bind(py).getattr(name)
    }

    /// Call this tool through the view that it comes from; see `RegisteredToolFunction.call`.
    #[pyo3(signature = (*, arguments, stream_print=None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyAny>,
        stream_print: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shown = match stream_print {
            Some(function) => Some(TAP.get(py)?.call1((function,))?),
            None => None,
        };
        stream_through(self.view.bind(py), self.tool.bind(py), arguments, shown.as_ref())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.tool.is(&other.get().tool) && self.view.is(&other.get().view))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.tool.as_ptr().addr(), self.view.as_ptr().addr()).hash(&mut hasher);
        hasher.finish()
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.tool.bind(py).dir()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.tool.bind(py).repr().map(|text| text.to_string())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit clears itself, which breaks any circle through it.
        visit.call(&self.tool)?;
        visit.call(&self.view)
    }
}
