//! The end of an iteration, raised without building an exception each time.
//!
//! From CPython 3.12 on, `StopIteration` is instantiated eagerly whenever an awaitable that is not a coroutine returns,
//! which costs more than the rest of a step. So the stream raises instances of subclasses whose deallocator puts them
//! into a free list. Nothing is shared between two raises, and a recycled instance keeps no value, traceback or context
//! alive: a single cached instance would do both.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ptr;

use pyo3::ffi::{self, PyBaseExceptionObject, PyObject, PyStopIterationObject};
use pyo3::prelude::*;

const KEPT: usize = 16;

/// A subclass of a stop exception with its free list.
struct Recycler {
    class: Cell<*mut PyObject>,
    free: UnsafeCell<[*mut PyObject; KEPT]>,
    count: Cell<usize>,
}

// SAFETY: touched by attached threads only; the module declares that it needs the GIL, so that is one at a time.
unsafe impl Sync for Recycler {}

static STOP_ITERATION: Recycler = Recycler::new();
static STOP_ASYNC_ITERATION: Recycler = Recycler::new();

impl Recycler {
    const fn new() -> Self {
        Self { class: Cell::new(ptr::null_mut()), free: UnsafeCell::new([ptr::null_mut(); KEPT]), count: Cell::new(0) }
    }

    /// A new or recycled instance, owned by the caller; null with an exception set when memory is out.
    ///
    /// # Safety
    /// The thread is attached.
    #[inline]
    unsafe fn instance(&self) -> *mut PyObject {
        let count = self.count.get();
        // SAFETY: objects in the free list are dead, untracked instances of the class with their memory intact;
        // reviving one is giving it its first reference and showing it to the collector again.
        unsafe {
            if count == 0 {
                return ffi::PyObject_CallNoArgs(self.class.get());
            }
            self.count.set(count - 1);
            let object = (*self.free.get())[count - 1];
            revive(object);
            ffi::PyObject_GC_Track(object.cast());
            object
        }
    }

    /// Keeps a dead instance whose fields are cleared, or frees it.
    ///
    /// # Safety
    /// `object` is an untracked instance of the class without references.
    unsafe fn recycle(&self, object: *mut PyObject) {
        let count = self.count.get();
        // SAFETY: as above; what does not fit is freed as `object`'s own type would do it.
        unsafe {
            if count < KEPT {
                (*self.free.get())[count] = object;
                self.count.set(count + 1);
            } else {
                let exception = object.cast::<PyBaseExceptionObject>();
                ffi::Py_XDECREF((*exception).args);
                ffi::PyObject_GC_Del(object.cast());
                ffi::Py_DECREF(self.class.get());
            }
        }
    }

    /// Raises an instance, whose reference is taken.
    ///
    /// # Safety
    /// The thread is attached and `exception` is owned by the caller.
    #[inline]
    unsafe fn raise(&self, exception: *mut PyObject) {
        // SAFETY: both calls steal the references they are given.
        unsafe {
            #[cfg(Py_3_12)]
            ffi::PyErr_SetRaisedException(exception);
            #[cfg(not(Py_3_12))]
            ffi::PyErr_Restore(ffi::Py_NewRef(self.class.get()), exception, ptr::null_mut());
        }
    }
}

/// Gives a dead object in a free list its first reference.
///
/// # Safety
/// `object` has no references and its memory is intact. The count is the first word of an object in every build that
/// has a GIL; free-threaded builds are not supported.
#[inline]
pub(crate) unsafe fn revive(object: *mut PyObject) {
    // SAFETY: see above.
    unsafe { object.cast::<ffi::Py_ssize_t>().write(1) };
}

/// Drops a field of an exception; the field is empty before the finaliser of what was in it can run.
unsafe fn empty(field: *mut *mut PyObject) {
    // SAFETY: `field` points into a live exception object and owns what it holds.
    unsafe { ffi::Py_XDECREF(ptr::replace(field, ptr::null_mut())) };
}

unsafe fn forget_history(object: *mut PyObject) {
    let exception = object.cast::<PyBaseExceptionObject>();
    // SAFETY: `object` is a `BaseException` by construction of the two classes.
    unsafe {
        empty(&raw mut (*exception).dict);
        empty(&raw mut (*exception).traceback);
        empty(&raw mut (*exception).context);
        empty(&raw mut (*exception).cause);
        #[cfg(Py_3_11)]
        empty(&raw mut (*exception).notes);
        (*exception).suppress_context = '\0';
    }
}

unsafe extern "C" fn dealloc_stop_iteration(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a dead instance of our subclass of `StopIteration`.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        forget_history(object);
        empty(&raw mut (*object.cast::<PyStopIterationObject>()).value);
        STOP_ITERATION.recycle(object);
    }
}

unsafe extern "C" fn dealloc_stop_async_iteration(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a dead instance of our subclass of `StopAsyncIteration`.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        forget_history(object);
        STOP_ASYNC_ITERATION.recycle(object);
    }
}

/// Raises `StopIteration(value)`.
#[inline]
pub(crate) fn iteration(value: Bound<'_, PyAny>) {
    // SAFETY: the value proves that the thread is attached. The instance is fresh, so that nothing else looks at its value
    // while it is exchanged; the exception owns the new one.
    unsafe {
        let exception = STOP_ITERATION.instance();
        if exception.is_null() {
            return;
        }
        let old = ptr::replace(&raw mut (*exception.cast::<PyStopIterationObject>()).value, value.into_ptr());
        ffi::Py_XDECREF(old);
        STOP_ITERATION.raise(exception);
    }
}

/// Raises `StopAsyncIteration`.
#[inline]
pub(crate) fn async_iteration(_py: Python<'_>) {
    // SAFETY: the token proves that the thread is attached; `instance` gives an owned reference, or null with an
    // exception set.
    unsafe {
        let exception = STOP_ASYNC_ITERATION.instance();
        if !exception.is_null() {
            STOP_ASYNC_ITERATION.raise(exception);
        }
    }
}

/// Makes the two classes.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    type Dealloc = unsafe extern "C" fn(*mut PyObject);
    // SAFETY: the interpreter's exception classes live as long as it does; the specs are leaked on purpose, because a
    // type keeps pointing to its name.
    unsafe {
        let kinds: [(&Recycler, *mut PyObject, _, Dealloc); 2] = [
            (&STOP_ITERATION, ffi::PyExc_StopIteration, c"toolcrib.StopIteration", dealloc_stop_iteration),
            (
                &STOP_ASYNC_ITERATION,
                ffi::PyExc_StopAsyncIteration,
                c"toolcrib.StopAsyncIteration",
                dealloc_stop_async_iteration,
            ),
        ];
        for (recycler, base, name, dealloc) in kinds {
            let slots = Box::leak(Box::new([
                ffi::PyType_Slot { slot: ffi::Py_tp_dealloc, pfunc: dealloc as *mut c_void },
                ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
            ]));
            let spec = Box::leak(Box::new(ffi::PyType_Spec {
                name: name.as_ptr(),
                basicsize: 0,
                itemsize: 0,
                #[allow(clippy::cast_possible_truncation, reason = "the flags of a spec are 32 bits wide")]
                flags: ffi::Py_TPFLAGS_DEFAULT as _,
                slots: slots.as_mut_ptr(),
            }));
            let bases = ffi::PyTuple_Pack(1, base);
            let class = ffi::PyType_FromSpecWithBases(spec, bases);
            ffi::Py_XDECREF(bases);
            if class.is_null() {
                return Err(PyErr::fetch(py));
            }
            recycler.class.set(class);
        }
    }
    Ok(())
}
