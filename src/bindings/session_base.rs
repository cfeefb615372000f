//! The toolkit or view that a session is made of, and their methods that begin and continue sessions.

use std::path::Path;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;

use super::budget::PyResultBudget;
use super::parameters::{Omittable, no_unknown, optional_instance, optional_text};
use super::role::PyRoles;
use super::saved_state::Place;
use super::session::{PyLimits, PySession, SessionParts};
use super::toolkit::{PyToolkit, role_view};
use super::view::{PyToolkitView, filter};
use crate::Error;
use crate::bytes::{hex, random_bytes};
use crate::registry::{Filter, Session, SessionState, View};

/// The arguments of a new session.
struct SessionOptions<'a, 'py> {
    role: Omittable<'py>,
    roles: Option<&'a Bound<'py, PyRoles>>,
    filter: Filter,
    deps: Option<Bound<'py, PyAny>>,
    parent: Option<Bound<'py, PyAny>>,
    limits: Option<PyLimits>,
    result_budget: Option<&'a Bound<'py, PyAny>>,
}

/// The toolkit or view that a session is made of.
pub(super) struct SessionBase {
    pub(super) toolkit: Py<PyToolkit>,
    pub(super) view: View,
    pub(super) caller: Option<Arc<str>>,
}

impl From<&Bound<'_, PyToolkit>> for SessionBase {
    fn from(toolkit: &Bound<'_, PyToolkit>) -> Self {
        Self { toolkit: toolkit.clone().unbind(), view: View::default(), caller: None }
    }
}

impl From<&Bound<'_, PyToolkitView>> for SessionBase {
    fn from(view: &Bound<'_, PyToolkitView>) -> Self {
        let this = view.get();
        let toolkit = this.toolkit(view.py()).clone().unbind();
        Self { toolkit, view: this.selection().clone(), caller: this.caller().cloned() }
    }
}

impl SessionBase {
    fn open<'py>(
        self,
        py: Python<'py>,
        id: Option<String>,
        caller: Option<String>,
        options: SessionOptions<'_, 'py>,
    ) -> PyResult<Bound<'py, PySession>> {
        let result_budget = PyResultBudget::read("result_budget", options.result_budget)?;
        self.toolkit.get().warn_of_unknown(py, &options.filter)?;
        let (mut view, mut caller) = (self.view, caller.map(Arc::from).or(self.caller));
        if let Some(role) = &options.role.0 {
            let (of_role, name) = role_view(role, options.roles)?;
            view = view.intersected(&of_role);
            caller = caller.or(name.map(Arc::from));
        }
        let id = match id {
            Some(id) if id.is_empty() => return Err(PyValueError::new_err("id must be a text that is not empty")),
            Some(id) => id,
            None => hex(&random_bytes::<16>()?),
        };
        let outer = options.parent.as_ref().and_then(|parent| parent.getattr_opt("session").ok()?);
        let outer = outer.and_then(|outer| Some(outer.cast::<PySession>().ok()?.get().core().clone()));
        let core = Arc::new(Session::new(&id, options.limits.unwrap_or_default().0).within(outer));
        let view = view.narrowed(options.filter).in_session(core.clone());
        let view = PyToolkitView::new(self.toolkit, view, caller);
        let (deps, parent) = (options.deps.map(Bound::unbind), options.parent.map(Bound::unbind));
        PySession::over(py, view, core, SessionParts { deps, parent, result_budget })
    }

    /// Continues a saved session; `path` is the place in messages.
    fn restore<'py>(
        self,
        py: Python<'py>,
        saved: Value,
        path: &Path,
        options: SessionOptions<'_, 'py>,
    ) -> PyResult<Bound<'py, PySession>> {
        let saved = SessionState::from_value(saved)
            .map_err(|reason| Error::DamagedFile { path: path.display().to_string(), reason })?;
        // A view with a caller continues the sessions of this caller only.
        let caller = saved.caller.clone().filter(|_| self.caller.is_none());
        let session = self.open(py, Some(saved.id.clone()), caller, options)?;
        PySession::check_owner(&session, &saved)?;
        PySession::restore(&session, &saved)?;
        Ok(session)
    }
}

fn read_roles<'py>(roles: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyRoles>>> {
    let Some(roles) = roles else { return Ok(None) };
    Ok(optional_instance::<PyRoles>("roles", Some(roles))?.map(|read| read.into_bound(roles.py())))
}

fn read_limits(limits: Option<&Bound<'_, PyAny>>) -> PyResult<Option<PyLimits>> {
    Ok(optional_instance::<PyLimits>("limits", limits)?.map(|limits| *limits.get()))
}

/// The methods that make sessions, which toolkits and views have in common.
macro_rules! session_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Begin a session: one conversation, with group switches, approvals, limits and state of its own.
            ///
            /// Args:
            ///     id: Its id, which it must have again to resume pending calls; random if it is None.
            ///     caller: The name of the caller, for policies and audits; that of the view or role if it is None.
            ///     role: The name of a role, or a role, that limits the tools, as in `Toolkit.view_for`. None shows nothing.
            ///     roles: The roles in which the name is looked up.
            ///     groups: The groups whose tools are visible while they are active, as in `Toolkit.view`.
            ///     names: The tools that are visible.
            ///     exclude: The tools that are hidden.
            ///     tags: Tags of which a tool must have one.
            ///     deps: The dependencies of its tools: any object.
            ///     parent: The context of the call that it belongs to, for the session of a sub-agent.
            ///     limits: The limits of each run.
            ///     result_budget: The largest size of the results of its calls: a `ResultBudget`, or a number of characters.
            ///
            /// Raises:
            ///     TypeError: If one of the lists is not a list of strings, or `role` is not a role.
            ///     ValueError: If the id is empty.
            #[pyo3(
                name = "session",
                signature = (
                    *, id=None, caller=None, role=Omittable(None), roles=None, groups=None, names=None, exclude=None,
                    tags=None, deps=None, parent=None, limits=None, result_budget=None, **unknown
                ),
                text_signature = "($self, *, id=None, caller=None, role=..., roles=None, groups=None, names=None, \
                                  exclude=(), tags=None, deps=None, parent=None, limits=None, result_budget=None)"
            )]
            #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
            fn begin_session<'py>(
                slf: &Bound<'py, Self>,
                id: Option<&Bound<'py, PyAny>>,
                caller: Option<&Bound<'py, PyAny>>,
                role: Omittable<'py>,
                roles: Option<&Bound<'py, PyAny>>,
                groups: Option<&Bound<'py, PyAny>>,
                names: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                tags: Option<&Bound<'py, PyAny>>,
                deps: Option<Bound<'py, PyAny>>,
                parent: Option<Bound<'py, PyAny>>,
                limits: Option<&Bound<'py, PyAny>>,
                result_budget: Option<&Bound<'py, PyAny>>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PySession>> {
                no_unknown::<Self>("session", unknown)?;
                let (id, caller) = (optional_text("id", id)?, optional_text("caller", caller)?);
                let (roles, limits) = (read_roles(roles)?, read_limits(limits)?);
                let (roles, filter) = (roles.as_ref(), filter(groups, names, exclude, tags)?);
                let options = SessionOptions { role, roles, filter, deps, parent, limits, result_budget };
                SessionBase::from(slf).open(slf.py(), id, caller, options)
            }

            /// Continue a session that `Session.save` wrote to a file or store: id, caller, switches, counters and state.
            ///
            /// The selection of tools, the dependencies and the limits are not saved: pass them again.
            ///
            /// Args:
            ///     path: The file, or a `Store`; then await the result. Without it, the store of the toolkit.
            ///     key: The name of the entry in the store: the id of the session, unless it was saved under another key.
            ///     role: See `session`.
            ///     roles: See `session`.
            ///     groups: See `session`.
            ///     names: See `session`.
            ///     exclude: See `session`.
            ///     tags: See `session`.
            ///     deps: See `session`.
            ///     limits: See `session`.
            ///
            /// Raises:
            ///     MissingFileError: If there is no such file.
            ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            ///     ForeignFileError: If it was not written by `Session.save`.
            ///     DamagedFileError: If it was modified or truncated.
            ///     NewerFileError: If a newer version of toolcrib wrote it.
            ///     FileTooLargeError: If it is larger than 16 MiB.
            #[pyo3(
                signature = (
                    path=None, key=None, *, role=Omittable(None), roles=None, groups=None, names=None, exclude=None, tags=None,
                    deps=None, limits=None, **unknown
                ),
                text_signature = "($self, path=None, key=None, *, role=..., roles=None, groups=None, names=None, exclude=(), \
                                  tags=None, deps=None, limits=None)"
            )]
            #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
            fn load_session<'py>(
                slf: &Bound<'py, Self>,
                path: Option<&Bound<'py, PyAny>>,
                key: Option<&Bound<'py, PyAny>>,
                role: Omittable<'py>,
                roles: Option<&Bound<'py, PyAny>>,
                groups: Option<&Bound<'py, PyAny>>,
                names: Option<&Bound<'py, PyAny>>,
                exclude: Option<&Bound<'py, PyAny>>,
                tags: Option<&Bound<'py, PyAny>>,
                deps: Option<Bound<'py, PyAny>>,
                limits: Option<&Bound<'py, PyAny>>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                no_unknown::<Self>("load_session", unknown)?;
                let (roles, limits) = (read_roles(roles)?, read_limits(limits)?);
                let filter = filter(groups, names, exclude, tags)?;
                let place = Place::of_toolkit(SessionBase::from(slf).toolkit.bind(slf.py()), path, key, None)?;
                // An omitted role is no item.
                let held = (slf, PyTuple::new(slf.py(), role.0)?, roles, deps).into_pyobject(slf.py())?;
                place.load::<PySession, _>(&held, move |held, mut loaded| {
                    type Held<'py> =
                        (Bound<'py, $class>, Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyRoles>>, Option<Bound<'py, PyAny>>);
                    let (slf, role, roles, deps): Held<'_> = held.extract()?;
                    let (role, roles) = (Omittable(role.into_iter().next()), roles.as_ref());
                    let (parent, result_budget) = (None, None);
                    let options = SessionOptions { role, roles, filter, deps, parent, limits, result_budget };
                    let saved = loaded.value.take();
                    let session = SessionBase::from(&slf).restore(held.py(), saved, &loaded.place, options)?;
                    loaded.seen_by(session.get());
                    Ok(session.into_any().unbind())
                })
            }
        }
    };
}

session_methods!(PyToolkit);
session_methods!(PyToolkitView);
