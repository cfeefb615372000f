//! The tokio runtime of this process: started by the first native tool, joined at exit, left behind in a forked child.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::native::Runtime;

/// The time that the exit of the interpreter waits for native tools that do not give way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Attached threads lock this, and none of them lets go of the GIL meanwhile: at a fork it is free.
static CURRENT: Mutex<State> = Mutex::new(State::Fresh);

/// Counts forks: what was started before one must not be touched after it, because any lock of a thread that is gone may
/// be taken for ever.
static GENERATION: AtomicU64 = AtomicU64::new(0);

enum State {
    Fresh,
    Running(Arc<Runtime>),
    /// The interpreter is shutting down.
    Closed,
}

fn lock() -> MutexGuard<'static, State> {
    // It is replaced in one assignment, so it is whole after any panic.
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime, started if need be.
pub(super) fn current() -> PyResult<Arc<Runtime>> {
    let mut state = lock();
    match &*state {
        State::Running(runtime) => Ok(runtime.clone()),
        State::Closed => Err(shutting_down()),
        State::Fresh => {
            let runtime = Runtime::start().map_err(|error| {
                PyRuntimeError::new_err(format!("cannot run a native tool: no thread could be started: {error}"))
            })?;
            let runtime = Arc::new(runtime);
            *state = State::Running(runtime.clone());
            Ok(runtime)
        }
    }
}

/// The exception of a native tool that cannot run, or go on, because the interpreter shuts down.
pub(super) fn shutting_down() -> PyErr {
    PyRuntimeError::new_err("cannot run a native tool: the interpreter is shutting down")
}

/// The number of forks between the first process and this one.
pub(super) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(close, module)?,))?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        let options = PyDict::new(py);
        options.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
        register.call((), Some(&options))?;
    }
    Ok(())
}

/// Ends all native tools and joins the threads, without the GIL, so that code which waits for it gets on.
#[pyfunction]
#[pyo3(name = "_close_native_runtime")]
fn close(py: Python<'_>) {
    let state = std::mem::replace(&mut *lock(), State::Closed);
    if let State::Running(runtime) = state {
        py.detach(|| runtime.shut_down(PATIENCE));
    }
}

/// Starts anew in a forked child.
#[pyfunction]
#[pyo3(name = "_forget_native_runtime")]
fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let state = std::mem::replace(&mut *lock(), State::Fresh);
    if let State::Running(runtime) = state {
        runtime.abandon();
        // Others may share it, and none of them may drop it here.
        std::mem::forget(runtime);
    }
}
