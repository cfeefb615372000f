//! Driving the tool's own code: one step of a coroutine, a generator of either kind, or a worker's job.

use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::prelude::*;

use super::python::generator;
use super::state::{Phase, State, Step};
use crate::bindings::worker::{self, guard};

/// Resumes `target`. It is kept alive meanwhile, because the code it runs may let go of it.
///
/// # Safety
/// The thread is attached; `target` and `value` are live.
#[inline]
pub(super) unsafe fn resume(target: *mut PyObject, value: *mut PyObject) -> (PySendResult, *mut PyObject) {
    let mut result = ptr::null_mut();
    // SAFETY: as for the caller.
    unsafe {
        ffi::Py_INCREF(target);
        let sent = guard::iter_send(target, value, &raw mut result);
        ffi::Py_DECREF(target);
        (sent, result)
    }
}

impl State {
    #[inline]
    pub(super) unsafe fn step_coroutine(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `inner` is an iterator of an awaitable.
        unsafe {
            match resume(self.inner.get(), value) {
                (PySendResult::PYGEN_NEXT, future) => Step::Suspend(future),
                (PySendResult::PYGEN_RETURN, result) => self.settle(result),
                (PySendResult::PYGEN_ERROR, _) => self.fail(),
            }
        }
    }

    #[inline]
    pub(super) unsafe fn step_async_generator(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `inner` is an async iterator, and an async generator if `hooked`.
        unsafe {
            let inner = self.inner.get();
            if self.hooked.get() && self.pending.get().is_null() {
                return match resume(inner, value) {
                    (PySendResult::PYGEN_NEXT, object) => {
                        let chunk = generator::unwrap(object);
                        if chunk.is_null() {
                            Step::Suspend(object)
                        } else {
                            self.deliver_chunk(chunk, Phase::AsyncGenerator)
                        }
                    }
                    (PySendResult::PYGEN_RETURN, nothing) => {
                        ffi::Py_XDECREF(nothing);
                        self.end_of_stream()
                    }
                    (PySendResult::PYGEN_ERROR, _) => self.fail(),
                };
            }
            self.step_public_generator(value)
        }
    }

    /// The public way: through the awaitable that `__anext__` gives. The first step goes this way in any case, because it
    /// introduces the generator to the event loop, which finalises it if it is abandoned.
    unsafe fn step_public_generator(&self, value: *mut PyObject) -> Step {
        // SAFETY: see `step_async_generator`.
        unsafe {
            let mut value = value;
            if self.pending.get().is_null() {
                let inner = self.inner.get();
                let awaitable = if value == ffi::Py_None() {
                    let methods = (*ffi::Py_TYPE(inner)).tp_as_async;
                    let anext = if methods.is_null() { None } else { (*methods).am_anext };
                    anext.map_or(ptr::null_mut(), |anext| anext(inner))
                } else {
                    ffi::PyObject_CallMethodObjArgs(inner, names().asend, value, ptr::null_mut::<PyObject>())
                };
                if awaitable.is_null() {
                    return self.fail();
                }
                let iterator = await_iter(awaitable);
                if iterator.is_null() {
                    return self.fail();
                }
                self.pending.set(iterator);
                value = ffi::Py_None();
            }
            match resume(self.pending.get(), value) {
                (PySendResult::PYGEN_NEXT, future) => Step::Suspend(future),
                (PySendResult::PYGEN_RETURN, chunk) => {
                    self.pending.clear();
                    self.hooked.set(generator::is_known() && ffi::PyAsyncGen_CheckExact(self.inner.get()) != 0);
                    self.deliver_chunk(chunk, Phase::AsyncGenerator)
                }
                (PySendResult::PYGEN_ERROR, _) => {
                    self.pending.clear();
                    self.fail()
                }
            }
        }
    }

    #[inline]
    pub(super) unsafe fn step_generator(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `inner` is a generator.
        unsafe {
            match resume(self.inner.get(), value) {
                (PySendResult::PYGEN_NEXT, chunk) => self.deliver_chunk(chunk, Phase::Generator),
                (PySendResult::PYGEN_RETURN, nothing) => {
                    ffi::Py_XDECREF(nothing);
                    self.end_of_stream()
                }
                (PySendResult::PYGEN_ERROR, _) => self.fail(),
            }
        }
    }

    /// Looks for news from the worker thread; when there are none, the event loop waits for the future that tells of them.
    pub(super) unsafe fn step_job(&self) -> Step {
        // SAFETY: as for the caller.
        Python::attach(|py| unsafe { self.poll_job(py) })
    }

    pub(super) unsafe fn poll_job(&self, py: Python<'_>) -> Step {
        // SAFETY: the thread is attached, and results are owned.
        unsafe {
            match self.rare().job.get().map(|job| job.poll(py)) {
                Some(Ok(worker::Step::Chunk(chunk))) => self.deliver_chunk(chunk.into_ptr(), Phase::Job),
                Some(Ok(worker::Step::Done(Some(result)))) => self.settle(result.into_ptr()),
                Some(Ok(worker::Step::Done(None))) | None => self.end_of_stream(),
                Some(Ok(worker::Step::Wait(waiter))) => Step::Suspend(waiter.into_ptr()),
                Some(Ok(worker::Step::Raised(error)) | Err(error)) => {
                    error.restore(py);
                    self.fail()
                }
            }
        }
    }
}

/// The iterator that drives an awaitable, as `await` would take it. Consumes the reference; null with an exception set.
///
/// # Safety
/// The thread is attached; `awaitable` is owned by the caller.
pub(super) unsafe fn await_iter(awaitable: *mut PyObject) -> *mut PyObject {
    // SAFETY: slots of a live object's type are called with the object.
    unsafe {
        if ffi::PyCoro_CheckExact(awaitable) != 0 {
            return awaitable;
        }
        let methods = (*ffi::Py_TYPE(awaitable)).tp_as_async;
        let am_await = if methods.is_null() { None } else { (*methods).am_await };
        let iterator = if let Some(am_await) = am_await {
            am_await(awaitable)
        } else {
            Python::attach(|py| {
                let kind = Bound::from_borrowed_ptr(py, awaitable).get_type();
                PyTypeError::new_err(format!("object {kind} cannot be awaited")).restore(py);
            });
            ptr::null_mut()
        };
        ffi::Py_DECREF(awaitable);
        iterator
    }
}

/// Method names that the public way needs, interned once.
struct Names {
    asend: *mut PyObject,
}

fn names() -> &'static Names {
    // SAFETY of sharing: interned strings are immortal here, because the reference is never given back.
    struct Shared(std::sync::OnceLock<Names>);
    unsafe impl Sync for Shared {}
    static NAMES: Shared = Shared(std::sync::OnceLock::new());
    NAMES.0.get_or_init(|| Names {
        // SAFETY: the thread is attached; a null result surfaces as an exception of the call that uses it.
        asend: unsafe { ffi::PyUnicode_InternFromString(c"asend".as_ptr()) },
    })
}
