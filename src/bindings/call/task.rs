//! The asyncio task that a call runs in: its cancellation, and the time that a tool may take. asyncio is imported on first
//! use: by then the application has it anyway.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pyo3::ffi::PyObject;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::python::attached;
use super::python::slot::Slot;
use crate::bindings::imported::import_module;
use crate::bindings::once::{GilOnce, intern};

struct Asyncio {
    cancelled_error: Py<PyType>,
    current_task: Py<PyAny>,
    get_running_loop: Py<PyAny>,
}

fn asyncio(py: Python<'_>) -> PyResult<&Asyncio> {
    static ASYNCIO: GilOnce<Asyncio> = GilOnce::new();
    ASYNCIO.get_or_try_init(py, || {
        let module = import_module(py, "asyncio")?;
        Ok(Asyncio {
            cancelled_error: module.getattr("CancelledError")?.cast_into::<PyType>()?.unbind(),
            current_task: module.getattr("current_task")?.unbind(),
            get_running_loop: module.getattr("get_running_loop")?.unbind(),
        })
    })
}

/// True for `asyncio.CancelledError`.
pub(super) fn is_cancellation(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    Ok(error.is_instance(py, asyncio(py)?.cancelled_error.bind(py)))
}

/// A new `asyncio.CancelledError`.
pub(super) fn cancellation(py: Python<'_>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(asyncio(py)?.cancelled_error.bind(py).call0()?))
}

/// The event loop that runs in this thread.
pub(super) fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    asyncio(py)?.get_running_loop.bind(py).call0()
}

/// The task that runs in this thread.
pub(super) fn current(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    asyncio(py)?.current_task.bind(py).call0()
}

/// The number of times that the current task had been asked to cancel before the call that gives way now. A request that is still to be
/// delivered will be delivered to this call, so it does not count as an earlier one.
pub(super) fn cancelled_before(py: Python<'_>) -> Option<usize> {
    let task = current(py).ok()?;
    let requests = requests(&task)?;
    if requests == 0 {
        return Some(0);
    }
    let is_pending =
        task.getattr_opt(intern!(py, "_must_cancel")).ok()?.is_some_and(|flag| flag.is_truthy().unwrap_or(false));
    Some(requests - usize::from(is_pending))
}

/// The number of times that the current task has been asked to cancel; `None` where that is not counted: outside a task, outside asyncio,
/// and before Python 3.11.
pub(super) fn cancelling(py: Python<'_>) -> Option<usize> {
    // Outside asyncio `current_task` raises, outside a task there is no such method; those are answers, not errors.
    current(py).ok().as_ref().and_then(requests)
}

fn requests(task: &Bound<'_, PyAny>) -> Option<usize> {
    if !cfg!(Py_3_11) || task.is_none() {
        return None;
    }
    task.call_method0(intern!(task.py(), "cancelling")).ok()?.extract().ok()
}

/// The clock of one call. Only time that the call spends waiting counts, not what the consumer does between chunks.
pub(super) struct Deadline {
    remaining: Cell<Option<f64>>,
    since: Cell<Option<Instant>>,
    /// An `Alarm`, once the call has waited.
    alarm: Slot,
    /// The event loop's handle, while it waits.
    timer: Slot,
}

/// The callback of the event loop when the time is up: cancels the task that waits, as `asyncio.timeout` does.
#[pyclass(frozen, module = "toolcrib")]
struct Alarm {
    task: Py<PyAny>,
    rang: AtomicBool,
}

#[pymethods]
impl Alarm {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.rang.store(true, Ordering::Relaxed);
        self.task.bind(py).call_method0(intern!(py, "cancel"))?;
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "the signature that pyo3 asks for")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)
    }
}

impl Deadline {
    pub(super) const fn new() -> Self {
        Self { remaining: Cell::new(None), since: Cell::new(None), alarm: Slot::empty(), timer: Slot::empty() }
    }

    /// Sets the clock going for a wait that begins now.
    pub(super) fn resume(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let remaining = self.remaining.get().unwrap_or(seconds);
        self.remaining.set(Some(remaining));
        let event_loop = running_loop(py)?;
        let alarm = self.alarm_of(&current(py)?)?;
        let timer = event_loop.call_method1(intern!(py, "call_later"), (remaining.max(0.0), alarm))?;
        self.timer.set(timer);
        self.since.set(Some(Instant::now()));
        Ok(())
    }

    /// The alarm for a task. One stream may be read by several tasks, one step after the other.
    fn alarm_of<'py>(&self, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = task.py();
        if let Some(alarm) = self.alarm.get(py)
            && alarm.cast::<Alarm>()?.get().task.is(task)
        {
            return Ok(alarm);
        }
        let alarm = Alarm { task: task.clone().unbind(), rang: AtomicBool::new(false) };
        let alarm = Bound::new(py, alarm)?.into_any();
        self.alarm.set(alarm.clone());
        Ok(alarm)
    }

    /// Stops the clock: a response is on its way to the consumer.
    pub(super) fn pause(&self, py: Python<'_>) {
        if let (Some(since), Some(remaining)) = (self.since.take(), self.remaining.get()) {
            self.remaining.set(Some(remaining - since.elapsed().as_secs_f64()));
        }
        self.stop(py);
        if !self.alarm.is_empty() {
            // The tool may have swallowed the cancellation that the alarm made and gone on.
            attached(py, |py| {
                if let Err(error) = self.take_expiry(py) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }

    /// Cancels the timer.
    pub(super) fn stop(&self, py: Python<'_>) {
        let Some(timer) = self.timer.take(py) else { return };
        attached(py, |py| {
            if let Err(error) = timer.call_method0(intern!(py, "cancel")) {
                error.write_unraisable(py, None);
            }
        });
    }

    /// True if the time is up; the request to cancel that the alarm made is revoked.
    pub(super) fn take_expiry(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(alarm) = self.alarm.get(py) else { return Ok(false) };
        let alarm = alarm.cast_into::<Alarm>()?;
        let alarm = alarm.get();
        if !alarm.rang.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        // Before Python 3.11 a task does not count its requests, and there is nothing to take back.
        if let Some(uncancel) = alarm.task.bind(py).getattr_opt(intern!(py, "uncancel"))? {
            uncancel.call0()?;
        }
        Ok(true)
    }

    pub(super) fn clear(&self, py: Python<'_>) {
        self.alarm.clear(py);
        self.timer.clear(py);
    }

    pub(super) fn objects(&self) -> [*mut PyObject; 2] {
        [self.alarm.visited(), self.timer.visited()]
    }
}
