//! The number of a dict's state, which CPython kept up to 3.11: changed whenever the dict is, and never used again.

use pyo3::ffi::PyObject;

/// The number, where there is one.
///
/// # Safety
/// The thread is attached; `dict` is a live dict.
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "newer versions of CPython keep no such number")]
pub(super) unsafe fn version_of(dict: *mut PyObject) -> Option<u64> {
    #[cfg(not(Py_3_12))]
    {
        // SAFETY: as for the caller.
        Some(unsafe { (*dict.cast::<pyo3::ffi::PyDictObject>()).ma_version_tag })
    }
    #[cfg(Py_3_12)]
    {
        let _ = dict;
        None
    }
}
