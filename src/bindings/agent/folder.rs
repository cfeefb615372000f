//! `AgentFolder`: the definitions in a folder of Markdown files.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::definition::PyAgentDefinition;
use crate::agent::{AgentFile, AgentFolder};
use crate::store::Disk;
use crate::sync::lock;

/// The definitions in a folder: every file `*.md` in it, except `README.md` and names that begin with `.` or `_`.
///
/// Raises:
///     FileAccessError: If the folder cannot be read; `MissingFileError` if it does not exist.
#[pyclass(name = "AgentFolder", module = "toolcrib", frozen)]
pub(crate) struct PyAgentFolder {
    path: PathBuf,
    content: Mutex<Content>,
}

struct Content {
    folder: AgentFolder,
    /// The definitions, in the order of the files.
    definitions: Vec<Py<PyAgentDefinition>>,
}

impl Content {
    /// Makes the objects of a folder; a definition that has not changed keeps its object.
    fn new(py: Python<'_>, folder: AgentFolder, old: &[Py<PyAgentDefinition>]) -> PyResult<Self> {
        let object = |file: &AgentFile| {
            let same = old.iter().find(|known| **known.get().definition() == file.definition);
            same.map_or_else(
                || Py::new(py, PyAgentDefinition::of_file(py, file.clone())?),
                |known| Ok(known.clone_ref(py)),
            )
        };
        let definitions = folder.files().iter().map(object).collect::<PyResult<_>>()?;
        Ok(Self { folder, definitions })
    }
}

#[pymethods]
impl PyAgentFolder {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let folder = py.detach(|| AgentFolder::read(&Disk, &path))?;
        Ok(Self { path, content: Mutex::new(Content::new(py, folder, &[])?) })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The valid definitions, by file name.
    #[getter]
    fn definitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let definitions: Vec<_> =
            lock(&self.content).definitions.iter().map(|definition| definition.clone_ref(py)).collect();
        PyList::new(py, definitions)
    }

    /// The files without a valid definition, each with the reason.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let problems = lock(&self.content).folder.problems().to_vec();
        let dict = PyDict::new(py);
        for problem in problems {
            dict.set_item(problem.path.file_name().unwrap_or_default(), problem.reason)?;
        }
        Ok(dict)
    }

    /// Read the folder again.
    ///
    /// Returns:
    ///     The names of the agents that are new, different or gone. A definition that has not changed stays the same object.
    ///
    /// Raises:
    ///     FileAccessError: If the folder cannot be read; then nothing changes.
    fn reload(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let (mut folder, old) = {
            let content = lock(&self.content);
            let old: Vec<_> = content.definitions.iter().map(|definition| definition.clone_ref(py)).collect();
            (content.folder.clone(), old)
        };
        let changed = py.detach(|| folder.reload(&Disk))?;
        let content = Content::new(py, folder, &old)?;
        let replaced = std::mem::replace(&mut *lock(&self.content), content);
        drop(replaced);
        Ok(changed)
    }

    fn __repr__(&self) -> String {
        format!("AgentFolder({:?})", self.path.display().to_string())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.content.try_lock() {
            Ok(content) => content.definitions.iter().try_for_each(|definition| visit.call(definition)),
            Err(_) => Ok(()),
        }
    }
}
