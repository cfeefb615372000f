//! One piece of blocking work: a call in a worker thread, and what it has produced so far.
//!
//! The loop's thread starts, polls and abandons; a worker runs. They meet in `State`, which the GIL guards.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::context::Context;
use super::guard;
use super::held::Held;
use super::pool::Refused;
use super::port::Port;
use super::room::Room;
use super::{Shared, waiter};

/// A piece of blocking work under way in a worker thread: one function call, or a generator's chunks.
///
/// Dropping it gives the work up.
pub(crate) struct Job(Arc<Inner>);

/// What a job has for its reader.
pub(crate) enum Step {
    /// One item of a sync generator.
    Chunk(Py<PyAny>),
    /// A function's result, or `None`: a generator has ended, or there is nothing more to say.
    Done(Option<Py<PyAny>>),
    /// The work raised this.
    Raised(PyErr),
    /// Something like a future of the running loop, marked as awaited, so that it can be yielded to the loop as it is.
    /// Poll again when it is done, however it got done.
    Wait(Py<PyAny>),
}

pub(super) struct Inner {
    pub(super) shared: &'static Shared,
    pub(super) port: Arc<Port>,
    pub(super) limit: usize,
    pub(super) state: Held<State>,
    /// Where a producer waits for room for chunks, or for nobody to need any.
    pub(super) room: Room,
}

#[derive(Default)]
pub(super) struct State {
    /// There until a worker begins.
    pub(super) call: Option<Call>,
    /// There until the work has ended.
    pub(super) on_abandon: Option<Py<PyAny>>,
    pub(super) chunks: VecDeque<Py<PyAny>>,
    pub(super) outcome: Option<Outcome>,
    /// What the reader waits on, until the loop is told to wake it.
    pub(super) waiter: Option<Py<PyAny>>,
    /// Whether the producer waits for room.
    pub(super) parked: bool,
    pub(super) reader: Reader,
}

/// What the reader still wants.
#[derive(Default, PartialEq, Eq)]
pub(super) enum Reader {
    #[default]
    Reads,
    /// It has been told all there is.
    Told,
    /// It has given the job up.
    Gone,
}

pub(super) struct Call {
    pub(super) callable: Py<PyAny>,
    pub(super) args: Py<PyTuple>,
    pub(super) kwargs: Option<Py<PyDict>>,
    pub(super) context: Context,
}

pub(super) enum Outcome {
    Value(Py<PyAny>),
    Ended,
    Raised(Py<PyAny>),
    Panicked(String),
}

impl Job {
    /// Starts `callable(*args, **kwargs)` in a worker thread, in a copy of the caller's context.
    ///
    /// If the result is a generator, the same thread iterates it, at most `limit` chunks ahead of its reader.
    /// `on_abandon()` is called when the job is given up before it has ended.
    pub(crate) fn start(
        py: Python<'_>,
        callable: Bound<'_, PyAny>,
        args: Bound<'_, PyTuple>,
        kwargs: Option<Bound<'_, PyDict>>,
        limit: usize,
        on_abandon: Option<Py<PyAny>>,
    ) -> PyResult<Job> {
        let shared = Shared::current(py)?;
        let port = shared.ports.running(py, shared)?;
        let call = Call {
            callable: callable.unbind(),
            args: args.unbind(),
            kwargs: kwargs.map(Bound::unbind),
            context: Context::copy(py)?,
        };
        let inner = Arc::new(Inner {
            shared,
            port,
            limit: limit.max(1),
            state: Held::new(State { call: Some(call), on_abandon, ..State::default() }),
            room: Room::default(),
        });
        match shared.pool.submit(shared, inner.clone()) {
            Ok(()) => Ok(Job(inner)),
            Err(Refused::Closed) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: the interpreter is shutting down"))
            }
            Err(Refused::NoThread) => {
                Err(PyRuntimeError::new_err("cannot run a tool in a thread: no thread could be started"))
            }
        }
    }

    /// Says what there is, or hands out a future to wait on.
    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<Step> {
        if !self.0.shared.is_current() {
            return Ok(Step::Raised(PyRuntimeError::new_err(
                "the process was forked while a tool was running in a thread",
            )));
        }
        if let Some(step) = self.0.next(py) {
            return Ok(step);
        }
        let waiter = self.0.pending_waiter(py)?;
        let old = self.0.state.with(py, |state| state.waiter.replace(waiter.clone().unbind()));
        drop(old);
        // Making the waiter may have let a worker in, which then saw nobody waiting.
        if let Some(step) = self.0.next(py) {
            return Ok(step);
        }
        waiter::mark_awaited(&waiter)?;
        Ok(Step::Wait(waiter.unbind()))
    }

    /// Gives the work up.
    ///
    /// What it still produces is dropped. A generator is closed in its own thread, as soon as it next yields, or at
    /// once when it waits for room or has not started. A job that has not begun never begins.
    pub(crate) fn abandon(&self) {
        if !self.0.shared.is_current() {
            return;
        }
        // SAFETY: a job is owned by a stream, which only attached threads touch. Saying so again costs as much as the rest.
        let reads = self.0.state.with(unsafe { Python::assume_attached() }, |state| state.reader == Reader::Reads);
        if reads {
            Python::try_attach(|py| self.0.abandon(py));
        }
    }

    /// Visits the Python objects that are kept for the reader, or for a call that has not begun, until a visit says stop by a
    /// number that is not zero.
    ///
    /// When nothing but such objects leads to this handle, nobody will ever read on. What a worker holds while it
    /// runs is not visited: that is reachable.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(*mut ffi::PyObject) -> c_int) -> c_int {
        if !self.0.shared.is_current() {
            return 0;
        }
        // SAFETY: the collector runs in an attached thread; what it visits is counted, not run.
        let py = unsafe { Python::assume_attached() };
        self.0.state.with(py, |state| {
            let call = state.call.iter().flat_map(|call| {
                let keywords = call.kwargs.iter().map(Py::as_ptr);
                [call.callable.as_ptr(), call.args.as_ptr(), call.context.object().as_ptr()].into_iter().chain(keywords)
            });
            let outcome = match &state.outcome {
                Some(Outcome::Value(object) | Outcome::Raised(object)) => Some(object.as_ptr()),
                _ => None,
            };
            call.chain(state.chunks.iter().map(Py::as_ptr))
                .chain(outcome)
                .chain(state.waiter.iter().map(Py::as_ptr))
                .chain(state.on_abandon.iter().map(Py::as_ptr))
                .map(visit)
                .find(|stop| *stop != 0)
                .unwrap_or(0)
        })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Inner {
    /// The next thing for the reader, if there is one.
    fn next(&self, py: Python<'_>) -> Option<Step> {
        let outcome = self.state.with(py, |state| {
            if let Some(chunk) = state.chunks.pop_front() {
                if state.parked && state.chunks.len() <= self.limit / 2 {
                    state.parked = false;
                    self.room.open();
                }
                return Err(Some(Step::Chunk(chunk)));
            }
            match state.outcome.take() {
                None => Err((state.reader != Reader::Reads).then_some(Step::Done(None))),
                Some(outcome) => {
                    state.reader = Reader::Told;
                    Ok(outcome)
                }
            }
        });
        match outcome {
            Ok(outcome) => Some(outcome.into_step(py)),
            Err(step) => step,
        }
    }

    /// Takes back what nobody waits for any more.
    pub(super) fn abandon(&self, py: Python<'_>) {
        let leftovers = self.state.with(py, |state| {
            if std::mem::replace(&mut state.reader, Reader::Gone) != Reader::Reads {
                return None; // who has been told all there is leaves nothing
            }
            if std::mem::take(&mut state.parked) {
                self.room.open();
            }
            let results = (std::mem::take(&mut state.chunks), state.outcome.take(), state.waiter.take());
            Some((state.call.take(), results, state.on_abandon.take()))
        });
        let Some((call, results, on_abandon)) = leftovers else { return };
        let leftovers = (call, results);
        // This may be part of a destructor, with somebody else's exception on its way.
        let pending = guard::Pending::set_aside(py);
        drop(leftovers);
        if let Some(on_abandon) = on_abandon
            && let Err(error) = on_abandon.call0(py)
        {
            error.write_unraisable(py, Some(on_abandon.bind(py)));
        }
        pending.restore();
    }

    /// What the reader waits on already, or something new to wait on.
    fn pending_waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(waiter) = self.state.with(py, |state| state.waiter.as_ref().map(|waiter| waiter.clone_ref(py)))
            && waiter::is_pending(waiter.bind(py))?
        {
            return Ok(waiter.into_bound(py));
        }
        self.port.future(py)
    }
}

impl Outcome {
    fn into_step(self, py: Python<'_>) -> Step {
        match self {
            Outcome::Value(value) => Step::Done(Some(value)),
            Outcome::Ended => Step::Done(None),
            Outcome::Raised(exception) => Step::Raised(PyErr::from_value(exception.into_bound(py))),
            Outcome::Panicked(message) => Step::Raised(defect(py, &message)),
        }
    }
}

/// The exception that stands for a defect of toolcrib itself.
fn defect(py: Python<'_>, message: &str) -> PyErr {
    let text = format!("a worker thread panicked: {message}");
    let class = py.import("toolcrib.errors").and_then(|errors| errors.getattr("InternalError"));
    match class.and_then(|class| class.call1((&text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyRuntimeError::new_err(text),
    }
}
