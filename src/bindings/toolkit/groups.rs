//! Groups: sets of tools that are on or off.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::PyToolkit;
use crate::bindings::log;
use crate::registry::BASIC;

#[pymethods]
impl PyToolkit {
    /// Add a group, to register tools in and to switch on and off.
    ///
    /// Raises:
    ///     DuplicateGroupError: If the name is taken, as `basic` always is.
    #[pyo3(signature = (group_name, description, active=false, notes=None))]
    fn create_tool_group(
        &self,
        group_name: &str,
        description: &str,
        active: bool,
        notes: Option<String>,
    ) -> PyResult<()> {
        Ok(self.registry().create_group(group_name, description, active, notes)?)
    }

    /// Switch groups on or off.
    ///
    /// A name that no group has is ignored; `basic` is always on, which a warning in the log `toolcrib` says.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is not a list of strings.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn update_tool_groups(&self, py: Python<'_>, group_names: Vec<String>, active: bool) -> PyResult<()> {
        if group_names.iter().any(|name| name == BASIC) {
            log::warning(py, "the 'basic' tool group is always active")?;
        }
        self.registry().set_active(group_names.iter().map(String::as_str), active);
        Ok(())
    }

    /// Remove groups together with their tools.
    ///
    /// A name that no group has is ignored.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is neither a string nor a list of strings.
    ///     BasicGroupError: If `basic` is among them; then nothing is removed.
    fn remove_tool_groups(&self, group_names: &Bound<'_, PyAny>) -> PyResult<()> {
        let names: Vec<String> = if let Ok(name) = group_names.cast::<PyString>() {
            vec![name.extract()?]
        } else {
            let names = group_names.cast::<PyList>().ok().and_then(|names| names.extract().ok());
            names.ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "The group_names must be a list of strings, but got {}.",
                    group_names.get_type()
                ))
            })?
        };
        // Bound to a name, so that the tools are dropped after the lock is.
        let removed = self.registry().remove_groups(&names)?;
        drop(removed);
        Ok(())
    }

    /// Join the notes of the active groups, each under the heading `## About Tool Group '<name>'`.
    fn get_activated_notes(&self) -> String {
        self.registry().activated_notes()
    }

    /// Join the notes of the active groups, or of those that are named, whether they are active or not.
    ///
    /// Raises:
    ///     UnknownGroupError: If a name is not that of a group.
    #[pyo3(signature = (group_names=None))]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn get_tool_group_notes(&self, group_names: Option<Vec<String>>) -> PyResult<String> {
        let registry = self.registry();
        Ok(group_names.map_or_else(|| Ok(registry.activated_notes()), |names| registry.notes_of(&names))?)
    }
}
