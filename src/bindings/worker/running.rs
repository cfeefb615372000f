//! Whether the loop that runs in this thread is still the one that was seen running before.
//!
//! Up to Python 3.11 asking asyncio for the running loop is a system call (for the process id), which costs as much as
//! starting a job does. What asyncio remembers the loop in is the dict of the thread's state, whose version tells of it.

use pyo3::ffi;
use pyo3::prelude::*;

use super::version::version_of;

/// Stands for what this thread runs, as long as that does not change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

pub(super) fn mark(_py: Python<'_>) -> Option<Mark> {
    // Later versions have no need of a mark.
    if cfg!(Py_3_12) {
        return None;
    }
    // SAFETY: the thread is attached; null or a live dict of the thread's own, borrowed.
    unsafe {
        let dict = ffi::PyThreadState_GetDict();
        if dict.is_null() { None } else { version_of(dict).map(Mark) }
    }
}

/// Whether the mark changes when another loop runs: asyncio written in Python remembers the loop elsewhere.
#[cfg(not(Py_3_12))]
pub(super) fn is_told_by_mark(py: Python<'_>) -> bool {
    use pyo3::intern;
    use pyo3::types::PyDict;
    // SAFETY: as for the mark.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
    let Some(Ok(dict)) = dict.map(Bound::cast_into::<PyDict>) else { return false };
    dict.contains(intern!(py, "__asyncio_running_event_loop__")).unwrap_or(false)
}

#[cfg(Py_3_12)]
pub(super) fn is_told_by_mark(_py: Python<'_>) -> bool {
    false
}
