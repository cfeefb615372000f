//! Calls that wait for other calls in synchronous code: the depth of such a call, and the worker that waits.

use std::cell::Cell;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

use super::limits::RunningJob;
use super::pool::{Hold, Workers};

/// The deepest call. Each takes a thread, and a deeper one is endless recursion.
const DEEPEST: usize = 1000;

thread_local! {
    /// The number of calls that wait for the synchronous code of this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The job that this thread runs, if it is a worker.
    static RUNNING: Cell<Option<(&'static Workers, RunningJob)>> = const { Cell::new(None) };
}

/// Sets the depth and the job of this thread until it is dropped.
pub(super) struct Nesting {
    depth: usize,
    running: Option<(&'static Workers, RunningJob)>,
}

impl Nesting {
    pub(super) fn enter(depth: usize, running: Option<(&'static Workers, RunningJob)>) -> Self {
        Self { depth: DEPTH.replace(depth), running: RUNNING.replace(running) }
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        DEPTH.set(self.depth);
        RUNNING.set(self.running);
    }
}

/// The job that this thread runs, if it is a worker.
pub(super) fn running() -> Option<(&'static Workers, RunningJob)> {
    RUNNING.get()
}

/// The depth of a call that this thread makes.
pub(super) fn depth() -> PyResult<usize> {
    let depth = DEPTH.get();
    if depth > DEEPEST {
        let reason =
            format!("more than {DEEPEST} synchronous tools wait for one another: a tool may call itself endlessly");
        return Err(PyRecursionError::new_err(reason));
    }
    Ok(depth)
}

/// Return the number of calls that wait for the synchronous code of this thread: 0 outside of tools.
#[pyfunction]
#[pyo3(name = "_nesting")]
pub(crate) fn nesting() -> PyResult<usize> {
    depth()
}

/// Call a function in a thread that other calls wait for.
#[pyfunction]
#[pyo3(name = "_call_nested")]
pub(crate) fn call_nested<'py>(depth: usize, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let _nesting = Nesting::enter(depth, None);
    function.call0()
}

/// Call a function that waits for another call: the worker thread that calls it does not count as an active one.
#[pyfunction]
#[pyo3(name = "_call_held")]
pub(crate) fn call_held<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let _held = Hold::of_this_thread();
    function.call0()
}

/// Keep an object for ever, also while the interpreter ends.
#[pyfunction]
#[pyo3(name = "_keep_for_ever")]
pub(crate) fn keep_for_ever(object: Py<PyAny>) {
    std::mem::forget(object);
}
