//! `ToolkitView`: a part of a toolkit. Exactly the tools that it lists can be called through it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyList, PyString, PyTuple, PyType};

use super::call::stream_through;
use super::dialect::{self, PyDialectTool};
use super::group::{PyToolGroup, groups_by_name};
use super::host::HostFunctions;
use super::imported::{LIVE_MAPPING, RUN, SERVE_MCP, TAP};
use super::into_response::error_text;
use super::log_warning;
use super::parameters::{Omittable, flag, no_unknown, optional_name_list, optional_text, text};
use super::registration::{META_TOOL, with_switches};
use super::response;
use super::session::PySession;
use super::text::{parse_format, write_instructions};
use super::tool::{PyTool, schema_to_python};
use super::toolkit::{PyToolkit, group_switches};
use crate::bindings::once::intern;
use crate::call::Reply;
use crate::mcp::Definition;
use crate::provider::Dialect;
use crate::registry::{Filter, Group, Session, Tool, View};
use crate::schema::FunctionSchema;

/// A part of a toolkit: exactly the tools that it lists can be called through it.
///
/// A view is made by `Toolkit.view` and `Toolkit.view_for`. It is live: later registrations, removals and switches take effect
/// at once. It is always true, even if it shows nothing.
#[pyclass(name = "ToolkitView", module = "toolcrib", frozen, subclass, weakref)]
pub(crate) struct PyToolkitView {
    toolkit: Py<PyToolkit>,
    view: View,
    caller: Option<Arc<str>>,
    /// The session that it was narrowed from.
    owner: Option<Py<PySession>>,
    /// The functions that tools reach in the middle of a call, in place of the toolkit's.
    host: HostFunctions,
    /// The serialised listing, with the revisions of the toolkit and of the view for which it was made.
    listing: Mutex<Option<(Revisions, Py<PyBytes>)>>,
}

type Revisions = (u64, u64);

/// Reads the arguments that select tools.
pub(crate) fn filter(
    groups: Option<&Bound<'_, PyAny>>,
    names: Option<&Bound<'_, PyAny>>,
    exclude: Option<&Bound<'_, PyAny>>,
    tags: Option<&Bound<'_, PyAny>>,
) -> PyResult<Filter> {
    Ok(Filter {
        groups: optional_name_list("groups", groups)?,
        names: optional_name_list("names", names)?,
        exclude: optional_name_list("exclude", exclude)?.unwrap_or_default(),
        tags: optional_name_list("tags", tags)?,
        without_agents: false,
    })
}

impl PyToolkitView {
    pub(crate) fn new(toolkit: Py<PyToolkit>, view: View, caller: Option<Arc<str>>) -> Self {
        Self { toolkit, view, caller, owner: None, host: HostFunctions::default(), listing: Mutex::default() }
    }

    /// The toolkit of the view.
    pub(crate) fn toolkit<'py>(&self, py: Python<'py>) -> &Bound<'py, PyToolkit> {
        self.toolkit.bind(py)
    }

    /// The name of the caller.
    pub(crate) fn caller(&self) -> Option<&Arc<str>> {
        self.caller.as_ref()
    }

    /// The selection of tools.
    pub(crate) fn selection(&self) -> &View {
        &self.view
    }

    /// The same view with the host of another one.
    pub(crate) fn hosted_as(self, py: Python<'_>, other: Option<&Self>) -> Self {
        let host = other.map(|other| other.host.clone_ref(py)).unwrap_or_default();
        Self { host, ..self }
    }

    /// The functions that tools reach in the middle of a call.
    pub(crate) fn host(&self, py: Python<'_>) -> HostFunctions {
        self.host.clone_ref(py).or(self.toolkit.get().host(py))
    }

    /// The tools of the view, as MCP defines them. A tool that cannot be described is left out with a warning.
    pub(crate) fn definitions(&self, py: Python<'_>) -> PyResult<Vec<Definition>> {
        let (_, tools) = self.listed(py);
        let mut definitions = Vec::with_capacity(tools.len());
        for tool in &tools {
            match self.in_dialect(py, tool.get(), Dialect::Mcp) {
                Ok(declared) => definitions.extend(declared.get().definition()),
                Err(error) => {
                    let (name, reason) = (&tool.get().name, error_text(py, &error));
                    log_warning(py, &format!("tool '{name}' is not served: {reason}"))?;
                }
            }
        }
        Ok(definitions)
    }

    /// A tool in a dialect; a meta tool lists only the groups that the view shows.
    fn in_dialect(&self, py: Python<'_>, tool: &PyTool, dialect: Dialect) -> PyResult<Py<PyDialectTool>> {
        let schema = self.schema_of(tool)?;
        if tool.meta.is_none() {
            return tool.in_dialect(py, dialect, self.toolkit.get());
        }
        Py::new(py, PyDialectTool::new(py, dialect, tool, &schema)?)
    }

    /// The session that calls through the view are part of.
    #[inline]
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.view.session()
    }

    /// The same as a Python object: the view itself, or the session that it was narrowed from.
    pub(crate) fn session_object<'py>(slf: &Bound<'py, Self>) -> Option<Bound<'py, PySession>> {
        match slf.cast::<PySession>() {
            Ok(session) => Some(session.clone()),
            Err(_) => slf.get().owner.as_ref().map(|owner| owner.bind(slf.py()).clone()),
        }
    }

    /// Finds the tool of a call, if the view shows it and one of its groups is active.
    pub(crate) fn admit<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, PyTool>, Reply> {
        let (py, this) = (slf.py(), slf.get());
        let tool = this.toolkit.get().admit_in(py, name, &this.view)?;
        if let Some(Err(limit)) = this.session().map(|session| session.may_call(name)) {
            return Err(Reply::LimitExceeded { tool: name.to_owned(), limit });
        }
        if !this.restricts(tool.get()) {
            return Ok(tool);
        }
        if this.hides(py, tool.get()) {
            return Err(Reply::NotAvailable { tool: name.to_owned(), similar: None });
        }
        Self::meta_tool(slf, tool.get()).map_err(|error| Reply::Failed { message: error.value(py).to_string() })
    }

    /// True for a meta tool that must not switch groups outside of the view or of its session.
    fn restricts(&self, tool: &PyTool) -> bool {
        tool.meta.is_some() && (self.view.session().is_some() || self.view.limits_groups())
    }

    /// True for a meta tool that a subclass overrides, so that it cannot be restricted to the groups of the view.
    fn hides(&self, py: Python<'_>, tool: &PyTool) -> bool {
        self.restricts(tool) && !tool.registered().bind(py).is_instance_of::<PyCFunction>()
    }

    /// The meta tool that switches the groups of this view only.
    fn meta_tool<'py>(slf: &Bound<'py, Self>, tool: &PyTool) -> PyResult<Bound<'py, PyTool>> {
        let function = slf.getattr(intern!(slf.py(), META_TOOL))?;
        Bound::new(slf.py(), tool.with_function(slf.py(), function.unbind())?)
    }

    /// The listed tools, with the revisions of the listing.
    fn listed(&self, py: Python<'_>) -> (Revisions, Vec<Py<PyTool>>) {
        // The view's revision is read first, so that a change in between is noticed later.
        let own = self.view.revision();
        let (revision, mut tools) = self.toolkit.get().listed_in(py, &self.view);
        tools.retain(|tool| !self.hides(py, tool.get()));
        ((revision, own), tools)
    }

    /// The schema of a tool in the view: a meta tool lists only the groups that the view shows.
    fn schema_of(&self, tool: &PyTool) -> crate::Result<Arc<FunctionSchema>> {
        tool.check_extension()?;
        if tool.meta.is_none() {
            return Ok(tool.schema.clone());
        }
        let switches = self.toolkit.get().switches_in(&self.view);
        Ok(Arc::new(with_switches(&tool.schema, &switches)))
    }

    /// A copy of the schema of a tool in the view.
    fn schema_copy<'py>(&self, py: Python<'py>, tool: &PyTool) -> PyResult<Bound<'py, PyDict>> {
        let schema = self.schema_of(tool)?;
        if tool.meta.is_none() { tool.schema_copy(py) } else { schema_to_python(py, &schema) }
    }

    /// True for a session whose listing is that of the toolkit.
    fn shares_listing(&self, py: Python<'_>) -> bool {
        let is_hidden = |tool: &Tool<Py<PyTool>>| self.hides(py, tool.body.get());
        self.session().is_some()
            && self.view.is_everything()
            && !self.toolkit.get().with_registry(|registry| registry.tools().any(is_hidden))
    }

    fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyTool>> {
        let tool = self.toolkit.get().admit_in(py, name, &self.view).ok()?;
        (!self.hides(py, tool.get())).then_some(tool)
    }
}

#[pymethods]
impl PyToolkitView {
    /// The toolkit of the view.
    #[getter(toolkit)]
    fn get_toolkit(&self, py: Python<'_>) -> Py<PyToolkit> {
        self.toolkit(py).clone().unbind()
    }

    /// The name of the caller.
    #[getter(caller)]
    fn get_caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Describe the tools of the view, in the order of their registration.
    ///
    /// Returns:
    ///     A `{"type": "function", "function": {...}}` for each tool. They are copies, which you may change.
    fn get_json_schemas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.toolkit.get().prepare_use(py, None)?;
        let (_, tools) = self.listed(py);
        let schemas = tools.iter().map(|tool| self.schema_copy(py, tool.get()));
        PyList::new(py, schemas.collect::<PyResult<Vec<_>>>()?)
    }

    /// Describe the tools of the view in the dialect of a provider, as `Toolkit.schemas` does.
    ///
    /// Args:
    ///     dialect: The name of the dialect.
    ///
    /// Raises:
    ///     UnknownDialectError: If there is no such dialect.
    fn schemas<'py>(&self, py: Python<'py>, dialect: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let dialect = dialect::parse(&text("dialect", dialect)?)?;
        self.toolkit.get().prepare_use(py, None)?;
        let (_, tools) = self.listed(py);
        dialect::listing(py, dialect, tools.iter().map(|tool| self.in_dialect(py, tool.get(), dialect)))
    }

    /// Return the schemas as JSON text, which is cached until something changes.
    fn get_json_schemas_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        self.toolkit.get().prepare_use(py, None)?;
        if self.shares_listing(py) {
            return self.toolkit.get().get_json_schemas_bytes(py);
        }
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
            text.extend(self.schema_of(tool.get())?.text());
        }
        text.push(']');
        let bytes = PyBytes::new(py, text.as_bytes()).unbind();
        if self.session().is_some() {
            // A service has many sessions, and a listing is much larger than a session.
            return Ok(bytes);
        }
        let old = kept().replace((revisions, bytes.clone_ref(py)));
        drop(old);
        Ok(bytes)
    }

    /// Describe the tools of the view, and the syntax of calls, as text; see `Toolkit.instructions`.
    ///
    /// Args:
    ///     format: The syntax of calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.
    ///
    /// Raises:
    ///     ValueError: If there is no such format.
    #[pyo3(signature = (format=None), text_signature = "($self, format='xml')")]
    fn instructions(&self, py: Python<'_>, format: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let format = parse_format(optional_text("format", format)?.as_deref().unwrap_or("xml"))?;
        self.toolkit.get().prepare_use(py, None)?;
        let (_, tools) = self.listed(py);
        let schemas = tools.iter().map(|tool| Ok((tool.get().name.clone(), self.schema_of(tool.get())?)));
        Ok(write_instructions(format, &schemas.collect::<PyResult<Vec<_>>>()?))
    }

    /// A number that changes whenever the listing of the view may have changed.
    #[getter]
    fn _revision(&self) -> u64 {
        self.toolkit.get().revision() + self.view.revision()
    }

    /// Join the notes of the active groups of the view, each under the heading `## About Tool Group '<name>'`.
    fn get_activated_notes(&self) -> String {
        self.toolkit.get().with_registry(|registry| self.view.activated_notes(registry))
    }

    /// A live mapping of the tools of the view by name, in the order of their registration.
    #[getter]
    fn tools<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        live_mapping(slf, intern!(slf.py(), "_all_tools"), intern!(slf.py(), "_find_tool"))
    }

    /// A live mapping of the groups of the view by name, in the order of their creation, without `basic`.
    #[getter]
    fn groups<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        live_mapping(slf, intern!(slf.py(), "_all_groups"), intern!(slf.py(), "_find_group"))
    }

    /// Return True if a tool of this name can be called through the view now.
    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|text| self.find(name.py(), text).is_some()))
    }

    /// Select a part of this view; see `Toolkit.view`.
    ///
    /// Args:
    ///     groups: The groups whose tools stay visible.
    ///     names: The tools that stay visible.
    ///     exclude: The tools that are hidden.
    ///     tags: Tags of which a tool must have one.
    ///     caller: The name of the caller; that of this view if it is not given.
    ///     inactive: Show the tools of inactive groups, too; true if it is for this view.
    ///
    /// Raises:
    ///     TypeError: If one of the lists is not a list of strings.
    #[pyo3(
        signature = (groups=None, names=None, exclude=None, tags=None, *, caller=None, inactive=Omittable(None), **unknown),
        text_signature = "($self, groups=None, names=None, exclude=(), tags=None, *, caller=None, inactive=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "each is a parameter of its own")]
    fn view(
        slf: &Bound<'_, Self>,
        groups: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        caller: Option<&Bound<'_, PyAny>>,
        inactive: Omittable<'_>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        no_unknown::<Self>("view", unknown)?;
        let this = slf.get();
        let caller = optional_text("caller", caller)?;
        let filter = filter(groups, names, exclude, tags)?;
        this.toolkit.get().warn_of_unknown(slf.py(), &filter)?;
        let view = this.view.narrowed(filter);
        let view = if flag("inactive", &inactive, false)? { view.with_inactive() } else { view };
        let caller = caller.map(Into::into).or_else(|| this.caller.clone());
        let owner = Self::session_object(slf).map(Bound::unbind);
        let narrowed = Self::new(this.toolkit.clone_ref(slf.py()), view, caller).hosted_as(slf.py(), Some(this));
        Ok(Self { owner, ..narrowed })
    }

    /// The same view for the calls of an MCP client; what the client does not have is the toolkit's.
    fn _hosted_by(
        slf: &Bound<'_, Self>,
        asker: Option<Py<PyAny>>,
        sampler: Option<Py<PyAny>>,
        log: Option<Py<PyAny>>,
    ) -> Self {
        let this = slf.get();
        let owner = Self::session_object(slf).map(Bound::unbind);
        let same = Self::new(this.toolkit.clone_ref(slf.py()), this.view.clone(), this.caller.clone());
        Self { owner, host: HostFunctions { asker, sampler, log }, ..same }
    }

    /// Serve the tools of the view to MCP clients; see `Toolkit.serve_mcp`.
    #[pyo3(signature = (transport, **options))]
    fn serve_mcp<'py>(
        slf: &Bound<'py, Self>,
        transport: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        SERVE_MCP.get(slf.py())?.call((slf, transport), options)
    }

    /// Choose the tool groups to work with from now on, among those of the view; see `Toolkit`.
    #[pyo3(signature = (**kwargs))]
    fn reset_equipped_tools<'py>(
        &self,
        py: Python<'py>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outcome = self.toolkit.get().equip_in(&self.view, &group_switches(kwargs)?);
        match outcome {
            Ok(text) => response::text(py, PyString::new(py, &text)),
            Err(text) => response::answer(py, &Reply::InvalidArguments { text }),
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
        let group = self.toolkit.get().group_in(name.to_str().ok()?, &self.view)?;
        Some(PyToolGroup::in_view(group, &self.view))
    }

    fn _all_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups: Vec<Arc<Group>> =
            self.toolkit.get().with_registry(|registry| self.view.groups(registry).cloned().collect());
        groups_by_name(py, groups, &self.view)
    }

    /// Call a tool from synchronous code and return its last response; see `Toolkit.run`.
    #[pyo3(signature = (name, /, *misplaced, **arguments), text_signature = "($self, name, /, **arguments)")]
    fn run<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        misplaced: Bound<'py, PyTuple>,
        arguments: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let arguments = arguments.unwrap_or_else(|| PyDict::new(py));
        RUN.get(py)?.call1((slf, name, misplaced, arguments))
    }

    fn __repr__(&self) -> String {
        self.caller
            .as_ref()
            .map_or_else(|| "ToolkitView()".to_owned(), |caller| format!("ToolkitView(caller={caller:?})"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit and the session clear themselves, which breaks reference cycles.
        visit.call(&self.owner)?;
        self.host.traverse(&visit)?;
        visit.call(&self.toolkit)
    }
}

/// A live mapping over two methods of the view.
fn live_mapping<'py>(
    view: &Bound<'py, PyToolkitView>,
    all: &Bound<'py, PyString>,
    find: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    LIVE_MAPPING.get(view.py())?.call1((view.getattr(all)?, view.getattr(find)?))
}

/// A tool of a view, which acts as a `RegisteredToolFunction`. Its calls go through the view.
#[pyclass(name = "RegisteredToolFunction", module = "toolcrib", frozen)]
pub(crate) struct ToolInView {
    pub(super) tool: Py<PyTool>,
    view: Py<PyToolkitView>,
}

#[pymethods]
impl ToolInView {
    #[getter]
    #[allow(clippy::unused_self, reason = "pyo3 requires this signature")]
    fn __class__<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        py.get_type::<PyTool>()
    }

    /// A copy of the schema in the view: the meta tool lists only the groups of the view.
    #[getter]
    fn extended_json_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.view.get().schema_copy(py, self.tool.get())
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.tool.bind(py).getattr(name)
    }

    /// Call this tool through its view; see `RegisteredToolFunction.call`.
    #[pyo3(signature = (*, arguments, stream_print=None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyAny>,
        stream_print: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shown = match stream_print {
            Some(function) => Some(TAP.get(py)?.call1((function,))?),
            None => None,
        };
        stream_through(self.view.bind(py), self.tool.bind(py), arguments, shown.as_ref())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.tool.is(&other.get().tool) && self.view.is(&other.get().view))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.tool.as_ptr().addr(), self.view.as_ptr().addr()).hash(&mut hasher);
        hasher.finish()
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.tool.bind(py).dir()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.tool.bind(py).repr().map(|text| text.to_string())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The toolkit clears itself, which breaks reference cycles.
        visit.call(&self.tool)?;
        visit.call(&self.view)
    }
}
