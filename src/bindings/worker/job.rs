//! One piece of blocking work: a call in a worker thread, and what it has produced so far.
//!
//! The loop's thread starts, polls and abandons; a worker runs. They meet in `State`, whose lock is never held while
//! Python code runs.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::context::Context;
use super::guard;
use super::pool::Refused;
use super::port::{Awaited, Port};
use super::waiter::Waiter;
use super::{Shared, lock};

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
    pub(super) state: Mutex<State>,
    /// Rung when there is room for chunks, or no need of any.
    pub(super) room: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// There until a worker begins.
    pub(super) call: Option<Call>,
    /// There until the work has ended.
    pub(super) on_abandon: Option<Py<PyAny>>,
    pub(super) chunks: VecDeque<Py<PyAny>>,
    pub(super) outcome: Option<Outcome>,
    pub(super) waiter: Option<Py<Waiter>>,
    /// Whether the port has this job on its list.
    pub(super) posted: bool,
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
            state: Mutex::new(State { call: Some(call), on_abandon, ..State::default() }),
            room: Condvar::new(),
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
        let old = lock(&self.0.state).waiter.replace(waiter.clone().unbind());
        drop(old);
        // Making the waiter may have let a worker in, which then saw nobody waiting.
        if let Some(step) = self.0.next(py) {
            return Ok(step);
        }
        waiter.get().mark_awaited();
        Ok(Step::Wait(waiter.unbind().into_any()))
    }

    /// The event loop that hears of it, while it lives.
    pub(crate) fn event_loop<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.port.target(py)
    }

    /// Gives the work up.
    ///
    /// What it still produces is dropped. A generator is closed in its own thread, as soon as it next yields, or at
    /// once when it waits for room or has not started. A job that has not begun never begins.
    pub(crate) fn abandon(&self) {
        if self.0.shared.is_current() && lock(&self.0.state).reader != Reader::Gone {
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
        // Whoever holds the lock does not wait for the GIL, and the collector must see the same objects every time it
        // comes by, so there is no giving way here.
        let state = lock(&self.0.state);
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
        let outcome = {
            let mut state = lock(&self.state);
            if let Some(chunk) = state.chunks.pop_front() {
                if state.parked && state.chunks.len() <= self.limit / 2 {
                    self.room.notify_one();
                }
                return Some(Step::Chunk(chunk));
            }
            match state.outcome.take() {
                None => return (state.reader != Reader::Reads).then_some(Step::Done(None)),
                Some(outcome) => {
                    state.reader = Reader::Told;
                    outcome
                }
            }
        };
        Some(outcome.into_step(py))
    }

    /// Takes back what nobody waits for any more.
    pub(super) fn abandon(&self, py: Python<'_>) {
        let (leftovers, on_abandon) = {
            let mut state = lock(&self.state);
            if state.reader == Reader::Gone {
                return;
            }
            state.reader = Reader::Gone;
            self.room.notify_one();
            let leftovers =
                (state.call.take(), std::mem::take(&mut state.chunks), state.outcome.take(), state.waiter.take());
            (leftovers, state.on_abandon.take())
        };
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
    fn pending_waiter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Waiter>> {
        let waiter = lock(&self.state).waiter.as_ref().map(|waiter| waiter.clone_ref(py));
        if let Some(waiter) = waiter.map(|waiter| waiter.into_bound(py))
            && waiter.get().is_pending()
        {
            return Ok(waiter);
        }
        let Some(target) = self.port.target(py) else {
            return Err(PyRuntimeError::new_err("the event loop of a tool that runs in a thread is gone"));
        };
        Bound::new(py, Waiter::new(self.shared, target))
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

impl Awaited for Inner {
    fn waiter(&self) -> Option<Py<Waiter>> {
        let mut state = lock(&self.state);
        state.posted = false;
        state.waiter.take()
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
