//! One call under way: its fields and its phase. The steps that it takes are in [`step`](super::step).
//!
//! Everything is in cells behind a shared reference. No Rust borrow lives across a call into Python, because the tool
//! may come back to the same stream while it runs.

use std::cell::{Cell, OnceCell};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::cold::Cold;
use super::middleware::NextHandler;
use super::python::slot::{OnceSlot, Slot};
use crate::bindings::tool::PyTool;
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::view::PyToolkitView;
use crate::bindings::worker::Job;
use crate::call::Reply;

/// The stage that a call has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not awaited and not iterated: `await` gives the stream itself.
    Fresh,
    /// Nothing has run.
    Ready,
    /// Nothing has run; the tool is known, and its bound arguments are in the cold state.
    Admitted,
    /// Nothing has run; `awaited` drives the question to the approver, which is in the cold state, or a decision is being stored.
    Approval,
    /// `inner` is a coroutine (or another awaitable's iterator) that gives the one result.
    Coroutine,
    /// `inner` is an async generator; `awaited` is its step under way, unless the short way is taken.
    AsyncGenerator,
    /// `inner` is a generator that runs inline.
    Generator,
    /// A worker thread does the work.
    Job,
    /// `awaited` is the coroutine of a postprocess function; the response it works on is in the cold state.
    Postprocess,
    /// `awaited` finalises the tool's async generator; the ending is known.
    Closing,
    /// The interrupted response was delivered; the next step raises the cancellation.
    Cancelled,
    /// Over.
    Done,
}

/// The outcome of one step.
pub(super) enum Step<'py> {
    /// The event loop has to wait for this.
    Suspend(Bound<'py, PyAny>),
    /// A response.
    Chunk(Bound<'py, PyAny>),
    /// The bare value of the call, for which no response was made.
    Value(Bound<'py, PyAny>),
    /// There are no more responses.
    End,
    /// The step raises this. In a box, so that a step fits into two registers.
    Raise(Box<PyErr>),
}

impl Step<'_> {
    #[cold]
    pub(super) fn raise(error: PyErr) -> Self {
        Self::Raise(Box::new(error))
    }
}

/// The end of a call before its tool has given anything.
pub(super) enum Early<'py> {
    /// The model is answered.
    Reply(Box<Reply>),
    /// The developer gets an exception.
    Raise(Box<PyErr>),
    /// The stage has ended the call itself.
    Step(Step<'py>),
    /// The call waits for an approver or a write, in the phase that was set.
    Wait,
}

impl From<PyErr> for Early<'_> {
    fn from(error: PyErr) -> Self {
        Self::Raise(Box::new(error))
    }
}

impl From<Reply> for Early<'_> {
    fn from(answer: Reply) -> Self {
        Self::Reply(Box::new(answer))
    }
}

/// The result of resuming a stream, in the terms of a coroutine.
pub(crate) enum Resumed<'py> {
    /// The event loop has to wait for this.
    Yield(Bound<'py, PyAny>),
    /// The awaited result.
    Return(Bound<'py, PyAny>),
    /// The iteration is over.
    Stop,
    /// An exception.
    Raise(Box<PyErr>),
}

/// The way that a call ends once its tool's generator is finalised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With `response`.
    Respond,
    /// With `response`, and then the cancellation in `error`.
    Interrupt,
    /// With `error`.
    Raise,
    /// Without another response.
    Over,
    /// Without a word: the consumer asked for the end.
    Closed,
}

/// The toolkit that a call goes to, or the view of one.
pub(super) enum Origin<'py> {
    Toolkit(Bound<'py, PyToolkit>),
    View(Bound<'py, PyToolkitView>),
}

impl<'py> Origin<'py> {
    /// The origin that an object is.
    pub(super) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(view) = object.cast::<PyToolkitView>() {
            return Ok(Self::View(view.clone()));
        }
        Ok(Self::Toolkit(object.cast::<PyToolkit>()?.clone()))
    }

    /// The places of a state that it fills.
    #[inline(always)]
    fn slots(self) -> (OnceSlot<PyToolkit>, OnceSlot<PyToolkitView>) {
        match self {
            Self::Toolkit(toolkit) => (OnceSlot::holding(toolkit), OnceSlot::empty()),
            Self::View(view) => (OnceSlot::holding(view.get().toolkit(view.py()).clone()), OnceSlot::holding(view)),
        }
    }
}

/// Clears the mark of a running call.
pub(super) struct Running<'a>(&'a Cell<bool>);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// One call under way.
pub(crate) struct State {
    /// The toolkit; empty in a call that begins at a handler, until it has reached the toolkit.
    pub(super) toolkit: OnceSlot<PyToolkit>,
    /// The view of the toolkit that the call comes through.
    pub(super) view: OnceSlot<PyToolkitView>,
    pub(super) tool: OnceSlot<PyTool>,
    /// The request as it came: a mapping. For `Toolkit.call` the tool's name.
    pub(super) request: Slot,
    /// The arguments of `Toolkit.call`.
    pub(super) arguments: Slot,
    /// The tool's coroutine or generator.
    pub(super) inner: Slot,
    /// The iterator of the awaitable that is under way besides the tool itself.
    pub(super) awaited: Slot,
    /// The response delivered last by a generator.
    pub(super) last: Slot,
    /// The result so far of a generator whose chunks are collected.
    pub(super) whole: Slot,
    pub(super) phase: Cell<Phase>,
    /// The phase after `Postprocess`.
    pub(super) resume: Cell<Phase>,
    /// A step was asked for and is not finished.
    pub(super) requested: Cell<bool>,
    /// An `await` of the stream has begun and is not over, the one use of its synchronous iterator.
    pub(super) awaiting: Cell<bool>,
    /// The tool's own code is on the stack.
    pub(super) running: Cell<bool>,
    /// Awaiting gives the last response instead of a stream.
    pub(super) single: bool,
    /// Awaiting gives the bare value instead of the last response, so that `single` is true as well.
    pub(super) bare: bool,
    /// The async generator has met the event loop's hooks, so that the short way is open.
    pub(super) hooked: Cell<bool>,
    /// A generator has given something.
    pub(super) delivered: Cell<bool>,
    /// The number of cancellation requests of the task when the call first gave way to the event loop.
    pub(super) cancelling: Cell<Option<usize>>,
    pub(super) suspended: Cell<bool>,
    /// The call is a layer: a middleware runs in place of the tool.
    pub(super) is_layer: Cell<bool>,
    /// The handler that the call begins at; in a layer the one that its middleware was given. Not in `cold`, whose state is
    /// asked for in every step.
    pub(super) handler: Slot,
    pub(super) cold: OnceCell<Box<Cold>>,
}

impl State {
    /// A call that will read its request when it starts.
    #[inline]
    pub(super) fn stream(origin: Origin<'_>, request: Bound<'_, PyAny>) -> Self {
        let (toolkit, view) = origin.slots();
        Self { toolkit, view, ..Self::new(request, false) }
    }

    /// A call whose awaiting gives the last response, or else the bare value.
    #[inline]
    pub(super) fn single(
        origin: Origin<'_>,
        name: Bound<'_, PyString>,
        arguments: Bound<'_, PyDict>,
        bare: bool,
    ) -> Self {
        let (toolkit, view) = origin.slots();
        let arguments = Slot::holding(arguments.into_any());
        Self { toolkit, view, arguments, bare, ..Self::new(name.into_any(), true) }
    }

    /// A call that begins where a handler points to.
    pub(super) fn within(handler: Bound<'_, NextHandler>, request: Bound<'_, PyAny>) -> Self {
        Self { handler: Slot::holding(handler.into_any()), ..Self::new(request, false) }
    }

    #[inline(always)]
    fn new(request: Bound<'_, PyAny>, single: bool) -> Self {
        Self {
            toolkit: OnceSlot::empty(),
            view: OnceSlot::empty(),
            tool: OnceSlot::empty(),
            request: Slot::holding(request),
            arguments: Slot::empty(),
            inner: Slot::empty(),
            awaited: Slot::empty(),
            last: Slot::empty(),
            whole: Slot::empty(),
            phase: Cell::new(if single { Phase::Ready } else { Phase::Fresh }),
            resume: Cell::new(Phase::Done),
            requested: Cell::new(single),
            awaiting: Cell::new(false),
            running: Cell::new(false),
            single,
            bare: false,
            hooked: Cell::new(false),
            delivered: Cell::new(false),
            cancelling: Cell::new(None),
            suspended: Cell::new(false),
            is_layer: Cell::new(false),
            handler: Slot::empty(),
            cold: OnceCell::new(),
        }
    }

    /// The call that does the work of this one in the background: of the same request and tool, and with arguments that
    /// are bound already. Awaiting it gives the last response.
    pub(super) fn in_background<'py>(
        &self,
        py: Python<'py>,
        arguments: Bound<'py, PyTuple>,
        keywords: Option<Bound<'py, PyDict>>,
    ) -> Self {
        let request = self.request.get(py).unwrap_or_else(|| py.None().into_bound(py));
        let state = Self::new(request, true);
        if let Some(toolkit) = self.toolkit.get(py) {
            state.toolkit.set(toolkit.to_owned());
        }
        if let Some(view) = self.view.get(py) {
            state.view.set(view.to_owned());
        }
        if let Some(tool) = self.tool.get(py) {
            state.tool.set(tool.to_owned());
        }
        state.phase.set(Phase::Admitted);
        state.cold().bound.replace(Some((arguments.unbind(), keywords.map(Bound::unbind))));
        state.cold().in_background.set(true);
        if let Some(cold) = self.cold.get() {
            // The context among the arguments reports to the stream that does the work.
            cold.port.take(py).into_iter().for_each(|port| state.cold().port.set(port));
        }
        state.cold().attempt.replace(self.cold.get().and_then(|cold| cold.attempt.take()));
        if let Some(budgets) = self.cold.get().and_then(|cold| cold.budgets.take(py)) {
            state.cold().budgets.set(budgets);
        }
        state
    }

    /// Fills in the toolkit, and the view if the call comes through one.
    #[inline]
    pub(super) fn set_origin(&self, origin: Origin<'_>) {
        match origin {
            Origin::Toolkit(toolkit) => self.toolkit.set(toolkit),
            Origin::View(view) => {
                self.toolkit.set(view.get().toolkit(view.py()).clone());
                self.view.set(view);
            }
        }
    }

    /// The view that the call comes through, or else its toolkit.
    pub(super) fn origin<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self.view.get(py) {
            Some(view) => Some(view.to_owned().into_any()),
            None => self.toolkit.get(py).map(|toolkit| toolkit.to_owned().into_any()),
        }
    }

    /// The tool, in a phase that is entered only when it is known.
    #[inline]
    #[allow(clippy::expect_used, reason = "a defect of ours, which the stream's slots answer with InternalError")]
    pub(super) fn tool<'py>(&self, py: Python<'py>) -> Borrowed<'_, 'py, PyTool> {
        self.tool.get(py).expect("a call that runs has found its tool")
    }

    /// The arguments of `Toolkit.call`.
    #[inline]
    pub(super) fn keywords<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDict>> {
        self.arguments.get(py)?.cast_into::<PyDict>().ok()
    }

    /// True for a layer, which has to close the streams that its middleware opened.
    #[inline(always)]
    pub(super) fn is_layer(&self) -> bool {
        self.is_layer.get() && !self.handler.is_empty()
    }

    pub(super) fn cold(&self) -> &Cold {
        self.cold.get_or_init(Box::default)
    }

    /// True for a call by `Toolkit.call` or `Toolkit.value` that was never awaited.
    #[inline]
    pub(super) fn is_unawaited(&self) -> bool {
        self.single && self.phase.get() == Phase::Ready && !self.awaiting.get()
    }

    /// True while a step is awaited or its code is on the stack.
    pub(crate) fn is_busy(&self) -> bool {
        self.requested.get() || self.running.get()
    }

    /// Marks the call as running until the guard is dropped. All of a step is marked, because all of it may run Python
    /// code that knows this stream: the tool, a postprocess function, the methods of what they give.
    #[inline]
    pub(super) fn enter(&self) -> Running<'_> {
        self.running.set(true);
        Running(&self.running)
    }

    /// Drops what may be part of a reference cycle; for the collector. The class, the toolkit and the tool stay until
    /// the stream is deallocated: the cycles through those have other members that the collector can clear.
    pub(crate) fn clear(&self, py: Python<'_>) {
        self.abandon(py);
        self.finish(py);
        if let Some(cold) = self.cold.get() {
            cold.clear(py);
        }
        self.handler.clear(py);
        self.last.clear(py);
    }

    /// The objects held, for the collector, but for those of the job.
    pub(crate) fn objects(&self, py: Python<'_>) -> impl Iterator<Item = *mut PyObject> + use<> {
        let slots =
            [&self.request, &self.arguments, &self.inner, &self.awaited, &self.last, &self.whole, &self.handler];
        let slots = slots.map(Slot::visited);
        let typed = [self.toolkit.visited(), self.view.visited(), self.tool.visited()];
        let cold = self.cold.get().map(|cold| cold.objects(py));
        slots.into_iter().chain(typed).chain(cold.into_iter().flatten()).filter(|object| !object.is_null())
    }

    /// The name that asyncio shows for the task that runs the call.
    pub(crate) fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.tool.get(py).as_ref().map_or("tool call", |tool| &tool.get().name))
    }

    /// The work in a worker thread.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.cold.get()?.job.get()
    }
}
