//! A Rust future that Python code awaits: it runs on a tokio runtime of the process, and its result is converted on the
//! event loop.

use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;

use super::runtime::{self, Lane};
use crate::bindings::worker::{Completions, Polled, await_by_steps, completions};
use crate::native::Task;
use crate::sync::lock;

/// The result of a future, as a function that makes the Python object of it.
pub(crate) type Conversion = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The awaitable of a future, which has started. Cancelling the task that awaits it drops the future.
#[pyclass(name = "_NativeFuture", module = "toolcrib._core", frozen)]
pub(crate) struct PyNativeFuture {
    /// Taken when the future has ended or is abandoned.
    running: Mutex<Option<(Task, Completions<Conversion>)>>,
    generation: u64,
}

impl PyNativeFuture {
    /// Starts a future for the event loop that runs in this thread.
    ///
    /// # Errors
    /// If no event loop is running, or the interpreter is shutting down.
    pub(crate) fn spawn(py: Python<'_>, future: impl Future<Output = Conversion> + Send + 'static) -> PyResult<Self> {
        Self::spawn_in(py, Lane::Tools, future)
    }

    /// The same in another runtime than that of the tools.
    pub(crate) fn spawn_in(
        py: Python<'_>,
        lane: Lane,
        future: impl Future<Output = Conversion> + Send + 'static,
    ) -> PyResult<Self> {
        let (completer, results) = completions(py)?;
        let task = runtime::running(lane)?
            .spawn_future(async move { completer.complete(future.await) })
            .map_err(|_| runtime::shutting_down())?;
        Ok(Self { running: Mutex::new(Some((task, results))), generation: runtime::generation() })
    }

    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.generation != runtime::generation() {
            self.abandon();
            return Err(PyRuntimeError::new_err("the process was forked while this was awaited"));
        }
        // Taken out, because polling may run code of the event loop.
        let Some((task, results)) = lock(&self.running).take() else {
            return Err(PyRuntimeError::new_err("cannot reuse an awaitable that was awaited already"));
        };
        match results.poll(py)? {
            Polled::Wait(waiter) => {
                *lock(&self.running) = Some((task, results));
                Ok(waiter)
            }
            Polled::Value(conversion) => Err(PyStopIteration::new_err((conversion(py)?,))),
            Polled::Ended => Err(runtime::shutting_down()),
        }
    }

    fn abandon(&self) {
        let running = lock(&self.running).take();
        if self.generation != runtime::generation() {
            // The task belongs to threads that do not exist in a forked child, and any of their locks may be held.
            std::mem::forget(running);
        }
    }
}

impl Drop for PyNativeFuture {
    fn drop(&mut self) {
        self.abandon();
    }
}

await_by_steps!(PyNativeFuture);
