//! Skills: folders of instructions that the agent is told about.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString};

use super::PyToolkit;
use crate::Error;
use crate::bindings::log;
use crate::skill::{Skill, Skills};

impl PyToolkit {
    pub(super) fn skills(&self) -> MutexGuard<'_, Skills> {
        // Each method leaves the skills whole, also when a panic came in between.
        self.skills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dictionary of its own for whoever asks.
fn shown<'py>(py: Python<'py>, skill: &Skill) -> PyResult<Bound<'py, PyDict>> {
    [("name", &skill.name), ("description", &skill.description), ("dir", &skill.dir)].into_py_dict(py)
}

#[pymethods]
impl PyToolkit {
    /// Add the skill in a folder: its `SKILL.md` says in YAML front matter the `name` and the `description`.
    ///
    /// Only the front matter is read, and it may have 64 KiB. The folder is kept as it is given.
    ///
    /// Raises:
    ///     SkillDirectoryError: If there is no such folder.
    ///     SkillFileError: If it has no file `SKILL.md`.
    ///     SkillFrontMatterError: If that does not begin with the two fields.
    ///     DuplicateSkillError: If there is a skill of that name.
    fn register_agent_skill(&self, py: Python<'_>, skill_dir: PathBuf) -> PyResult<()> {
        let dir = skill_dir.into_os_string().into_string().map_err(|dir| Error::SkillDirectory {
            dir: dir.to_string_lossy().into_owned(),
            reason: "a model cannot be told a path that is not valid text".to_owned(),
        })?;
        let skill = py.detach(|| Skill::read(&dir))?;
        Ok(self.skills().insert(skill)?)
    }

    /// Take a skill out; a name that no skill has is only worth a warning in the log `toolcrib`.
    fn remove_agent_skill(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.skills().remove(name);
        match removed {
            Some(_) => Ok(()),
            None => log::warning(py, &format!("there is no agent skill '{name}' to remove")),
        }
    }

    /// Say what the agent should know about its skills, for the system prompt.
    ///
    /// Returns:
    ///     The instruction, and the template filled in for each skill; None if there are no skills.
    fn get_agent_skill_prompt(&self) -> Option<String> {
        self.skills().prompt()
    }

    fn _find_skill<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Text that is not valid Unicode names nothing.
        let Ok(text) = name.to_str() else { return Ok(None) };
        let skill = self.skills().find(text).cloned();
        skill.map(|skill| shown(name.py(), &skill)).transpose()
    }

    fn _all_skills<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let skills: Vec<Skill> = self.skills().all().cloned().collect();
        let all = PyDict::new(py);
        for skill in &skills {
            all.set_item(&skill.name, shown(py, skill)?)?;
        }
        Ok(all)
    }
}
