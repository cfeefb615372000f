//! `Toolkit.lock` and `Toolkit.verify`: the definitions of tools in a reviewed file, and what has changed since.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::Error;
use crate::bindings::errors::internal_error;
use crate::bindings::json;
use crate::bindings::native::PyNativeTool;
use crate::bindings::once::intern;
use crate::bindings::parameters::{choice, name_list};
use crate::bindings::tool::PyTool;
use crate::bindings::toolkit::PyToolkit;
use crate::json::invisible::visible;
use crate::mcp::lock::{Change, ChangeClass, Difference, Lock, LockedTool, Source, compare, render};
use crate::mcp::{Definition, Flag, OtherNames, flags};
use crate::provider::mcp_definition;
use crate::store::Disk;

/// Adds the classes to the module.
pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLockReport>()?;
    module.add_class::<PyLockChange>()?;
    module.add_class::<PyLockDifference>()?;
    module.add_class::<PyDefinitionFlag>()
}

/// A place at which the definition of a tool differs from the reviewed one.
#[pyclass(name = "LockDifference", module = "toolcrib.lock", frozen)]
pub(crate) struct PyLockDifference(Difference);

#[pymethods]
impl PyLockDifference {
    /// The place, as a JSON pointer into the definition, such as `/inputSchema/properties/to/type`.
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The class of this difference alone.
    #[getter]
    fn change_class(&self) -> &'static str {
        self.0.class.as_str()
    }

    /// The reviewed value; None if there was none.
    #[getter]
    fn before<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.before.as_ref().map(|value| json::to_python(py, value)).transpose()
    }

    /// The present value; None if there is none.
    #[getter]
    fn after<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.after.as_ref().map(|value| json::to_python(py, value)).transpose()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<LockDifference {}>", self.0)
    }
}

/// A tool that differs from the reviewed one.
#[pyclass(name = "LockChange", module = "toolcrib.lock", frozen)]
pub(crate) struct PyLockChange(Change);

#[pymethods]
impl PyLockChange {
    /// The name of the tool.
    #[getter]
    fn tool(&self) -> &str {
        &self.0.tool
    }

    /// The source of the tool: `"local"` or `"mcp:<client>"`.
    #[getter]
    fn source(&self) -> String {
        self.0.source.to_string()
    }

    /// The classes of the change, the most serious first.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.classes.iter().map(|class| class.as_str()))
    }

    /// The differences; none for a tool that was added or removed.
    #[getter]
    fn differences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let differences = self.0.differences.iter().map(|difference| PyLockDifference(difference.clone()));
        PyTuple::new(py, differences.map(|it| Py::new(py, it)).collect::<PyResult<Vec<_>>>()?)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<LockChange {}>", self.0)
    }
}

/// A warning about the definition of a tool, for its reviewer.
#[pyclass(name = "DefinitionFlag", module = "toolcrib.lock", frozen)]
pub(crate) struct PyDefinitionFlag {
    tool: String,
    flag: Flag,
}

impl PyDefinitionFlag {
    pub(super) fn new(tool: String, flag: Flag) -> Self {
        Self { tool, flag }
    }
}

#[pymethods]
impl PyDefinitionFlag {
    /// The name of the tool.
    #[getter]
    fn tool(&self) -> &str {
        &self.tool
    }

    /// The kind of the warning.
    #[getter]
    fn kind(&self) -> &'static str {
        self.flag.kind.as_str()
    }

    /// The place, as a JSON pointer into the definition.
    #[getter]
    fn path(&self) -> &str {
        &self.flag.path
    }

    /// The text that the warning is about, with invisible characters escaped.
    #[getter]
    fn evidence(&self) -> &str {
        &self.flag.evidence
    }

    fn __str__(&self) -> String {
        let (kind, path) = (self.flag.kind.as_str(), visible(&self.flag.path));
        format!("`{}` {path}: {kind}: {}", visible(&self.tool), self.flag.evidence)
    }

    fn __repr__(&self) -> String {
        format!("<DefinitionFlag {}>", self.__str__())
    }
}

/// The comparison of a toolkit with its lock file.
#[pyclass(name = "LockReport", module = "toolcrib.lock", frozen)]
pub(crate) struct PyLockReport {
    changes: Vec<Change>,
    allowed: Vec<ChangeClass>,
    flags: Vec<(String, Flag)>,
    quarantined: Vec<String>,
}

#[pymethods]
impl PyLockReport {
    /// True if every change is of the allowed classes.
    #[getter]
    fn ok(&self) -> bool {
        self.changes.iter().all(|change| change.is_allowed(&self.allowed))
    }

    /// The tools that differ, sorted by name.
    #[getter]
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let changes = self.changes.iter().map(|change| Py::new(py, PyLockChange(change.clone())));
        PyTuple::new(py, changes.collect::<PyResult<Vec<_>>>()?)
    }

    /// Warnings about the definitions of all tools, for a reviewer.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let flags = self.flags.iter().cloned().map(|(tool, flag)| Py::new(py, PyDefinitionFlag::new(tool, flag)));
        PyTuple::new(py, flags.collect::<PyResult<Vec<_>>>()?)
    }

    /// The names of the tools that `verify` has quarantined.
    #[getter]
    fn quarantined<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.quarantined)
    }

    fn __str__(&self) -> String {
        match self.changes.len() {
            0 => "no tool has changed since it was reviewed".to_owned(),
            1 => format!("1 tool has changed since it was reviewed:\n{}", render(&self.changes)),
            count => format!("{count} tools have changed since they were reviewed:\n{}", render(&self.changes)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<LockReport ok={} changes={}>", if self.ok() { "True" } else { "False" }, self.changes.len())
    }
}

/// The tool as its MCP server defines it, if its client says how.
fn server_definition(py: Python<'_>, tool: &PyTool) -> Option<Definition> {
    let function = tool.registered().bind(py);
    if let Ok(native) = function.cast::<PyNativeTool>() {
        return native.get().definition().map(|definition| (**definition).clone());
    }
    tool.server()?;
    let defined = function.getattr_opt(intern!(py, "mcp_definition")).ok()??;
    Definition::read(&json::value_from_python(&defined).ok()?).ok()
}

/// A registered tool under its name in the toolkit: as its server defines it, or as a server of this toolkit would.
fn locked(py: Python<'_>, tool: &PyTool) -> PyResult<LockedTool> {
    let source = tool.server().map_or(Source::Local, |server| Source::Mcp(server.to_owned()));
    let declared = || {
        let output = tool.output_schema(py);
        let declaration = mcp_definition(&tool.name, &tool.schema, output.as_ref(), tool.traits.kind);
        Definition::read(&declaration.value).map_err(|error| internal_error(&error.to_string()))
    };
    let defined = server_definition(py, tool).map_or_else(declared, Ok)?;
    Ok(LockedTool { source, definition: Definition { name: tool.name.to_string(), meta: None, ..defined } })
}

/// The warnings about the definitions of all tools.
fn all_flags(tools: &Lock) -> Vec<(String, Flag)> {
    let servers =
        tools.tools().filter_map(|tool| if let Source::Mcp(server) = &tool.source { Some(&**server) } else { None });
    let others = OtherNames::new(tools.tools().map(LockedTool::name).chain(servers));
    let flagged = |tool: &LockedTool| {
        let name = tool.name().to_owned();
        flags(&tool.definition, &others).into_iter().map(move |flag| (name.clone(), flag)).collect::<Vec<_>>()
    };
    tools.tools().flat_map(flagged).collect()
}

/// Reads the classes of changes that are allowed.
fn classes(allow: &Bound<'_, PyAny>) -> PyResult<Vec<ChangeClass>> {
    let words: Vec<String> = name_list("allow", allow)?;
    let known = ChangeClass::ALL.map(|class| format!("'{class}'")).join(", ");
    words.iter().map(|word| choice("allow", word, ChangeClass::parse(word), &known)).collect()
}

impl PyToolkit {
    /// All tools, so that their Python objects can be used without the lock of the registry.
    fn all_tools(&self, py: Python<'_>) -> Vec<Py<PyTool>> {
        self.with_registry(|registry| registry.tools().map(|tool| tool.body.clone_ref(py)).collect())
    }
}

#[pymethods]
impl PyToolkit {
    fn _lock(&self, py: Python<'_>, path: PathBuf) -> PyResult<PyLockReport> {
        let (quarantined, accepted): (Vec<Py<PyTool>>, Vec<Py<PyTool>>) =
            self.all_tools(py).into_iter().partition(|tool| tool.get().seat.quarantine().is_some());
        let accepted: Vec<LockedTool> = accepted.iter().map(|tool| locked(py, tool.get())).collect::<PyResult<_>>()?;
        let quarantined: Vec<Arc<str>> = quarantined.iter().map(|tool| tool.get().name.clone()).collect();
        py.detach(|| {
            let reviewed = match Lock::load(&Disk, &path) {
                Err(Error::MissingFile { .. }) => Lock::default(),
                loaded => loaded?,
            };
            // What is quarantined has not been reviewed: its earlier definition stays.
            let kept = quarantined.iter().filter_map(|name| reviewed.get(name)).cloned();
            let present: Lock = accepted.into_iter().chain(kept).collect();
            let changes = compare(&reviewed, &present);
            present.save(&Disk, &path)?;
            let flags = all_flags(&present);
            Ok(PyLockReport { changes, allowed: ChangeClass::ALL.to_vec(), flags, quarantined: Vec::new() })
        })
    }

    fn _verify(
        &self,
        py: Python<'_>,
        path: PathBuf,
        allow: &Bound<'_, PyAny>,
        quarantine: bool,
    ) -> PyResult<PyLockReport> {
        let allowed = classes(allow)?;
        let present = self.all_tools(py).iter().map(|tool| locked(py, tool.get())).collect::<PyResult<Lock>>()?;
        let (changes, flags) = py.detach(|| -> crate::Result<_> {
            let reviewed = Lock::load(&Disk, &path)?;
            Ok((compare(&reviewed, &present), all_flags(&present)))
        })?;
        let refused = changes.iter().filter(|change| quarantine && !change.is_allowed(&allowed));
        let quarantined = self.quarantine_all(refused.map(|change| (change.tool.as_str(), change.reason())));
        Ok(PyLockReport { changes, allowed, flags, quarantined })
    }
}
