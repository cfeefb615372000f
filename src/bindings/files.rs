//! File systems in Python: `_FileSystem`, which `toolcrib.files.DiskFileSystem` opens, and `FileHandle`, the operations that a
//! program calls itself. The tools are native tools of `crate::files`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use tokio_util::sync::CancellationToken;

use super::native::PyNativeTool;
use crate::files::{
    CreateFolder, FileHandle, FilePolicy, FileService, FileSystem, Grant, LogicalPath, Op, Ops, TextRequest, tools,
};

/// Directories under logical names.
#[pyclass(name = "_FileSystem", module = "toolcrib._core", frozen)]
pub(super) struct PyFileSystem(Arc<FileSystem>);

#[pymethods]
impl PyFileSystem {
    /// Open the directories: tuples of a name, a directory, the operations that grants can allow in it, and the directories that
    /// are created for it.
    #[new]
    fn new(py: Python<'_>, roots: Vec<(String, PathBuf, Vec<String>, String)>) -> PyResult<Self> {
        let system = py.detach(|| -> PyResult<FileSystem> {
            let mut system = FileSystem::new();
            for (prefix, folder, ops, create) in &roots {
                let ops = Ops::parse(ops.iter().map(String::as_str))?;
                let create = CreateFolder::parse(create).unwrap_or(CreateFolder::Never);
                system = system.with_created_root(prefix, folder, ops, create)?;
            }
            Ok(system)
        })?;
        Ok(Self(Arc::new(system)))
    }

    /// Make a handle with grants: pairs of a prefix and names of operations.
    fn create_handle(&self, grants: Vec<(String, Vec<String>)>) -> PyResult<PyFileHandle> {
        let parse = |(prefix, ops): &(String, Vec<String>)| Grant::parse(prefix, ops.iter().map(String::as_str));
        let grants = grants.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(PyFileHandle(FileService::new(self.0.create_handle(grants)?, FilePolicy::default())))
    }
}

/// The grants of a caller on a file system.
#[pyclass(name = "FileHandle", module = "toolcrib.files", frozen)]
pub(super) struct PyFileHandle(FileService);

impl PyFileHandle {
    fn handle(&self) -> &FileHandle {
        self.0.handle()
    }
}

#[pymethods]
impl PyFileHandle {
    /// The granted prefixes with their operations.
    #[getter]
    fn permissions(&self) -> Vec<(String, Vec<&'static str>)> {
        let words = |ops: Ops| ops.iter().map(Op::as_str).collect();
        self.handle().permissions().map(|(prefix, ops)| (prefix.as_folder(), words(ops))).collect()
    }

    /// List the entries of a directory.
    fn list<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyList>> {
        let (entries, _) = py.detach(|| self.0.list(path, true, &CancellationToken::new()))?;
        let list = PyList::empty(py);
        for entry in entries {
            let facts = PyDict::new(py);
            facts.set_item("name", entry.displayed())?;
            facts.set_item("type", entry.kind.as_str())?;
            facts.set_item("size", entry.size)?;
            list.append(facts)?;
        }
        Ok(list)
    }

    /// Return the metadata of a file or directory.
    fn file<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let found = py.detach(|| self.0.facts(path))?;
        let facts = PyDict::new(py);
        facts.set_item("path", path.parse::<LogicalPath>()?.as_str())?;
        facts.set_item("type", found.kind.as_str())?;
        facts.set_item("size", found.size)?;
        let (seconds, rest) = (found.modified.div_euclid(1_000_000_000), found.modified.rem_euclid(1_000_000_000));
        #[allow(clippy::cast_precision_loss, reason = "computed as `os.stat` does, so that both are equal")]
        facts.set_item("modified", seconds as f64 + 1e-9 * rest as f64)?;
        facts.set_item("mode", found.mode)?;
        Ok(facts)
    }

    /// Read all bytes of a file.
    fn read_binary<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.read_binary(path, &CancellationToken::new()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Read lines of a text file.
    #[pyo3(signature = (path, start_line=1, read_lines=None))]
    fn read_file<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start_line: u64,
        read_lines: Option<u64>,
    ) -> PyResult<Bound<'py, PyString>> {
        let request = TextRequest { start_line, read_lines, with_line_numbers: false, count_lines: false };
        let limit = usize::try_from(self.0.policy().max_file_bytes).unwrap_or(usize::MAX);
        let part = py.detach(|| self.0.read_text(path, &request, limit, &CancellationToken::new()))?;
        Ok(PyString::new(py, &part.text))
    }

    /// Return the lines of a text file that match a regular expression, each with its number.
    fn read_re(&self, py: Python<'_>, path: &str, pattern: &str) -> PyResult<Vec<(u64, String)>> {
        let (lines, _) = py.detach(|| self.0.read_matching(path, pattern, &CancellationToken::new()))?;
        Ok(lines.into_iter().map(|found| (found.line, found.text)).collect())
    }

    /// Create or replace a file in one step.
    fn write(&self, py: Python<'_>, path: &str, content: Content) -> PyResult<usize> {
        let bytes = match &content {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        };
        py.detach(|| self.0.write(path, bytes))?;
        Ok(bytes.len())
    }

    /// Delete a file.
    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        Ok(py.detach(|| self.0.delete(path))?)
    }

    /// Return the native tools over this handle, with the limits of a policy.
    #[pyo3(signature = (*, max_reply_bytes, max_file_bytes, max_entries, hard_links, durable))]
    fn _tools(
        &self,
        max_reply_bytes: usize,
        max_file_bytes: u64,
        max_entries: usize,
        hard_links: bool,
        durable: bool,
    ) -> Vec<PyNativeTool> {
        let policy = FilePolicy { max_reply_bytes, max_file_bytes, max_entries, hard_links, durable };
        let service = FileService::new(self.handle().clone(), policy);
        tools::tools(&service).into_iter().map(PyNativeTool::from).collect()
    }

    fn __repr__(&self) -> String {
        let grants =
            self.handle().permissions().map(|(prefix, ops)| format!("{}: {}", prefix.as_folder(), ops.describe()));
        format!("FileHandle({})", grants.collect::<Vec<_>>().join("; "))
    }
}

/// The content of a file: text, which is written as UTF-8, or bytes.
#[derive(FromPyObject)]
enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    super::add_internal::<PyFileSystem>(module)?;
    super::add_internal::<PyFileHandle>(module)
}
