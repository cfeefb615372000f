//! Places for references to Python objects, for the stream's own type.
//!
//! `Py<T>` cannot serve here: the interpreter enters the stream's slots directly, where pyo3 does not know that the
//! thread is attached and would put every decrement off. A place is read and written with a token or a `Bound`, so that
//! an attached thread is a matter of types. The GIL makes those one at a time.

use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// Owns one reference, or none.
pub(crate) struct Slot(Cell<*mut PyObject>);

impl Slot {
    /// An empty place.
    pub(crate) const fn empty() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// A place that holds an object from the beginning.
    #[inline]
    pub(crate) fn holding(object: Bound<'_, PyAny>) -> Self {
        Self(Cell::new(object.into_ptr()))
    }

    /// True if there is nothing in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_null()
    }

    /// The object, with a reference of its own: whatever runs meanwhile may empty the place.
    #[inline]
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the place is empty or owns a reference, so that the object is alive while its count is raised.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, self.0.get()) }
    }

    /// Takes the object out.
    #[inline]
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the reference that the place owned is handed over, and the place is empty before anything else runs.
        unsafe { Bound::from_owned_ptr_or_opt(py, self.0.replace(ptr::null_mut())) }
    }

    /// Puts an object in and drops the old one. The new one is in place before the old one's finaliser can run.
    #[inline]
    pub(crate) fn set(&self, object: Bound<'_, PyAny>) {
        let py = object.py();
        let old = self.0.replace(object.into_ptr());
        // SAFETY: the place owned the reference, which is not reachable from here any more.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, old) });
    }

    /// Drops the object.
    #[inline]
    pub(crate) fn clear(&self, py: Python<'_>) {
        drop(self.take(py));
    }

    /// The object for the collector, which counts it and does not keep it; null when empty.
    pub(crate) fn visited(&self) -> *mut PyObject {
        self.0.get()
    }
}

impl Drop for Slot {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the reference is owned. Slots are parts of streams, spans and job handles, which only attached threads
        // drop: the interpreter's deallocator, or a function that was given a token.
        unsafe { ffi::Py_XDECREF(self.0.get()) };
    }
}

/// Owns one reference to an object of a known class, set once and never replaced.
pub(crate) struct OnceSlot<T>(OnceCell<NonNull<PyObject>>, PhantomData<T>);

impl<T> OnceSlot<T> {
    /// An empty place.
    pub(crate) const fn empty() -> Self {
        Self(OnceCell::new(), PhantomData)
    }

    /// A place that holds an object from the beginning.
    #[inline]
    pub(crate) fn holding(object: Bound<'_, T>) -> Self {
        let place = Self::empty();
        place.set(object);
        place
    }

    /// Puts an object in; the first one stays.
    #[inline]
    pub(crate) fn set(&self, object: Bound<'_, T>) {
        let py = object.py();
        if let Some(object) = NonNull::new(object.into_ptr())
            && let Err(refused) = self.0.set(object)
        {
            // SAFETY: the reference that `into_ptr` gave up and that was not kept.
            drop(unsafe { Bound::<PyAny>::from_owned_ptr(py, refused.as_ptr()) });
        }
    }

    /// The object, which the place keeps alive.
    #[inline]
    pub(crate) fn get<'a, 'py>(&'a self, py: Python<'py>) -> Option<Borrowed<'a, 'py, T>> {
        // SAFETY: `set` took a reference to an object of this class, which is given back only when the place is dropped.
        self.0.get().map(|object| unsafe { Borrowed::from_ptr(py, object.as_ptr()).cast_unchecked() })
    }

    /// The object for the collector, which counts it and does not keep it; null when empty.
    pub(crate) fn visited(&self) -> *mut PyObject {
        self.0.get().map_or(ptr::null_mut(), |object| object.as_ptr())
    }
}

impl<T> Drop for OnceSlot<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(object) = self.0.get() {
            // SAFETY: the reference is owned, and a stream is dropped by attached threads only.
            unsafe { ffi::Py_DECREF(object.as_ptr()) };
        }
    }
}

// SAFETY: the reference is counted by attached threads only, whichever holds the place by then.
unsafe impl Send for Slot {}

/// A value that only attached threads reach, which the GIL makes one at a time.
pub(crate) struct GilGuarded<T>(T);

// SAFETY: a shared reference to the value takes a token, so that its thread is attached; a thread that detaches meanwhile
// runs code that cannot hold the reference, which is not `Send`. The module declares that it needs the GIL.
unsafe impl<T: Send> Sync for GilGuarded<T> {}

impl<T> GilGuarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    #[inline]
    pub(crate) fn get<'a>(&'a self, _py: Python<'a>) -> &'a T {
        &self.0
    }
}
