//! Notifications of changed tools, on an event loop.

use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use tokio::sync::watch::Receiver;

use crate::bindings::native::runtime::{self, Lane};
use crate::bindings::once::intern;
use crate::bindings::worker::{Completions, Polled, completions};
use crate::native::Task;
use crate::sync::lock;

/// A function that an event loop calls whenever a counter goes up, until the loop ends or the watch is closed.
#[pyclass(name = "_McpWatch", module = "toolcrib._core", frozen, weakref)]
pub(crate) struct PyMcpWatch {
    callback: Mutex<Option<Py<PyAny>>>,
    queue: Mutex<Option<(Task, Completions<()>)>>,
    generation: u64,
}

impl PyMcpWatch {
    pub(super) fn start(
        py: Python<'_>,
        lane: Lane,
        mut changes: Receiver<u64>,
        callback: Py<PyAny>,
    ) -> PyResult<Py<Self>> {
        let (completer, news) = completions(py)?;
        changes.mark_unchanged();
        let task = runtime::running(lane)?
            .spawn_future(async move {
                while changes.changed().await.is_ok() {
                    completer.complete(());
                }
            })
            .map_err(|_| runtime::shutting_down())?;
        let (callback, queue) = (Mutex::new(Some(callback)), Mutex::new(Some((task, news))));
        let watch = Bound::new(py, Self { callback, queue, generation: runtime::generation() })?;
        Self::expect(&watch)?;
        Ok(watch.unbind())
    }

    /// Waits for the next change without a task: the event loop calls back.
    fn expect(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if this.generation != runtime::generation() {
            return Ok(());
        }
        // Taken out, because polling may run code of the event loop.
        let Some((task, news)) = lock(&this.queue).take() else { return Ok(()) };
        let mut is_changed = false;
        loop {
            match news.poll(py)? {
                Polled::Value(()) => is_changed = true,
                Polled::Ended => return Ok(()),
                Polled::Wait(waiter) => {
                    let changed = slf.getattr(intern!(py, "_changed"))?;
                    waiter.call_method1(py, intern!(py, "add_done_callback"), (changed,))?;
                    break;
                }
            }
        }
        *lock(&this.queue) = Some((task, news));
        if is_changed {
            let callback = lock(&this.callback).as_ref().map(|callback| callback.clone_ref(py));
            if let Some(callback) = callback {
                callback.call0(py)?;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl PyMcpWatch {
    /// Called by the event loop when there may be news.
    fn _changed(slf: &Bound<'_, Self>, _waiter: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::expect(slf)
    }

    /// End the notifications.
    fn close(&self) {
        let (queue, callback) = (lock(&self.queue).take(), lock(&self.callback).take());
        if self.generation != runtime::generation() {
            std::mem::forget(queue);
        }
        drop(callback);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callback.try_lock().map_or(Ok(()), |callback| visit.call(&*callback))
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl Drop for PyMcpWatch {
    fn drop(&mut self) {
        self.close();
    }
}
