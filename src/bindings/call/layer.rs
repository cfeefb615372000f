//! A call through middlewares: each layer is a stream whose tool is a middleware, and what that opens ends with it.

use std::ptr;
use std::sync::Arc;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::drive::{await_iter, resume};
use super::handler::{Core, NextHandler, conduct, keywords};
use super::input::{InDict, InPairs, Input, Noted};
use super::python::object;
use super::rare::Ending;
use super::start::block;
use super::state::{Phase, State, Step};
use crate::bindings::tool::PyTool;

impl State {
    /// Whether the call goes through middlewares, or begins further in than at the outermost.
    ///
    /// # Safety
    /// The thread is attached; the phase is `Ready`.
    #[inline]
    pub(super) unsafe fn is_layered(&self, py: Python<'_>) -> bool {
        // SAFETY: the slot holds a toolkit or nothing.
        self.toolkit.get().is_null() || unsafe { self.toolkit(py) }.get().has_middlewares(py)
    }

    /// Whether a span for this stream is the one for its call: where middlewares are around it, the outermost has that, and
    /// where one tool is called by itself, whoever calls it.
    pub(super) fn speaks_for_its_call(&self, py: Python<'_>) -> bool {
        !self.toolkit.get().is_null() || self.tool_called_by_itself(py).is_some()
    }

    /// The tool that a stream without a toolkit is about to call.
    pub(super) fn tool_called_by_itself<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTool>> {
        let handler = self.last.bound(py)?.cast_into::<NextHandler>().ok()?;
        match &handler.get().core {
            Core::Tool(tool) | Core::Shown(_, tool) if handler.get().middleware(py).is_none() => {
                Some(tool.bind(py).clone())
            }
            _ => None,
        }
    }

    /// The caller of the view that handed out the tool which a stream without a toolkit is about to call.
    pub(super) fn caller_of_handler(&self, py: Python<'_>) -> Option<Arc<str>> {
        let handler = self.last.bound(py)?.cast_into::<NextHandler>().ok()?;
        match &handler.get().core {
            Core::Shown(view, _) => view.get().caller().map(Arc::from),
            _ => None,
        }
    }

    /// The first step of a layered call.
    ///
    /// # Safety
    /// As for `is_layered`, which is true.
    #[cold]
    pub(super) unsafe fn start_layered(&self) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            Python::attach(|py| {
                let begun = if self.toolkit.get().is_null() { self.begin_within(py) } else { self.begin_outermost(py) };
                begun.unwrap_or_else(|error| {
                    if self.tool.get().is_null() {
                        return self.raise(py, error);
                    }
                    error.restore(py);
                    self.fail()
                })
            })
        }
    }

    /// Reads the list of middlewares: what is done to it from now on is for later calls.
    unsafe fn begin_outermost(&self, py: Python<'_>) -> PyResult<Step> {
        // SAFETY: as for `start_layered`.
        unsafe {
            if let Some(step) = self.denied_outright(py) {
                return Ok(step);
            }
            let toolkit = self.toolkit(py);
            let conduct = conduct(py, toolkit.get().behaviour().errors)?;
            self.tool.set(conduct.clone_ref(py).into_ptr());
            let request = self.request_block(py)?;
            let stack = toolkit.get().middlewares(py).to_tuple().unbind();
            let core = Core::Counter(Bound::from_borrowed_ptr(py, self.toolkit.get()).unbind());
            self.begin_layer(
                py,
                &NextHandler::new(core, stack, 0, conduct, self.known_case()),
                keywords(request)?.into_any(),
            )
        }
    }

    /// The request as a block, also when it came as a name and keywords.
    unsafe fn request_block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: before the start, the slots are filled as `State::stream` and `State::single` say.
        unsafe {
            if !self.single {
                return self.request_for_layers(py);
            }
            let call = Bound::from_borrowed_ptr(py, self.call.get());
            let input = InPairs::taken(py, &self.last, &self.pending);
            Ok(block(&call, input.to_dict(py)?.as_any())?.into_any())
        }
    }

    /// Goes on where a handler points to: the next middleware, or the core.
    unsafe fn begin_within(&self, py: Python<'_>) -> PyResult<Step> {
        // SAFETY: as for `start_layered`; `State::within` put a handler into `last`.
        unsafe {
            let handler = Bound::from_owned_ptr(py, self.last.take()).cast_into_unchecked::<NextHandler>();
            let handler = handler.get();
            self.join(handler.case.clone());
            if handler.middleware(py).is_some() {
                self.tool.set(handler.conduct.clone_ref(py).into_ptr());
                return self.begin_layer(py, handler, Bound::from_borrowed_ptr(py, self.call.get()));
            }
            Ok(match &handler.core {
                Core::Counter(counter) => {
                    self.toolkit.set(counter.clone_ref(py).into_ptr());
                    self.start_core(py)
                }
                Core::Shown(view, _) => {
                    self.toolkit.set(view.clone_ref(py).into_ptr());
                    self.start_core(py)
                }
                Core::Tool(tool) => {
                    self.tool.set(tool.clone_ref(py).into_ptr());
                    match self.request(py) {
                        Ok((_, input)) => self.run(Noted(InDict(&input), self)),
                        Err(refusal) => self.refuse(refusal),
                    }
                }
            })
        }
    }

    /// Calls the middleware that `handler` leads to. What it gives is run as what a tool gives is.
    unsafe fn begin_layer(&self, py: Python<'_>, handler: &NextHandler, keywords: Bound<'_, PyAny>) -> PyResult<Step> {
        // SAFETY: as for `start_layered`; `tool` is filled.
        unsafe {
            let Some(middleware) = handler.middleware(py) else { return Ok(self.end_of_stream()) };
            let next = Bound::new(py, handler.further_in(py))?;
            self.rare().next.set(next.clone().into_any().into_ptr());
            let given = middleware.call1((keywords, next))?;
            Ok(self.settle(given.into_ptr()))
        }
    }

    /// Whether this is a layer, which has to look after what its middleware opened.
    #[inline]
    pub(super) fn is_layer(&self) -> bool {
        self.rare.get().is_some_and(|rare| !rare.next.get().is_null())
    }

    /// Closes, one after the other, the streams that the middleware left open; what is to be awaited for that, if anything.
    ///
    /// # Safety
    /// The thread is attached.
    pub(super) unsafe fn close_opened(&self, py: Python<'_>) -> Option<Step> {
        let next = self.rare.get()?.next.bound(py)?;
        // SAFETY: the slot holds handlers only; handlers keep streams only.
        unsafe {
            let next = next.cast_unchecked::<NextHandler>();
            while let Some(stream) = next.get().take_open(py) {
                let stream = stream.into_bound(py);
                if let Some(cancellation) = object::take_cancellation(&stream) {
                    self.pass_on(py, cancellation);
                }
                let closing = object::aclose(&stream).and_then(|closing| {
                    let iterator = await_iter(closing.into_ptr());
                    if iterator.is_null() { Err(PyErr::fetch(py)) } else { Ok(iterator) }
                });
                match closing {
                    Ok(iterator) => self.pending.set(iterator),
                    Err(error) => {
                        self.note_closing_error(py, error);
                        continue;
                    }
                }
                self.phase.set(Phase::Closing);
                match resume(self.pending.get(), ffi::Py_None()) {
                    (ffi::PySendResult::PYGEN_NEXT, future) => return Some(Step::Suspend(future)),
                    (ffi::PySendResult::PYGEN_RETURN, nothing) => ffi::Py_XDECREF(nothing),
                    (ffi::PySendResult::PYGEN_ERROR, _) => self.note_closing_error(py, PyErr::fetch(py)),
                }
            }
        }
        None
    }

    /// A cancellation that was held back until its response is delivered must not be lost with a middleware that stops
    /// reading there.
    fn pass_on(&self, py: Python<'_>, cancellation: PyErr) {
        if !self.is_asked_to_cancel(py, false) {
            return;
        }
        let rare = self.rare();
        let ending = match rare.ending.get() {
            Ending::Respond if !self.single => Ending::Interrupt,
            Ending::Respond | Ending::Over => Ending::Raise,
            Ending::Interrupt | Ending::Raise | Ending::Closed => return,
        };
        rare.ending.set(ending);
        rare.error.set(cancellation.into_value(py).into_ptr());
    }

    /// `aclose` of a layer: the middleware first, then what it left open. The stream itself is what is awaited.
    ///
    /// # Safety
    /// The thread is attached; `me` is the object this state belongs to.
    pub(super) unsafe fn aclose_layer<'py>(&self, py: Python<'py>, me: *mut PyObject) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as for the caller; what is awaited is owned.
        unsafe {
            let mut iterator = ptr::null_mut();
            if let Some(awaitable) = self.close_inner(py)? {
                iterator = await_iter(awaitable.into_ptr());
                if iterator.is_null() {
                    return Err(PyErr::fetch(py));
                }
            }
            self.pending.set(iterator);
            self.rare().ending.set(Ending::Closed);
            self.phase.set(Phase::Closing);
            self.armed.set(true);
            Ok(Bound::from_borrowed_ptr(py, me))
        }
    }
}
