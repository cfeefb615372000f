//! `Event` and the queues in which listeners find them: what a toolkit tells of its calls.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::desk::PyDesk;
use crate::call::EventKind;

/// One thing that happened to a call.
#[pyclass(name = "Event", module = "toolcrib", frozen)]
pub(crate) struct PyEvent {
    pub(super) kind: EventKind,
    pub(super) call_id: String,
    pub(super) tool: Option<String>,
    pub(super) caller: Option<Arc<str>>,
    pub(super) time: f64,
    pub(super) data: Py<PyDict>,
}

#[pymethods]
impl PyEvent {
    /// What happened.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind.as_str()
    }

    /// The id that the model gave the call, or one that was made up for it.
    #[getter]
    fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name of the tool that the request asks for; None if it asks for none.
    #[getter]
    fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The caller of the view through which the call came.
    #[getter]
    fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// When it happened, in seconds since 1970.
    #[getter]
    fn time(&self) -> f64 {
        self.time
    }

    /// What there is to say about it.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyDict> {
        self.data.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        let tool = self.tool.as_deref().unwrap_or("?");
        format!("Event(type='{}', call_id={:?}, tool={tool:?})", self.kind.as_str(), self.call_id)
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.data)
    }
}

/// Events that wait for one listener.
pub(super) struct Queue {
    pub(super) id: u64,
    /// What it wants to hear of; everything if it is empty.
    pub(super) kinds: Box<[EventKind]>,
    size: usize,
    state: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Py<PyEvent>>,
    dropped: u64,
    /// Called when the next event comes.
    wakers: Vec<Py<PyAny>>,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(id: u64, kinds: Vec<EventKind>, size: usize) -> Self {
        Self { id, kinds: kinds.into(), size: size.max(1), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in, in the place of the oldest if there is no room, and wakes whoever waits.
    pub(super) fn push(&self, py: Python<'_>, event: &Py<PyEvent>) {
        let (old, wakers) = {
            let mut state = self.state();
            if state.is_closed {
                return;
            }
            let old = if state.events.len() < self.size { None } else { state.events.pop_front() };
            state.dropped += u64::from(old.is_some());
            state.events.push_back(event.clone_ref(py));
            (old, std::mem::take(&mut state.wakers))
        };
        drop(old);
        wake(py, wakers);
    }

    fn close(&self, py: Python<'_>) {
        let (events, wakers) = {
            let mut state = self.state();
            state.is_closed = true;
            (std::mem::take(&mut state.events), std::mem::take(&mut state.wakers))
        };
        drop(events);
        wake(py, wakers);
    }
}

fn wake(py: Python<'_>, wakers: Vec<Py<PyAny>>) {
    for waker in wakers {
        if let Err(error) = waker.call0(py) {
            error.write_unraisable(py, Some(waker.bind(py)));
        }
    }
}

/// One listener's end of the events of a toolkit, for `toolcrib.events` to wait at.
#[pyclass(name = "EventQueue", module = "toolcrib._core", frozen)]
pub(crate) struct PyEventQueue {
    pub(super) queue: Arc<Queue>,
    pub(super) desk: Py<PyDesk>,
}

#[pymethods]
impl PyEventQueue {
    /// Take the oldest event, if there is one.
    fn take(&self) -> Option<Py<PyEvent>> {
        self.queue.state().events.pop_front()
    }

    /// Have a function called when the next event comes or the queue is closed; at once if that is so already.
    fn wake(&self, py: Python<'_>, waker: Py<PyAny>) {
        let late = {
            let mut state = self.queue.state();
            if state.events.is_empty() && !state.is_closed {
                state.wakers.push(waker);
                None
            } else {
                Some(waker)
            }
        };
        wake(py, late.into_iter().collect());
    }

    /// Take back what `wake` was given, if it was not called yet.
    fn forget(&self, waker: &Bound<'_, PyAny>) {
        let gone = {
            let mut state = self.queue.state();
            let place = state.wakers.iter().position(|known| known.is(waker));
            place.map(|place| state.wakers.remove(place))
        };
        drop(gone);
    }

    /// How many events made room for newer ones before anybody took them.
    #[getter]
    fn dropped(&self) -> u64 {
        self.queue.state().dropped
    }

    /// Whether nothing more will come.
    #[getter]
    fn is_closed(&self) -> bool {
        self.queue.state().is_closed
    }

    /// Stop listening.
    fn close(&self, py: Python<'_>) {
        self.desk.get().forget_queue(self.queue.id);
        self.queue.close(py);
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.desk)?;
        // A thread that holds the lock is using the queue, which is then not garbage.
        if let Ok(state) = self.queue.state.try_lock() {
            state.events.iter().try_for_each(|event| visit.call(event))?;
            state.wakers.iter().try_for_each(|waker| visit.call(waker))?;
        }
        Ok(())
    }

    fn __clear__(&self, py: Python<'_>) {
        self.queue.close(py);
    }
}

impl Drop for PyEventQueue {
    fn drop(&mut self) {
        self.desk.get().forget_queue(self.queue.id);
    }
}
