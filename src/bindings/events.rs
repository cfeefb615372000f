//! Events of a toolkit's calls: `Event`, the queues of listeners, and the handlers that are subscribed.
#![allow(clippy::doc_markdown, reason = "`help()` shows these comments, and Python's documentation lists bare names")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 prescribes the signatures of special methods")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::call::LISTENERS;
use super::json::deep_copy;
use super::policy::PyPermissions;
use crate::call::{CallInfo, EventHub, EventKind, Kinds, Listener};
use crate::sync::lock;

/// An event of a call.
#[pyclass(name = "Event", module = "toolcrib", frozen)]
pub(crate) struct PyEvent {
    kind: EventKind,
    call_id: String,
    tool: Option<String>,
    caller: Option<Arc<str>>,
    session: Option<Arc<str>>,
    path: Vec<Arc<str>>,
    time: f64,
    data: Py<PyDict>,
}

impl PyEvent {
    /// A copy for one listener, whose changes to it are not seen by others.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        let data = deep_copy(self.data.bind(py))?.unbind();
        let (call_id, tool) = (self.call_id.clone(), self.tool.clone());
        let (caller, session, path) = (self.caller.clone(), self.session.clone(), self.path.clone());
        Py::new(py, Self { kind: self.kind, call_id, tool, caller, session, path, time: self.time, data })
    }
}

#[pymethods]
impl PyEvent {
    /// The type of event.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind.as_str()
    }

    /// The id of the call, from the model or generated.
    #[getter]
    fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name of the tool; None if the request has none.
    #[getter]
    fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The caller of the view that was called.
    #[getter]
    fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// The id of the session that was called.
    #[getter]
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The names of the agents that called each other until the call, from the outermost one.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.path.iter().map(|agent| &**agent))
    }

    /// The time of the event, in seconds since 1970.
    #[getter]
    fn time(&self) -> f64 {
        self.time
    }

    /// The details, by their names.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyDict> {
        self.data.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        let tool = self.tool.as_deref().unwrap_or("?");
        format!("Event(type='{}', call_id={:?}, tool={tool:?})", self.kind.as_str(), self.call_id)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.data)
    }
}

/// An event in a queue.
type QueuedEvent = Arc<Py<PyEvent>>;

/// Functions that are called with the next event.
#[derive(Default)]
struct Wakers(Mutex<Vec<Py<PyAny>>>);

impl Wakers {
    fn list(&self) -> MutexGuard<'_, Vec<Py<PyAny>>> {
        lock(&self.0)
    }

    /// Calls each of them once, without the lock.
    fn wake(&self, py: Python<'_>) {
        let wakers = std::mem::take(&mut *self.list());
        for waker in wakers {
            if let Err(error) = waker.call0(py) {
                error.write_unraisable(py, Some(waker.bind(py)));
            }
        }
    }
}

/// The queue of one listener, for `toolcrib.events` to wait on.
#[pyclass(name = "_EventQueue", module = "toolcrib._core", frozen)]
pub(crate) struct PyEventQueue {
    listener: Listener<QueuedEvent>,
    wakers: Arc<Wakers>,
    is_closed: AtomicBool,
}

impl PyEventQueue {
    /// Subscribes to a hub.
    fn new(hub: &EventHub<QueuedEvent>, kinds: Kinds, size: usize) -> Self {
        let wakers = Arc::<Wakers>::default();
        let woken = wakers.clone();
        // While the interpreter shuts down no function can be called, and none is waited for.
        let waker = Box::new(move || Python::try_attach(|py| woken.wake(py)).unwrap_or_default());
        LISTENERS.fetch_add(1, Ordering::Relaxed);
        Self { listener: hub.listen(kinds, size, Some(waker)), wakers, is_closed: AtomicBool::new(false) }
    }

    /// Stops listening, once.
    fn stop(&self) {
        if !self.is_closed.swap(true, Ordering::Relaxed) {
            LISTENERS.fetch_sub(1, Ordering::Relaxed);
            self.listener.close();
            drop(self.listener.take_all());
        }
    }
}

#[pymethods]
impl PyEventQueue {
    /// Remove and return the oldest event, if there is one.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyEvent>>> {
        self.listener.take().map(|event| event.get().copy(py)).transpose()
    }

    /// Call a function once, when the next event comes or the queue is closed; at once if either has happened.
    fn wake(&self, py: Python<'_>, waker: Py<PyAny>) {
        self.wakers.list().push(waker);
        // Checked after the push: an event that came before has woken no function.
        if self.is_closed() || !self.listener.is_empty() {
            self.wakers.wake(py);
        }
    }

    /// Remove a function that was passed to `wake` and was not called yet.
    fn forget(&self, waker: &Bound<'_, PyAny>) {
        let gone = {
            let mut wakers = self.wakers.list();
            let place = wakers.iter().position(|known| known.is(waker));
            place.map(|place| wakers.remove(place))
        };
        drop(gone);
    }

    /// The number of unread events that were dropped for newer ones.
    #[getter]
    fn dropped(&self) -> u64 {
        self.listener.dropped()
    }

    /// True if no more events will come.
    #[getter]
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Stop listening.
    fn close(&self, py: Python<'_>) {
        self.stop();
        self.wakers.wake(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // An event is visited once for each queue that it is in, but those queues share one reference to it. So only events
        // that are in no other queue may be visited.
        self.listener.try_each(|event| if Arc::strong_count(event) == 1 { visit.call(&**event) } else { Ok(()) })?;
        // A thread that holds the lock uses the queue, so it is not garbage.
        self.wakers.0.try_lock().map_or(Ok(()), |wakers| wakers.iter().try_for_each(|waker| visit.call(waker)))
    }

    fn __clear__(&self) {
        self.stop();
        let wakers = std::mem::take(&mut *self.wakers.list());
        drop(wakers);
    }
}

impl Drop for PyEventQueue {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The listeners of a toolkit: queues, and handlers that are called at once.
#[derive(Default)]
pub(crate) struct Listeners {
    /// The queues.
    hub: EventHub<QueuedEvent>,
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
struct Subscribers {
    next: u64,
    handlers: Vec<(u64, EventKind, Py<PyAny>)>,
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        LISTENERS.fetch_sub(self.handlers.len(), Ordering::Relaxed);
    }
}

impl Listeners {
    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        lock(&self.subscribers)
    }

    /// True if there is a listener.
    pub(crate) fn is_watched(&self) -> bool {
        self.hub.is_watched() || !self.subscribers().handlers.is_empty()
    }

    /// Emits an event. The data are made only if there is a listener for it; handler errors never reach the call.
    pub(crate) fn emit<'py>(
        &self,
        py: Python<'py>,
        kind: EventKind,
        call: &CallInfo,
        data: impl FnOnce() -> PyResult<Bound<'py, PyDict>>,
    ) {
        let handlers: Vec<Py<PyAny>> = {
            let subscribers = self.subscribers();
            let handlers = subscribers.handlers.iter().filter(|(_, wanted, _)| *wanted == kind);
            handlers.map(|(_, _, handler)| handler.clone_ref(py)).collect()
        };
        if handlers.is_empty() && !self.hub.wants(kind) {
            return;
        }
        let event = data().and_then(|data| {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let (call_id, tool) = (call.id.clone(), call.tool.clone());
            // The sender may change its data later.
            let data = deep_copy(&data)?.unbind();
            let (caller, session, path) = (call.caller.clone(), call.session_id().cloned(), call.path());
            Py::new(py, PyEvent { kind, call_id, tool, caller, session, path, time, data })
        });
        let event = match event {
            Ok(event) => event,
            Err(error) => return error.write_unraisable(py, None),
        };
        if self.hub.wants(kind) {
            self.hub.publish(kind, &Arc::new(event.clone_ref(py)));
        }
        for handler in handlers {
            if let Err(error) = event.get().copy(py).and_then(|event| handler.call1(py, (event,))) {
                error.write_unraisable(py, Some(handler.bind(py)));
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that holds the lock uses the listeners, so they are not garbage.
        let Ok(subscribers) = self.subscribers.try_lock() else { return Ok(()) };
        subscribers.handlers.iter().try_for_each(|(_, _, handler)| visit.call(handler))
    }

    /// Drops the handlers, without the lock.
    pub(crate) fn clear(&self) {
        let handlers = std::mem::take(&mut self.subscribers().handlers);
        LISTENERS.fetch_sub(handlers.len(), Ordering::Relaxed);
        drop(handlers);
    }
}

fn kind_of(word: &str) -> PyResult<EventKind> {
    EventKind::parse(word).ok_or_else(|| {
        let known: Vec<_> = EventKind::ALL.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
        PyValueError::new_err(format!("unknown event type '{word}': expected one of {}", known.join(", ")))
    })
}

#[pymethods]
impl PyPermissions {
    /// Open a queue for events of these types, or of all types.
    #[pyo3(signature = (types, size))]
    fn listen(&self, types: Option<Vec<String>>, size: usize) -> PyResult<PyEventQueue> {
        let kinds = match types {
            None => Kinds::ALL,
            Some(types) => types.iter().map(|word| kind_of(word)).collect::<PyResult<_>>()?,
        };
        Ok(PyEventQueue::new(&self.listeners.hub, kinds, size))
    }

    /// Call a function with each event of a type; return the number to unsubscribe it by.
    fn subscribe(&self, r#type: &str, handler: Py<PyAny>) -> PyResult<u64> {
        let kind = kind_of(r#type)?;
        let mut subscribers = self.listeners.subscribers();
        subscribers.next += 1;
        LISTENERS.fetch_add(1, Ordering::Relaxed);
        let id = subscribers.next;
        subscribers.handlers.push((id, kind, handler));
        Ok(id)
    }

    /// Unsubscribe a function; return False if that was done before.
    fn unsubscribe(&self, number: u64) -> bool {
        let gone = {
            let mut subscribers = self.listeners.subscribers();
            let place = subscribers.handlers.iter().position(|(id, _, _)| *id == number);
            place.map(|place| subscribers.handlers.remove(place))
        };
        LISTENERS.fetch_sub(usize::from(gone.is_some()), Ordering::Relaxed);
        gone.is_some()
    }
}
