//! `Role`, a plain value that says which groups an agent may use, and `Roles`, the roles of an organisation.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString, PyType};
use serde_json::{Map, Value};

use super::json;
use super::parameters::{Omittable, name_list, optional_dict, optional_name_list, optional_text, text};
use super::saved_state::{Place, SavedState, expected_version};
use super::store::PyStoreCall;
use crate::Result;
use crate::bytes::random_bytes;
use crate::registry::{ROLES_FORMAT, RecordStamp, Role, Roles, RolesFile};
use crate::store::{Disk, FileFormat, SavedVersions};

/// A role: a prompt, and the groups that an agent in this role may use.
#[pyclass(name = "Role", module = "toolcrib", frozen)]
pub(crate) struct PyRole(Role);

type RoleFields<'py> = (Bound<'py, PyType>, (String, String, Option<Vec<String>>, Bound<'py, PyAny>));

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
    #[pyo3(
        signature = (name, prompt=None, tool_groups=None, details=None),
        text_signature = "(name, prompt='', tool_groups=None, details=None)"
    )]
    fn new(
        name: &Bound<'_, PyAny>,
        prompt: Option<&Bound<'_, PyAny>>,
        tool_groups: Option<&Bound<'_, PyAny>>,
        details: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (name, prompt) = (text("name", name)?, optional_text("prompt", prompt)?.unwrap_or_default());
        let details = optional_dict("details", details)?;
        let tool_groups = optional_name_list("tool_groups", tool_groups)?;
        let details = match details.map(|details| json::value_from_python(details.as_any())).transpose()? {
            Some(Value::Object(details)) => details,
            _ => Map::new(),
        };
        Ok(Self(Role { details, ..Role::new(&name, &prompt, tool_groups) }))
    }

    /// The name, unique among the roles.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The prompt of an agent in this role.
    #[getter]
    fn prompt(&self) -> &str {
        &self.0.prompt
    }

    /// The groups it may use: None for the default, an empty list for none.
    #[getter]
    fn tool_groups(&self) -> Option<Vec<String>> {
        self.0.tool_groups.clone()
    }

    /// The other fields of its record, as a copy.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &Value::Object(self.0.details.clone()))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<RoleFields<'py>> {
        let Role { name, prompt, tool_groups, .. } = slf.get().0.clone();
        Ok((slf.get_type(), (name, prompt, tool_groups, slf.get().details(slf.py())?)))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let field = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        Ok(format!("Role(name={}, prompt={}, tool_groups={})", field("name")?, field("prompt")?, field("tool_groups")?))
    }
}

/// Roles by name, in the order they were added.
///
/// A caller whose role is missing here sees no tools. The object may be used from several threads at once.
#[pyclass(name = "Roles", module = "toolcrib", frozen)]
pub(crate) struct PyRoles {
    roles: Mutex<Roles>,
    /// The versions of the roles in stores.
    saved: SavedVersions,
}

impl PyRoles {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Roles> {
        // Each method leaves the roles consistent, even after a panic.
        self.roles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SavedState for PyRoles {
    const FORMAT: &'static FileFormat = &ROLES_FORMAT;

    fn versions(&self) -> &SavedVersions {
        &self.saved
    }

    // Other programs write such files, too, so they are plain JSON.
    fn write_file(path: &Path, state: &Value) -> Result<()> {
        RolesFile::write(&Disk, path, state)
    }

    fn read_file(path: &Path) -> Result<Value> {
        RolesFile::json(&Disk, path)
    }
}

/// The current time in the format of the records: local, with milliseconds and offset.
fn now() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

/// A random id in the form of a UUID.
fn random_id() -> PyResult<String> {
    let digits = (u128::from_be_bytes(random_bytes()?) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let text = format!("{digits:032x}");
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}

#[pymethods]
impl PyRoles {
    #[new]
    #[pyo3(signature = (default=None))]
    fn new(default: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let roles = Mutex::new(Roles::new(optional_name_list("default", default)?));
        Ok(Self { roles, saved: SavedVersions::default() })
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
        // A string that is not valid Unicode is not a name.
        self.lock().get(name.to_str().ok()?).cloned().map(Into::into)
    }

    /// Change a role; views that were made for its name change with it.
    ///
    /// Args:
    ///     name: The role's name.
    ///     prompt: The new prompt of an agent in this role.
    ///     tool_groups: The new groups that it may use: None for the default, an empty list for none.
    ///
    /// Returns:
    ///     The changed role. Omitted arguments leave their field unchanged.
    ///
    /// Raises:
    ///     UnknownRoleError: If there is no such role.
    ///     SystemRoleError: If the name is `root`.
    ///     TypeError: If `tool_groups` is not a list of strings.
    #[pyo3(
        signature = (name, *, prompt=None, tool_groups=Omittable(None)),
        text_signature = "($self, name, *, prompt=None, tool_groups=...)"
    )]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn update(
        &self,
        name: &Bound<'_, PyAny>,
        prompt: Option<&Bound<'_, PyAny>>,
        tool_groups: Omittable<'_>,
    ) -> PyResult<PyRole> {
        let (name, prompt) = (&*text("name", name)?, optional_text("prompt", prompt)?);
        let tool_groups = match tool_groups.0 {
            None => None,
            Some(groups) if groups.is_none() => Some(None),
            Some(groups) => Some(Some(name_list::<Vec<String>, String>("tool_groups", &groups)?)),
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

    /// Remove a role: its callers see no tools from now on.
    ///
    /// Returns:
    ///     The removed role.
    ///
    /// Raises:
    ///     UnknownRoleError: If there is no such role.
    ///     SystemRoleError: If the name is `root`.
    fn remove(&self, name: &Bound<'_, PyAny>) -> PyResult<PyRole> {
        Ok(self.lock().remove(&text("name", name)?)?.into())
    }

    /// Save the roles to a JSON file or a store.
    ///
    /// A file is replaced atomically: a reader finds the old roles or the new ones, even after a crash. An entry of a store
    /// is replaced only if it is the one that was loaded or saved last. Other content that was loaded is written back.
    ///
    /// Args:
    ///     path: The file, or a `Store`; then await the result.
    ///     key: The name of the entry in the store.
    ///     version: The version that the entry must have: 0 if there must be none. By default the one that was loaded or
    ///         saved last.
    ///
    /// Returns:
    ///     None for a file; for a store an awaitable of the new version.
    ///
    /// Raises:
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     FileTooLargeError: If the file would be larger than 16 MiB.
    ///     VersionConflictError: If the entry has another version; its `version` is the current one.
    ///     StoreError: If the store fails.
    #[pyo3(signature = (path, key=None, *, version=None))]
    fn save<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<PyStoreCall>> {
        let (place, expected) = (Place::of(path, key, None)?, expected_version(version)?);
        let state = slf.get().lock().file().value();
        place.save(slf, &state, expected)
    }

    /// Replace all roles by those of a file or a store; views that were made for a name change with it.
    ///
    /// Args:
    ///     path: The file, or a `Store`; then await the result.
    ///     key: The name of the entry in the store.
    ///     strict: Raise for an invalid record. Otherwise it is skipped, and callers with that role see no tools.
    ///
    /// Returns:
    ///     The problems of the records that were skipped; for a store an awaitable of them.
    ///
    /// Raises:
    ///     RoleFileError: If the file is not valid; the text names each record and field. Then nothing has changed.
    ///     MissingFileError: If there is no such file.
    ///     MissingEntryError: If the store has no such entry.
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     FileTooLargeError: If it is larger than 16 MiB.
    ///     StoreError: If the store fails.
    #[pyo3(signature = (path, key=None, *, strict=true))]
    fn load<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        strict: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        Place::of(path, key, None)?.load::<Self, _>(slf, move |slf, mut loaded| {
            let file = RolesFile::read(loaded.value.take(), &loaded.place)?;
            if strict {
                file.check(&loaded.place)?;
            }
            let problems: Vec<String> = file.problems().iter().map(ToString::to_string).collect();
            slf.get().lock().replace(file);
            loaded.seen_by(slf.get());
            Ok(problems.into_pyobject(slf.py())?.unbind())
        })
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| self.get(name).is_some())
    }

    fn __len__(&self) -> usize {
        self.lock().all().len()
    }

    #[allow(clippy::unused_self, reason = "an empty collection is true too")]
    fn __bool__(&self) -> bool {
        true
    }

    /// Iterate over the names, in the order the roles were added.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names: Vec<String> = self.lock().all().map(|role| role.name.clone()).collect();
        PyList::new(py, names)?.try_iter()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("Roles({})", PyList::new(slf.py(), slf.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.repr()?))
    }
}
