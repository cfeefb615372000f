//! Groups that are registered and unregistered with their tools, and who is in which.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::PyToolkit;
use crate::Error;
use crate::bindings::register::{Draft, Wishes};
use crate::bindings::tool::PyTool;
use crate::bindings::{log, names};
use crate::registry::{BASIC, GroupState, Member};

impl PyToolkit {
    /// What a group is to be registered with: names of tools, and callables that become tools.
    fn read_members<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        tools: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Member<Py<PyTool>>>> {
        let refused = |reason: String| Error::InvalidGroup { id: id.to_owned(), reason };
        let kind =
            |it: &Bound<'_, PyAny>| it.get_type().qualname().map_or_else(|_| "?".to_owned(), |it| it.to_string());
        let is_text = tools.is_instance_of::<PyString>() || tools.is_instance_of::<PyBytes>();
        let items = if is_text { None } else { tools.try_iter().ok() };
        let items = items.ok_or_else(|| refused(format!("its tools must be a list, not {}", kind(tools))))?;
        let mut members = Vec::new();
        for (index, item) in items.enumerate() {
            let item = item?;
            members.push(match item.cast::<PyString>() {
                Ok(name) => Member::Known(name.to_str()?.to_owned()),
                Err(_) if item.is_callable() => Member::New(self.new_member(py, &item)?),
                Err(_) => {
                    let what = format!("tool {index} is neither a name nor callable but {}", kind(&item));
                    return Err(refused(what).into());
                }
            });
        }
        Ok(members)
    }

    fn new_member<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<crate::registry::Tool<Py<PyTool>>> {
        let draft = Draft::new(function, Wishes { include_long_description: true, ..Wishes::default() })?;
        let is_meta = self.is_own_reset(draft.function())?;
        let name: Arc<str> = draft.name().into();
        // The registry puts it into its group.
        let basic = self.registry().group(BASIC)?;
        let permissions = self.permissions(py).clone().unbind();
        let tool = draft.finish(py, name, basic, self.behaviour(), permissions, is_meta)?;
        Ok(PyTool::entry(Py::new(py, tool)?))
    }
}

#[pymethods]
impl PyToolkit {
    /// Add a group together with its tools, or put it in the place of the one that has the id.
    ///
    /// A tool may be in several groups: one that is in others stays there as well, and can be called while any of its
    /// groups is active. Replacing a group is worth a warning in the log `toolcrib`; tools that only the old one held
    /// are taken out. A registration that fails changes nothing.
    ///
    /// Args:
    ///     id: The group's id, which is its name everywhere else.
    ///     description: What the group is for.
    ///     tools: Names of registered tools, and callables to register.
    ///     reserved: Whether nobody may register or unregister the id from now on.
    ///     active: Whether its tools are shown and may be called.
    ///     notes: How to use its tools; see `get_activated_notes`.
    ///
    /// Raises:
    ///     ReservedGroupError: If the id is reserved, as `basic` always is.
    ///     InvalidGroupError: If `tools` is not a list of such things, or there is no tool of a name.
    ///     DuplicateToolError: If a callable has the name of a tool that another group holds.
    ///     ToolcribError: If a callable cannot be a tool; see `register_tool_function`.
    #[pyo3(
        signature = (id, description="", tools=None, *, reserved=false, active=true, notes=None),
        text_signature = "($self, id, description='', tools=(), *, reserved=False, active=True, notes=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn register_group<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        description: &str,
        tools: Option<&Bound<'py, PyAny>>,
        reserved: bool,
        active: bool,
        notes: Option<String>,
    ) -> PyResult<()> {
        self.registry().may_register(id)?;
        let mut members = tools.map_or_else(|| Ok(Vec::new()), |tools| self.read_members(py, id, tools))?;
        let state = GroupState { name: id.to_owned(), description: description.to_owned(), notes, active };
        let registered = {
            let mut registry = self.registry();
            let registered = registry.register_group(state, &mut members)?;
            if reserved {
                registry.reserve_group(id)?;
            }
            registered
        };
        if registered.is_replaced {
            log::warning(py, &format!("duplicate_group_id: tool group '{id}' was registered before and is replaced"))?;
        }
        Ok(())
    }

    /// Take a group out, and with it the tools that no other group holds.
    ///
    /// Raises:
    ///     ReservedGroupRemovalError: If the group is reserved, as `basic` always is.
    ///     UnknownGroupError: If there is no such group.
    fn unregister_group(&self, id: &str) -> PyResult<()> {
        // Bound to a name, so that the tools are dropped after the lock is.
        let removed = self.registry().unregister_group(id)?;
        drop(removed);
        Ok(())
    }

    /// Describe all groups, `basic` first, then in the order they were created.
    ///
    /// Returns:
    ///     For each a dictionary with `id`, `description`, `tools` (their names), `tool_count`, `reserved` and `active`.
    fn list_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let groups: Vec<_> = {
            let registry = self.registry();
            let ids = registry.group_ids().filter_map(|id| registry.group(id).ok());
            let tools = |id: &str| registry.members(id).map(str::to_owned).collect::<Vec<_>>();
            ids.map(|group| (tools(group.name()), registry.is_reserved(group.name()), group)).collect()
        };
        let list = PyList::empty(py);
        for (tools, reserved, group) in groups {
            let entry = PyDict::new(py);
            entry.set_item("id", group.name())?;
            entry.set_item("description", group.description())?;
            entry.set_item("tool_count", tools.len())?;
            entry.set_item("tools", tools)?;
            entry.set_item("reserved", reserved)?;
            entry.set_item("active", group.is_active())?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Name the group that was the latest to take a tool in, of those that hold it; None if none does.
    fn tool_group(&self, name: &str) -> Option<String> {
        self.registry().holder(name).map(str::to_owned)
    }

    /// Name all groups that hold a tool, the latest to take it in last.
    fn tool_groups_of(&self, name: &str) -> Vec<String> {
        self.registry().holders(name).map(str::to_owned).collect()
    }

    /// Say whether one of these groups holds a tool, be they active or not.
    ///
    /// Raises:
    ///     TypeError: If `ids` is not a list of strings.
    fn is_tool_in_groups(&self, name: &str, ids: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids: Vec<String> = names::read("ids", ids)?;
        Ok(self.registry().is_in(name, ids.iter().map(String::as_str)))
    }

    /// Name all groups, `basic` first, then in the order they were created.
    fn all_group_ids(&self) -> Vec<String> {
        self.registry().group_ids().map(str::to_owned).collect()
    }
}
