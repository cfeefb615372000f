//! The asyncio task that a call runs in. asyncio is imported on first use: by then the application has it anyway.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

struct Asyncio {
    cancelled_error: Py<PyType>,
    current_task: Py<PyAny>,
    get_running_loop: Py<PyAny>,
}

fn asyncio(py: Python<'_>) -> PyResult<&Asyncio> {
    static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();
    ASYNCIO.get_or_try_init(py, || {
        let module = py.import("asyncio")?;
        Ok(Asyncio {
            cancelled_error: module.getattr("CancelledError")?.cast_into::<PyType>()?.unbind(),
            current_task: module.getattr("current_task")?.unbind(),
            get_running_loop: module.getattr("get_running_loop")?.unbind(),
        })
    })
}

/// Whether an exception is `asyncio.CancelledError`.
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

/// How often the current task had been asked to cancel before the call that gives way now. A request that is still to be
/// delivered will be delivered to this call, so it does not count as an earlier one, whoever made it.
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

/// How often the current task has been asked to cancel; `None` where nobody counts: outside a task, outside asyncio,
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
