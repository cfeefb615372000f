//! Quarantine: tools that are registered, and neither shown nor callable until a person accepts them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use super::PyToolkit;
use crate::bindings::parameters::{optional_text, text};

#[pymethods]
impl PyToolkit {
    /// Quarantine a tool: it is neither shown to the model nor callable until it is accepted.
    ///
    /// A call gets a response with the code `"denied"` and the reason. Calls that run go on. The quarantine ends with
    /// `accept`, or when the tool is registered again with `"override"`.
    ///
    /// Args:
    ///     name: The name of the tool.
    ///     reason: The reason, which the model is told.
    ///
    /// Raises:
    ///     UnknownToolError: If there is no such tool.
    #[pyo3(signature = (name, reason=None), text_signature = "($self, name, reason='')")]
    fn quarantine(&self, name: &Bound<'_, PyAny>, reason: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (name, reason) = (text("name", name)?, optional_text("reason", reason)?.unwrap_or_default());
        Ok(self.registry().quarantine(&name, &reason)?)
    }

    /// Lift the quarantine of a tool.
    ///
    /// Call `lock` afterwards to record its definition as reviewed.
    ///
    /// Raises:
    ///     UnknownToolError: If there is no such tool.
    ///     ValueError: If it is not quarantined.
    fn accept(&self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = text("name", name)?;
        if self.registry().accept(&name)? {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("tool `{name}` is not quarantined")))
    }

    /// The names of the quarantined tools with the reasons, in the order of registration.
    #[getter]
    fn quarantined<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tools: Vec<(String, String)> = self
            .with_registry(|it| it.quarantined().map(|(tool, why)| (tool.name.to_string(), why.to_owned())).collect());
        tools.into_py_dict(py)
    }
}

impl PyToolkit {
    /// Quarantines tools in one step; those that are gone by now are skipped.
    pub(crate) fn quarantine_all<'a>(&self, tools: impl IntoIterator<Item = (&'a str, String)>) -> Vec<String> {
        let mut registry = self.registry();
        let mut quarantined = Vec::new();
        for (name, reason) in tools {
            if registry.quarantine(name, &reason).is_ok() {
                quarantined.push(name.to_owned());
            }
        }
        quarantined
    }
}
