//! The future that a task waits on while a worker is busy.

use pyo3::intern;
use pyo3::prelude::*;

/// A new future of an event loop.
pub(super) fn create<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    event_loop.call_method0(intern!(event_loop.py(), "create_future"))
}

pub(super) fn is_pending(future: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!future.call_method0(intern!(future.py(), "done"))?.is_truthy()?)
}

/// Marks a future as awaited, so that it can be yielded to the loop as it is.
pub(super) fn mark_awaited(future: &Bound<'_, PyAny>) -> PyResult<()> {
    future.setattr(intern!(future.py(), "_asyncio_future_blocking"), true)
}

/// Wakes what waits for the future; to be called by the loop itself.
pub(super) fn wake(future: Bound<'_, PyAny>) -> PyResult<()> {
    if is_pending(&future)? {
        future.call_method1(intern!(future.py(), "set_result"), (future.py().None(),))?;
    }
    Ok(())
}
