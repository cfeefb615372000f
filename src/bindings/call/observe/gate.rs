//! A quick check that neither a tracer nor a listener observes calls: two comparisons on the path of most calls.
//!
//! A provider cannot be set before the API is imported, and importing it makes `sys.modules` grow. So as long as the
//! size of that dictionary is the one at which no tracer was found, there is nothing to look for. Once the API is there,
//! one look at the variable that holds the provider shows if it is still the no-op one.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bindings::call::python::interpreter::dict_version;
use crate::bindings::imported;
use crate::bindings::once::{GilOnce, intern};
use crate::bindings::trace::{self, PROVIDER, Tracer, TracerLookup};
use crate::trace::is_watched;

/// A size that no dictionary has.
const UNKNOWN: usize = usize::MAX;
/// A version that no dictionary has.
const NEVER: u64 = 0;

/// The number of listeners of all toolkits of this process.
pub(crate) static LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// `sys.modules`.
static MODULES: GilOnce<Py<PyDict>> = GilOnce::new();
/// Its size when no tracer was found.
static QUIET_AT: AtomicUsize = AtomicUsize::new(UNKNOWN);
/// The variables of `opentelemetry.trace`, once they are there.
static VARIABLES: GilOnce<Py<PyDict>> = GilOnce::new();
/// The address of the provider among them that is known to be the no-op one: mostly that of `None`.
static IDLE: AtomicPtr<PyObject> = AtomicPtr::new(ptr::null_mut());
/// The provider itself, so that its address belongs to no other object.
static IDLE_PROVIDER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);
/// The version of the variables at which the provider was the no-op one, where they have one.
static IDLE_AT: AtomicU64 = AtomicU64::new(NEVER);

fn is_heard() -> bool {
    LISTENERS.load(Ordering::Relaxed) != 0
}

/// True if it is certain that no tracer or listener observes a call.
#[inline]
pub(in crate::bindings::call) fn is_quiet(py: Python<'_>) -> bool {
    let is_untraced =
        || MODULES.get(py).is_some_and(|modules| modules.bind(py).len() == QUIET_AT.load(Ordering::Relaxed));
    let is_still_idle = || {
        let idle_at = IDLE_AT.load(Ordering::Relaxed);
        idle_at != NEVER && VARIABLES.get(py).is_some_and(|variables| dict_version(variables.bind(py)) == Some(idle_at))
    };
    (is_still_idle() || is_untraced()) && !is_watched() && !is_heard()
}

/// True if the global tracer provider is still the no-op one, and there are no listeners.
pub(super) fn is_idle(py: Python<'_>) -> bool {
    if IDLE.load(Ordering::Relaxed).is_null() || is_watched() || is_heard() {
        return false;
    }
    let Some(variables) = VARIABLES.get(py).map(|variables| variables.bind(py)) else { return false };
    let provider = variables.get_item(intern!(py, PROVIDER)).ok().flatten();
    let is_idle = provider.is_some_and(|provider| provider.as_ptr() == IDLE.load(Ordering::Relaxed));
    let version = if is_idle { dict_version(variables) } else { None };
    IDLE_AT.store(version.unwrap_or(NEVER), Ordering::Relaxed);
    is_idle
}

/// The tracer of OpenTelemetry, if a provider is set.
pub(super) fn tracer(py: Python<'_>) -> Option<Arc<Tracer>> {
    // The size is taken before the search: an import meanwhile is seen next time.
    let size = MODULES.get(py).map_or(UNKNOWN, |modules| modules.bind(py).len());
    match trace::find(py) {
        TracerLookup::Disabled => {
            QUIET_AT.store(size, Ordering::Relaxed);
            None
        }
        TracerLookup::NotYet(seen) => {
            if let Some((variables, provider)) = seen {
                IDLE_AT.store(NEVER, Ordering::Relaxed);
                let known = VARIABLES.get_or_init(py, || variables.clone_ref(py));
                set_idle(Some(provider).filter(|_| known.is(&variables)));
            }
            None
        }
        TracerLookup::Tracer(tracer) => Some(tracer),
    }
}

/// The same for work outside of a call's own span; it costs next to nothing if nothing is traced.
pub(crate) fn active_tracer(py: Python<'_>) -> Option<Arc<Tracer>> {
    if is_quiet(py) || is_idle(py) { None } else { tracer(py) }
}

fn set_idle(provider: Option<Py<PyAny>>) {
    IDLE.store(provider.as_ref().map_or(ptr::null_mut(), Py::as_ptr), Ordering::Relaxed);
    let old = {
        let mut kept = IDLE_PROVIDER.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *kept, provider)
    };
    drop(old);
}

/// Makes the next call look for a tracer again.
pub(crate) fn ask_who_traces() {
    QUIET_AT.store(UNKNOWN, Ordering::Relaxed);
    IDLE_AT.store(NEVER, Ordering::Relaxed);
    IDLE.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Remembers where the interpreter keeps its modules.
pub(in crate::bindings::call) fn init(py: Python<'_>) -> PyResult<()> {
    let modules = imported::MODULES.get(py)?.cast::<PyDict>()?;
    MODULES.get_or_init(py, || modules.clone().unbind());
    Ok(())
}
