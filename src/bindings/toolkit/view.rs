//! Views of a toolkit: for a part of its tools, and for a role.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Map, Value};

use super::PyToolkit;
use crate::bindings::role::PyRole;
use crate::bindings::roles::PyRoles;
use crate::bindings::tool::PyTool;
use crate::bindings::view::{PyToolkitView, filter};
use crate::call::Answer;
use crate::registry::{Filter, Group, Registry, Switch, View};

impl PyToolkit {
    /// Finds the tool of a call that is made through a view.
    pub(crate) fn admit_in<'py>(&self, py: Python<'py>, name: &str, view: &View) -> Result<Bound<'py, PyTool>, Answer> {
        match self.registry().admit(name, Some(view)) {
            Ok(tool) => Ok(tool.body.bind(py).clone()),
            Err(denial) => Err(Answer::refusing(name, &denial)),
        }
    }

    /// The tools that a view lists, with the revision at which it did.
    pub(crate) fn listed_in(&self, py: Python<'_>, view: &View) -> (u64, Vec<Py<PyTool>>) {
        let registry = self.registry();
        let tools = view.listed(&registry).into_iter().map(|tool| tool.body.clone_ref(py)).collect();
        (registry.revision(), tools)
    }

    /// A number that changes whenever what a view lists may have changed.
    pub(crate) fn revision(&self) -> u64 {
        self.registry().revision()
    }

    /// Looks at groups and notes through a view.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Registry<Py<PyTool>>) -> R) -> R {
        look(&self.registry())
    }

    pub(crate) fn switches_in(&self, view: &View) -> Map<String, Value> {
        self.registry().switches_in(view)
    }

    pub(crate) fn equip_in(&self, view: &View, wanted: &[(String, Switch)]) -> Result<String, String> {
        self.registry().equip_in(view, wanted)
    }

    /// Finds a group that a view shows.
    pub(crate) fn group_in(&self, name: &str, view: &View) -> Option<std::sync::Arc<Group>> {
        let registry = self.registry();
        view.groups(&registry).find(|group| group.name() == name).cloned()
    }
}

#[pymethods]
impl PyToolkit {
    /// Show a part of the toolkit: exactly what the view lists can be called through it.
    ///
    /// A view is live and cheap: it holds no tools, only what is chosen. A tool is chosen if everything holds that is
    /// asked; an empty list chooses nothing, and a name that nothing has chooses nothing until something has it.
    ///
    /// Args:
    ///     groups: The groups whose tools are shown while they are active. `basic` is shown only if it is named.
    ///     names: The tools that are shown.
    ///     exclude: The tools that are not shown.
    ///     tags: Tags of which a tool must carry one.
    ///     caller: Who calls through the view, for policies and audits.
    ///
    /// Raises:
    ///     TypeError: If one of the lists is not a list of strings.
    #[pyo3(
        signature = (groups=None, names=None, exclude=None, tags=None, *, caller=None),
        text_signature = "($self, groups=None, names=None, exclude=(), tags=None, *, caller=None)"
    )]
    fn view(
        slf: &Bound<'_, Self>,
        groups: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        caller: Option<String>,
    ) -> PyResult<PyToolkitView> {
        let view = View::default().narrowed(filter(groups, names, exclude, tags)?);
        Ok(PyToolkitView::new(slf.clone().unbind(), view, caller))
    }

    /// Show what a role may use: its groups, or the default ones if it names none.
    ///
    /// The view of a name follows the role: what is changed by `Roles.update` holds at once, and when the role is removed the
    /// view shows nothing. So does that of a name that no role has, and of None. The role `root` has exactly the group
    /// `org_management`.
    ///
    /// Args:
    ///     role: The name of a role, or a role.
    ///     roles: Where the name is looked up, and what groups are the default.
    ///     caller: Who calls through the view; the role's name if it is not given.
    ///
    /// Raises:
    ///     TypeError: If `role` is none of these.
    #[pyo3(signature = (role, roles=None, *, caller=None))]
    fn view_for(
        slf: &Bound<'_, Self>,
        role: &Bound<'_, PyAny>,
        roles: Option<&Bound<'_, PyRoles>>,
        caller: Option<String>,
    ) -> PyResult<PyToolkitView> {
        let (view, name) = if role.is_none() {
            (Filter::nothing().into(), None)
        } else if let Ok(role) = role.cast::<PyRole>() {
            let role = role.get().role();
            let view = match roles {
                Some(roles) => role.view(roles.get().lock().default_groups()),
                None => role.view(None),
            };
            (view, Some(role.name.clone()))
        } else if let Ok(name) = role.cast::<PyString>() {
            // Text that is not valid Unicode names nothing.
            let name = name.to_string_lossy();
            let view = match roles {
                Some(roles) => roles.get().lock().view(&name),
                None => crate::registry::Roles::default().view(&name),
            };
            (view, Some(name.into_owned()))
        } else {
            let kind = role.get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("role must be a Role, the name of one or None, not {kind}")));
        };
        Ok(PyToolkitView::new(slf.clone().unbind(), view, caller.or(name)))
    }
}
