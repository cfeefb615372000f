//! `ToolGroup`: a named set of tools that is on or off.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::registry::Group;

/// A named set of tools that is on or off.
///
/// The groups in `Toolkit.groups` are live: setting an attribute takes effect in the toolkit. One that you make yourself
/// belongs to no toolkit.
#[pyclass(name = "ToolGroup", module = "toolcrib", frozen)]
pub(crate) struct PyToolGroup(Arc<Group>);

type GroupFields = (String, bool, String, Option<String>);

impl From<Arc<Group>> for PyToolGroup {
    fn from(group: Arc<Group>) -> Self {
        Self(group)
    }
}

#[pymethods]
impl PyToolGroup {
    #[new]
    #[pyo3(signature = (name, active, description, notes=None))]
    fn new(name: &str, active: bool, description: &str, notes: Option<String>) -> Self {
        Self(Arc::new(Group::new(name, active, description, notes, Arc::default())))
    }

    /// The name, unique in its toolkit.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// True if its tools are listed and can be called.
    #[getter]
    fn active(&self) -> bool {
        self.0.is_active()
    }

    #[setter]
    fn set_active(&self, active: bool) {
        self.0.set_active(active);
    }

    /// The purpose of the group.
    #[getter]
    fn description(&self) -> String {
        self.0.description()
    }

    #[setter]
    fn set_description(&self, description: String) {
        self.0.set_description(description);
    }

    /// Notes on the use of its tools; see `Toolkit.get_activated_notes`.
    #[getter]
    fn notes(&self) -> Option<String> {
        self.0.notes()
    }

    #[setter]
    fn set_notes(&self, notes: Option<String>) {
        self.0.set_notes(notes);
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }

    /// Support copying and pickling; a copy belongs to no toolkit.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, GroupFields) {
        let (name, active, description, notes) = slf.get().fields();
        (slf.get_type(), (name.to_owned(), active, description, notes))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let field = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        Ok(format!(
            "ToolGroup(name={}, active={}, description={}, notes={})",
            field("name")?,
            field("active")?,
            field("description")?,
            field("notes")?
        ))
    }
}

impl PyToolGroup {
    fn fields(&self) -> (&str, bool, String, Option<String>) {
        (self.0.name(), self.0.is_active(), self.0.description(), self.0.notes())
    }
}

/// A dict of groups by name.
pub(crate) fn groups_by_name(py: Python<'_>, groups: Vec<Arc<Group>>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for group in groups {
        all.set_item(group.name().to_owned(), Py::new(py, PyToolGroup::from(group))?)?;
    }
    Ok(all)
}
