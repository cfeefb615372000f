//! From what a tool gives to what the consumer receives: a response, postprocessed if the tool says so.

use std::cell::Cell;
use std::ptr;

use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::prelude::*;

use super::drive::{await_iter, resume};
use super::python::object;
use super::rare::Ending;
use super::state::{Phase, State, Step};
use crate::bindings::{response, value};

impl State {
    /// The one result of a function or coroutine; consumes it.
    ///
    /// # Safety
    /// The thread is attached; `result` is owned by the caller; `tool` is filled.
    #[inline]
    pub(super) unsafe fn settle(&self, result: *mut PyObject) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            if ffi::Py_TYPE(result) == response::exact_type(Python::assume_attached()) {
                self.deliver(result, Phase::Done)
            } else {
                self.settle_other(result)
            }
        }
    }

    /// A result that is not yet a response: something that has to be run first, or a plain value.
    #[cold]
    unsafe fn settle_other(&self, result: *mut PyObject) -> Step {
        // SAFETY: as for `settle`.
        unsafe {
            let methods = (*ffi::Py_TYPE(result)).tp_as_async;
            if object::is_stream(result) {
                return self.settle_stream(result);
            }
            if !methods.is_null() && (*methods).am_await.is_some() {
                let iterator = await_iter(result);
                if iterator.is_null() {
                    return self.fail();
                }
                self.inner.set(iterator);
                self.phase.set(Phase::Coroutine);
                return self.step_coroutine(ffi::Py_None());
            }
            if !methods.is_null() && (*methods).am_anext.is_some() {
                self.inner.set(result);
                self.phase.set(Phase::AsyncGenerator);
                return self.step_async_generator(ffi::Py_None());
            }
            if ffi::PyGen_CheckExact(result) != 0 {
                self.inner.set(result);
                self.phase.set(Phase::Generator);
                return self.step_generator(ffi::Py_None());
            }
            let response = as_response(result);
            if response.is_null() { self.fail() } else { self.deliver(response, Phase::Done) }
        }
    }

    /// The stream of another call, which awaiting would only give once more.
    unsafe fn settle_stream(&self, stream: *mut PyObject) -> Step {
        // SAFETY: as for `settle`.
        unsafe {
            self.inner.set(stream);
            self.phase.set(Phase::AsyncGenerator);
            // What is deeper in than the first step has gone, no later step can reach.
            let Some(_deeper) = Nested::enter() else {
                let message = c"too many tool calls that give the stream of another";
                ffi::PyErr_SetString(ffi::PyExc_RecursionError, message.as_ptr());
                return self.fail();
            };
            self.step_async_generator(ffi::Py_None())
        }
    }

    /// One item of a generator; consumes it.
    ///
    /// # Safety
    /// As for `settle`.
    #[inline]
    pub(super) unsafe fn deliver_chunk(&self, chunk: *mut PyObject, phase: Phase) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            self.delivered.set(true);
            let response = if ffi::Py_TYPE(chunk) == response::exact_type(Python::assume_attached()) {
                chunk
            } else {
                as_response(chunk)
            };
            if response.is_null() {
                // The generator is not to blame and still open: it is finalised as after an error of postprocessing.
                self.resume.set(phase);
                self.phase.set(Phase::Postprocess);
                return self.fail();
            }
            self.deliver(response, phase)
        }
    }

    /// Hands a response to the consumer, through the postprocess function if there is one; the call goes on in `phase`.
    ///
    /// # Safety
    /// As for `settle`; `response` is a response.
    #[inline]
    pub(super) unsafe fn deliver(&self, response: *mut PyObject, phase: Phase) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            if self.tool().postprocess.is_some() {
                return self.postprocess(response, phase);
            }
            self.hand_over(response, phase)
        }
    }

    #[inline]
    unsafe fn hand_over(&self, response: *mut PyObject, phase: Phase) -> Step {
        match phase {
            Phase::Done => {
                if self.is_layer() {
                    // SAFETY: as for `deliver`.
                    return unsafe { self.deliver_last(response) };
                }
                self.finish();
            }
            // Nothing can interrupt a generator that runs inline, so what came last need not be known.
            Phase::Generator => self.phase.set(phase),
            _ => {
                self.phase.set(phase);
                // SAFETY: the response is live.
                self.last.set(unsafe { ffi::Py_NewRef(response) });
            }
        }
        Step::Chunk(response)
    }

    /// The one response of a layer, or its last: what the middleware left open is closed before it is handed over.
    #[cold]
    unsafe fn deliver_last(&self, response: *mut PyObject) -> Step {
        // SAFETY: as for `deliver`; the response is owned.
        unsafe {
            Python::attach(|py| {
                let response = Bound::from_owned_ptr(py, response);
                self.wind_up(py, Ending::Respond, Some(response), None)
            })
        }
    }

    #[cold]
    unsafe fn postprocess(&self, response: *mut PyObject, phase: Phase) -> Step {
        // SAFETY: as for `deliver`.
        unsafe {
            // Not in `last`: that is what the consumer has seen, and an interruption repeats it.
            let rare = self.rare();
            rare.response.set(response);
            self.resume.set(phase);
            self.phase.set(Phase::Postprocess);
            let answer = Python::attach(|py| {
                let function = self.tool().postprocess.as_ref().map(|function| function.clone_ref(py));
                let result = match function {
                    Some(function) => function.bind(py).call1((self.call.bound(py), rare.response.bound(py))),
                    None => Ok(py.None().into_bound(py)),
                };
                result.map_or_else(
                    |error| {
                        error.restore(py);
                        ptr::null_mut()
                    },
                    Bound::into_ptr,
                )
            });
            if answer.is_null() {
                return self.fail();
            }
            let methods = (*ffi::Py_TYPE(answer)).tp_as_async;
            if methods.is_null() || (*methods).am_await.is_none() {
                return self.postprocessed(answer);
            }
            let iterator = await_iter(answer);
            if iterator.is_null() {
                return self.fail();
            }
            self.pending.set(iterator);
            self.step_postprocess(ffi::Py_None())
        }
    }

    pub(super) unsafe fn step_postprocess(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `pending` drives the postprocess function's coroutine.
        unsafe {
            match resume(self.pending.get(), value) {
                (PySendResult::PYGEN_NEXT, future) => Step::Suspend(future),
                (PySendResult::PYGEN_RETURN, answer) => self.postprocessed(answer),
                (PySendResult::PYGEN_ERROR, _) => self.fail(),
            }
        }
    }

    /// A true answer takes the response's place, anything else keeps it.
    pub(super) unsafe fn postprocessed(&self, answer: *mut PyObject) -> Step {
        // SAFETY: `answer` is owned; `response` holds the original.
        unsafe {
            self.pending.clear();
            let original = self.rare().response.take();
            match ffi::PyObject_IsTrue(answer) {
                1 => {
                    ffi::Py_XDECREF(original);
                    let response = as_response(answer);
                    if response.is_null() { self.fail() } else { self.hand_over(response, self.resume.get()) }
                }
                0 => {
                    ffi::Py_DECREF(answer);
                    self.hand_over(original, self.resume.get())
                }
                _ => {
                    ffi::Py_DECREF(answer);
                    ffi::Py_XDECREF(original);
                    self.fail()
                }
            }
        }
    }

    /// A generator has come to its end: a stream has at least one response.
    ///
    /// # Safety
    /// The thread is attached.
    pub(super) unsafe fn end_of_stream(&self) -> Step {
        if self.delivered.get() && !self.is_layer() {
            self.finish();
            return Step::End;
        }
        // SAFETY: as for the caller.
        Python::attach(|py| unsafe {
            if self.delivered.get() {
                return self.wind_up(py, Ending::Over, None, None);
            }
            match response::empty(py) {
                Ok(response) => self.wind_up(py, Ending::Respond, Some(response), None),
                Err(error) => self.wind_up(py, Ending::Raise, None, Some(error)),
            }
        })
    }
}

/// Counts the streams inside of streams that this thread is in. There is no Python code between them, so that the
/// interpreter's own limit would come too late for the stack.
struct Nested;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// More than anybody needs, and far from what a stack can hold.
const DEEPEST: usize = 250;

impl Nested {
    fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            (depth.get() < DEEPEST).then(|| {
                depth.set(depth.get() + 1);
                Self
            })
        })
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Makes a response of any value; consumes it. Null with an exception set.
#[cold]
unsafe fn as_response(object: *mut PyObject) -> *mut PyObject {
    Python::attach(|py| {
        // SAFETY: the caller owns the reference.
        let object = unsafe { Bound::from_owned_ptr(py, object) };
        match value::into_response(object) {
            Ok(response) => response.into_ptr(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    })
}
