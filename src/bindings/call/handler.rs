//! `next_handler`: what a middleware calls to go on to the next layer, and what it may have left open there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::case::Case;
use super::python::object;
use super::reading::{NO_CALL, is_readable};
use super::start::block;
use super::state::State;
use crate::bindings::desk::PyDesk;
use crate::bindings::register::{Behaviour, Draft, Wishes};
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::call::ErrorMode;
use crate::registry::Registry;

/// What is inside of all layers.
pub(super) enum Core {
    /// Whichever tool of a toolkit, or of a view of one, the request names.
    Counter(Py<PyAny>),
    /// This one, whether its group is on or not.
    Tool(Py<PyTool>),
    /// This one as a view shows it, while it does.
    Shown(Py<PyToolkitView>, Py<PyTool>),
}

impl Core {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Counter(counter) => Self::Counter(counter.clone_ref(py)),
            Self::Tool(tool) => Self::Tool(tool.clone_ref(py)),
            Self::Shown(view, tool) => Self::Shown(view.clone_ref(py), tool.clone_ref(py)),
        }
    }
}

/// Go on to the next layer of a call: the next middleware, or the tool.
///
/// Each call of it runs what is further in once more.
#[pyclass(name = "NextHandler", module = "toolcrib._core", frozen, weakref)]
pub(crate) struct NextHandler {
    pub(super) core: Core,
    /// The middlewares of the whole call, outermost first, as they were when it began.
    pub(super) stack: Py<PyTuple>,
    /// The one that is called next; one past the last is the core.
    pub(super) depth: usize,
    /// What a layer has in place of a tool.
    pub(super) conduct: Py<PyTool>,
    /// What the layers of the call share, if it was asked for.
    pub(super) case: Option<Arc<Case>>,
    opened: Mutex<Opened>,
}

/// The streams that a middleware was given.
#[derive(Default)]
struct Opened {
    streams: Vec<Py<PyAny>>,
    /// The layer has ended: what is opened from now on is nobody's to close.
    is_over: bool,
}

impl NextHandler {
    pub(super) fn new(
        core: Core,
        stack: Py<PyTuple>,
        depth: usize,
        conduct: Py<PyTool>,
        case: Option<Arc<Case>>,
    ) -> Self {
        Self { core, stack, depth, conduct, case, opened: Mutex::default() }
    }

    /// The handler for the middleware that this one leads to.
    pub(super) fn further_in(&self, py: Python<'_>) -> Self {
        let (stack, conduct) = (self.stack.clone_ref(py), self.conduct.clone_ref(py));
        Self::new(self.core.clone_ref(py), stack, self.depth + 1, conduct, self.case.clone())
    }

    /// The middleware that this handler leads to; none if it leads to the core.
    pub(super) fn middleware<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.stack.bind(py).get_item(self.depth).ok()
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out a stream that was left open. One that another task waits for is that task's to finish.
    pub(super) fn take_open(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let mut opened = self.opened();
        let index = opened.streams.iter().position(|stream| object::is_abandoned(stream.bind(py)))?;
        Some(opened.streams.swap_remove(index))
    }

    /// Lets go of the streams.
    pub(super) fn release(&self) {
        let streams = {
            let mut opened = self.opened();
            opened.is_over = true;
            std::mem::take(&mut opened.streams)
        };
        drop(streams);
    }

    /// Keeps a stream in mind until the layer ends, in place of those that have come to their end.
    fn watch(&self, stream: &Bound<'_, PyAny>) {
        let py = stream.py();
        let ended: Vec<_> = {
            let mut opened = self.opened();
            if opened.is_over {
                return;
            }
            let (ended, mut open): (Vec<_>, Vec<_>) =
                std::mem::take(&mut opened.streams).into_iter().partition(|stream| object::is_over(stream.bind(py)));
            open.push(stream.clone().unbind());
            opened.streams = open;
            ended
        };
        drop(ended);
    }

    /// A stream that begins at this layer.
    fn open<'py>(slf: &Bound<'py, Self>, request: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let state = State::within(slf.clone().into_any().into_ptr(), request.into_ptr());
        // SAFETY: the thread is attached; the object is owned or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), object::new(state)) }
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

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.core {
            Core::Counter(counter) => visit.call(counter)?,
            Core::Tool(tool) => visit.call(tool)?,
            Core::Shown(view, tool) => {
                visit.call(view)?;
                visit.call(tool)?;
            }
        }
        visit.call(&self.stack)?;
        visit.call(&self.conduct)?;
        // A thread that holds the lock is using the handler, which is then not garbage.
        if let Ok(opened) = self.opened.try_lock() {
            opened.streams.iter().try_for_each(|stream| visit.call(stream))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.release();
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
    open_core(Core::Shown(view.clone().unbind(), tool.clone().unbind()), tool.get(), arguments, around)
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
    let conduct = conduct(py, tool.errors)?;
    let handler = Bound::new(py, NextHandler::new(core, stack, 0, conduct, None))?;
    let request = if around.is_some() { keywords(request.into_any())?.into_any() } else { request.into_any() };
    NextHandler::open(&handler, request)
}

/// What a middleware is called with.
pub(super) fn keywords(request: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyDict>> {
    let keywords = PyDict::new(request.py());
    keywords.set_item(intern!(request.py(), "tool_call"), request)?;
    Ok(keywords)
}

/// What a layer has in place of a tool: nothing is postprocessed and nothing timed; an exception is answered or raised.
pub(super) fn conduct(py: Python<'_>, errors: ErrorMode) -> PyResult<Py<PyTool>> {
    static ANSWERING: PyOnceLock<Py<PyTool>> = PyOnceLock::new();
    static RAISING: PyOnceLock<Py<PyTool>> = PyOnceLock::new();
    let (cell, errors) = match errors {
        ErrorMode::Respond => (&ANSWERING, ErrorMode::Respond),
        ErrorMode::Raise | ErrorMode::Compat => (&RAISING, ErrorMode::Raise),
    };
    let made = cell.get_or_try_init(py, || {
        let function = py.eval(c"lambda: None", None, None)?;
        let draft = Draft::new(&function, Wishes { name: Some("middleware".to_owned()), ..Wishes::default() })?;
        let group = Registry::<()>::default().group("basic")?;
        let desk = Py::new(py, PyDesk::default())?;
        let behaviour = Behaviour { errors, ..Behaviour::default() };
        Py::new(py, draft.finish(py, "middleware", group, behaviour, desk, false)?)
    })?;
    Ok(made.clone_ref(py))
}
