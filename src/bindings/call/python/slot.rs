//! A place for one reference to a Python object, used by the stream's own type.
//!
//! `Py<T>` cannot serve here: the interpreter enters the stream's slots directly, where pyo3 does not know that the
//! thread is attached and would put every decrement off.

use std::cell::Cell;
use std::ptr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// Owns one reference, or none. Used by attached threads only, which the GIL makes one at a time.
pub(crate) struct Slot(Cell<*mut PyObject>);

impl Slot {
    /// An empty place.
    pub(crate) const fn empty() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// A place that owns the reference it is given (or nothing, for null).
    pub(crate) const fn owning(object: *mut PyObject) -> Self {
        Self(Cell::new(object))
    }

    /// The object, borrowed; null when empty.
    #[inline]
    pub(crate) fn get(&self) -> *mut PyObject {
        self.0.get()
    }

    /// Takes the reference out.
    #[inline]
    pub(crate) fn take(&self) -> *mut PyObject {
        self.0.replace(ptr::null_mut())
    }

    /// Puts a reference in and drops the old one. The new one is in place before the old one's finaliser can run.
    #[inline]
    pub(crate) fn set(&self, object: *mut PyObject) {
        let old = self.0.replace(object);
        // SAFETY: the slot owned `old`, and the thread is attached.
        unsafe { ffi::Py_XDECREF(old) };
    }

    /// Drops the reference.
    #[inline]
    pub(crate) fn clear(&self) {
        self.set(ptr::null_mut());
    }

    /// The object with a reference of its own, for the code away from the hot path.
    pub(crate) fn bound<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the slot is empty or holds a live object.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, self.get()) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.clear();
    }
}
