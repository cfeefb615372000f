//! Blocking Python code in threads of our own, its results brought to the event loop in batches.
//!
//! Read it in this order: [`job`] is one piece of work, as the loop starts and reads it and as a worker runs it;
//! [`pool`] owns the queue and the threads that take from it, and decides when a thread is added; [`wakeup`] is where an
//! event loop learns that results have arrived; [`waiter`] is what a task waits on until then; [`completion`] carries
//! results of threads that never attach to Python. The interpreter calls that need `unsafe` are in
//! `call::python::interpreter`.
//!
//! This file has what all of them share, and the two moments at which that ends: the exit of the process, and a fork.

#[allow(dead_code, reason = "the queue of native tools")]
mod completion;
mod job;
mod pool;
mod waiter;
#[allow(dead_code, reason = "notifiers are for native tools")]
mod wakeup;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::call::python::interpreter::GilCell;

#[allow(unused_imports, reason = "the queue of native tools")]
pub(crate) use completion::{Completer, Completions, Next, completions};
pub(crate) use job::{AwaitableJob, Job, Step};

/// The state that workers, jobs and inboxes share. A forked child makes its own.
struct Shared {
    /// The fork that it belongs to.
    generation: u64,
    pool: pool::Pool,
    inboxes: wakeup::LoopInboxes,
    names: Names,
}

/// Python objects that are looked up once.
struct Names {
    get_running_loop: Py<PyAny>,
    /// `types.GeneratorType`.
    generator: Py<PyAny>,
    begin: Py<PyAny>,
    end: Py<PyAny>,
}

/// Empty before the first use and in a forked child; the state is never freed, so that a reference to it lasts.
static CURRENT: GilCell<Option<&'static Shared>> = GilCell::new(None);

/// The number of forks between the process that loaded the module and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Shared {
    fn current(py: Python<'_>) -> PyResult<&'static Shared> {
        if let Some(shared) = CURRENT.with(py, |current| *current) {
            return Ok(shared);
        }
        let threads = py.import("toolcrib._worker")?;
        let fresh = Shared {
            generation: GENERATION.load(Ordering::Acquire),
            pool: pool::Pool::default(),
            inboxes: wakeup::LoopInboxes::default(),
            names: Names {
                get_running_loop: py.import("asyncio")?.getattr("get_running_loop")?.unbind(),
                generator: py.import("types")?.getattr("GeneratorType")?.unbind(),
                begin: threads.getattr("begin")?.unbind(),
                end: threads.getattr("end")?.unbind(),
            },
        };
        // An import lets other threads run, and one of them may have been here before.
        Ok(CURRENT.with(py, |current| *current.get_or_insert_with(|| Box::leak(Box::new(fresh)))))
    }

    /// False in a child that was forked after this was made: the threads are not there, and any lock may be held by one
    /// of them.
    fn is_current(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Acquire)
    }
}

/// Locks, even if the thread that held the lock before panicked: no state here is left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the functions that stop workers before the interpreter ends, and forget them in a forked child.
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

/// Lets idle workers end and waits for the busy ones, but not for long.
#[pyfunction]
#[pyo3(name = "_close_workers")]
fn close(py: Python<'_>) {
    if let Some(shared) = CURRENT.with(py, |current| *current) {
        shared.pool.close(py);
    }
}

/// Starts anew in a forked child, without touching what the parent's threads may have left locked.
#[pyfunction]
#[pyo3(name = "_forget_workers")]
fn forget(py: Python<'_>) {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    CURRENT.with(py, |current| *current = None);
}
