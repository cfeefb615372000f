//! `_ToolRoster`: groups of tool definitions without functions, the base of `toolcrib.compat.groups`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde_json::Value;

use super::json;
use super::parameters::name_list;
use crate::registry::{Roster, RosterGroup};
use crate::{Error, Result};

type ToolDefinitions = Vec<(String, Value)>;

/// Groups of tool definitions: plain data, which is copied in and out.
///
/// It may be used from several threads at once.
#[pyclass(name = "_ToolRoster", module = "toolcrib._core", frozen)]
pub(crate) struct PyToolRoster(Mutex<Roster<Value>>);

impl PyToolRoster {
    fn roster(&self) -> MutexGuard<'_, Roster<Value>> {
        // Each method leaves the roster consistent, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_known(&self, id: &str) -> Result<()> {
        match self.roster().get(id) {
            Some(_) => Ok(()),
            None => Err(Error::UnknownGroup { name: id.to_owned() }),
        }
    }
}

fn invalid_group(id: &str, reason: String) -> Error {
    Error::InvalidGroup { id: id.to_owned(), reason }
}

/// The definitions that have a name; the others cannot be listed.
fn definitions(id: &str, tools: Option<&Bound<'_, PyAny>>) -> PyResult<ToolDefinitions> {
    let items: Vec<Bound<'_, PyAny>> = match tools {
        Some(tools) if tools.is_instance_of::<PyList>() || tools.is_instance_of::<PyTuple>() => {
            tools.try_iter()?.collect::<PyResult<_>>()?
        }
        _ => return Err(invalid_group(id, "its `tools` is not a list".to_owned()).into()),
    };
    let mut found = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(name) = name_of(item)? else { continue };
        let value = json::value_from_python(item)
            .map_err(|error| invalid_group(id, format!("tool {index} is not JSON: {}", error.value(item.py()))))?;
        found.push((name, value));
    }
    Ok(found)
}

fn name_of(definition: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Ok(definition) = definition.cast::<PyDict>() else { return Ok(None) };
    let Some(function) = definition.get_item("function")? else { return Ok(None) };
    let Ok(function) = function.cast::<PyDict>() else { return Ok(None) };
    let name = function.get_item("name")?.and_then(|name| name.cast_into::<PyString>().ok());
    Ok(name.and_then(|name| name.to_str().ok().map(str::to_owned)).filter(|name| !name.is_empty()))
}

/// The summary of a group as a dict.
fn summary_to_python<'py>(py: Python<'py>, id: &str, about: GroupSummary) -> PyResult<Bound<'py, PyDict>> {
    let group = PyDict::new(py);
    group.set_item("id", id)?;
    group.set_item("description", about.description)?;
    group.set_item("tool_count", about.tools.len())?;
    group.set_item("tools", about.tools)?;
    group.set_item("reserved", about.is_reserved)?;
    Ok(group)
}

/// The description of a group and the names of its tools.
struct GroupSummary {
    description: String,
    tools: Vec<String>,
    is_reserved: bool,
}

impl From<&RosterGroup<Value>> for GroupSummary {
    fn from(entry: &RosterGroup<Value>) -> Self {
        Self {
            description: entry.about().clone(),
            tools: entry.tools().map(|(name, _)| name.to_owned()).collect(),
            is_reserved: entry.is_reserved(),
        }
    }
}

#[pymethods]
impl PyToolRoster {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Add a group, or replace the one that has the id.
    ///
    /// Args:
    ///     id: The group's id.
    ///     definition: A dictionary with a list `tools` of definitions and an optional `description`. Of several
    ///         definitions of one name the last is kept; those without a name are skipped.
    ///     reserved: Refuse to register or unregister the id from now on.
    ///
    /// Returns:
    ///     True if there was a group of that id.
    ///
    /// Raises:
    ///     ReservedGroupError: If the id is reserved, whatever the definition.
    ///     InvalidGroupError: If the definition is not valid.
    #[pyo3(signature = (id, definition, *, reserved=false))]
    fn register(&self, id: &str, definition: &Bound<'_, PyAny>, reserved: bool) -> PyResult<bool> {
        if self.is_reserved(id) {
            return Err(Error::ReservedGroup { id: id.to_owned() }.into());
        }
        let Ok(definition) = definition.cast::<PyDict>() else {
            let kind = definition.get_type().qualname()?;
            return Err(invalid_group(id, format!("its definition is {kind}, not a dictionary")).into());
        };
        let tools = definitions(id, definition.get_item("tools")?.as_ref())?;
        let description = match definition.get_item("description")? {
            Some(text) if !text.is_none() => {
                text.extract::<String>().map_err(|_| invalid_group(id, "its `description` is not text".to_owned()))?
            }
            _ => String::new(),
        };
        let mut roster = self.roster();
        let is_replaced = roster.register(id, description, tools)?;
        if reserved {
            roster.reserve(id)?;
        }
        Ok(is_replaced)
    }

    /// Remove a group.
    ///
    /// Raises:
    ///     ReservedGroupRemovalError: If the group is reserved.
    ///     UnknownGroupError: If there is no such group.
    fn unregister(&self, id: &str) -> PyResult<()> {
        Ok(self.roster().unregister(id)?)
    }

    /// Replace the tools of a group, reserved or not.
    ///
    /// Raises:
    ///     UnknownGroupError: If there is no such group.
    ///     InvalidGroupError: If `tools` is not a list of definitions.
    fn update(&self, id: &str, tools: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_known(id)?;
        let tools = definitions(id, Some(tools))?;
        Ok(self.roster().update(id, tools)?)
    }

    /// Refuse to register or unregister the id of a group from now on.
    ///
    /// Raises:
    ///     UnknownGroupError: If there is no such group.
    fn reserve(&self, id: &str) -> PyResult<()> {
        Ok(self.roster().reserve(id)?)
    }

    /// Return the definitions of these groups in the order of the ids; of several of one name the first.
    ///
    /// Unknown ids are skipped.
    fn definitions<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let ids: Vec<String> = name_list("ids", ids)?;
        let found: Vec<Value> = {
            let roster = self.roster();
            roster
                .definitions(ids.iter().map(String::as_str))
                .into_iter()
                .map(|(_, definition)| definition.clone())
                .collect()
        };
        found.iter().map(|definition| json::to_python(py, definition)).collect()
    }

    /// Describe all groups in their order.
    ///
    /// Returns:
    ///     A dictionary for each, with `id`, `description`, `tools` (their names), `tool_count` and `reserved`.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let groups: Vec<(String, GroupSummary)> =
            self.roster().list().map(|(id, entry)| (id.to_owned(), entry.into())).collect();
        groups.into_iter().map(|(id, about)| summary_to_python(py, &id, about)).collect()
    }

    /// Describe one group; None if it is unknown.
    fn get<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let about = self.roster().get(id).map(GroupSummary::from);
        about.map(|about| summary_to_python(py, id, about)).transpose()
    }

    /// Return the group to which a tool was added last.
    fn holder(&self, name: &str) -> Option<String> {
        self.roster().holder(name).map(str::to_owned)
    }

    /// Return all groups of a tool, the one to which it was added last at the end.
    fn holders(&self, name: &str) -> Vec<String> {
        self.roster().holders(name).map(str::to_owned).collect()
    }

    /// Return True if one of these groups holds a tool.
    fn is_in(&self, name: &str, ids: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids: Vec<String> = name_list("ids", ids)?;
        Ok(self.roster().is_in(name, ids.iter().map(String::as_str)))
    }

    /// Return the ids of all groups in their order.
    fn ids(&self) -> Vec<String> {
        self.roster().ids().map(str::to_owned).collect()
    }

    /// Return the names of all tools without repetition, in the order of the groups.
    fn tool_names(&self) -> Vec<String> {
        self.roster().tool_names().map(str::to_owned).collect()
    }

    /// Return True if an id is reserved.
    fn is_reserved(&self, id: &str) -> bool {
        self.roster().get(id).is_some_and(RosterGroup::is_reserved)
    }

    fn __contains__(&self, id: &Bound<'_, PyAny>) -> bool {
        let id = id.cast::<PyString>();
        id.is_ok_and(|id| id.to_str().is_ok_and(|id| self.roster().get(id).is_some()))
    }

    fn __len__(&self) -> usize {
        self.roster().ids().len()
    }

    #[allow(clippy::unused_self, reason = "an empty roster is true too")]
    fn __bool__(&self) -> bool {
        true
    }
}
