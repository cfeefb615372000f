//! The short way to the next chunk of an async generator.
//!
//! An async generator can be resumed through its own `am_send` slot, as a coroutine is. What it yields then comes in a
//! private wrapper of the interpreter's. Taking the value out of the wrapper saves the `asend` object and one exception
//! for each chunk, which makes the stream quicker than a bare `async for`. The wrapper's type and layout are learnt
//! at import from a generator of two lines; if anything looks different, the public way is used instead.

use std::cell::Cell;
use std::ptr;

use pyo3::ffi::{self, PyObject, PySendResult, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;

struct Wrapper(Cell<*mut PyTypeObject>);

// SAFETY: written once at import, read by attached threads only.
unsafe impl Sync for Wrapper {}

static WRAPPER: Wrapper = Wrapper(Cell::new(ptr::null_mut()));

/// Whether the short way is open.
#[inline]
pub(crate) fn is_known() -> bool {
    !WRAPPER.0.get().is_null()
}

/// Takes a yielded value out of its wrapper: the value, or null when `object` is something the generator awaits.
///
/// # Safety
/// The thread is attached; `object` is owned by the caller and consumed when a value is returned.
#[inline]
pub(crate) unsafe fn unwrap(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the layout behind a wrapper of this type was verified at import.
    unsafe {
        if ffi::Py_TYPE(object) != WRAPPER.0.get() {
            return ptr::null_mut();
        }
        let value = ffi::Py_NewRef(*wrapped(object));
        ffi::Py_DECREF(object);
        value
    }
}

/// Where a wrapper keeps its value: right behind the object's head.
unsafe fn wrapped(object: *mut PyObject) -> *mut *mut PyObject {
    // SAFETY: the caller knows that the object is large enough.
    unsafe { object.add(1).cast() }
}

/// Learns the wrapper's type and verifies its layout.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    let scope = PyDict::new(py);
    py.run(c"async def generator():\n    yield scope\n", Some(&scope), None)?;
    scope.set_item("scope", &scope)?;
    let generator = scope.as_any().get_item("generator")?.call0()?;
    let mut yielded = ptr::null_mut();
    // SAFETY: a fresh async generator is resumed once; the result is owned.
    let result = unsafe { ffi::PyIter_Send(generator.as_ptr(), ffi::Py_None(), &raw mut yielded) };
    if result != PySendResult::PYGEN_NEXT {
        drop(PyErr::take(py));
        return Ok(());
    }
    // SAFETY: `PYGEN_NEXT` comes with an owned object.
    let yielded = unsafe { Bound::from_owned_ptr(py, yielded) };
    // The collector's public interface tells what the wrapper refers to. A wrapper that refers to one object and is one
    // pointer larger than a bare object can only keep it there.
    let referents = py.import("gc")?.call_method1("get_referents", (&yielded,))?;
    let size: usize = yielded.get_type().getattr("__basicsize__")?.extract()?;
    let is_expected = referents.len()? == 1
        && referents.get_item(0)?.is(&scope)
        && size == size_of::<PyObject>() + size_of::<*mut PyObject>();
    if is_expected {
        WRAPPER.0.set(yielded.get_type().into_ptr().cast());
    }
    // Ends the generator quietly: it was never given to an event loop.
    // SAFETY: as above; the generator returns or raises, and neither matters.
    unsafe {
        let mut end = ptr::null_mut();
        ffi::PyIter_Send(generator.as_ptr(), ffi::Py_None(), &raw mut end);
        ffi::Py_XDECREF(end);
        ffi::PyErr_Clear();
    }
    Ok(())
}
