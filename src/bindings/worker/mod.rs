//! Worker threads for blocking Python code, and the delivery of results to an event loop in batches.
//!
//! Read it in this order:
//!
//! 1. [`job`]: one call, as the loop starts and reads it and as a worker runs it;
//! 2. [`awaitable`]: the objects by which Python code awaits a job;
//! 3. [`pool`]: the queue, the threads that take from it, and the decision to add a thread;
//! 4. [`wakeup`]: the inbox that wakes an event loop when results have arrived;
//! 5. [`waiter`]: the future that a task waits on until then;
//! 6. [`completion`]: the queue for results of threads that never attach to Python, those of native tools.
//!
//! This file has the state that they share, which ends at the exit of the process and in a forked child. The interpreter
//! calls that need `unsafe` are in `call::python::interpreter`.
#![allow(clippy::needless_pass_by_value, reason = "pyo3 prescribes the signatures of special methods")]

mod awaitable;
mod completion;
mod job;
mod pool;
mod waiter;
mod wakeup;

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::call::python::interpreter::GilCell;
use super::imported::{BEGIN_THREAD, END_THREAD};

pub(crate) use awaitable::{AwaitableJob, await_by_steps, await_itself};
pub(crate) use completion::{Completer, Completions, Polled, completions};
pub(crate) use job::{Job, JobStep};
pub(crate) use wakeup::Drain;

/// The state that threads, jobs and inboxes share. A forked child makes its own.
struct Workers {
    /// The number of forks before the process that it belongs to.
    generation: u64,
    pool: pool::Pool,
    inboxes: wakeup::LoopInboxes,
    python: PythonObjects,
}

/// Python objects that are looked up once.
struct PythonObjects {
    get_running_loop: Py<PyAny>,
    /// `types.GeneratorType`.
    generator: Py<PyAny>,
    /// `toolcrib._worker.begin`.
    begin_thread: Py<PyAny>,
    /// `toolcrib._worker.end`.
    end_thread: Py<PyAny>,
}

/// Empty before the first use and in a forked child; the state is never freed, so that a reference to it lasts.
static CURRENT: GilCell<Option<&'static Workers>> = GilCell::new(None);

/// The number of forks between the process that loaded the module and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Workers {
    fn current(py: Python<'_>) -> PyResult<&'static Workers> {
        if let Some(workers) = CURRENT.with(py, |current| *current) {
            return Ok(workers);
        }
        let fresh = Workers {
            generation: GENERATION.load(Ordering::Acquire),
            pool: pool::Pool::default(),
            inboxes: wakeup::LoopInboxes::default(),
            python: PythonObjects {
                get_running_loop: py.import("asyncio")?.getattr("get_running_loop")?.unbind(),
                generator: py.import("types")?.getattr("GeneratorType")?.unbind(),
                begin_thread: BEGIN_THREAD.get(py)?.clone().unbind(),
                end_thread: END_THREAD.get(py)?.clone().unbind(),
            },
        };
        // An import lets other threads run, even of a module that is loaded, and one of them may have made the state meanwhile.
        Ok(CURRENT.with(py, |current| *current.get_or_insert_with(|| Box::leak(Box::new(fresh)))))
    }

    /// False in a child that was forked after this was made: the threads do not exist there, and any of them may have held
    /// a lock.
    fn is_current(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Acquire)
    }
}

/// Registers the functions that stop workers before the interpreter ends and reset the state in a forked child.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let close = wrap_pyfunction!(close, module)?;
    py.import("atexit")?.call_method1("register", (close,))?;
    let options = PyDict::new(py);
    options.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        register.call((), Some(&options))?;
    }
    Ok(())
}

/// Ends idle workers and waits a short time for the busy ones.
#[pyfunction]
#[pyo3(name = "_close_workers")]
fn close(py: Python<'_>) {
    if let Some(workers) = CURRENT.with(py, |current| *current) {
        workers.pool.close(py);
    }
}

/// Resets the state in a forked child, without touching locks that the parent's threads may have held.
#[pyfunction]
#[pyo3(name = "_forget_workers")]
fn forget(py: Python<'_>) {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    CURRENT.with(py, |current| *current = None);
}
