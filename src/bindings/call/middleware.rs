//! Middlewares: each layer of a call is a stream whose tool is a middleware, and the streams that it opens end with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyNone, PyString, PyTuple};

use super::close;
use super::python::drive::{Sent, await_iter, send};
use super::python::{attached, object};
use super::request::{NO_CALL, block, is_readable};
use super::run::Given;
use super::state::{Early, Ending, Origin, Phase, State, Step};
use crate::bindings::errors;
use crate::bindings::foreign_response::ResponseClass;
use crate::bindings::once::{GilOnce, intern};
use crate::bindings::parameters::class_name;
use crate::bindings::policy::PyPermissions;
use crate::bindings::registration::{Behaviour, ToolDraft, ToolOptions};
use crate::bindings::session::PySession;
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::call::{CallInfo, ChunkRule, ErrorMode};
use crate::registry::Registry;

impl State {
    /// Runs the next middleware of the call, if there is one; `None` if the path goes on to the tool itself.
    #[cold]
    pub(super) fn enter_middleware<'py>(&self, py: Python<'py>) -> Result<Option<Given<'py>>, Early<'py>> {
        attached(py, |py| if self.toolkit.get(py).is_some() { self.begin_outermost(py) } else { self.begin_within(py) })
    }

    /// Reads the list of middlewares: later changes to it are for later calls.
    fn begin_outermost<'py>(&self, py: Python<'py>) -> Result<Option<Given<'py>>, Early<'py>> {
        self.deny_before_layers(py)?;
        let Some(toolkit) = self.toolkit.get(py) else { return Ok(None) };
        let stub = toolkit.get().layer_tool(py)?;
        self.tool.set(stub.bind(py).clone());
        let Some(origin) = self.origin(py) else { return Ok(None) };
        let stack = toolkit.get().middlewares(py).to_tuple().unbind();
        let begun = self.request_for_layers(py).and_then(keywords).and_then(|keywords| {
            let handler = NextHandler::new(Core::Named(origin.unbind()), stack, 0, stub, self.known_info());
            self.begin_layer(py, &handler, keywords.as_any())
        });
        Ok(Some(begun.unwrap_or_else(Given::error)))
    }

    /// Goes on where a handler points to: the next middleware, or the tool.
    fn begin_within<'py>(&self, py: Python<'py>) -> Result<Option<Given<'py>>, Early<'py>> {
        let Some(handler) = self.starting_handler(py) else { return Ok(None) };
        self.handler.clear(py);
        let handler = handler.get();
        self.join(handler.info.clone());
        if handler.middleware(py).is_some() {
            self.tool.set(handler.stub.bind(py).clone());
            let keywords = self.request.get(py).unwrap_or_else(|| PyDict::new(py).into_any());
            return Ok(Some(self.begin_layer(py, handler, &keywords).unwrap_or_else(Given::error)));
        }
        match &handler.core {
            Core::Named(origin) => self.set_origin(Origin::of(origin.bind(py))?),
            Core::ViewTool(view, _) => self.set_origin(Origin::View(view.bind(py).clone())),
            Core::Tool(tool) => {
                tool.get().refuse_quarantined()?;
                self.tool.set(tool.bind(py).clone());
            }
        }
        Ok(None)
    }

    /// Calls the middleware that `handler` leads to. Its result is run as a tool's is.
    fn begin_layer<'py>(
        &self,
        py: Python<'py>,
        handler: &NextHandler,
        keywords: &Bound<'py, PyAny>,
    ) -> PyResult<Given<'py>> {
        let Some(middleware) = handler.middleware(py) else { return Ok(Given::End) };
        let next = Bound::new(py, handler.further_in(py))?;
        self.is_layer.set(true);
        self.handler.set(next.clone().into_any());
        Ok(Given::Result(middleware.call1((keywords, next))?))
    }

    /// The handler that this call begins at, until it has begun.
    fn starting_handler<'py>(&self, py: Python<'py>) -> Option<Bound<'py, NextHandler>> {
        self.handler.get(py).filter(|_| !self.is_layer.get())?.cast_into().ok()
    }

    /// The handler that the middleware of this layer was given; `None` if the stream is not a layer, or over.
    fn given_handler<'py>(&self, py: Python<'py>) -> Option<Bound<'py, NextHandler>> {
        self.handler.get(py).filter(|_| self.is_layer.get())?.cast_into().ok()
    }

    /// Drops the streams that the middleware of an ended layer opened, but for those that `aclose` still waits for.
    #[cold]
    pub(super) fn release_opened(&self, py: Python<'_>) {
        if !self.given_handler(py).is_some_and(|next| attached(py, |py| next.get().release(py))) {
            self.handler.clear(py);
        }
    }

    /// True if the span of this stream is the one of its call: with middlewares around it, the outermost layer has that,
    /// and a tool that is called by itself has its own.
    pub(super) fn is_outermost(&self, py: Python<'_>) -> bool {
        self.toolkit.get(py).is_some() || self.tool_called_by_itself(py).is_some()
    }

    /// The tool that a stream without a toolkit is about to call.
    pub(super) fn tool_called_by_itself<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTool>> {
        let handler = self.starting_handler(py)?;
        match &handler.get().core {
            Core::Tool(tool) | Core::ViewTool(_, tool) if handler.get().middleware(py).is_none() => {
                Some(tool.bind(py).clone())
            }
            _ => None,
        }
    }

    /// The view that handed out the tool which a stream without a toolkit is about to call.
    pub(super) fn view_of_handler<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyToolkitView>> {
        match &self.starting_handler(py)?.get().core {
            Core::ViewTool(view, _) => Some(view.bind(py).clone()),
            _ => None,
        }
    }

    /// The permissions of the toolkit that this layer of a call belongs to; `None` if the stream is not a layer.
    pub(super) fn permissions_of_layer<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyPermissions>> {
        let next = self.given_handler(py)?;
        match &next.get().core {
            Core::Named(origin) => match Origin::of(origin.bind(py)).ok()? {
                Origin::Toolkit(toolkit) => Some(toolkit.get().permissions(py).clone()),
                Origin::View(view) => Some(view.get().toolkit(py).get().permissions(py).clone()),
            },
            Core::Tool(tool) | Core::ViewTool(_, tool) => Some(tool.get().permissions.bind(py).clone()),
        }
    }

    /// Ends a layer whose middleware gave no response: with an error, or in AgentScope's place as an empty stream that is logged.
    #[cold]
    pub(super) fn end_silent_layer<'py>(&self, py: Python<'py>) -> Step<'py> {
        let Some(next) = self.given_handler(py) else { return self.finalise_then_end(py, Ending::Over, None, None) };
        let error = errors::silent_middleware(&next.get().layer_name(py));
        if self.single || next.get().errors(py) != ErrorMode::Compat {
            return self.fail(py, error);
        }
        self.log_raised(py, self.tool(py).get(), &error);
        self.finalise_then_end(py, Ending::Over, None, None)
    }

    /// Closes, one after the other, the streams that the middleware left open; the future to wait for, if there is one.
    pub(super) fn close_opened<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let next = self.given_handler(py)?;
        while let Some(stream) = next.get().take_open(py, self.is_closed_by_consumer()) {
            let stream = stream.into_bound(py);
            if let Some(cancellation) = close::take_cancellation(&stream) {
                self.pass_on(py, cancellation);
                if !self.is_closed_by_consumer() {
                    next.get().watch(&stream);
                    continue;
                }
            }
            let iterator = match close::aclose(&stream).and_then(await_iter) {
                Ok(iterator) => iterator,
                Err(error) => {
                    self.note_closing_error(py, error);
                    continue;
                }
            };
            // A cancellation does not wait for the tool's thread; `aclose` does, now or later.
            if !self.is_closed_by_consumer() {
                next.get().watch(&stream);
                if self.is_cancelled() && close::leave_thread(&stream) {
                    continue;
                }
            }
            self.awaited.set(iterator.clone());
            self.phase.set(Phase::Closing);
            match send(&iterator, PyNone::get(py).as_any()) {
                Sent::Yielded(future) => return Some(future),
                Sent::Returned(_) => {}
                Sent::Raised(error) => self.note_closing_error(py, *error),
            }
        }
        None
    }

    /// True if the call ends because its consumer asked for that, by `aclose`.
    fn is_closed_by_consumer(&self) -> bool {
        self.cold.get().is_some_and(|cold| cold.ending.get() == Ending::Closed && !cold.leaves_threads.get())
    }

    /// True if the call ends because its task was cancelled.
    fn is_cancelled(&self) -> bool {
        self.cold.get().is_some_and(|cold| match cold.ending.get() {
            Ending::Interrupt => true,
            Ending::Raise => cold.cancel_thrown.get(),
            Ending::Closed => cold.leaves_threads.get(),
            Ending::Respond | Ending::Over => false,
        })
    }

    /// Lets the closing of this call, which is under way, not wait for threads. True if it has nothing else to wait for.
    pub(super) fn leave_thread(&self, py: Python<'_>) -> bool {
        if !self.is_layer() {
            return self.job().is_some();
        }
        let cold = self.cold();
        cold.leaves_threads.set(true);
        // The closing of a stream that the middleware handed on has begun; `aclose` may still wait for its thread later.
        if let Some(inner) = self.inner.get(py)
            && close::leave_thread(&inner)
        {
            self.awaited.clear(py);
            if let Some(next) = self.given_handler(py) {
                next.get().watch(&inner);
            }
        }
        false
    }

    /// A cancellation that was held back until its response is delivered must not be lost with a middleware that stops
    /// reading there.
    fn pass_on(&self, py: Python<'_>, cancellation: PyErr) {
        if !self.is_asked_to_cancel(py, false) {
            return;
        }
        let cold = self.cold();
        let ending = match cold.ending.get() {
            Ending::Respond if !self.single => Ending::Interrupt,
            Ending::Respond | Ending::Over => Ending::Raise,
            Ending::Interrupt | Ending::Raise | Ending::Closed => return,
        };
        cold.ending.set(ending);
        cold.error.set(cancellation.into_value(py).into_bound(py).into_any());
    }

    /// `aclose` of a layer: the middleware first, then the streams that it left open. The stream itself is awaited.
    pub(super) fn aclose_layer<'py>(&self, py: Python<'py>, me: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.close_inner(py)?.map(await_iter).transpose()? {
            Some(iterator) => self.awaited.set(iterator),
            None => self.awaited.clear(py),
        }
        self.cold().ending.set(Ending::Closed);
        self.cold().leaves_threads.set(false);
        self.phase.set(Phase::Closing);
        self.requested.set(true);
        Ok(me.clone())
    }
}

/// The inside of all layers.
enum Core {
    /// The tool of a toolkit, or of a view of one, that the request names.
    Named(Py<PyAny>),
    /// This tool, also while its group is off.
    Tool(Py<PyTool>),
    /// This tool, while the view shows it.
    ViewTool(Py<PyToolkitView>, Py<PyTool>),
}

impl Core {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Named(origin) => Self::Named(origin.clone_ref(py)),
            Self::Tool(tool) => Self::Tool(tool.clone_ref(py)),
            Self::ViewTool(view, tool) => Self::ViewTool(view.clone_ref(py), tool.clone_ref(py)),
        }
    }
}

/// Go on to the next layer of a call: the next middleware, or the tool.
///
/// Each call of it runs what is further in once more.
#[pyclass(name = "NextHandler", module = "toolcrib._core", frozen, weakref)]
pub(crate) struct NextHandler {
    core: Core,
    /// The middlewares of the whole call, outermost first, as they were when it began.
    stack: Py<PyTuple>,
    /// The one that is called next; one past the last is the core.
    depth: usize,
    /// The tool that stands for the middleware; see [`stub_tool`].
    stub: Py<PyTool>,
    /// The identity that the layers of the call share, if it was asked for.
    info: Option<Arc<CallInfo>>,
    opened: Mutex<Opened>,
}

/// The streams that a middleware was given.
#[derive(Default)]
struct Opened {
    streams: Vec<Py<PyAny>>,
    /// The layer has ended: it does not close streams that are opened from now on.
    is_over: bool,
}

impl NextHandler {
    fn new(core: Core, stack: Py<PyTuple>, depth: usize, stub: Py<PyTool>, info: Option<Arc<CallInfo>>) -> Self {
        Self { core, stack, depth, stub, info, opened: Mutex::default() }
    }

    /// The handler for the middleware that this one leads to.
    fn further_in(&self, py: Python<'_>) -> Self {
        let (stack, stub) = (self.stack.clone_ref(py), self.stub.clone_ref(py));
        Self::new(self.core.clone_ref(py), stack, self.depth + 1, stub, self.info.clone())
    }

    /// The view that the call comes through.
    fn view<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyToolkitView>> {
        match &self.core {
            Core::Named(origin) => origin.bind(py).cast::<PyToolkitView>().ok().cloned(),
            Core::ViewTool(view, _) => Some(view.bind(py).clone()),
            Core::Tool(_) => None,
        }
    }

    /// The middleware that this handler leads to; none if it leads to the core.
    fn middleware<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.stack.bind(py).get_item(self.depth).ok()
    }

    /// The name of the middleware that was given this handler.
    fn layer_name(&self, py: Python<'_>) -> String {
        let layer = self.depth.checked_sub(1).and_then(|index| self.stack.bind(py).get_item(index).ok());
        let Some(layer) = layer else { return String::new() };
        let name = layer.getattr_opt(intern!(py, "__qualname__")).ok().flatten();
        name.map_or_else(|| class_name(&layer), |name| name.to_string())
    }

    /// The treatment of errors in the toolkit of the call.
    fn errors(&self, py: Python<'_>) -> ErrorMode {
        match &self.core {
            Core::Named(origin) => match Origin::of(origin.bind(py)) {
                Ok(Origin::Toolkit(toolkit)) => toolkit.get().behaviour().errors,
                Ok(Origin::View(view)) => view.get().toolkit(py).get().behaviour().errors,
                Err(_) => ErrorMode::Raise,
            },
            Core::Tool(tool) | Core::ViewTool(_, tool) => tool.get().errors,
        }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out a stream that was left open, or `with_threads` one whose thread has not ended. One that another task waits for
    /// is that task's to finish.
    fn take_open(&self, py: Python<'_>, with_threads: bool) -> Option<Py<PyAny>> {
        let is_open =
            |stream: &Bound<'_, PyAny>| close::is_abandoned(stream) || with_threads && close::is_outlived(stream);
        let mut opened = self.opened();
        let index = opened.streams.iter().position(|stream| is_open(stream.bind(py)))?;
        Some(opened.streams.swap_remove(index))
    }

    /// Drops the streams, but for those whose thread has not ended: `aclose` waits for these. True if there are any.
    pub(super) fn release(&self, py: Python<'_>) -> bool {
        let (is_outlived, others) = {
            let mut opened = self.opened();
            opened.is_over = true;
            let streams = std::mem::take(&mut opened.streams);
            let (outlived, others): (Vec<_>, Vec<_>) =
                streams.into_iter().partition(|stream| close::is_outlived(stream.bind(py)));
            opened.streams = outlived;
            (!opened.streams.is_empty(), others)
        };
        drop(others);
        is_outlived
    }

    /// Drops all streams.
    fn clear(&self) {
        let streams = std::mem::take(&mut self.opened().streams);
        drop(streams);
    }

    /// Keeps a stream until the layer ends, in place of those that have come to their end.
    fn watch(&self, stream: &Bound<'_, PyAny>) {
        let py = stream.py();
        let ended: Vec<_> = {
            let mut opened = self.opened();
            if opened.is_over {
                return;
            }
            let is_over = |stream: &Bound<'_, PyAny>| close::is_over(stream) && !close::is_outlived(stream);
            let (ended, mut open): (Vec<_>, Vec<_>) =
                std::mem::take(&mut opened.streams).into_iter().partition(|stream| is_over(stream.bind(py)));
            open.push(stream.clone().unbind());
            opened.streams = open;
            ended
        };
        drop(ended);
    }

    /// A stream that begins at this layer.
    fn open<'py>(slf: &Bound<'py, Self>, request: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        object::new(slf.py(), || State::within(slf.clone(), request))
    }

    /// The request out of the keywords that reach the core.
    fn request<'py>(keywords: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = keywords.py();
        let Some(request) = keywords.get_item(intern!(py, "tool_call"))? else {
            return Err(PyTypeError::new_err("next_handler() missing the keyword argument 'tool_call'"));
        };
        for name in keywords.keys() {
            if !name.eq(intern!(py, "tool_call"))? {
                return Err(PyTypeError::new_err(format!(
                    "next_handler() got an unexpected keyword argument '{name}': no middleware further in takes it, and the \
                     tool is called with 'tool_call' alone"
                )));
            }
        }
        if !is_readable(&request) {
            return Err(PyTypeError::new_err(NO_CALL));
        }
        Ok(request)
    }
}

#[pymethods]
impl NextHandler {
    /// Give the stream of the next layer, which runs when it is iterated.
    #[pyo3(signature = (**kwargs))]
    fn __call__<'py>(slf: &Bound<'py, Self>, kwargs: Option<Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let keywords = kwargs.unwrap_or_else(|| PyDict::new(py));
        let is_core = slf.get().middleware(py).is_none();
        let request = if is_core { Self::request(&keywords)? } else { keywords.into_any() };
        let stream = Self::open(slf, request)?;
        slf.get().watch(&stream);
        Ok(stream)
    }

    /// The name of the caller.
    #[getter]
    fn caller(&self, py: Python<'_>) -> Option<String> {
        self.view(py)?.get().caller().map(ToString::to_string)
    }

    /// The session that the call is part of.
    #[getter]
    fn session<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PySession>> {
        PyToolkitView::session_object(&self.view(py)?)
    }

    /// The dependencies of the session.
    #[getter]
    fn deps(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.session(py)?.get().deps(py)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.core {
            Core::Named(origin) => visit.call(origin)?,
            Core::Tool(tool) => visit.call(tool)?,
            Core::ViewTool(view, tool) => {
                visit.call(view)?;
                visit.call(tool)?;
            }
        }
        visit.call(&self.stack)?;
        visit.call(&self.stub)?;
        // A thread that holds the lock is using the handler, which is then not garbage.
        if let Ok(opened) = self.opened.try_lock() {
            opened.streams.iter().try_for_each(|stream| visit.call(stream))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.clear();
    }
}

/// The stream of one tool with these arguments, with a middleware around it or not.
pub(crate) fn stream_of<'py>(
    tool: &Bound<'py, PyTool>,
    arguments: &Bound<'py, PyAny>,
    around: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    open_core(Core::Tool(tool.clone().unbind()), tool.get(), arguments, around)
}

/// The same for a tool of a view: it runs only while the view shows it, and for the view's caller.
pub(crate) fn stream_through<'py>(
    view: &Bound<'py, PyToolkitView>,
    tool: &Bound<'py, PyTool>,
    arguments: &Bound<'py, PyAny>,
    around: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    open_core(Core::ViewTool(view.clone().unbind(), tool.clone().unbind()), tool.get(), arguments, around)
}

fn open_core<'py>(
    core: Core,
    tool: &PyTool,
    arguments: &Bound<'py, PyAny>,
    around: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = arguments.py();
    let request = block(PyString::new(py, &tool.name).as_any(), arguments)?;
    let stack = PyTuple::new(py, around.as_slice())?.unbind();
    let stub = match &tool.response_class {
        Some(class) if around.is_some() => make_stub(py, tool.errors, Some(class.clone_ref(py)))?,
        _ => stub_tool(py, tool.errors)?,
    };
    let handler = Bound::new(py, NextHandler::new(core, stack, 0, stub, None))?;
    let request = if around.is_some() { keywords(request.into_any())?.into_any() } else { request.into_any() };
    NextHandler::open(&handler, request)
}

/// The arguments of a middleware.
fn keywords(request: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyDict>> {
    let keywords = PyDict::new(request.py());
    keywords.set_item(intern!(request.py(), "tool_call"), request)?;
    Ok(keywords)
}

/// The tool that stands for a middleware: nothing is postprocessed, collected or timed; an exception is answered or raised.
pub(crate) fn stub_tool(py: Python<'_>, errors: ErrorMode) -> PyResult<Py<PyTool>> {
    static ANSWERING: GilOnce<Py<PyTool>> = GilOnce::new();
    static RAISING: GilOnce<Py<PyTool>> = GilOnce::new();
    let cell = if errors == ErrorMode::Respond { &ANSWERING } else { &RAISING };
    Ok(cell.get_or_try_init(py, || make_stub(py, errors, None))?.clone_ref(py))
}

/// Makes such a tool, whose responses may be those of another library.
pub(crate) fn make_stub(
    py: Python<'_>,
    errors: ErrorMode,
    response_class: Option<ResponseClass>,
) -> PyResult<Py<PyTool>> {
    let errors = if errors == ErrorMode::Respond { ErrorMode::Respond } else { ErrorMode::Raise };
    let function = py.eval(c"lambda: None", None, None)?;
    let options = ToolOptions { name: Some("middleware".to_owned()), response_class, ..ToolOptions::default() };
    let draft = ToolDraft::new(&function, options)?;
    let group = Registry::<()>::default().group("basic")?;
    let permissions = Py::new(py, PyPermissions::default())?;
    let behaviour = Behaviour { errors, chunks: ChunkRule::AsGiven, ..Behaviour::default() };
    Py::new(py, draft.finish(py, "middleware".into(), group.into(), behaviour, permissions, false)?)
}
