//! Who hears of the calls of a toolkit.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyDesk;
use crate::bindings::call::{Case, LISTENERS};
use crate::bindings::copying::copied;
use crate::bindings::event::{PyEvent, PyEventQueue};
use crate::call::{EventKind, Kinds};

#[derive(Default)]
pub(super) struct Listeners {
    next: u64,
    handlers: Vec<(u64, EventKind, Py<PyAny>)>,
}

impl Listeners {
    fn id(&mut self) -> u64 {
        self.next += 1;
        LISTENERS.fetch_add(1, Ordering::Relaxed);
        self.next
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.handlers.iter().try_for_each(|(_, _, handler)| visit.call(handler))
    }

    /// Takes the handlers out, to be dropped where no lock is held.
    pub(super) fn take_handlers(&mut self) -> Vec<(u64, EventKind, Py<PyAny>)> {
        let handlers = std::mem::take(&mut self.handlers);
        LISTENERS.fetch_sub(handlers.len(), Ordering::Relaxed);
        handlers
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        LISTENERS.fetch_sub(self.handlers.len(), Ordering::Relaxed);
    }
}

impl PyDesk {
    fn listeners(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.hub.is_watched() || !self.listeners().handlers.is_empty()
    }

    /// Tells whoever listens of something. What there is to say about it is made only then; nobody can be hurt by it.
    pub(crate) fn tell<'py>(
        &self,
        py: Python<'py>,
        kind: EventKind,
        case: &Case,
        data: impl FnOnce() -> PyResult<Bound<'py, PyDict>>,
    ) {
        let handlers: Vec<Py<PyAny>> = {
            let listeners = self.listeners();
            let handlers = listeners.handlers.iter().filter(|(_, wanted, _)| *wanted == kind);
            handlers.map(|(_, _, handler)| handler.clone_ref(py)).collect()
        };
        if handlers.is_empty() && !self.hub.wants(kind) {
            return;
        }
        let event = data().and_then(|data| {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let (call_id, tool) = (case.id.clone(), case.tool.clone());
            // What was sent may be changed later, by whoever sent it.
            let data = copied(&data)?.unbind();
            Py::new(py, PyEvent { kind, call_id, tool, caller: case.caller.clone(), time, data })
        });
        let event = match event {
            Ok(event) => event,
            Err(error) => return error.write_unraisable(py, None),
        };
        if self.hub.wants(kind) {
            self.hub.tell(kind, &Arc::new(event.clone_ref(py)));
        }
        for handler in handlers {
            if let Err(error) = event.get().copy(py).and_then(|event| handler.call1(py, (event,))) {
                error.write_unraisable(py, Some(handler.bind(py)));
            }
        }
    }
}

fn kind_of(word: &str) -> PyResult<EventKind> {
    EventKind::parse(word).ok_or_else(|| {
        let known: Vec<_> = EventKind::ALL.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
        PyValueError::new_err(format!("there is no event '{word}': a type is one of {}", known.join(", ")))
    })
}

#[pymethods]
impl PyDesk {
    /// Open a queue for the events of these types, or of all.
    #[pyo3(signature = (types, size))]
    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over what it has converted")]
    fn listen(&self, types: Option<Vec<String>>, size: usize) -> PyResult<PyEventQueue> {
        let kinds = match types {
            None => Kinds::ALL,
            Some(types) => types.iter().map(|word| kind_of(word)).collect::<PyResult<_>>()?,
        };
        Ok(PyEventQueue::new(&self.hub, kinds, size))
    }

    /// Have a function called with each event of a type; gives a number to take that back by.
    fn subscribe(&self, r#type: &str, handler: Py<PyAny>) -> PyResult<u64> {
        let kind = kind_of(r#type)?;
        let mut listeners = self.listeners();
        let id = listeners.id();
        listeners.handlers.push((id, kind, handler));
        Ok(id)
    }

    /// Take a subscription back; false if that was done before.
    fn unsubscribe(&self, number: u64) -> bool {
        let gone = {
            let mut listeners = self.listeners();
            let place = listeners.handlers.iter().position(|(id, _, _)| *id == number);
            place.map(|place| listeners.handlers.remove(place))
        };
        LISTENERS.fetch_sub(usize::from(gone.is_some()), Ordering::Relaxed);
        gone.is_some()
    }
}
