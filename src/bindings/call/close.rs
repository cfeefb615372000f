//! Exceptions thrown into a call, the ways to give it up (`throw`, `close`, `aclose`, `asend`, `athrow`), and the streams that it
//! has opened itself.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{
    PyGeneratorExit, PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError, PyValueError,
};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::observe::span::SharedSpan;
use super::python::drive::{Sent, await_iter, send};
use super::python::object::state_of;
use super::run::Given;
use super::state::{Early, Phase, Resumed, State, Step};
use super::task;
use crate::bindings::once::intern;

impl State {
    /// `throw`: the event loop (or another driver of the stream) raises an exception at the point where the call waits.
    pub(crate) fn throw<'py>(&self, py: Python<'py>, error: PyErr) -> Resumed<'py> {
        if self.running.get() {
            return Resumed::Raise(PyValueError::new_err("the tool call is already executing").into());
        }
        if self.phase.get() == Phase::Job && self.cancelling.get().is_none() {
            // Only the task knows the future that a job is waited for with, so that the task was asked to cancel.
            self.cancelling.set(task::cancelling(py).map(|requests| requests.saturating_sub(1)));
        }
        let step = {
            let _running = self.enter();
            match self.span() {
                Some(span) => self.step_inside(py, span.get(py), || self.throw_into(py, error)),
                None => self.throw_into(py, error),
            }
        };
        let step = self.completed(py, step);
        self.conclude(py, step)
    }

    /// The object that waits on the call's behalf.
    pub(super) fn waiting<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self.phase.get() {
            Phase::Coroutine | Phase::Generator => self.inner.get(py),
            Phase::AsyncGenerator | Phase::Approval | Phase::Postprocess | Phase::Closing => self.awaited.get(py),
            Phase::Fresh | Phase::Ready | Phase::Admitted | Phase::Job | Phase::Cancelled | Phase::Done => None,
        }
    }

    /// Raises `error` inside the innermost thing that waits, or here when nothing does.
    pub(super) fn throw_into<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        if task::is_cancellation(py, &error).unwrap_or(false) {
            self.cold().cancel_thrown.set(true);
        }
        if let Some(cold) = self.cold.get().filter(|cold| !cold.keeping.is_empty()) {
            return self.give_up_keeping(py, cold, error);
        }
        if self.is_writing() {
            return self.give_up_writing(py, error);
        }
        if let Some(step) = self.cancel_held(py, &error) {
            return step;
        }
        let phase = self.phase.get();
        if phase == Phase::Job {
            // The worker's thread cannot be reached; the call is given up on this side.
            return self.fail(py, error);
        }
        if phase == Phase::AsyncGenerator && self.awaited.is_empty() {
            return self.throw_into_generator(py, error);
        }
        let Some(target) = self.waiting(py) else {
            self.finish(py);
            return Step::Raise(error.into());
        };
        let thrown = match target.getattr_opt(intern!(py, "throw")) {
            Ok(Some(throw)) => throw.call1((error.value(py),)),
            Ok(None) => Err(error),
            Err(error) => Err(error),
        };
        match thrown {
            Ok(item) if phase == Phase::Generator => self.advance(py, Given::Item(item)),
            Ok(future) => Step::Suspend(future),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => self.returned_after_throw(py, &error),
            Err(error) if phase == Phase::Closing => {
                self.note_closing_error(py, error);
                self.end(py)
            }
            Err(error) => {
                if phase == Phase::AsyncGenerator {
                    self.awaited.clear(py);
                }
                self.advance(py, end_or_error(py, phase, error))
            }
        }
    }

    /// The target of a throw has returned, which Python reports by `StopIteration`.
    fn returned_after_throw<'py>(&self, py: Python<'py>, stop: &PyErr) -> Step<'py> {
        let value = match stop.value(py).getattr(intern!(py, "value")) {
            Ok(value) => value,
            Err(error) => return self.fail(py, error),
        };
        match self.phase.get() {
            Phase::Coroutine => self.advance(py, Given::Result(value)),
            Phase::AsyncGenerator => {
                self.awaited.clear(py);
                self.advance(py, Given::Item(value))
            }
            Phase::Generator => self.end_of_stream(py),
            Phase::Postprocess => self.postprocessed(py, &value),
            Phase::Approval => self.run_answered(py, &value).unwrap_or_else(|early| self.end_early(py, early)),
            Phase::Closing => self.end(py),
            Phase::Fresh | Phase::Ready | Phase::Admitted | Phase::Job | Phase::Cancelled | Phase::Done => Step::End,
        }
    }

    fn run_answered<'py>(&self, py: Python<'py>, reply: &Bound<'py, PyAny>) -> Result<Step<'py>, Early<'py>> {
        let permitted = self.answered(py, reply)?;
        self.proceed(py, permitted)
    }

    /// An async generator on the short way has no step object to throw into; its own `athrow` reaches the same point.
    fn throw_into_generator<'py>(&self, py: Python<'py>, error: PyErr) -> Step<'py> {
        let Some(inner) = self.inner.get(py) else { return Step::End };
        let awaitable = match inner.getattr_opt(intern!(py, "athrow")) {
            Ok(Some(athrow)) => athrow.call1((error.value(py),)),
            Ok(None) => Err(error),
            Err(error) => Err(error),
        };
        match awaitable.and_then(await_iter) {
            Ok(iterator) => {
                self.awaited.set(iterator);
                let given = self.resume_tool(py, pyo3::types::PyNone::get(py).as_any());
                self.advance(py, given)
            }
            Err(error) => self.advance(py, end_or_error(py, Phase::AsyncGenerator, error)),
        }
    }

    /// `close`: the step is not awaited any more. What the tool left open is finalised.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.running.get() {
            return Err(PyValueError::new_err("the tool call is already executing"));
        }
        let target = self.waiting(py);
        self.requested.set(false);
        self.awaiting.set(false);
        let close = || match target.map(|target| target.getattr_opt(intern!(py, "close"))) {
            Some(Ok(Some(close))) => close.call0().map(drop),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => Ok(()),
        };
        let closed = match &self.span() {
            Some(span) => span.get(py).close(py, close),
            None => close(),
        };
        self.finish(py);
        closed
    }

    /// `aclose`: an awaitable that ends the call, the tool's generator first. `me` is the stream of this state.
    pub(crate) fn aclose<'py>(&self, py: Python<'py>, me: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.running.get() || self.requested.get() {
            return Err(PyRuntimeError::new_err("aclose(): the tool call is already running"));
        }
        if self.is_layer() {
            return self.aclose_layer(py, me);
        }
        let span = self.cold.get().and_then(|cold| cold.span.take());
        let closing = match &span {
            Some(span) => span.get(py).run(py, || self.close_inner(py)),
            None => self.close_inner(py),
        };
        self.finish(py);
        match (closing, span) {
            (Ok(Some(awaitable)), Some(span)) => Closing::wrap(awaitable, span),
            (Ok(Some(awaitable)), None) => Ok(awaitable),
            (closing, span) => {
                if let Some(span) = span {
                    if let Err(error) = &closing {
                        span.get(py).note(py, error);
                    }
                    span.get(py).end(py);
                }
                closing?;
                Ok(Bound::new(py, Closed)?.into_any())
            }
        }
    }

    /// Asks what the tool left open to close: an awaitable if that takes time.
    pub(super) fn close_inner<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.phase.get() == Phase::Job {
            return self.job().map_or(Ok(None), |job| job.close(py));
        }
        if let Some(job) = self.job()
            && let Some(closed) = job.closed(py)?
        {
            return Ok(Some(closed)); // a cancelled step has not waited for the thread
        }
        if let Some(waiting) = self.waiting_behind_report(py) {
            return Ok(Some(Bound::new(py, Unwinding::new(waiting))?.into_any()));
        }
        let Some(inner) = self.inner.get(py) else { return Ok(None) };
        match self.phase.get() {
            Phase::AsyncGenerator => inner.getattr_opt(intern!(py, "aclose"))?.map(|aclose| aclose.call0()).transpose(),
            Phase::Generator => {
                inner.call_method0(intern!(py, "close"))?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// `asend` and `athrow` are asked for now and done when the stream is awaited.
    pub(crate) fn request_step_with(
        &self,
        py: Python<'_>,
        value: Option<Bound<'_, PyAny>>,
        error: Option<PyErr>,
    ) -> PyResult<()> {
        if matches!(self.phase.get(), Phase::Fresh | Phase::Ready)
            && value.as_ref().is_some_and(|value| !value.is_none())
        {
            return Err(PyTypeError::new_err("can't send non-None value to a just-started tool call"));
        }
        if !self.request_step() {
            return Err(already_running());
        }
        if let Some(value) = value.filter(|value| !value.is_none()) {
            self.cold().sent.set(value);
        }
        if let Some(error) = error {
            self.cold().thrown.set(error.into_value(py).into_bound(py).into_any());
        }
        Ok(())
    }
}

// Streams inside of a call, as that sees them

/// True for a stream that has come to its end.
pub(super) fn is_over(stream: &Bound<'_, PyAny>) -> bool {
    state_of(stream).is_none_or(|state| state.phase.get() == Phase::Done)
}

/// True for a stream that has not come to its end, and that no task waits for.
pub(super) fn is_abandoned(stream: &Bound<'_, PyAny>) -> bool {
    state_of(stream).is_some_and(|state| state.phase.get() != Phase::Done && !state.is_busy())
}

/// Lets the closing of a stream not wait for threads. True if it has nothing else to wait for.
pub(super) fn leave_thread(stream: &Bound<'_, PyAny>) -> bool {
    state_of(stream).is_some_and(|state| state.leave_thread(stream.py()))
}

/// True for a stream that has come to its end before a generator in a thread, here or in a call further in.
pub(super) fn is_outlived(stream: &Bound<'_, PyAny>) -> bool {
    state_of(stream).is_some_and(|state| {
        state.phase.get() == Phase::Done
            && (state.is_layer() || state.job().is_some_and(|job| job.is_iterating(stream.py())))
    })
}

/// Takes the cancellation out that a stream would raise next, which is over then.
pub(super) fn take_cancellation(stream: &Bound<'_, PyAny>) -> Option<PyErr> {
    let state = state_of(stream).filter(|state| state.phase.get() == Phase::Cancelled)?;
    state.phase.set(Phase::Done);
    state.cold().error.take(stream.py()).map(PyErr::from_value)
}

/// `stream.aclose()`.
pub(super) fn aclose<'py>(stream: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match state_of(stream) {
        Some(state) => state.aclose(stream.py(), stream),
        None => stream.call_method0("aclose"),
    }
}

/// The outcome of an exception that came out of the tool in a phase.
fn end_or_error(py: Python<'_>, phase: Phase, error: PyErr) -> Given<'_> {
    if phase == Phase::AsyncGenerator { super::run::end_or_error(py, error) } else { Given::Error(error.into()) }
}

/// The exception that `throw(type, value, traceback)` means, in all of its historical forms.
pub(super) fn exception_of(py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<PyErr> {
    let kind = arguments.get_item(0)?;
    if kind.cast::<PyType>().is_err() {
        return Ok(PyErr::from_value(kind));
    }
    let value = arguments.get_item(1).ok().filter(|value| !value.is_none());
    let is_instance = value.as_ref().is_some_and(|value| value.is_instance(&kind).unwrap_or(false));
    let error = match value {
        Some(value) if is_instance => PyErr::from_value(value),
        Some(value) => PyErr::from_value(kind.call1((value,))?),
        None => PyErr::from_value(kind.call0()?),
    };
    if let Ok(traceback) = arguments.get_item(2)
        && !traceback.is_none()
    {
        error.value(py).setattr(intern!(py, "__traceback__"), traceback)?;
    }
    Ok(error)
}

fn already_running() -> PyErr {
    PyRuntimeError::new_err("anext(): the tool call is already running")
}

/// The result of `__anext__` while another step is under way. An error must not be raised before that is awaited:
/// `anext(stream, default)` takes what `am_anext` gives for granted, up to Python 3.13, and crashes on null.
pub(super) fn busy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Busy)?.into_any())
}

/// An awaitable that raises: the next response is awaited elsewhere. Its first step raises, and not `__await__`, whose exceptions
/// `async for` replaces by a `TypeError`.
#[pyclass(frozen, module = "toolcrib")]
struct Busy;

#[pymethods]
impl Busy {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __next__(&self) -> PyResult<Py<PyAny>> {
        Err(already_running())
    }
}

/// An awaitable that has nothing left to do.
#[pyclass(frozen, module = "toolcrib")]
struct Closed;

#[pymethods]
impl Closed {
    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __await__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyTuple::empty(py).as_any().try_iter()?.into_any().unbind())
    }
}

/// An awaitable that ends a coroutine or the step of an async generator where it waits, as `aclose` ends a generator: by
/// `GeneratorExit`, and with what its `finally` blocks await.
#[pyclass(frozen, module = "toolcrib")]
struct Unwinding {
    waiting: Py<PyAny>,
    has_begun: AtomicBool,
}

impl Unwinding {
    fn new(waiting: Bound<'_, PyAny>) -> Self {
        Self { waiting: waiting.unbind(), has_begun: AtomicBool::new(false) }
    }

    /// The outcome of a step: the end of what was unwound is the end of the awaitable.
    fn outcome(py: Python<'_>, step: PyResult<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        step.map(Bound::unbind).map_err(|error| {
            let is_end = error.is_instance_of::<PyGeneratorExit>(py)
                || error.is_instance_of::<PyStopIteration>(py)
                || error.is_instance_of::<PyStopAsyncIteration>(py);
            if is_end { PyStopIteration::new_err(()) } else { error }
        })
    }
}

#[pymethods]
impl Unwinding {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let waiting = self.waiting.bind(py);
        Self::outcome(
            py,
            if self.has_begun.swap(true, Ordering::Relaxed) {
                waiting.call_method1(intern!(py, "send"), (py.None(),))
            } else {
                waiting.call_method1(intern!(py, "throw"), (PyGeneratorExit::new_err(()).into_value(py),))
            },
        )
    }

    /// Resume; the value is ignored.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(py)
    }

    #[pyo3(signature = (*arguments))]
    fn throw(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.has_begun.store(true, Ordering::Relaxed);
        Self::outcome(py, self.waiting.bind(py).call_method1(intern!(py, "throw"), arguments))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.waiting.bind(py).call_method0(intern!(py, "close")).map(drop)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.waiting)
    }
}

/// An awaitable around another one, each of whose steps runs inside a span: `aclose` of a call that has one.
#[pyclass(frozen, module = "toolcrib")]
struct Closing {
    iterator: Py<PyAny>,
    span: SharedSpan,
}

impl Closing {
    /// Wraps what `aclose` of the tool's generator gave.
    fn wrap(awaitable: Bound<'_, PyAny>, span: SharedSpan) -> PyResult<Bound<'_, PyAny>> {
        let py = awaitable.py();
        span.get(py).settle(py);
        let iterator = await_iter(awaitable)?.unbind();
        Ok(Bound::new(py, Self { iterator, span })?.into_any())
    }

    /// The generator is finalised, or has failed at that.
    fn over(&self, py: Python<'_>, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyStopIteration>(py) {
            self.span.get(py).note(py, &error);
        }
        self.span.get(py).end(py);
        error
    }
}

#[pymethods]
impl Closing {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.send(py, &py.None().into_bound(py))
    }

    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match self.span.get(py).run(py, || send(self.iterator.bind(py), value)) {
            Sent::Yielded(future) => Ok(future.unbind()),
            Sent::Returned(result) => Err(self.over(py, PyStopIteration::new_err((result.unbind(),)))),
            Sent::Raised(error) => Err(self.over(py, *error)),
        }
    }

    #[pyo3(signature = (*arguments))]
    fn throw(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let throw = self.iterator.bind(py).getattr(intern!(py, "throw"))?;
        let thrown = self.span.get(py).run(py, || throw.call1(arguments));
        thrown.map(Bound::unbind).map_err(|error| self.over(py, error))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = self.iterator.bind(py).getattr(intern!(py, "close"))?;
        let closed = self.span.get(py).run(py, || close.call0());
        self.span.get(py).end(py);
        closed.map(drop)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.iterator)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        Python::attach(|py| self.span.get(py).end(py));
    }
}
