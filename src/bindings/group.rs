//! `ToolGroup`: a named set of tools that is on or off.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::registry::{Group, View};

/// A named set of tools that is on or off.
///
/// The groups in `Toolkit.groups` are live: setting an attribute takes effect in the toolkit, and `active` of a group in
/// `Session.groups` in that session only. One that you make yourself belongs to no toolkit.
#[pyclass(name = "ToolGroup", module = "toolcrib", frozen)]
pub(crate) struct PyToolGroup {
    group: Arc<Group>,
    /// The view that it was found in, which may have switches of its own.
    view: View,
}

type GroupFields = (String, bool, String, Option<String>);

impl From<Arc<Group>> for PyToolGroup {
    fn from(group: Arc<Group>) -> Self {
        Self { group, view: View::default() }
    }
}

impl PyToolGroup {
    /// A group as a view shows it.
    pub(crate) fn in_view(group: Arc<Group>, view: &View) -> Self {
        Self { group, view: view.session().map_or_else(View::default, |it| View::default().in_session(it.clone())) }
    }
}

#[pymethods]
impl PyToolGroup {
    #[new]
    #[pyo3(signature = (name, active, description, notes=None))]
    fn new(name: &str, active: bool, description: &str, notes: Option<String>) -> Self {
        Arc::new(Group::new(name, active, description, notes, Arc::default())).into()
    }

    /// The name, unique in its toolkit.
    #[getter]
    fn name(&self) -> &str {
        self.group.name()
    }

    /// True if its tools are listed and can be called.
    #[getter]
    fn active(&self) -> bool {
        self.view.is_active(&self.group)
    }

    #[setter]
    fn set_active(&self, active: bool) {
        self.view.switch([(&*self.group, active)]);
    }

    /// The purpose of the group.
    #[getter]
    fn description(&self) -> String {
        self.group.description()
    }

    #[setter]
    fn set_description(&self, description: String) {
        self.group.set_description(description);
    }

    /// Notes on the use of its tools; see `Toolkit.get_activated_notes`.
    #[getter]
    fn notes(&self) -> Option<String> {
        self.group.notes()
    }

    #[setter]
    fn set_notes(&self, notes: Option<String>) {
        self.group.set_notes(notes);
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
        (self.group.name(), self.active(), self.group.description(), self.group.notes())
    }
}

/// A dict of the groups of a view by name.
pub(crate) fn groups_by_name<'py>(
    py: Python<'py>,
    groups: Vec<Arc<Group>>,
    view: &View,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for group in groups {
        all.set_item(group.name().to_owned(), Py::new(py, PyToolGroup::in_view(group, view))?)?;
    }
    Ok(all)
}
