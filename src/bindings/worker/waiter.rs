//! The future that a task waits on until its result has arrived: compatible with `asyncio.Future`, and cheaper to wake.
//!
//! An asyncio future that is done schedules each of its callbacks, which costs a handle and a turn of the loop's Python
//! code each. Results are handed out by the loop itself, at a moment at which it may as well make that call, so the inbox
//! makes it right there. Everything else follows asyncio's protocol for foreign futures: a class with
//! `_asyncio_future_blocking`, of which tasks use `get_loop`, `add_done_callback`, `cancel` and `result`.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bindings::call::python::interpreter::{Context, GilCell};
use crate::bindings::once::intern;

/// A future without a result: it is pending, done or cancelled.
#[pyclass(name = "_Waiter", module = "toolcrib._core", frozen, weakref)]
pub(super) struct Waiter {
    event_loop: Py<PyAny>,
    /// `_asyncio_future_blocking`: it was yielded by `await`, and the task has not received it yet.
    is_awaited: AtomicBool,
    state: GilCell<WaiterState>,
}

#[derive(Default)]
struct WaiterState {
    end: Option<WaiterEnd>,
    callbacks: Callbacks,
}

pub(super) enum WaiterEnd {
    Done,
    /// With the message passed to `cancel`.
    Cancelled(Option<Py<PyAny>>),
}

/// Callbacks of a waiter. The first is nearly always the only one, a task's.
#[derive(Default)]
pub(super) struct Callbacks {
    pub(super) first: Option<Callback>,
    pub(super) others: Vec<Callback>,
}

pub(super) struct Callback {
    pub(super) function: Py<PyAny>,
    pub(super) context: Context,
}

impl Waiter {
    /// A pending waiter of an event loop.
    pub(super) fn new<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let waiter = Waiter {
            event_loop: event_loop.clone().unbind(),
            is_awaited: AtomicBool::new(false),
            state: GilCell::default(),
        };
        Bound::new(event_loop.py(), waiter)
    }

    pub(super) fn is_pending(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.end.is_none())
    }

    /// Marks the waiter as awaited, so that it can be yielded to the loop as it is.
    pub(super) fn mark_awaited(&self) {
        self.is_awaited.store(true, Ordering::Relaxed);
    }

    /// Ends a pending waiter, and returns its callbacks; `None` if it was not pending.
    pub(super) fn end(&self, py: Python<'_>, end: WaiterEnd) -> Option<Callbacks> {
        let mut end = Some(end);
        self.state.with(py, |state| {
            if state.end.is_some() {
                return None;
            }
            state.end = end.take();
            Some(std::mem::take(&mut state.callbacks))
        })
    }

    /// Schedules the callbacks on the loop.
    pub(super) fn call_soon(slf: &Bound<'_, Self>, callbacks: &Callbacks) -> PyResult<()> {
        let py = slf.py();
        let event_loop = slf.get().event_loop.bind(py);
        for callback in callbacks.first.iter().chain(&callbacks.others) {
            let options = PyDict::new(py);
            options.set_item(intern!(py, "context"), callback.context.object())?;
            event_loop.call_method(intern!(py, "call_soon"), (&callback.function, slf), Some(&options))?;
        }
        Ok(())
    }
}

#[pymethods]
impl Waiter {
    #[getter(_asyncio_future_blocking)]
    fn blocking(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (callback, *, context=None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let context = match context {
            Some(context) => Context::from(context.unbind()),
            None => Context::copy(py)?,
        };
        let mut callback = Some(Callback { function: callback.unbind(), context });
        slf.get().state.with(py, |state| {
            if state.end.is_none() {
                state.callbacks.add(callback.take());
            }
        });
        match callback {
            None => Ok(()),
            late => Self::call_soon(slf, &Callbacks { first: late, others: Vec::new() }),
        }
    }

    /// Removes every callback that is equal to this one, and returns their number.
    fn remove_done_callback(&self, py: Python<'_>, callback: &Bound<'_, PyAny>) -> PyResult<usize> {
        // Comparing runs Python code, so the callbacks are taken out meanwhile.
        let callbacks = self.state.with(py, |state| std::mem::take(&mut state.callbacks));
        let (mut kept, mut removed, mut failure) = (Callbacks::default(), Vec::new(), None);
        for it in callbacks.first.into_iter().chain(callbacks.others) {
            let is_equal = failure.is_none()
                && it.function.bind(py).eq(callback).unwrap_or_else(|error| {
                    failure = Some(error);
                    false
                });
            if is_equal {
                removed.push(it);
            } else {
                kept.add(Some(it));
            }
        }
        self.state.with(py, |state| {
            let added = std::mem::replace(&mut state.callbacks, kept);
            added.first.into_iter().chain(added.others).for_each(|it| state.callbacks.add(Some(it)));
        });
        failure.map_or(Ok(removed.len()), Err)
    }

    #[pyo3(signature = (msg=None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        slf.get().is_awaited.store(false, Ordering::Relaxed);
        match slf.get().end(slf.py(), WaiterEnd::Cancelled(msg)) {
            Some(callbacks) => Self::call_soon(slf, &callbacks).map(|()| true),
            None => Ok(false),
        }
    }

    fn cancelled(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| matches!(state.end, Some(WaiterEnd::Cancelled(_))))
    }

    fn done(&self, py: Python<'_>) -> bool {
        !self.is_pending(py)
    }

    /// Raises if the waiter is pending or cancelled.
    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let end = self.state.with(py, |state| match &state.end {
            None => Err(None),
            Some(WaiterEnd::Done) => Ok(()),
            Some(WaiterEnd::Cancelled(message)) => Err(Some(message.as_ref().map(|message| message.clone_ref(py)))),
        });
        let Err(end) = end else { return Ok(()) };
        let asyncio = py.import(intern!(py, "asyncio"))?;
        let error = match end {
            None => asyncio.getattr(intern!(py, "InvalidStateError"))?.call1(("Result is not set.",))?,
            Some(None) => asyncio.getattr(intern!(py, "CancelledError"))?.call0()?,
            Some(Some(message)) => asyncio.getattr(intern!(py, "CancelledError"))?.call1((message,))?,
        };
        Err(PyErr::from_value(error))
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }

    fn __await__(slf: Py<Self>) -> Awaiting {
        Awaiting { waiter: slf, has_yielded: AtomicBool::new(false) }
    }

    fn __iter__(slf: Py<Self>) -> Awaiting {
        Self::__await__(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> &'static str {
        self.state.with(py, |state| match state.end {
            None => "<toolcrib waiter, pending>",
            Some(WaiterEnd::Done) => "<toolcrib waiter, done>",
            Some(WaiterEnd::Cancelled(_)) => "<toolcrib waiter, cancelled>",
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        let state = |state: &WaiterState| {
            if let Some(WaiterEnd::Cancelled(message)) = &state.end {
                visit.call(message)?;
            }
            state.callbacks.first.iter().chain(&state.callbacks.others).try_for_each(|it| {
                visit.call(&it.function)?;
                visit.call(it.context.object())
            })
        };
        self.state.visit(&visit, state).unwrap_or(Ok(()))
    }

    fn __clear__(&self, py: Python<'_>) {
        let callbacks = self.state.with(py, |state| std::mem::take(&mut state.callbacks));
        drop(callbacks);
    }
}

impl Callbacks {
    fn add(&mut self, callback: Option<Callback>) {
        if self.first.is_none() && self.others.is_empty() {
            self.first = callback;
        } else {
            self.others.extend(callback);
        }
    }
}

/// `await waiter`: yields it once, unless it is done.
#[pyclass(name = "_Awaiting", module = "toolcrib._core", frozen)]
struct Awaiting {
    waiter: Py<Waiter>,
    has_yielded: AtomicBool,
}

#[pymethods]
impl Awaiting {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Waiter>>> {
        let waiter = self.waiter.get();
        if !waiter.is_pending(py) {
            return waiter.result(py).map(|()| None);
        }
        if self.has_yielded.swap(true, Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("await wasn't used with future"));
        }
        waiter.mark_awaited();
        Ok(Some(self.waiter.clone_ref(py)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.waiter)
    }
}
