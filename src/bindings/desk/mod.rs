//! `Desk`: what a toolkit and its tools share about who may do what, and who hears of it.
#![allow(
    clippy::doc_markdown,
    reason = "what `help()` shows is Python's documentation, where sections list bare names"
)]

mod judging;
mod listeners;
mod terms;

use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

pub(crate) use judging::{Ruling, about};

use crate::bindings::event::Told;
use crate::call::EventHub;
use crate::policy::Grants;
use listeners::Listeners;
use terms::Terms;

/// What a toolkit and its tools share about who may do what, and who hears of it.
#[pyclass(name = "Desk", module = "toolcrib._core", frozen, weakref)]
#[derive(Default)]
pub(crate) struct PyDesk {
    listeners: Mutex<Listeners>,
    /// The queues of those who read events when they have the time.
    hub: EventHub<Told>,
    terms: Mutex<Terms>,
    /// Which of the terms there is anything to do for before each call; see `terms`.
    marks: AtomicU8,
    /// How often another policy was put in place.
    epoch: AtomicU64,
    /// What was allowed for this run.
    grants: Grants,
}

#[pymethods]
impl PyDesk {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that holds a lock is using the desk, which is then not garbage.
        if let Ok(listeners) = self.listeners.try_lock() {
            listeners.traverse(&visit)?;
        }
        match self.terms.try_lock() {
            Ok(terms) => terms.traverse(&visit),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let handlers = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).take_handlers();
        drop(handlers);
        self.drop_terms();
    }
}
