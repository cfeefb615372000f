//! Blocking Python code in threads of our own, its results brought to the event loop in batches.
//!
//! `pool` owns the queue and `thread` takes from it, `growth` decides on more of them, `job` is one piece of work
//! as the loop sees it and `run` as the worker does, `room` is where a generator waits for its reader and `waiter` what a
//! task waits on, `port` is where an event loop hears of what is ready and `running` which loop that is, `guard` is how a
//! worker calls Python, `context` carries context variables over, `held` is what the GIL guards.

#![allow(unsafe_code, reason = "calls that may end the thread, contexts, descriptors: see the SAFETY lines")]

mod context;
mod errand;
mod growth;
pub(crate) mod guard;
mod held;
mod job;
mod pool;
mod port;
mod room;
mod run;
mod running;
mod thread;
mod version;
mod waiter;
mod wake;

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

pub(crate) use errand::Errand;
pub(crate) use job::{Job, Step};

/// What workers, jobs and ports share, and what a forked child has to do without.
struct Shared {
    pool: pool::Pool,
    ports: port::Ports,
    names: Names,
}

/// The Python functions that are looked up once.
struct Names {
    get_running_loop: Py<PyAny>,
    future: Py<PyAny>,
    /// `Future.remove_done_callback`.
    remove: Py<PyAny>,
    task: Py<PyAny>,
    /// The address of the function by which asyncio's tasks go on, once it is known.
    wakeup: held::Held<usize>,
    begin: Py<PyAny>,
    end: Py<PyAny>,
}

/// Null before the first use and in a forked child; never freed, so that a reference to it lasts.
static CURRENT: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

impl Shared {
    fn current(py: Python<'_>) -> PyResult<&'static Shared> {
        // SAFETY: null, or a leaked box.
        if let Some(shared) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
            return Ok(shared);
        }
        let threads = py.import("toolcrib._worker")?;
        let asyncio = py.import("asyncio")?;
        let fresh = Box::into_raw(Box::new(Shared {
            pool: pool::Pool::default(),
            ports: port::Ports::default(),
            names: Names {
                get_running_loop: asyncio.getattr("get_running_loop")?.unbind(),
                remove: asyncio.getattr("Future")?.getattr("remove_done_callback")?.unbind(),
                future: asyncio.getattr("Future")?.unbind(),
                task: asyncio.getattr("Task")?.unbind(),
                wakeup: held::Held::default(),
                begin: threads.getattr("begin")?.unbind(),
                end: threads.getattr("end")?.unbind(),
            },
        }));
        // An import lets other threads run, and one of them may have been here before.
        let winner = CURRENT
            .compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|there| there, |_| fresh);
        // SAFETY: whichever it is, it is a leaked box; the loser's few bytes stay leaked too.
        Ok(unsafe { &*winner })
    }

    /// False in a child that was forked after this was made: the threads are not there, and any lock may be held by one
    /// of them.
    fn is_current(&self) -> bool {
        ptr::eq(CURRENT.load(Ordering::Acquire), self)
    }
}

/// Locks, whatever became of the thread that held the lock before: no state here is left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to it that workers are stopped before the interpreter is, and forgotten in a forked child.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let close = wrap_pyfunction!(close, module)?;
    py.import("atexit")?.call_method1("register", (close,))?;
    let options = pyo3::types::PyDict::new(py);
    options.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        register.call((), Some(&options))?;
    }
    Ok(())
}

/// Lets idle workers go and waits for the busy ones, but not for long.
#[pyfunction]
#[pyo3(name = "_close_workers")]
fn close(py: Python<'_>) {
    // SAFETY: null, or a leaked box.
    if let Some(shared) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        shared.pool.close(py);
    }
}

/// Starts anew in a forked child, without a look at what the parent's threads may have left locked.
#[pyfunction]
#[pyo3(name = "_forget_workers")]
fn forget() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
}
