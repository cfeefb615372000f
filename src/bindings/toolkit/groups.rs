//! Groups of tools, their members, and views of a part of the toolkit.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde_json::{Map, Value};

use super::PyToolkit;
use crate::Error;
use crate::bindings::budget::PyResultBudget;
use crate::bindings::parameters::{
    Omittable, class_name, flag, name_list, no_unknown, optional_instance, optional_name_list, optional_text, text,
};
use crate::bindings::registration::{ToolDraft, ToolOptions};
use crate::bindings::role::{PyRole, PyRoles};
use crate::bindings::tool::PyTool;
use crate::bindings::view::{PyToolkitView, filter};
use crate::bindings::{log_warning, warn};
use crate::near::{did_you_mean, nearest};
use crate::registry::{BASIC, Filter, Group, GroupState, Member, ROOT, Registry, Switch, View};

#[pymethods]
impl PyToolkit {
    /// Add a group, in which tools can be registered and which can be switched on and off.
    ///
    /// Args:
    ///     group_name: Its name.
    ///     description: Its purpose.
    ///     active: True if it is on from the start.
    ///     notes: Notes on the use of its tools.
    ///     result_budget: The largest size of the results of its tools.
    ///
    /// Raises:
    ///     DuplicateGroupError: If the name is taken, as `basic` always is.
    #[pyo3(
        signature = (group_name, description, active=Omittable(None), notes=None, *, result_budget=None),
        text_signature = "($self, group_name, description, active=False, notes=None, *, result_budget=None)"
    )]
    fn create_tool_group(
        &self,
        group_name: &Bound<'_, PyAny>,
        description: &Bound<'_, PyAny>,
        active: Omittable<'_>,
        notes: Option<&Bound<'_, PyAny>>,
        result_budget: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (name, description) = (text("group_name", group_name)?, text("description", description)?);
        let (active, notes) = (flag("active", &active, false)?, optional_text("notes", notes)?);
        let budget = PyResultBudget::read("result_budget", result_budget)?;
        self.registry().create_group(&name, &description, active, notes)?;
        // Also if there is none: a group of this name that was removed may have had one.
        self.permissions.get().set_group_budget(&name, budget);
        Ok(())
    }

    /// Switch groups on or off.
    ///
    /// `basic` is always active: naming it logs a warning in `toolcrib`.
    ///
    /// Args:
    ///     group_names: The names of the groups, or one name.
    ///     active: True to switch them on.
    ///
    /// Raises:
    ///     UnknownGroupError: If a group is unknown. Then nothing is switched.
    ///     TypeError: If `group_names` is not a list of strings.
    fn update_tool_groups(
        &self,
        py: Python<'_>,
        group_names: &Bound<'_, PyAny>,
        active: Omittable<'_>,
    ) -> PyResult<()> {
        let names: Vec<String> = name_list("group_names", group_names)?;
        let active = flag("active", &active, false)?;
        self.check_groups(&names)?;
        if names.iter().any(|name| name == BASIC) {
            log_warning(py, "the 'basic' tool group is always active")?;
        }
        self.registry().set_active(names.iter().map(String::as_str), active);
        Ok(())
    }

    /// Remove groups together with their tools.
    ///
    /// Args:
    ///     group_names: The names of the groups, or one name.
    ///
    /// Raises:
    ///     TypeError: If `group_names` is neither a string nor a list of strings.
    ///     BasicGroupError: If `basic` is among them. Then nothing is removed.
    ///     UnknownGroupError: If a group is unknown. Then nothing is removed.
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
        if !names.iter().any(|name| name == BASIC) {
            self.check_groups(&names)?;
        }
        // Bound to a name, so that the tools are dropped after the lock is released.
        let removed = self.registry_to_change(group_names.py()).remove_groups(&names)?;
        drop(removed);
        Ok(())
    }

    /// Join the notes of the active groups, each under the heading `## About Tool Group '<name>'`.
    fn get_activated_notes(&self) -> String {
        self.registry().activated_notes()
    }

    /// Join the notes of the active groups, or of the named ones, even if they are inactive.
    ///
    /// Raises:
    ///     UnknownGroupError: If a group is unknown.
    #[pyo3(signature = (group_names=None))]
    fn get_tool_group_notes(&self, group_names: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let names: Option<Vec<String>> = optional_name_list("group_names", group_names)?;
        let registry = self.registry();
        Ok(names.map_or_else(|| Ok(registry.activated_notes()), |names| registry.notes_of(&names))?)
    }
}

impl PyToolkit {
    /// Checks that groups of these names exist. AgentScope ignores the others.
    pub(crate) fn check_groups(&self, names: &[String]) -> crate::Result<()> {
        if self.is_compatible() {
            return Ok(());
        }
        let registry = self.registry();
        match names.iter().find(|name| registry.group(name).is_err()) {
            None => Ok(()),
            Some(name) => {
                let similar = nearest(name, registry.group_ids()).map(str::to_owned);
                Err(Error::NoSuchGroup { name: name.clone(), similar })
            }
        }
    }

    /// Reads the members of a new group: names of tools, and callables that become tools.
    fn read_members<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        tools: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Member<Py<PyTool>>>> {
        let refused = |reason: String| Error::InvalidGroup { id: id.to_owned(), reason };
        let is_text = tools.is_instance_of::<PyString>() || tools.is_instance_of::<PyBytes>();
        let items = if is_text { None } else { tools.try_iter().ok() };
        let items = items.ok_or_else(|| refused(format!("its tools must be a list, not {}", class_name(tools))))?;
        let mut members = Vec::new();
        for (index, item) in items.enumerate() {
            let item = item?;
            members.push(match item.cast::<PyString>() {
                Ok(name) => Member::Known(name.to_str()?.to_owned()),
                Err(_) if item.is_callable() => Member::New(self.new_member(py, &item)?),
                Err(_) => {
                    let what = format!("tool {index} is neither a name nor callable but {}", class_name(&item));
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
        let draft = ToolDraft::new(
            function,
            ToolOptions {
                include_long_description: true,
                response_class: self.response_class(py),
                is_lenient: self.is_compatible(),
                ..ToolOptions::default()
            },
        )?;
        let name: Arc<str> = draft.name().into();
        // The registry adds it to the new group.
        let basic = self.registry().group(BASIC)?;
        let tool = draft.finish_in(py, self, name, basic)?;
        Ok(PyTool::entry(Py::new(py, tool)?))
    }
}

#[pymethods]
impl PyToolkit {
    /// Add a group together with its tools, or replace the one that has the id.
    ///
    /// A tool may be in several groups: it stays in those that it is in, and can be called while any of its groups is
    /// active. Replacing a group logs a warning in `toolcrib` and removes the tools that are in no other group. A
    /// registration that fails changes nothing.
    ///
    /// Args:
    ///     id: The group's id, which is its name everywhere else.
    ///     description: The purpose of the group.
    ///     tools: Names of registered tools, and callables to register.
    ///     reserved: Refuse to register or unregister the id from now on.
    ///     active: List its tools and allow their calls.
    ///     notes: Notes on the use of its tools; see `get_activated_notes`.
    ///
    /// Raises:
    ///     ReservedGroupError: If the id is reserved, as `basic` always is.
    ///     InvalidGroupError: If `tools` is not a list of these, or a name is unknown.
    ///     DuplicateToolError: If a callable has the name of a tool in another group.
    ///     ToolcribError: If a callable cannot be registered; see `register_tool_function`.
    #[pyo3(
        signature = (id, description=Omittable(None), tools=None, *, reserved=Omittable(None), active=Omittable(None), notes=None),
        text_signature = "($self, id, description='', tools=(), *, reserved=False, active=True, notes=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn register_group<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
        description: Omittable<'py>,
        tools: Option<&Bound<'py, PyAny>>,
        reserved: Omittable<'py>,
        active: Omittable<'py>,
        notes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (id, notes) = (&*text("id", id)?, optional_text("notes", notes)?);
        let description = optional_text("description", description.0.as_ref())?.unwrap_or_default();
        let (reserved, active) = (flag("reserved", &reserved, false)?, flag("active", &active, true)?);
        self.registry().may_register(id)?;
        let mut members = tools.map_or_else(|| Ok(Vec::new()), |tools| self.read_members(py, id, tools))?;
        let state = GroupState { name: id.to_owned(), description, notes, active };
        let registered = {
            let mut registry = self.registry_to_change(py);
            let registered = registry.register_group(state, &mut members)?;
            if reserved {
                registry.reserve_group(id)?;
            }
            registered
        };
        self.permissions.get().set_group_budget(id, None);
        if registered.is_replaced {
            log_warning(py, &format!("duplicate_group_id: tool group '{id}' was registered before and is replaced"))?;
        }
        Ok(())
    }

    /// Remove a group, and the tools that are in no other group.
    ///
    /// Raises:
    ///     ReservedGroupRemovalError: If the group is reserved, as `basic` always is.
    ///     UnknownGroupError: If there is no such group.
    fn unregister_group(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        // Bound to a name, so that the tools are dropped after the lock is released.
        let removed = self.registry_to_change(py).unregister_group(id)?;
        drop(removed);
        Ok(())
    }

    /// Describe all groups: `basic` first, then in the order of their creation.
    ///
    /// Returns:
    ///     A dictionary for each, with `id`, `description`, `tools` (their names), `tool_count`, `reserved` and `active`.
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

    /// Return the group to which a tool was added last; None if it is in none.
    fn tool_group(&self, name: &str) -> Option<String> {
        self.registry().holder(name).map(str::to_owned)
    }

    /// Return all groups of a tool, the one to which it was added last at the end.
    fn tool_groups_of(&self, name: &str) -> Vec<String> {
        self.registry().holders(name).map(str::to_owned).collect()
    }

    /// Return True if a tool is in one of these groups, even if they are inactive.
    ///
    /// Raises:
    ///     TypeError: If `ids` is not a list of strings.
    fn is_tool_in_groups(&self, name: &str, ids: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids: Vec<String> = name_list("ids", ids)?;
        Ok(self.registry().is_in(name, ids.iter().map(String::as_str)))
    }

    /// Return the ids of all groups: `basic` first, then in the order of their creation.
    fn all_group_ids(&self) -> Vec<String> {
        self.registry().group_ids().map(str::to_owned).collect()
    }
}

impl PyToolkit {
    /// Warns of names in a selection that are unknown so far: a later registration may make them known.
    pub(crate) fn warn_of_unknown(&self, py: Python<'_>, filter: &Filter) -> PyResult<()> {
        self.warn_of_unknown_in(py, filter, "in a view")
    }

    /// The same for another place that selects tools.
    pub(crate) fn warn_of_unknown_in(&self, py: Python<'_>, filter: &Filter, place: &str) -> PyResult<()> {
        let unknown_name = |noun: &str, name: &str, known: &mut dyn Iterator<Item = &str>| {
            format!("unknown {noun} `{name}` {place}{}", did_you_mean(name, known))
        };
        let unknown = {
            let registry = self.registry();
            let tools = || registry.tools().map(|tool| &*tool.name);
            let tags = || registry.tools().flat_map(|tool| tool.tags.iter().map(AsRef::as_ref));
            let groups = filter.groups.iter().flatten().filter(|name| registry.group(name).is_err());
            let groups = groups.map(|name| unknown_name("group", name, &mut registry.group_ids()));
            let named = filter.names.iter().flatten().chain(&filter.exclude);
            let named = named.filter(|name| registry.find(name).is_none());
            let named = named.map(|name| unknown_name("tool", name, &mut tools()));
            let tagged = filter.tags.iter().flatten().filter(|name| !tags().any(|tag| tag == &***name));
            let tagged = tagged.map(|name| unknown_name("tag", name, &mut tags()));
            let mut unknown: Vec<String> = groups.chain(named).chain(tagged).collect();
            unknown.sort();
            unknown
        };
        unknown.iter().try_for_each(|text| warn(py, text))
    }

    /// The tools that a view lists, with the revision of the toolkit.
    pub(crate) fn listed_in(&self, py: Python<'_>, view: &View) -> (u64, Vec<Py<PyTool>>) {
        let registry = self.registry();
        let tools = view.listed(&registry).into_iter().map(|tool| tool.body.clone_ref(py)).collect();
        (registry.revision(), tools)
    }

    /// A number that changes whenever the listing may have changed.
    pub(crate) fn revision(&self) -> u64 {
        self.registry().revision()
    }

    /// Calls a function with the locked registry. It must not run Python code.
    pub(crate) fn with_registry<R>(&self, function: impl FnOnce(&Registry<Py<PyTool>>) -> R) -> R {
        function(&self.registry())
    }

    /// The parameters of the meta tool in a view.
    pub(crate) fn switches_in(&self, view: &View) -> Map<String, Value> {
        self.registry().switches_in(view)
    }

    /// Switches the groups of a view as a model asked for.
    pub(crate) fn equip_in(&self, view: &View, switches: &[(String, Switch)]) -> Result<String, String> {
        self.registry().equip_in(view, switches)
    }

    /// Finds a group that a view shows.
    pub(crate) fn group_in(&self, name: &str, view: &View) -> Option<Arc<Group>> {
        let registry = self.registry();
        view.groups(&registry).find(|group| group.name() == name).cloned()
    }
}

/// Warns of the name of a role that cannot be looked up, or that is unknown so far: it may be added to the roles later.
fn warn_of_unknown_role(py: Python<'_>, name: &str, roles: Option<&Bound<'_, PyRoles>>) -> PyResult<()> {
    if name == ROOT {
        return Ok(());
    }
    let text = match roles {
        None => format!("role `{name}` cannot be looked up, the view shows nothing: pass `roles=`"),
        Some(roles) => {
            let roles = roles.get().lock();
            if roles.get(name).is_some() {
                return Ok(());
            }
            let hint = did_you_mean(name, roles.all().map(|role| role.name.as_str()));
            format!("unknown role `{name}`, the view shows nothing{hint}")
        }
    };
    warn(py, &text)
}

#[pymethods]
impl PyToolkit {
    /// Select a part of the toolkit: exactly the tools that the view lists can be called through it.
    ///
    /// A view is live and cheap: it holds no tools, only the selection. A tool is selected if it matches all arguments. An
    /// empty list selects nothing. An unknown name selects nothing until it is registered, and gives a `UserWarning`.
    ///
    /// Args:
    ///     groups: The groups whose tools are visible while they are active. `basic` is visible only if it is named.
    ///     names: The tools that are visible.
    ///     exclude: The tools that are hidden.
    ///     tags: Tags of which a tool must have one.
    ///     caller: The name of the caller, for policies and audits.
    ///     inactive: Show the tools of inactive groups, too, for a program that keeps the switches of the groups itself.
    ///
    /// Raises:
    ///     TypeError: If one of the lists is not a list of strings.
    #[pyo3(
        signature = (groups=None, names=None, exclude=None, tags=None, *, caller=None, inactive=Omittable(None), **unknown),
        text_signature = "($self, groups=None, names=None, exclude=(), tags=None, *, caller=None, inactive=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn view(
        slf: &Bound<'_, Self>,
        groups: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        caller: Option<&Bound<'_, PyAny>>,
        inactive: Omittable<'_>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyToolkitView> {
        no_unknown::<Self>("view", unknown)?;
        let (filter, caller) = (filter(groups, names, exclude, tags)?, optional_text("caller", caller)?);
        slf.get().warn_of_unknown(slf.py(), &filter)?;
        let view = View::default().narrowed(filter);
        let view = if flag("inactive", &inactive, false)? { view.with_inactive() } else { view };
        Ok(PyToolkitView::new(slf.clone().unbind(), view, caller.map(Into::into)))
    }

    /// Select the tools that a role may use: those of its groups, or of the default ones if it names none.
    ///
    /// The view of a name follows the role: a change by `Roles.update` takes effect at once, and after its removal the view
    /// shows nothing. The view of an unknown name and of None shows nothing either. An unknown name, or one without
    /// `roles`, gives a `UserWarning`. The role `root` has exactly the group `org_management`.
    ///
    /// Args:
    ///     role: The name of a role, or a role.
    ///     roles: The roles in which the name is looked up, with the default groups.
    ///     caller: The name of the caller; that of the role if it is not given.
    ///
    /// Raises:
    ///     TypeError: If `role` is anything else.
    #[pyo3(signature = (role, roles=None, *, caller=None))]
    fn view_for(
        slf: &Bound<'_, Self>,
        role: &Bound<'_, PyAny>,
        roles: Option<&Bound<'_, PyAny>>,
        caller: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyToolkitView> {
        let (py, caller) = (slf.py(), optional_text("caller", caller)?);
        let roles = optional_instance::<PyRoles>("roles", roles)?;
        let (view, name) = role_view(role, roles.as_ref().map(|roles| roles.bind(py)))?;
        Ok(PyToolkitView::new(slf.clone().unbind(), view, caller.or(name).map(Into::into)))
    }
}

/// The view of a role, and its name; see `Toolkit.view_for`.
pub(crate) fn role_view(
    role: &Bound<'_, PyAny>,
    roles: Option<&Bound<'_, PyRoles>>,
) -> PyResult<(View, Option<String>)> {
    Ok(if role.is_none() {
        (Filter::nothing().into(), None)
    } else if let Ok(role) = role.cast::<PyRole>() {
        let role = role.get().role();
        let view = match roles {
            Some(roles) => role.view(roles.get().lock().default_groups()),
            None => role.view(None),
        };
        (view, Some(role.name.clone()))
    } else if let Ok(name) = role.cast::<PyString>() {
        // A string that is not valid Unicode is not a name.
        let name = name.to_string_lossy();
        warn_of_unknown_role(role.py(), &name, roles)?;
        let view = match roles {
            Some(roles) => roles.get().lock().view(&name),
            None => crate::registry::Roles::default().view(&name),
        };
        (view, Some(name.into_owned()))
    } else {
        let kind = role.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!("role must be a Role, its name or None, not {kind}")));
    })
}
