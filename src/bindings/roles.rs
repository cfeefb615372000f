//! `Roles`: the roles of an organisation, kept in a file.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString};

use super::names;
use super::role::PyRole;
use crate::Result;
use crate::registry::{RecordStamp, Roles, RolesFile};
use crate::store::Disk;

/// Roles by name, in the order they were added.
///
/// Who has a role that is not here sees nothing. They may be used from several threads at once.
#[pyclass(name = "Roles", module = "toolcrib", frozen)]
pub(crate) struct PyRoles(Mutex<Roles>);

impl PyRoles {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Roles> {
        // Each method leaves the roles whole, also when a panic came in between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time as records have it: local, with milliseconds and offset.
fn now() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

/// A random id in the form of a UUID.
fn random_id() -> PyResult<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| PyOSError::new_err(format!("there is no random number: {error}")))?;
    let digits = (u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let text = format!("{digits:032x}");
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}

/// An argument that may be left out, where `None` is one that was given.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = std::convert::Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Self(Some(object.to_owned())))
    }
}

#[pymethods]
impl PyRoles {
    #[new]
    #[pyo3(signature = (default=None))]
    fn new(default: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(Mutex::new(Roles::new(names::read_optional("default", default)?))))
    }

    /// The groups of roles that name none; None if they are all.
    #[getter]
    fn default(&self) -> Option<Vec<String>> {
        self.lock().default_groups().map(<[String]>::to_vec)
    }

    /// Add a role; its record gets an id and the time.
    ///
    /// Raises:
    ///     DuplicateRoleError: If there is a role of that name.
    ///     SystemRoleError: If the name is `root`.
    ///     InvalidRoleError: If the name is empty.
    fn add(&self, role: &Bound<'_, PyRole>) -> PyResult<()> {
        let stamp = RecordStamp { id: random_id()?, at: now() };
        Ok(self.lock().add(role.get().role().clone(), stamp)?)
    }

    /// Find a role by its exact name.
    fn get(&self, name: &Bound<'_, PyString>) -> Option<PyRole> {
        // Text that is not valid Unicode names nothing.
        self.lock().get(name.to_str().ok()?).cloned().map(Into::into)
    }

    /// Change a role; views that were made for its name follow.
    ///
    /// Args:
    ///     name: The role's name.
    ///     prompt: What an agent in this role is told from now on.
    ///     tool_groups: The groups it may use from now on: None for the default, an empty list for none.
    ///
    /// Returns:
    ///     The role as it is now. What is left out stays as it was.
    ///
    /// Raises:
    ///     UnknownRoleError: If there is no such role.
    ///     SystemRoleError: If the name is `root`.
    ///     TypeError: If `tool_groups` is not a list of strings.
    #[pyo3(
        signature = (name, *, prompt=None, tool_groups=Given(None)),
        text_signature = "($self, name, *, prompt=None, tool_groups=...)"
    )]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn update(&self, name: &str, prompt: Option<String>, tool_groups: Given<'_>) -> PyResult<PyRole> {
        let tool_groups = match tool_groups.0 {
            None => None,
            Some(groups) if groups.is_none() => Some(None),
            Some(groups) => Some(Some(names::read::<Vec<String>, String>("tool_groups", &groups)?)),
        };
        let mut roles = self.lock();
        let role = roles.update(name, &now(), |role| {
            if let Some(prompt) = prompt {
                role.prompt = prompt;
            }
            if let Some(groups) = tool_groups {
                role.tool_groups = groups;
            }
        })?;
        Ok(role.clone().into())
    }

    /// Take a role away: who has it sees nothing from now on.
    ///
    /// Returns:
    ///     The role that was there.
    ///
    /// Raises:
    ///     UnknownRoleError: If there is no such role.
    ///     SystemRoleError: If the name is `root`.
    fn remove(&self, name: &str) -> PyResult<PyRole> {
        Ok(self.lock().remove(name)?.into())
    }

    /// Keep the roles in a JSON file.
    ///
    /// The file is replaced in one step: whoever reads it, also after a crash, finds the old roles or the new ones. What the
    /// file that was loaded had beside the roles in use is written again.
    ///
    /// Raises:
    ///     FileAccessError: If the system refuses, as an `OSError` says.
    ///     FileTooLargeError: If the file would have more than 16 MiB.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let file = self.lock().file();
        Ok(py.detach(|| file.save(&Disk, &path))?)
    }

    /// Put the roles of a file in the place of all roles; views that were made for a name follow.
    ///
    /// Args:
    ///     path: The file.
    ///     strict: Whether a record that is no role is an error. Otherwise it is passed over: who has that role sees nothing.
    ///
    /// Returns:
    ///     What is wrong with the records that were passed over.
    ///
    /// Raises:
    ///     RoleFileError: If it is no file of roles; the text names each record and field. Then nothing has changed.
    ///     MissingFileError: If there is no such file.
    ///     FileAccessError: If the system refuses, as an `OSError` says.
    ///     FileTooLargeError: If it has more than 16 MiB.
    #[pyo3(signature = (path, *, strict=true))]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn load(&self, py: Python<'_>, path: PathBuf, strict: bool) -> PyResult<Vec<String>> {
        let file = py.detach(|| -> Result<RolesFile> {
            let file = RolesFile::load(&Disk, &path)?;
            if strict {
                file.check(&path)?;
            }
            Ok(file)
        })?;
        let problems = file.problems().iter().map(ToString::to_string).collect();
        self.lock().replace(file);
        Ok(problems)
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| self.get(name).is_some())
    }

    fn __len__(&self) -> usize {
        self.lock().all().len()
    }

    #[allow(clippy::unused_self, reason = "no roles are roles too")]
    fn __bool__(&self) -> bool {
        true
    }

    /// Go through the names, in the order the roles were added.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names: Vec<String> = self.lock().all().map(|role| role.name.clone()).collect();
        PyList::new(py, names)?.try_iter()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("Roles({})", PyList::new(slf.py(), slf.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.repr()?))
    }
}
