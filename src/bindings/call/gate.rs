//! Whether anybody traces or listens: two comparisons on the path of a call that nobody does.
//!
//! A provider cannot be set before the API is imported, and importing it makes `sys.modules` grow. So as long as the
//! size of that dictionary is the one at which nobody was found, there is nothing to ask. Once the API is there, one look at
//! the variable that holds the provider tells whether it is still the one that does nothing.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi::{self, Py_ssize_t, PyDictObject};
use pyo3::intern;
use pyo3::prelude::*;

use super::python::slot::Slot;
use crate::bindings::trace::{self, Found, PROVIDER, Tracer};
use crate::bindings::worker::version_of;
use crate::trace::is_watched;

/// A size that no dictionary has.
const UNKNOWN: Py_ssize_t = -1;

/// How many listeners the toolkits of this process have.
pub(crate) static LISTENERS: AtomicUsize = AtomicUsize::new(0);

fn is_heard() -> bool {
    LISTENERS.load(Ordering::Relaxed) != 0
}

struct Gate {
    /// `sys.modules`.
    modules: Cell<*mut PyDictObject>,
    /// Its size when nobody was found.
    quiet_at: Cell<Py_ssize_t>,
    /// The variables of `opentelemetry.trace`, once they are there.
    variables: Slot,
    /// The provider among them that is known to do nothing: mostly `None`.
    idle: Slot,
    /// The version of the variables at which that was so, where they have one.
    idle_at: Cell<Option<u64>>,
}

// SAFETY: touched by attached threads only; the module declares that it needs the GIL, so that is one at a time.
unsafe impl Sync for Gate {}

static GATE: Gate = Gate {
    modules: Cell::new(ptr::null_mut()),
    quiet_at: Cell::new(UNKNOWN),
    variables: Slot::empty(),
    idle: Slot::empty(),
    idle_at: Cell::new(None),
};

/// Whether it is certain that nobody wants to hear of a call.
///
/// # Safety
/// The thread is attached, and the module is initialised.
#[inline]
pub(super) unsafe fn is_quiet() -> bool {
    // SAFETY: `init` has put a dictionary there, which the interpreter keeps as long as it lives. With a version, `variables`
    // holds a dictionary.
    unsafe {
        let is_nobody_there = (*GATE.modules.get()).ma_used == GATE.quiet_at.get();
        let is_still_idle = || {
            let idle_at = GATE.idle_at.get();
            idle_at.is_some() && version_of(GATE.variables.get()) == idle_at
        };
        (is_nobody_there || is_still_idle()) && !is_watched() && !is_heard()
    }
}

/// Whether the provider of the whole process still is the one that does nothing, and nobody else listens.
pub(super) fn is_idle(py: Python<'_>) -> bool {
    if GATE.idle.get().is_null() || is_watched() || is_heard() {
        return false;
    }
    // SAFETY: with `idle`, `variables` holds a dictionary; the thread is attached, and names are compared without failing.
    unsafe {
        let is_idle = ffi::PyDict_GetItem(GATE.variables.get(), intern!(py, PROVIDER).as_ptr()) == GATE.idle.get();
        GATE.idle_at.set(if is_idle { version_of(GATE.variables.get()) } else { None });
        is_idle
    }
}

/// Who traces through OpenTelemetry.
pub(super) fn tracer(py: Python<'_>) -> Option<Arc<Tracer>> {
    // SAFETY: as for `is_quiet`. The size is taken before anybody is looked for: an import meanwhile is seen next time.
    let size = unsafe { (*GATE.modules.get()).ma_used };
    match trace::find(py) {
        Found::Nobody => {
            GATE.quiet_at.set(size);
            None
        }
        Found::NotYet(seen) => {
            if let Some((variables, provider)) = seen {
                GATE.idle_at.set(None);
                GATE.variables.set(variables.into_ptr());
                GATE.idle.set(provider.into_ptr());
            }
            None
        }
        Found::Tracer(tracer) => Some(tracer),
    }
}

/// Asks anew at the next call.
pub(crate) fn ask_who_traces() {
    GATE.quiet_at.set(UNKNOWN);
    GATE.idle_at.set(None);
    GATE.idle.clear();
}

/// Remembers where the interpreter keeps its modules.
pub(super) fn init(_py: Python<'_>) {
    // SAFETY: the thread is attached; a dictionary, borrowed from the interpreter.
    GATE.modules.set(unsafe { ffi::PyImport_GetModuleDict() }.cast());
}
