//! `Role`: who somebody is to a toolkit, as a plain value.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use serde_json::{Map, Value};

use super::{json, names};
use crate::registry::Role;

/// A role: a prompt, and the groups that whoever has it may use.
#[pyclass(name = "Role", module = "toolcrib", frozen)]
pub(crate) struct PyRole(Role);

type Fields<'py> = (Bound<'py, PyType>, (String, String, Option<Vec<String>>, Bound<'py, PyAny>));

impl From<Role> for PyRole {
    fn from(role: Role) -> Self {
        Self(role)
    }
}

impl PyRole {
    pub(crate) fn role(&self) -> &Role {
        &self.0
    }
}

#[pymethods]
impl PyRole {
    #[new]
    #[pyo3(signature = (name, prompt="", tool_groups=None, details=None))]
    fn new(
        name: &str,
        prompt: &str,
        tool_groups: Option<&Bound<'_, PyAny>>,
        details: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let tool_groups = names::read_optional("tool_groups", tool_groups)?;
        let details = match details.map(|details| json::from_python(details)).transpose()?.map(Value::from) {
            Some(Value::Object(details)) => details,
            _ => Map::new(),
        };
        Ok(Self(Role { details, ..Role::new(name, prompt, tool_groups) }))
    }

    /// The name, unique among the roles.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// What an agent in this role is told.
    #[getter]
    fn prompt(&self) -> &str {
        &self.0.prompt
    }

    /// The groups it may use: None for the default, an empty list for none.
    #[getter]
    fn tool_groups(&self) -> Option<Vec<String>> {
        self.0.tool_groups.clone()
    }

    /// Everything else that its record says, as a copy.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &Value::Object(self.0.details.clone()))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Fields<'py>> {
        let Role { name, prompt, tool_groups, .. } = slf.get().0.clone();
        Ok((slf.get_type(), (name, prompt, tool_groups, slf.get().details(slf.py())?)))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let field = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        Ok(format!("Role(name={}, prompt={}, tool_groups={})", field("name")?, field("prompt")?, field("tool_groups")?))
    }
}
