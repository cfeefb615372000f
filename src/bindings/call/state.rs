//! One call under way: what it holds, where it stands, and the step it takes when the event loop comes by.
//!
//! Everything is in cells behind a shared reference. No Rust borrow lives across a call into Python, because the tool
//! may come back to the same stream while it runs.

use std::cell::{Cell, OnceCell};
use std::ptr;

use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::prelude::*;

use super::gate;
use super::python::slot::Slot;
use super::python::stop;
use super::rare::Rare;
use crate::bindings::tool::PyTool;

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not awaited and not iterated: `await` gives the stream itself.
    Fresh,
    /// Nothing has run.
    Ready,
    /// Nothing has run; `tool` is filled, and its bound arguments are in `pending` and `last`.
    Admitted,
    /// Nothing has run; `pending` drives the question whether it may, which is among the rare things.
    Approval,
    /// `inner` is a coroutine (or another awaitable's iterator) that gives the one result.
    Coroutine,
    /// `inner` is an async generator; `pending` is its step under way, unless the short way is taken.
    AsyncGenerator,
    /// `inner` is a generator that runs inline.
    Generator,
    /// A worker thread does the work.
    Job,
    /// `pending` is the coroutine of a postprocess function; the response it works on is among the rare things.
    Postprocess,
    /// `pending` finalises the tool's async generator; the ending is known.
    Closing,
    /// The interrupted response was delivered; the next step raises the cancellation.
    Cancelled,
    /// Over.
    Done,
}

/// What one step came to. Objects are owned.
pub(super) enum Step {
    /// The event loop has to wait for this.
    Suspend(*mut PyObject),
    /// A response.
    Chunk(*mut PyObject),
    /// There are no more responses.
    End,
    /// A Python exception is set.
    Raise,
}

/// What a slot answers to the interpreter.
pub(super) type Out = (PySendResult, *mut PyObject);

pub(super) const ERROR: Out = (PySendResult::PYGEN_ERROR, ptr::null_mut());

/// Takes the mark of a running call back.
pub(super) struct Running<'a>(&'a Cell<bool>);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// One call under way.
pub(super) struct State {
    /// The toolkit, or the view of one. Empty in a call that begins further in than at the outermost layer: until the
    /// start, its handler is in `last`.
    pub(super) toolkit: Slot,
    /// The request as it came: a mapping. For `Toolkit.call` the tool's name; until the start, the names of the arguments are
    /// in `last` and their values in `pending`.
    pub(super) call: Slot,
    pub(super) tool: Slot,
    pub(super) inner: Slot,
    pub(super) pending: Slot,
    /// The response delivered last by a generator.
    pub(super) last: Slot,
    pub(super) phase: Cell<Phase>,
    /// The phase after `Postprocess`.
    pub(super) resume: Cell<Phase>,
    /// A step was asked for and is not finished.
    pub(super) armed: Cell<bool>,
    /// The tool's own code is on the stack.
    pub(super) running: Cell<bool>,
    /// Awaiting gives the last response instead of a stream.
    pub(super) single: bool,
    /// The async generator has met the event loop's hooks, so that the short way is open.
    pub(super) hooked: Cell<bool>,
    /// A generator has given something.
    pub(super) delivered: Cell<bool>,
    /// How often the task had been asked to cancel when the call first gave way to the event loop.
    pub(super) cancelling: Cell<Option<usize>>,
    pub(super) suspended: Cell<bool>,
    pub(super) rare: OnceCell<Box<Rare>>,
}

impl State {
    /// A call of `toolkit` that will read its request when it starts. Takes the references.
    pub(super) fn stream(toolkit: *mut PyObject, call: *mut PyObject) -> Self {
        Self::new(toolkit, call, false)
    }

    /// A call whose awaiting gives the last response. Takes the references.
    pub(super) fn single(
        toolkit: *mut PyObject,
        tool: *mut PyObject,
        names: *mut PyObject,
        values: *mut PyObject,
    ) -> Self {
        let state = Self::new(toolkit, tool, true);
        state.last.set(names);
        state.pending.set(values);
        state
    }

    /// A call that begins where a handler points to. Takes the references.
    pub(super) fn within(handler: *mut PyObject, request: *mut PyObject) -> Self {
        let state = Self::new(ptr::null_mut(), request, false);
        state.last.set(handler);
        state
    }

    #[inline]
    pub(super) fn new(toolkit: *mut PyObject, call: *mut PyObject, single: bool) -> Self {
        Self {
            toolkit: Slot::owning(toolkit),
            call: Slot::owning(call),
            tool: Slot::empty(),
            inner: Slot::empty(),
            pending: Slot::empty(),
            last: Slot::empty(),
            phase: Cell::new(if single { Phase::Ready } else { Phase::Fresh }),
            resume: Cell::new(Phase::Done),
            armed: Cell::new(single),
            running: Cell::new(false),
            single,
            hooked: Cell::new(false),
            delivered: Cell::new(false),
            cancelling: Cell::new(None),
            suspended: Cell::new(false),
            rare: OnceCell::new(),
        }
    }

    /// The tool that was found.
    ///
    /// # Safety
    /// `tool` is filled, as it is in every phase between `Ready` and `Done`.
    #[inline]
    pub(super) unsafe fn tool(&self) -> &PyTool {
        // SAFETY: `start` puts only instances of `PyTool` there, the class is frozen, and the slot keeps it alive.
        unsafe {
            let py = Python::assume_attached();
            let tool = Bound::from_borrowed_ptr(py, self.tool.get());
            &*ptr::from_ref(tool.cast_unchecked::<PyTool>().get())
        }
    }

    pub(super) fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    /// Asks for the next response: `__anext__`. What there is to say to that, also that the stream is over, is said when the
    /// step is awaited; false when somebody else waits for one.
    #[inline]
    pub(super) fn arm(&self) -> bool {
        if self.single || self.armed.replace(true) {
            return false;
        }
        if self.phase.get() == Phase::Fresh {
            self.phase.set(Phase::Ready);
        }
        true
    }

    /// The event loop comes by: goes on until the next response or the next wait.
    ///
    /// # Safety
    /// The thread is attached; `me` is the object this state belongs to.
    #[inline]
    pub(super) unsafe fn send(&self, me: *mut PyObject, value: *mut PyObject) -> Out {
        // SAFETY: as for the caller.
        unsafe {
            if self.running.get() {
                let message = c"the tool call is already executing";
                ffi::PyErr_SetString(ffi::PyExc_ValueError, message.as_ptr());
                return ERROR;
            }
            if self.phase.get() == Phase::Fresh {
                self.phase.set(Phase::Ready);
                return (PySendResult::PYGEN_RETURN, ffi::Py_NewRef(me));
            }
            if !self.armed.get() {
                let message = c"cannot reuse already awaited tool call";
                ffi::PyErr_SetString(ffi::PyExc_RuntimeError, message.as_ptr());
                return ERROR;
            }
            let step = self.guarded_step(value);
            self.conclude(step)
        }
    }

    /// Turns what a step came to into what the interpreter is told.
    ///
    /// # Safety
    /// The thread is attached.
    #[inline]
    pub(super) unsafe fn conclude(&self, mut step: Step) -> Out {
        // SAFETY: as for the caller; owned objects are passed on or kept.
        unsafe {
            loop {
                match step {
                    Step::Suspend(future) => {
                        if !self.suspended.get() {
                            self.note_suspension();
                        }
                        return (PySendResult::PYGEN_NEXT, future);
                    }
                    Step::Chunk(response) if self.single => {
                        self.last.set(response);
                        step = self.guarded_step(ffi::Py_None());
                    }
                    Step::Chunk(response) => {
                        self.disarm();
                        return (PySendResult::PYGEN_RETURN, response);
                    }
                    Step::End => {
                        self.disarm();
                        if self.single {
                            return (PySendResult::PYGEN_RETURN, self.last.take());
                        }
                        stop::async_iteration();
                        return ERROR;
                    }
                    Step::Raise => {
                        self.disarm();
                        return ERROR;
                    }
                }
            }
        }
    }

    /// Whether somebody waits for this call, or its code is on the stack.
    pub(super) fn is_busy(&self) -> bool {
        self.armed.get() || self.running.get()
    }

    #[inline]
    unsafe fn disarm(&self) {
        self.armed.set(false);
        if self.suspended.replace(false)
            && let Some(rare) = self.rare.get()
        {
            rare.deadline.pause();
        }
    }

    #[inline]
    unsafe fn guarded_step(&self, value: *mut PyObject) -> Step {
        let _running = self.enter();
        // SAFETY: as for the caller.
        unsafe {
            let step = self.step(value);
            if let Some(rare) = self.rare.get() { self.with_repairs(rare, step) } else { step }
        }
    }

    /// Marks the call as running until the guard is dropped. All of a step is marked, because all of it may run Python
    /// code that knows this stream: the tool, a postprocess function, the methods of what they give.
    #[inline]
    pub(super) fn enter(&self) -> Running<'_> {
        self.running.set(true);
        Running(&self.running)
    }

    #[inline]
    pub(super) unsafe fn step(&self, value: *mut PyObject) -> Step {
        // SAFETY: each phase's invariants are set by whoever entered it.
        unsafe {
            if let Some(rare) = self.rare.get()
                && let Some(step) = self.step_rarely(rare, value)
            {
                return step;
            }
            match self.phase.get() {
                Phase::Ready => {
                    if !gate::is_quiet()
                        && let Some(step) = self.start_in_span()
                    {
                        return step;
                    }
                    self.start()
                }
                Phase::Admitted => self.start_admitted(),
                Phase::Approval => self.step_approval(value),
                Phase::Coroutine => self.step_coroutine(value),
                Phase::AsyncGenerator => self.step_async_generator(value),
                Phase::Generator => self.step_generator(value),
                Phase::Job => self.step_job(),
                Phase::Postprocess => self.step_postprocess(value),
                Phase::Closing => self.step_closing(value),
                Phase::Cancelled => {
                    self.raise_cancellation();
                    Step::Raise
                }
                Phase::Fresh | Phase::Done => Step::End,
            }
        }
    }

    /// A step as few calls take it: inside a span, or asked for by `asend` or `athrow`. None if this one is like the others.
    #[cold]
    unsafe fn step_rarely(&self, rare: &Rare, value: *mut PyObject) -> Option<Step> {
        // SAFETY: as for the caller; what was sent is owned.
        unsafe {
            if self.phase.get() == Phase::Ready
                && let Some(dialect) = rare.dialect.take()
                && let Some(step) = self.translate(dialect)
            {
                return Some(step);
            }
            if let Some(span) = self.span().filter(|span| span.is_to_enter()) {
                return Some(Python::attach(|py| self.step_inside(py, &span, || self.step(value))));
            }
            let thrown = rare.thrown.take();
            if !thrown.is_null() {
                return Some(Python::attach(|py| {
                    self.throw_into(py, PyErr::from_value(Bound::from_owned_ptr(py, thrown)))
                }));
            }
            let sent = rare.sent.take();
            if sent.is_null() {
                return None;
            }
            let step = self.step(sent);
            ffi::Py_DECREF(sent);
            Some(step)
        }
    }

    /// The call is over: lets go of everything but the response that `single` waits for.
    #[inline]
    pub(super) fn finish(&self) {
        self.phase.set(Phase::Done);
        self.pending.clear();
        self.inner.clear();
        self.call.clear();
        if !self.single {
            self.last.clear();
        }
        if let Some(rare) = self.rare.get() {
            rare.release();
        }
    }

    /// Drops every reference; for the collector and the deallocator.
    pub(super) fn clear(&self) {
        self.abandon();
        self.finish();
        if let Some(rare) = self.rare.get() {
            rare.clear();
        }
        self.last.clear();
        self.tool.clear();
        self.toolkit.clear();
    }
}
