//! How a call ends when it does not simply come to its end: errors, cancellation, the deadline.

use std::ptr;

use pyo3::exceptions::{PyException, PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::intern;
use pyo3::prelude::*;

use super::drive::{await_iter, resume};
use super::failure::answer_for;
use super::rare::Ending;
use super::state::{Phase, State, Step};
use super::task;
use crate::bindings::callable::Kind;
use crate::bindings::response;
use crate::call::{Answer, ErrorMode};

impl State {
    /// An exception is set: decides what becomes of it.
    ///
    /// # Safety
    /// The thread is attached and an exception is set.
    #[cold]
    pub(super) unsafe fn fail(&self) -> Step {
        // SAFETY: as for the caller.
        unsafe {
            if self.phase.get() == Phase::AsyncGenerator
                && ffi::PyErr_ExceptionMatches(ffi::PyExc_StopAsyncIteration) != 0
            {
                ffi::PyErr_Clear();
                return self.end_of_stream();
            }
            Python::attach(|py| {
                let error = PyErr::fetch(py);
                self.answer_error(py, error)
            })
        }
    }

    unsafe fn answer_error(&self, py: Python<'_>, error: PyErr) -> Step {
        // SAFETY: as for `fail`.
        unsafe {
            match task::is_cancellation(py, &error) {
                Ok(true) => return self.interrupted(py, error),
                Ok(false) => {}
                Err(error) => return self.raise(py, error),
            }
            let phase = self.phase.get();
            let is_postprocess = phase == Phase::Postprocess;
            let is_generator = matches!(phase, Phase::AsyncGenerator | Phase::Generator)
                || (phase == Phase::Job && (self.delivered.get() || self.tool().kind == Kind::Generator));
            let in_background = self.rare.get().is_some_and(|rare| rare.in_background.get());
            let responds = match self.tool().errors {
                ErrorMode::Respond => true,
                ErrorMode::Raise => false,
                ErrorMode::Compat => in_background || (!is_postprocess && !is_generator),
            };
            if !responds || !is_answerable(py, &error) {
                return self.wind_up(py, Ending::Raise, None, Some(unmistakable(py, error)));
            }
            let answer = match answer_for(py, &error) {
                Answer::Failed { message } if in_background && (is_postprocess || is_generator) => {
                    Answer::FailedInBackground { message }
                }
                answer => answer,
            };
            let raised = self.span().map(|span| (span, error.clone_ref(py)));
            let cancellation = match self.cancellation_behind(py, error) {
                Ok(cancellation) => cancellation,
                Err(error) => return self.raise(py, error),
            };
            if let Some((span, raised)) = raised {
                span.note(py, cancellation.as_ref().unwrap_or(&raised));
            }
            match (response::answer(py, &answer), cancellation) {
                (Ok(response), Some(error)) if !self.single => {
                    self.wind_up(py, Ending::Interrupt, Some(response), Some(error))
                }
                (_, Some(error)) => self.wind_up(py, Ending::Raise, None, Some(error)),
                // A postprocess function sees what its tool says, also when that is an error; but not its own errors.
                (Ok(response), None) if !is_postprocess => self.deliver(response.into_ptr(), Phase::Done),
                (Ok(response), None) => self.wind_up(py, Ending::Respond, Some(response), None),
                (Err(error), None) => self.raise(py, error),
            }
        }
    }

    /// The cancellation that a tool answered with an error of its own, which must not make it undone.
    fn cancellation_behind(&self, py: Python<'_>, error: PyErr) -> PyResult<Option<PyErr>> {
        let Some(rare) = self.rare.get().filter(|rare| rare.cancel_thrown.get()) else { return Ok(None) };
        let expired = rare.deadline.take_expiry(py)?;
        if !self.is_asked_to_cancel(py, expired) {
            return Ok(None);
        }
        let cancellation = task::cancellation(py)?;
        cancellation.set_cause(py, Some(error));
        Ok(Some(cancellation))
    }

    /// A `CancelledError` came out of the tool. Somebody asked the task to cancel, or the deadline passed, or the tool
    /// raised it by itself.
    unsafe fn interrupted(&self, py: Python<'_>, error: PyErr) -> Step {
        // SAFETY: as for `fail`.
        unsafe {
            let expired = match self.rare.get().map(|rare| rare.deadline.take_expiry(py)) {
                Some(Ok(expired)) => expired,
                Some(Err(error)) => return self.raise(py, error),
                None => false,
            };
            let is_asked = self.is_asked_to_cancel(py, expired);
            let answered = if expired && !is_asked {
                let tool = self.tool();
                response::answer(
                    py,
                    &Answer::Timeout { tool: tool.name.to_string(), seconds: tool.timeout.unwrap_or_default() },
                )
            } else {
                self.note(py, &error);
                let last = if self.delivered.get() { self.last.bound(py) } else { None };
                // The call that a layer or a tool passes on has told of it already.
                if is_asked && last.as_ref().is_some_and(response::is_interrupted) {
                    return self.wind_up(py, Ending::Raise, None, Some(error));
                }
                let is_function = matches!(self.phase.get(), Phase::Coroutine | Phase::Job | Phase::Approval);
                response::interrupted(py, last, is_function)
            };
            match answered {
                // A chunk that cannot even be repeated must not come in the way of a cancellation.
                Err(_) if is_asked => self.wind_up(py, Ending::Raise, None, Some(error)),
                Err(error) => self.raise(py, error),
                Ok(_) if is_asked && self.single => self.wind_up(py, Ending::Raise, None, Some(error)),
                Ok(response) if is_asked => self.wind_up(py, Ending::Interrupt, Some(response), Some(error)),
                Ok(response) => self.wind_up(py, Ending::Respond, Some(response), None),
            }
        }
    }

    /// Whether the task was asked to cancel since the call began; a request that the deadline made is already taken back.
    pub(super) fn is_asked_to_cancel(&self, py: Python<'_>, expired: bool) -> bool {
        match (self.cancelling.get(), task::cancelling(py)) {
            (Some(before), Some(now)) => now > before,
            // Nobody counts: a cancellation that the event loop threw in is taken for a request.
            (None, None) => !expired && self.rare.get().is_some_and(|rare| rare.cancel_thrown.get()),
            // The call never gave way to the event loop, so nobody else can have asked.
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Finalises what the tool left open, and ends the call.
    pub(super) unsafe fn wind_up(
        &self,
        py: Python<'_>,
        ending: Ending,
        response: Option<Bound<'_, PyAny>>,
        error: Option<PyErr>,
    ) -> Step {
        // SAFETY: as for `fail`.
        unsafe {
            let rare = self.rare();
            rare.ending.set(ending);
            rare.response.set(response.map_or(ptr::null_mut(), Bound::into_ptr));
            rare.error.set(error.map_or(ptr::null_mut(), |error| error.into_value(py).into_ptr()));
            self.pending.clear();
            // Only an error of postprocessing leaves a generator behind that is not finished.
            let open = self.phase.get() == Phase::Postprocess && self.resume.get() != Phase::Done;
            if open && let Some(inner) = self.inner.bound(py) {
                let closer = if self.resume.get() == Phase::AsyncGenerator {
                    intern!(py, "aclose")
                } else {
                    intern!(py, "close")
                };
                match inner.getattr_opt(closer).and_then(|close| close.map(|close| close.call0()).transpose()) {
                    Ok(Some(awaitable)) if self.resume.get() == Phase::AsyncGenerator => {
                        let iterator = await_iter(awaitable.into_ptr());
                        if !iterator.is_null() {
                            self.pending.set(iterator);
                            self.phase.set(Phase::Closing);
                            return self.step_closing(ffi::Py_None());
                        }
                        PyErr::fetch(py).write_unraisable(py, Some(&inner));
                    }
                    Ok(_) => {}
                    Err(error) => error.write_unraisable(py, Some(&inner)),
                }
            }
            self.end(py)
        }
    }

    pub(super) unsafe fn step_closing(&self, value: *mut PyObject) -> Step {
        // SAFETY: in this phase `pending` drives the `aclose` of the tool's generator.
        unsafe {
            if self.pending.get().is_null() {
                return Python::attach(|py| self.end(py));
            }
            let (sent, result) = resume(self.pending.get(), value);
            Python::attach(|py| match sent {
                PySendResult::PYGEN_NEXT => Step::Suspend(result),
                PySendResult::PYGEN_RETURN => {
                    ffi::Py_XDECREF(result);
                    self.end(py)
                }
                PySendResult::PYGEN_ERROR => {
                    self.note_closing_error(py, PyErr::fetch(py));
                    self.end(py)
                }
            })
        }
    }

    /// An error while the generator was finalised. Another request to cancel wins over the ending, and whoever asked for
    /// the end is told; the rest goes to whoever listens to unraisable errors, because the ending is already known.
    pub(super) fn note_closing_error(&self, py: Python<'_>, error: PyErr) {
        let rare = self.rare();
        if rare.ending.get() == Ending::Closed || task::is_cancellation(py, &error).unwrap_or(false) {
            rare.ending.set(Ending::Raise);
            rare.error.set(error.into_value(py).into_ptr());
        } else {
            error.write_unraisable(py, self.inner.bound(py).as_ref());
        }
    }

    /// The ending that was decided on.
    pub(super) unsafe fn end(&self, py: Python<'_>) -> Step {
        // SAFETY: as for `fail`.
        if let Some(step) = unsafe { self.close_opened(py) } {
            return step;
        }
        let rare = self.rare();
        let response = rare.response.take();
        self.finish();
        match rare.ending.get() {
            Ending::Respond => Step::Chunk(response),
            Ending::Over => Step::End,
            Ending::Closed => Step::Chunk(py.None().into_ptr()),
            Ending::Interrupt => {
                self.phase.set(Phase::Cancelled);
                Step::Chunk(response)
            }
            Ending::Raise => {
                self.raise_stored(py);
                Step::Raise
            }
        }
    }

    pub(super) unsafe fn raise(&self, py: Python<'_>, error: PyErr) -> Step {
        self.finish();
        error.restore(py);
        Step::Raise
    }

    /// Raises the cancellation that was held back until the interrupted response was delivered.
    #[cold]
    pub(super) unsafe fn raise_cancellation(&self) {
        Python::attach(|py| {
            self.finish();
            self.raise_stored(py);
        });
    }

    fn raise_stored(&self, py: Python<'_>) {
        let error = self.rare().error.bound(py);
        self.rare().error.clear();
        let error =
            error.map_or_else(|| PyRuntimeError::new_err("the exception of this tool call is gone"), PyErr::from_value);
        error.restore(py);
    }

    /// The call gives way to the event loop for the first time in this step.
    pub(super) unsafe fn note_suspension(&self) {
        // SAFETY: a call that waits has found its tool, or is finalising it.
        // What a person takes to answer is none of the tool's time.
        let is_tool = !self.tool.get().is_null() && self.phase.get() != Phase::Approval;
        // SAFETY: the slot is filled.
        let timeout = if is_tool { unsafe { self.tool() }.timeout } else { None };
        if timeout.is_none() && self.phase.get() == Phase::Job {
            return; // only a request can end this wait, so that requests need not be counted beforehand
        }
        self.suspended.set(true);
        if self.cancelling.get().is_some() && timeout.is_none() {
            return;
        }
        Python::attach(|py| {
            if self.cancelling.get().is_none() {
                self.cancelling.set(task::cancelled_before(py));
            }
            if let Some(seconds) = timeout
                && let Err(error) = self.rare().deadline.resume(py, seconds)
            {
                // Without asyncio's timers the call goes on without a deadline, and says so.
                error.write_unraisable(py, self.tool.bound(py).as_ref());
            }
        });
    }
}

/// An exception that is raised out of a step. `StopIteration` would be taken for the step's result there and
/// `StopAsyncIteration` for the end of the stream, so they go as the cause of another, as they do out of Python's generators.
fn unmistakable(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) && !error.is_instance_of::<PyStopAsyncIteration>(py) {
        return error;
    }
    let kind = error.get_type(py).name().map_or_else(|_| "StopIteration".to_owned(), |name| name.to_string());
    let wrapped = PyRuntimeError::new_err(format!("the tool raised {kind}"));
    wrapped.set_cause(py, Some(error));
    wrapped
}

/// Whether an exception may become a response: ordinary ones, and a panic of another extension module. What asks the
/// program to stop (`KeyboardInterrupt`, `SystemExit`, `GeneratorExit`, another library's cancellation) passes through.
fn is_answerable(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) || error.get_type(py).name().is_ok_and(|name| name == "PanicException")
}
