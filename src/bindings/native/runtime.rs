//! The tokio runtimes of this process: each started by its first use, joined at exit, replaced in a forked child.
//!
//! Native tools and MCP servers share one. MCP clients have a few others of one thread each, which they share out among
//! themselves: a call is a chain of short tasks, see [`Runtime::start_single`].

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::native::Runtime;
use crate::sync::lock;

/// Time for which the exit of the interpreter waits for native tools that block their thread.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of threads of MCP clients. More than one, so that a server with huge results does not hold up all others.
const CLIENT_THREADS: usize = 4;

/// Only attached threads lock these, and none of them releases the GIL meanwhile, so that they are free at a fork.
static TOOLS: Mutex<RuntimeState> = Mutex::new(RuntimeState::Fresh);
static CLIENTS: [Mutex<RuntimeState>; CLIENT_THREADS] = [const { Mutex::new(RuntimeState::Fresh) }; CLIENT_THREADS];

/// Number of forks. Anything that was started before a fork must not be touched after it, because threads that do not exist
/// any more may have held any lock.
static GENERATION: AtomicU64 = AtomicU64::new(0);

enum RuntimeState {
    Fresh,
    Running(Arc<Runtime>),
    /// The interpreter is shutting down.
    Closed,
}

/// The place of a runtime.
#[derive(Clone, Copy)]
pub(crate) enum Lane {
    /// Of native tools and MCP servers.
    Tools,
    /// Of some MCP clients.
    Clients(usize),
}

impl Lane {
    /// The place for a new MCP client.
    pub(crate) fn of_next_client() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self::Clients(NEXT.fetch_add(1, Ordering::Relaxed) % CLIENT_THREADS)
    }

    fn state(self) -> &'static Mutex<RuntimeState> {
        match self {
            Self::Tools => &TOOLS,
            Self::Clients(at) => &CLIENTS[at],
        }
    }
}

/// A runtime, started if it is not running.
pub(crate) fn running(lane: Lane) -> PyResult<Arc<Runtime>> {
    let mut state = lock(lane.state());
    match &*state {
        RuntimeState::Running(runtime) => Ok(runtime.clone()),
        RuntimeState::Closed => Err(shutting_down()),
        RuntimeState::Fresh => {
            let started = match lane {
                Lane::Tools => Runtime::start(),
                Lane::Clients(_) => Runtime::start_single(),
            };
            let runtime = started.map_err(|error| {
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
    let states: Vec<RuntimeState> = take_all(|| RuntimeState::Closed);
    py.detach(|| {
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        for state in states {
            if let RuntimeState::Running(runtime) = state {
                runtime.shut_down(end.saturating_duration_since(Instant::now()));
            }
        }
    });
}

/// Resets the state in a forked child.
#[pyfunction]
#[pyo3(name = "_forget_native_runtime")]
fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for state in take_all(|| RuntimeState::Fresh) {
        if let RuntimeState::Running(runtime) = state {
            runtime.abandon();
            // Never dropped in this process, and neither are the references that jobs hold.
            std::mem::forget(runtime);
        }
    }
}

/// Takes the states of all runtimes, and leaves others.
fn take_all(other: impl Fn() -> RuntimeState) -> Vec<RuntimeState> {
    let all = std::iter::once(&TOOLS).chain(&CLIENTS);
    all.map(|state| std::mem::replace(&mut *lock(state), other())).collect()
}
