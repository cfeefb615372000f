//! The tokio runtime of this process: started by the first native tool, joined at exit, replaced in a forked child.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::native::Runtime;
use crate::sync::lock;

/// Time for which the exit of the interpreter waits for native tools that block their thread.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Only attached threads lock this, and none of them releases the GIL meanwhile, so that it is free at a fork.
static CURRENT: Mutex<RuntimeState> = Mutex::new(RuntimeState::Fresh);

/// Number of forks. Anything that was started before a fork must not be touched after it, because threads that do not exist
/// any more may have held any lock.
static GENERATION: AtomicU64 = AtomicU64::new(0);

enum RuntimeState {
    Fresh,
    Running(Arc<Runtime>),
    /// The interpreter is shutting down.
    Closed,
}

/// The runtime, started if it is not running.
pub(crate) fn current() -> PyResult<Arc<Runtime>> {
    let mut state = lock(&CURRENT);
    match &*state {
        RuntimeState::Running(runtime) => Ok(runtime.clone()),
        RuntimeState::Closed => Err(shutting_down()),
        RuntimeState::Fresh => {
            let runtime = Runtime::start().map_err(|error| {
                PyRuntimeError::new_err(format!("cannot run a native tool: no thread could be started: {error}"))
            })?;
            let runtime = Arc::new(runtime);
            *state = RuntimeState::Running(runtime.clone());
            Ok(runtime)
        }
    }
}

/// The exception of a native tool that is refused or ended because the interpreter shuts down.
pub(crate) fn shutting_down() -> PyErr {
    PyRuntimeError::new_err("cannot run a native tool: the interpreter is shutting down")
}

/// The number of forks between the first process and this one.
pub(crate) fn generation() -> u64 {
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

/// Ends all native tools and joins the threads. The GIL is released, so that code which waits for it can finish.
#[pyfunction]
#[pyo3(name = "_close_native_runtime")]
fn close(py: Python<'_>) {
    let state = std::mem::replace(&mut *lock(&CURRENT), RuntimeState::Closed);
    if let RuntimeState::Running(runtime) = state {
        py.detach(|| runtime.shut_down(SHUTDOWN_TIMEOUT));
    }
}

/// Resets the state in a forked child.
#[pyfunction]
#[pyo3(name = "_forget_native_runtime")]
fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let state = std::mem::replace(&mut *lock(&CURRENT), RuntimeState::Fresh);
    if let RuntimeState::Running(runtime) = state {
        runtime.abandon();
        // Never dropped in this process, and neither are the references that jobs hold.
        std::mem::forget(runtime);
    }
}
