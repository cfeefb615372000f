//! Saving and restoring of groups, and skills.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList, PyString};

use super::PyToolkit;
use crate::Error;
use crate::bindings::log_warning;
use crate::bindings::saved_state::{Place, SavedState, expected_version};
use crate::bindings::store::PyStoreCall;
use crate::registry::{FORMAT, GroupState};
use crate::skill::{Skill, Skills};
use crate::store::{FileFormat, SavedVersions};

/// The key of the groups in the store of the toolkit.
const OWN_KEY: &str = "toolkit";

/// The only key of a state.
const KEY: &str = "active_groups";

/// The list of active groups in a state.
fn active_groups<'py>(state_dict: &Bound<'py, PyAny>, strict: bool) -> PyResult<Bound<'py, PyList>> {
    let state = state_dict.cast::<PyDict>().ok();
    let groups = match state {
        Some(state) => state.get_item(KEY)?.and_then(|groups| groups.cast_into::<PyList>().ok()),
        None => None,
    };
    let (Some(state), Some(groups)) = (state, groups) else {
        let reason = format!(
            "The state_dict for toolkit must be a dictionary with {KEY} key and its value must be a list, but got {}.",
            state_dict.get_type()
        );
        return Err(Error::InvalidState { reason }.into());
    };
    if strict && state.len() != 1 {
        let keys = state.keys().repr()?;
        let reason = format!("Get additional keys in the state_dict: {keys}, but only \"{KEY}\" is expected.");
        return Err(Error::InvalidState { reason }.into());
    }
    Ok(groups)
}

#[pymethods]
impl PyToolkit {
    /// Return the active groups in the format of AgentScope's sessions.
    ///
    /// Returns:
    ///     `{"active_groups": [...]}`, with the names in the order of the groups' creation.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let active: Vec<String> = self.registry().active_groups().map(str::to_owned).collect();
        [(KEY, active)].into_py_dict(py)
    }

    /// Switch on the groups that a state lists, and switch off all others; unknown names are ignored.
    ///
    /// Raises:
    ///     InvalidStateError: If it is not a valid state, or `strict` is true and it has other keys. Then nothing changes.
    #[pyo3(signature = (state_dict, strict=true))]
    fn load_state_dict(&self, state_dict: &Bound<'_, PyAny>, strict: bool) -> PyResult<()> {
        let groups = active_groups(state_dict, strict)?;
        // An entry that is not a string is not the name of a group.
        let names: HashSet<String> = groups.iter().filter_map(|name| name.extract().ok()).collect();
        self.registry().set_active_groups(&names);
        Ok(())
    }

    /// Save the groups to a file or a store: names, descriptions, notes, order and activity.
    ///
    /// A file is replaced atomically: a reader finds the old state or the new one, even after a crash. Of several
    /// concurrent saves the last wins. An entry of a store is replaced only if it is the one that this toolkit has loaded or
    /// saved last. Tools and skills are not saved; register them again.
    ///
    /// Args:
    ///     path: The file, or a `Store`; then await the result. Without it, the store of the toolkit.
    ///     key: The name of the entry in the store; `"toolkit"` by default in the store of the toolkit.
    ///     version: The version that the entry must have: 0 if there must be none. By default the one that this toolkit
    ///         has loaded or saved last.
    ///
    /// Returns:
    ///     None for a file; for a store an awaitable of the new version.
    ///
    /// Raises:
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     FileTooLargeError: If the state is larger than 16 MiB.
    ///     VersionConflictError: If the entry has another version; its `version` is the current one.
    ///     StoreError: If the store fails.
    #[pyo3(signature = (path=None, key=None, *, version=None))]
    fn save<'py>(
        slf: &Bound<'py, Self>,
        path: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyAny>>,
        version: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<PyStoreCall>> {
        let (place, expected) = (own_place(slf, path, key)?, expected_version(version)?);
        let groups = GroupState::write_all(&slf.get().registry().group_states());
        place.save(slf, &groups, expected)
    }

    /// Restore the groups from a file or a store, in their order.
    ///
    /// Missing groups are created, and groups that were not saved are switched off; tools stay.
    ///
    /// Args:
    ///     path: The file, or a `Store`; then await the result. Without it, the store of the toolkit.
    ///     key: The name of the entry in the store; `"toolkit"` by default in the store of the toolkit.
    ///
    /// Returns:
    ///     None for a file; for a store an awaitable of the entry's version.
    ///
    /// Raises:
    ///     MissingFileError: If there is no such file.
    ///     MissingEntryError: If the store has no such entry.
    ///     FileAccessError: If the operating system refuses, with the fields of an `OSError`.
    ///     StoreError: If the store fails.
    ///     ForeignFileError: If it was not written by `save`.
    ///     DamagedFileError: If it was modified or truncated.
    ///     NewerFileError: If a newer version of toolcrib wrote it.
    ///     FileTooLargeError: If it is larger than 16 MiB.
    #[pyo3(signature = (path=None, key=None))]
    fn load<'py>(
        slf: &Bound<'py, Self>,
        path: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_place(slf, path, key)?.load::<Self, _>(slf, |slf, mut loaded| {
            let groups = GroupState::read_all(loaded.value.take())
                .map_err(|reason| Error::DamagedFile { path: loaded.place.display().to_string(), reason })?;
            slf.get().registry().restore_groups(groups);
            loaded.seen_by(slf.get());
            Ok(loaded.version().into_pyobject(slf.py())?.unbind())
        })
    }
}

/// The place of the groups, which have a key of their own in the store of the toolkit.
fn own_place(
    toolkit: &Bound<'_, PyToolkit>,
    path: Option<&Bound<'_, PyAny>>,
    key: Option<&Bound<'_, PyAny>>,
) -> PyResult<Place> {
    Place::of_toolkit(toolkit, path, key, path.is_none().then_some(OWN_KEY))
}

impl SavedState for PyToolkit {
    const FORMAT: &'static FileFormat = &FORMAT;

    fn versions(&self) -> &SavedVersions {
        &self.saved
    }
}

impl PyToolkit {
    pub(super) fn skills(&self) -> MutexGuard<'_, Skills> {
        // Each method leaves the skills consistent, even after a panic.
        self.skills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new dictionary of a skill.
fn skill_to_python<'py>(py: Python<'py>, skill: &Skill) -> PyResult<Bound<'py, PyDict>> {
    [("name", &skill.name), ("description", &skill.description), ("dir", &skill.dir)].into_py_dict(py)
}

#[pymethods]
impl PyToolkit {
    /// Add the skill in a folder, whose `SKILL.md` has `name` and `description` in its YAML front matter.
    ///
    /// Only the front matter is read, at most 64 KiB. The path of the folder is kept as given.
    ///
    /// Raises:
    ///     SkillDirectoryError: If the folder does not exist.
    ///     SkillFileError: If it has no file `SKILL.md`.
    ///     SkillFrontMatterError: If the front matter lacks the two fields.
    ///     DuplicateSkillError: If the name is taken.
    fn register_agent_skill(&self, py: Python<'_>, skill_dir: PathBuf) -> PyResult<()> {
        let dir = skill_dir.into_os_string().into_string().map_err(|dir| Error::SkillDirectory {
            dir: dir.to_string_lossy().into_owned(),
            reason: "the path is not valid text".to_owned(),
        })?;
        let skill = py.detach(|| Skill::read(&dir))?;
        Ok(self.skills().insert(skill)?)
    }

    /// Remove a skill; an unknown name logs a warning in `toolcrib`.
    fn remove_agent_skill(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.skills().remove(name);
        match removed {
            Some(_) => Ok(()),
            None => log_warning(py, &format!("unknown agent skill '{name}', nothing is removed")),
        }
    }

    /// Return the text about the skills for the system prompt.
    ///
    /// Returns:
    ///     The instruction, and the template filled in for each skill; None if there are no skills.
    fn get_agent_skill_prompt(&self) -> Option<String> {
        self.skills().prompt()
    }

    fn _find_skill<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // A string that is not valid Unicode is not a name.
        let Ok(text) = name.to_str() else { return Ok(None) };
        let skill = self.skills().find(text).cloned();
        skill.map(|skill| skill_to_python(name.py(), &skill)).transpose()
    }

    fn _all_skills<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let skills: Vec<_> = self.skills().named().map(|(name, skill)| (name.to_owned(), skill.clone())).collect();
        let all = PyDict::new(py);
        for (name, skill) in &skills {
            all.set_item(name, skill_to_python(py, skill)?)?;
        }
        Ok(all)
    }
}
