//! What a toolkit keeps over a restart: which groups are on, and in files all that can be said of groups.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::collections::HashSet;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};

use super::PyToolkit;
use crate::registry::{FORMAT, GroupState};
use crate::store::{self, Disk};
use crate::{Error, Result};

const KEY: &str = "active_groups";

/// The list under the one key that a state has.
fn active_groups<'py>(state_dict: &Bound<'py, PyAny>, strict: bool) -> PyResult<Bound<'py, PyList>> {
    let state = state_dict.cast::<PyDict>().ok();
    let groups = match state {
        Some(state) => state.get_item(KEY)?.and_then(|groups| groups.cast_into::<PyList>().ok()),
        None => None,
    };
    let (Some(state), Some(groups)) = (state, groups) else {
        let reason = format!(
            "a toolkit's state is a dictionary with a list under \"{KEY}\", not this {}",
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
    /// Say which groups are on, as AgentScope's sessions keep it.
    ///
    /// Returns:
    ///     `{"active_groups": [...]}`, with the names in the order the groups were created.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let active: Vec<String> = self.registry().active_groups().map(str::to_owned).collect();
        [(KEY, active)].into_py_dict(py)
    }

    /// Switch on the groups that a state lists, and all others off; names that no group has are ignored.
    ///
    /// Raises:
    ///     InvalidStateError: If it is no such state, or `strict` is true and it has other keys; then nothing changes.
    #[pyo3(signature = (state_dict, strict=true))]
    fn load_state_dict(&self, state_dict: &Bound<'_, PyAny>, strict: bool) -> PyResult<()> {
        let groups = active_groups(state_dict, strict)?;
        // What is not text names no group.
        let names: HashSet<String> = groups.iter().filter_map(|name| name.extract().ok()).collect();
        self.registry().set_active_groups(&names);
        Ok(())
    }

    /// Keep the groups in a file: names, descriptions, notes, order, and which are on.
    ///
    /// The file is replaced in one step: whoever reads it, also after a crash, finds the old state or the new one.
    /// Of several that save at once the last wins. Tools and skills are not saved; register them anew.
    ///
    /// Raises:
    ///     FileAccessError: If the system refuses, as an `OSError` says.
    ///     FileTooLargeError: If the state has more than 16 MiB.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let groups = self.registry().group_states();
        Ok(py.detach(|| store::save(&Disk, &path, &FORMAT, &GroupState::write_all(&groups)))?)
    }

    /// Make the groups what they were when the file was saved, in the order they had.
    ///
    /// A group that is not there is created, and one that is not in the file is switched off; tools stay.
    ///
    /// Raises:
    ///     MissingFileError: If there is no such file.
    ///     FileAccessError: If the system refuses, as an `OSError` says.
    ///     ForeignFileError: If it is not a file that `save` wrote.
    ///     DamagedFileError: If it is not as it was written.
    ///     NewerFileError: If a newer toolcrib wrote it.
    ///     FileTooLargeError: If it has more than 16 MiB.
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let groups = py.detach(|| -> Result<Vec<GroupState>> {
            let saved = store::load(&Disk, &path, &FORMAT)?;
            GroupState::read_all(saved.value)
                .map_err(|reason| Error::DamagedFile { path: path.display().to_string(), reason })
        })?;
        self.registry().restore_groups(groups);
        Ok(())
    }
}
