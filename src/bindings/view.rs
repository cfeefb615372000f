//! `ToolkitView`: a part of a toolkit. What it shows is what can be called through it.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyList, PyString};

use super::call::{check, resumed};
use super::dialect::{self, PyDialectTool};
use super::group::PyToolGroup;
use super::imported::{LIVE_MAPPING, RUN};
use super::meta::with_switches;
use super::names;
use super::response;
use super::text::{parse_format, write_instructions};
use super::tool::{PyTool, schema_to_python};
use super::tool_in_view::ToolInView;
use super::toolkit::{PyToolkit, wanted};
use crate::call::Answer;
use crate::registry::{Filter, Group, View};

/// Show a part of a toolkit: exactly what it lists can be called through it.
///
/// A view is made by `Toolkit.view` and `Toolkit.view_for`. It is live: what is registered, removed or switched later shows
/// at once. It is always true, also when it shows nothing.
#[pyclass(name = "ToolkitView", module = "toolcrib", frozen, weakref)]
pub(crate) struct PyToolkitView {
    toolkit: Py<PyToolkit>,
    view: View,
    caller: Option<String>,
    /// The serialised listing with the revisions of the toolkit and of the view it was made at.
    listing: Mutex<Option<(Revisions, Py<PyBytes>)>>,
}

type Revisions = (u64, u64);

/// What is chosen, as developers write it.
pub(crate) fn filter(
    groups: Option<&Bound<'_, PyAny>>,
    names: Option<&Bound<'_, PyAny>>,
    exclude: Option<&Bound<'_, PyAny>>,
    tags: Option<&Bound<'_, PyAny>>,
) -> PyResult<Filter> {
    Ok(Filter {
        groups: names::read_optional("groups", groups)?,
        names: names::read_optional("names", names)?,
        exclude: names::read_optional("exclude", exclude)?.unwrap_or_default(),
        tags: names::read_optional("tags", tags)?,
    })
}

impl PyToolkitView {
    pub(crate) fn new(toolkit: Py<PyToolkit>, view: View, caller: Option<String>) -> Self {
        Self { toolkit, view, caller, listing: Mutex::default() }
    }

    /// The toolkit that it shows a part of.
    pub(crate) fn toolkit<'py>(&self, py: Python<'py>) -> &Bound<'py, PyToolkit> {
        self.toolkit.bind(py)
    }

    /// Who calls through it.
    pub(crate) fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Finds the tool of a call and sees whether it is shown and on.
    pub(crate) fn admit<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, PyTool>, Answer> {
        let (py, this) = (slf.py(), slf.get());
        let tool = this.toolkit.get().admit_in(py, name, &this.view)?;
        if !this.limits(tool.get()) {
            return Ok(tool);
        }
        if this.hides(py, tool.get()) {
            return Err(Answer::NotAvailable { tool: name.to_owned() });
        }
        Self::meta_tool(slf, tool.get()).map_err(|error| Answer::Failed { message: error.value(py).to_string() })
    }

    /// Whether a tool would switch groups that the view does not show.
    fn limits(&self, tool: &PyTool) -> bool {
        tool.meta.is_some() && self.view.limits_groups()
    }

    /// Whether there is no way to hold such a tool to the groups that are shown: somebody wrote it anew.
    fn hides(&self, py: Python<'_>, tool: &PyTool) -> bool {
        self.limits(tool) && !tool.registered().bind(py).is_instance_of::<PyCFunction>()
    }

    /// The meta tool that switches the groups of this view only.
    fn meta_tool<'py>(slf: &Bound<'py, Self>, tool: &PyTool) -> PyResult<Bound<'py, PyTool>> {
        let function = slf.getattr(intern!(slf.py(), super::meta::NAME))?;
        Bound::new(slf.py(), tool.redirected(slf.py(), function.unbind())?)
    }

    /// What is listed, and the revisions at which it was.
    fn listed(&self, py: Python<'_>) -> (Revisions, Vec<Py<PyTool>>) {
        // The view's revision first: what changes in between is seen as a change later.
        let own = self.view.revision();
        let (revision, mut tools) = self.toolkit.get().listed_in(py, &self.view);
        tools.retain(|tool| !self.hides(py, tool.get()));
        ((revision, own), tools)
    }

    /// The schema of a tool as the view tells it, which names no group that the view does not show: a copy.
    pub(super) fn schema_copy<'py>(&self, py: Python<'py>, tool: &PyTool) -> PyResult<Bound<'py, PyDict>> {
        tool.check_extension()?;
        if tool.meta.is_none() {
            return tool.schema_copy(py);
        }
        let switches = self.toolkit.get().switches_in(&self.view);
        schema_to_python(py, &with_switches(&tool.schema, &switches))
    }

    fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        let tool = self.toolkit.get().admit_in(py, name, &self.view).ok()?;
        (!self.hides(py, tool.get())).then_some(tool)
    }
}

#[pymethods]
impl PyToolkitView {
    /// The toolkit that it shows a part of.
    #[getter(toolkit)]
    fn get_toolkit(&self, py: Python<'_>) -> Py<PyToolkit> {
        self.toolkit(py).clone().unbind()
    }

    /// Who calls through it.
    #[getter(caller)]
    fn get_caller(&self) -> Option<&str> {
        self.caller()
    }

    /// Describe the tools it shows, in the order they were registered.
    ///
    /// Returns:
    ///     One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.
    fn get_json_schemas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (_, tools) = self.listed(py);
        let schemas = tools.iter().map(|tool| self.schema_copy(py, tool.get()));
        PyList::new(py, schemas.collect::<PyResult<Vec<_>>>()?)
    }

    /// Describe the tools it shows in the dialect of a provider, as `Toolkit.schemas` does.
    ///
    /// Args:
    ///     dialect: The name of the dialect.
    ///
    /// Raises:
    ///     UnknownDialectError: If there is no such dialect.
    fn schemas<'py>(&self, py: Python<'py>, dialect: &str) -> PyResult<Bound<'py, PyAny>> {
        let dialect = dialect::parse(dialect)?;
        let (_, tools) = self.listed(py);
        let told = tools.iter().map(|tool| {
            let tool = tool.get();
            tool.check_extension()?;
            if tool.meta.is_none() {
                return tool.in_dialect(py, dialect, self.toolkit.get());
            }
            let switches = self.toolkit.get().switches_in(&self.view);
            let schema = with_switches(&tool.schema, &switches);
            Py::new(py, PyDialectTool::new(py, dialect, &tool.name, &schema)?)
        });
        dialect::listing(py, dialect, told)
    }

    /// Give the same list as JSON text, which is kept until something changes.
    fn get_json_schemas_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let now = (self.toolkit.get().revision(), self.view.revision());
        let kept = || self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_at, bytes)) = &*kept()
            && *made_at == now
        {
            return Ok(bytes.clone_ref(py));
        }
        let (revisions, tools) = self.listed(py);
        let mut text = String::from("[");
        for (index, tool) in tools.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            let tool = tool.get();
            tool.check_extension()?;
            if tool.meta.is_none() {
                text.extend(tool.schema.text());
            } else {
                let switches = self.toolkit.get().switches_in(&self.view);
                text.extend(with_switches(&tool.schema, &switches).text());
            }
        }
        text.push(']');
        let bytes = PyBytes::new(py, text.as_bytes()).unbind();
        let old = kept().replace((revisions, bytes.clone_ref(py)));
        drop(old);
        Ok(bytes)
    }

    /// Tell a model in words about the tools it shows, and how to write a call of one; see `Toolkit.instructions`.
    ///
    /// Args:
    ///     format: How calls are written: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.
    ///
    /// Raises:
    ///     ValueError: If there is no such format.
    #[pyo3(signature = (format="xml"))]
    fn instructions(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let format = parse_format(format)?;
        let (_, tools) = self.listed(py);
        let told = tools.iter().map(|tool| {
            let tool = tool.get();
            tool.check_extension()?;
            let schema = match tool.meta {
                None => tool.schema.clone(),
                Some(_) => Arc::new(with_switches(&tool.schema, &self.toolkit.get().switches_in(&self.view))),
            };
            Ok((tool.name.clone(), schema))
        });
        Ok(write_instructions(format, &told.collect::<PyResult<Vec<_>>>()?))
    }

    /// Join the notes of the active groups it shows, each under the heading `## About Tool Group '<name>'`.
    fn get_activated_notes(&self) -> String {
        self.toolkit.get().look(|registry| self.view.activated_notes(registry))
    }

    /// The tools it shows by name, in the order they were registered; live.
    #[getter]
    fn tools<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        live(slf, intern!(slf.py(), "_all_tools"), intern!(slf.py(), "_find_tool"))
    }

    /// The groups it shows by name, in the order they were created, without `basic`; live.
    #[getter]
    fn groups<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        live(slf, intern!(slf.py(), "_all_groups"), intern!(slf.py(), "_find_group"))
    }

    /// Whether a tool of this name can be called through it now.
    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|text| self.find(name.py(), text).is_some()))
    }

    /// Show a part of what this view shows; see `Toolkit.view`.
    ///
    /// Args:
    ///     groups: The groups whose tools are still shown.
    ///     names: The tools that are still shown.
    ///     exclude: The tools that are not shown.
    ///     tags: Tags of which a tool must carry one.
    ///     caller: Who calls through the view; the same as through this one if it is not given.
    ///
    /// Raises:
    ///     TypeError: If one of the lists is not a list of strings.
    #[pyo3(
        signature = (groups=None, names=None, exclude=None, tags=None, *, caller=None),
        text_signature = "($self, groups=None, names=None, exclude=(), tags=None, *, caller=None)"
    )]
    fn view(
        &self,
        py: Python<'_>,
        groups: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        caller: Option<String>,
    ) -> PyResult<Self> {
        let view = self.view.narrowed(filter(groups, names, exclude, tags)?);
        Ok(Self::new(self.toolkit.clone_ref(py), view, caller.or_else(|| self.caller.clone())))
    }

    /// Choose the tool groups to work with from now on, among those that the view shows; see `Toolkit`.
    #[pyo3(signature = (**kwargs))]
    fn reset_equipped_tools<'py>(
        &self,
        py: Python<'py>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outcome = self.toolkit.get().equip_in(&self.view, &wanted(kwargs)?);
        match outcome {
            Ok(text) => response::text(py, PyString::new(py, &text), None),
            Err(text) => response::answer(py, &Answer::InvalidArguments { text }),
        }
    }

    /// Give the tool that a call of this name would go to, or the answer that it would get instead.
    fn _admit<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match Self::admit(slf, name) {
            Ok(tool) => Ok(tool.into_any()),
            Err(answer) => response::answer(slf.py(), &answer),
        }
    }

    fn _find_tool(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> Option<ToolInView> {
        let tool = slf.get().find(name.py(), name.to_str().ok()?)?.unbind();
        Some(ToolInView { tool, view: slf.clone().unbind() })
    }

    fn _all_tools<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(slf.py());
        for tool in slf.get().listed(slf.py()).1 {
            let name = tool.bind(slf.py()).get().name.clone();
            all.set_item(&*name, ToolInView { tool, view: slf.clone().unbind() })?;
        }
        Ok(all)
    }

    fn _find_group(&self, name: &Bound<'_, PyString>) -> Option<PyToolGroup> {
        self.toolkit.get().group_in(name.to_str().ok()?, &self.view).map(Into::into)
    }

    fn _all_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups: Vec<Arc<Group>> = self.toolkit.get().look(|it| self.view.groups(it).cloned().collect());
        let all = PyDict::new(py);
        for group in groups {
            all.set_item(group.name().to_owned(), Py::new(py, PyToolGroup::from(group))?)?;
        }
        Ok(all)
    }

    /// Call a tool from synchronous code and return its last response; see `Toolkit.run`.
    #[pyo3(signature = (name, /, **arguments))]
    fn run<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        arguments: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let arguments = arguments.unwrap_or_else(|| PyDict::new(py));
        RUN.get(py)?.call1((slf, name, arguments))
    }

    /// Say what would become of a call through the view; see `Toolkit.check`.
    fn check<'py>(slf: &Bound<'py, Self>, tool_call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        check(slf.as_any(), tool_call)
    }

    /// Go on with a pending call of this view's caller; see `Toolkit.resume`.
    #[pyo3(signature = (pending, answer, arguments=None, *, by=None))]
    fn resume<'py>(
        slf: &Bound<'py, Self>,
        pending: &Bound<'py, PyAny>,
        answer: &Bound<'py, PyAny>,
        arguments: Option<&Bound<'py, PyAny>>,
        by: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        resumed(slf.as_any(), pending, answer, arguments, by)
    }

    fn __repr__(&self) -> String {
        self.caller
            .as_ref()
            .map_or_else(|| "ToolkitView()".to_owned(), |caller| format!("ToolkitView(caller={caller:?})"))
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit clears itself, which breaks any circle through it.
        visit.call(&self.toolkit)
    }
}

/// A live mapping over two methods of the view.
fn live<'py>(
    view: &Bound<'py, PyToolkitView>,
    all: &Bound<'py, PyString>,
    find: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    LIVE_MAPPING.get(view.py())?.call1((view.getattr(all)?, view.getattr(find)?))
}
