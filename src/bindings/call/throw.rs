//! What comes in from outside while a call is under way: exceptions thrown in, and being closed.

use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::closing::Closing;
use super::drive::await_iter;
use super::state::{ERROR, Out, Phase, State, Step};
use super::task;

impl State {
    /// `throw`: the event loop (or whoever drives the stream) raises an exception at the point where the call waits.
    ///
    /// # Safety
    /// The thread is attached.
    pub(super) unsafe fn throw(&self, py: Python<'_>, error: PyErr) -> Out {
        // SAFETY: as for the caller.
        unsafe {
            if self.running.get() {
                PyValueError::new_err("the tool call is already executing").restore(py);
                return ERROR;
            }
            if self.phase.get() == Phase::Job && self.cancelling.get().is_none() {
                // Nobody but the task knows what a job is waited for with, so it was the task that was asked to cancel.
                self.cancelling.set(task::cancelling(py).map(|requests| requests.saturating_sub(1)));
            }
            let step = {
                let _running = self.enter();
                match self.span() {
                    Some(span) => self.step_inside(py, &span, || self.throw_into(py, error)),
                    None => self.throw_into(py, error),
                }
            };
            self.conclude(step)
        }
    }

    /// Raises `error` inside the innermost thing that waits, or here when nothing does.
    pub(super) unsafe fn throw_into(&self, py: Python<'_>, error: PyErr) -> Step {
        // SAFETY: as for `throw`; slots are read according to the phase.
        unsafe {
            if task::is_cancellation(py, &error).unwrap_or(false) {
                self.rare().cancel_thrown.set(true);
            }
            let target = match self.phase.get() {
                Phase::Coroutine | Phase::Generator => self.inner.bound(py),
                Phase::AsyncGenerator if self.pending.get().is_null() => {
                    return self.throw_into_generator(py, error);
                }
                Phase::AsyncGenerator | Phase::Approval | Phase::Postprocess | Phase::Closing => self.pending.bound(py),
                Phase::Job => {
                    // The worker's thread cannot be reached; the call is given up on this side.
                    error.restore(py);
                    return self.fail();
                }
                Phase::Fresh | Phase::Ready | Phase::Admitted | Phase::Cancelled | Phase::Done => None,
            };
            let Some(target) = target else {
                self.finish();
                error.restore(py);
                return Step::Raise;
            };
            let thrown = match target.getattr_opt(intern!(py, "throw")) {
                Ok(Some(throw)) => throw.call1((error.value(py),)),
                Ok(None) => Err(error),
                Err(error) => Err(error),
            };
            match thrown {
                Ok(chunk) if self.phase.get() == Phase::Generator => {
                    self.deliver_chunk(chunk.into_ptr(), Phase::Generator)
                }
                Ok(future) => Step::Suspend(future.into_ptr()),
                Err(error) => self.after_throw(py, error),
            }
        }
    }

    /// What was thrown into has ended: by returning, which Python tells by `StopIteration`, or by an exception.
    unsafe fn after_throw(&self, py: Python<'_>, error: PyErr) -> Step {
        // SAFETY: as for `throw_into`.
        unsafe {
            if !error.is_instance_of::<PyStopIteration>(py) {
                if self.phase.get() == Phase::Closing {
                    self.note_closing_error(py, error);
                    return self.end(py);
                }
                if self.phase.get() == Phase::AsyncGenerator {
                    self.pending.clear();
                }
                error.restore(py);
                return self.fail();
            }
            let value = match error.value(py).getattr(intern!(py, "value")) {
                Ok(value) => value,
                Err(error) => {
                    error.restore(py);
                    return self.fail();
                }
            };
            match self.phase.get() {
                Phase::Coroutine => self.settle(value.into_ptr()),
                Phase::AsyncGenerator => {
                    self.pending.clear();
                    self.deliver_chunk(value.into_ptr(), Phase::AsyncGenerator)
                }
                Phase::Generator => self.end_of_stream(),
                Phase::Postprocess => self.postprocessed(value.into_ptr()),
                Phase::Approval => self.answered(value.into_ptr()),
                Phase::Closing => self.end(py),
                Phase::Fresh | Phase::Ready | Phase::Admitted | Phase::Job | Phase::Cancelled | Phase::Done => {
                    Step::End
                }
            }
        }
    }

    /// An async generator on the short way has no step object to throw into; its own `athrow` reaches the same point.
    unsafe fn throw_into_generator(&self, py: Python<'_>, error: PyErr) -> Step {
        // SAFETY: in this phase `inner` is an async iterator.
        unsafe {
            let Some(inner) = self.inner.bound(py) else { return Step::End };
            let awaitable = match inner.getattr_opt(intern!(py, "athrow")) {
                Ok(Some(athrow)) => athrow.call1((error.value(py),)),
                Ok(None) => Err(error),
                Err(error) => Err(error),
            };
            match awaitable {
                Ok(awaitable) => {
                    let iterator = await_iter(awaitable.into_ptr());
                    if iterator.is_null() {
                        return self.fail();
                    }
                    self.pending.set(iterator);
                    self.step_async_generator(ffi::Py_None())
                }
                Err(error) => {
                    error.restore(py);
                    self.fail()
                }
            }
        }
    }

    /// `close`: whoever waits for this step is gone. What the tool left open is finalised.
    pub(super) unsafe fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.running.get() {
            return Err(PyValueError::new_err("the tool call is already executing"));
        }
        let target = match self.phase.get() {
            Phase::Coroutine | Phase::Generator => self.inner.bound(py),
            Phase::AsyncGenerator | Phase::Approval | Phase::Postprocess | Phase::Closing => self.pending.bound(py),
            _ => None,
        };
        self.armed.set(false);
        let close = || match target.map(|target| target.getattr_opt(intern!(py, "close"))) {
            Some(Ok(Some(close))) => close.call0().map(drop),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => Ok(()),
        };
        let span = self.span();
        let closed = match &span {
            Some(span) => span.close(py, close),
            None => close(),
        };
        self.finish();
        closed
    }

    /// `aclose`: an awaitable that ends the call, the tool's generator first.
    ///
    /// # Safety
    /// The thread is attached; `me` is the object this state belongs to.
    pub(super) unsafe fn aclose<'py>(&self, py: Python<'py>, me: *mut ffi::PyObject) -> PyResult<Bound<'py, PyAny>> {
        if self.running.get() || self.armed.get() {
            return Err(PyRuntimeError::new_err("aclose(): the tool call is already running"));
        }
        if self.is_layer() {
            // SAFETY: as for the caller.
            return unsafe { self.aclose_layer(py, me) };
        }
        let span = self.rare.get().and_then(|rare| rare.span.take());
        let closing = match &span {
            Some(span) => span.run(py, || self.close_inner(py)),
            None => self.close_inner(py),
        };
        self.finish();
        match (closing, span) {
            (Ok(Some(awaitable)), Some(span)) => Closing::wrap(awaitable, span),
            (Ok(Some(awaitable)), None) => Ok(awaitable),
            (closing, span) => {
                if let Some(span) = span {
                    if let Err(error) = &closing {
                        span.note(py, error);
                    }
                    span.end(py);
                }
                closing?;
                Ok(Bound::new(py, Closed)?.into_any())
            }
        }
    }

    /// Asks what the tool left open to close: an awaitable if that takes time.
    pub(super) fn close_inner<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.phase.get() == Phase::Job {
            return self.rare.get().and_then(|rare| rare.job.get()).map_or(Ok(None), |job| job.close(py));
        }
        let Some(inner) = self.inner.bound(py) else { return Ok(None) };
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
    pub(super) unsafe fn arm_with(
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
        if !self.arm() {
            return Err(already_running());
        }
        if let Some(value) = value.filter(|value| !value.is_none()) {
            self.rare().sent.set(value.into_ptr());
        }
        if let Some(error) = error {
            self.rare().thrown.set(error.into_value(py).into_ptr());
        }
        Ok(())
    }
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

/// What `__anext__` gives while another step is under way.
pub(super) fn busy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Busy)?.into_any())
}

/// An awaitable that says that somebody else waits for the next response.
#[pyclass(frozen, module = "toolcrib")]
struct Busy;

#[pymethods]
impl Busy {
    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __await__(&self) -> PyResult<Py<PyAny>> {
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
