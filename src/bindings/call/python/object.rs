//! `ToolStream`: the Python type around a [`State`], with its slots filled directly.
//!
//! One object is awaitable (giving itself) and an async iterator whose steps it drives itself, so that a call makes one
//! object. pyo3 has no way to fill `am_send`, and its method wrappers cost as much as the call; hence a type of our own.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::ffi::{self, PyObject, PySendResult, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::super::state::{ERROR, Out, Phase, State};
use super::super::throw;
use super::stop;
use crate::bindings::errors;

const KEPT: usize = 256;

#[repr(C)]
struct Object {
    head: PyObject,
    state: State,
}

/// The type and the memory of streams that are over.
struct Factory {
    class: Cell<*mut PyTypeObject>,
    free: UnsafeCell<[*mut PyObject; KEPT]>,
    count: Cell<usize>,
}

// SAFETY: touched by attached threads only; the module declares that it needs the GIL, so that is one at a time.
unsafe impl Sync for Factory {}

static FACTORY: Factory =
    Factory { class: Cell::new(ptr::null_mut()), free: UnsafeCell::new([ptr::null_mut(); KEPT]), count: Cell::new(0) };

/// Makes a stream around a state; null with an exception set when memory is out.
///
/// # Safety
/// The thread is attached.
#[inline]
pub(crate) unsafe fn new(state: State) -> *mut PyObject {
    let count = FACTORY.count.get();
    // SAFETY: objects in the free list are dead and untracked, with their memory intact and no state in them.
    unsafe {
        let object = if count == 0 {
            let object = ffi::PyObject_GC_New::<PyObject>(FACTORY.class.get());
            if object.is_null() {
                return object;
            }
            object
        } else {
            FACTORY.count.set(count - 1);
            let object = (*FACTORY.free.get())[count - 1];
            stop::revive(object);
            object
        };
        (&raw mut (*object.cast::<Object>()).state).write(state);
        ffi::PyObject_GC_Track(object.cast());
        object
    }
}

/// The state behind a stream.
///
/// # Safety
/// `object` is a live stream.
#[inline]
unsafe fn state<'a>(object: *mut PyObject) -> &'a State {
    // SAFETY: only this module makes objects of the type, always with a state.
    unsafe { &(*object.cast::<Object>()).state }
}

/// Whether an object is a stream.
///
/// # Safety
/// The object is live.
pub(crate) unsafe fn is_stream(object: *mut PyObject) -> bool {
    // SAFETY: as for the caller.
    unsafe { ffi::Py_TYPE(object) == FACTORY.class.get() }
}

/// Whether a stream has come to its end.
pub(crate) fn is_over(stream: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type is checked before the state is read.
    unsafe { !is_stream(stream.as_ptr()) || state(stream.as_ptr()).phase.get() == Phase::Done }
}

/// Whether a stream has not come to its end, and nobody waits for it.
pub(crate) fn is_abandoned(stream: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type is checked before the state is read.
    !is_over(stream) && unsafe { !state(stream.as_ptr()).is_busy() }
}

/// Takes the cancellation out that a stream would raise next.
pub(crate) fn take_cancellation(stream: &Bound<'_, PyAny>) -> Option<PyErr> {
    // SAFETY: the type is checked before the state is read; the error is owned.
    unsafe {
        if is_over(stream) || state(stream.as_ptr()).phase.get() != Phase::Cancelled {
            return None;
        }
        let error = state(stream.as_ptr()).rare().error.take();
        Bound::from_owned_ptr_or_opt(stream.py(), error).map(PyErr::from_value)
    }
}

/// `stream.aclose()`.
///
/// # Safety
/// The object is a stream.
pub(crate) unsafe fn aclose<'py>(stream: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as for the caller.
    unsafe { state(stream.as_ptr()).aclose(stream.py(), stream.as_ptr()) }
}

/// Runs the body of a slot. A panic must not unwind into the interpreter: it becomes an ordinary exception.
#[inline]
fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        raise_panic(&*panic);
        failed
    })
}

#[cold]
fn raise_panic(panic: &(dyn Any + Send)) {
    Python::attach(|py| errors::internal(panic).restore(py));
}

fn raised<T: Default>(py: Python<'_>, result: PyResult<T>) -> T {
    result.unwrap_or_else(|error| {
        error.restore(py);
        T::default()
    })
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a dead stream. The state is emptied before its memory is reused.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        guarded((), || {
            if state(object).rare.get().is_some() {
                state(object).abandon();
                Python::attach(|_| ptr::drop_in_place(&raw mut (*object.cast::<Object>()).state));
            } else {
                ptr::drop_in_place(&raw mut (*object.cast::<Object>()).state);
            }
        });
        let count = FACTORY.count.get();
        if count < KEPT {
            (*FACTORY.free.get())[count] = object;
            FACTORY.count.set(count + 1);
        } else {
            ffi::PyObject_GC_Del(object.cast());
            ffi::Py_DECREF(FACTORY.class.get().cast());
        }
    }
}

unsafe extern "C" fn traverse(object: *mut PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: the collector visits live objects while nothing runs.
    unsafe {
        let state = state(object);
        let held = [&state.toolkit, &state.call, &state.tool, &state.inner, &state.pending, &state.last];
        let rare = state.rare.get().map(|rare| rare.objects());
        let class: *mut PyObject = ffi::Py_TYPE(object).cast();
        let objects = std::iter::once(class).chain(held.map(super::slot::Slot::get)).chain(rare.into_iter().flatten());
        for object in objects.filter(|object| !object.is_null()) {
            let result = visit(object, arg);
            if result != 0 {
                return result;
            }
        }
        match state.rare.get().and_then(|rare| rare.job.get()) {
            Some(job) => job.visit(Python::assume_attached(), &mut |object| visit(object, arg)),
            None => 0,
        }
    }
}

/// Called by the collector before it takes a cycle apart, so that what a span needs is still whole.
unsafe extern "C" fn finalize(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a live stream.
    guarded((), || unsafe { state(object) }.abandon());
}

unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    // SAFETY: called by the collector with a live stream.
    guarded((), || unsafe { state(object) }.clear());
    0
}

unsafe extern "C" fn itself(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the object is live.
    unsafe { ffi::Py_NewRef(object) }
}

unsafe extern "C" fn send(object: *mut PyObject, value: *mut PyObject, result: *mut *mut PyObject) -> PySendResult {
    // SAFETY: called by the interpreter with a live stream and a place for the result.
    unsafe {
        let (sent, object) = guarded(ERROR, || state(object).send(object, value));
        *result = object;
        sent
    }
}

unsafe extern "C" fn next(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe { told(guarded(ERROR, || state(object).send(object, ffi::Py_None()))) }
}

unsafe extern "C" fn anext(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe { if state(object).arm() { ffi::Py_NewRef(object) } else { busy() } }
}

/// Stands in for a step that cannot be had. An error must not be raised before that is awaited: `anext(stream, default)`
/// takes what `am_anext` gives for granted, up to Python 3.13, and crashes on null.
#[cold]
fn busy() -> *mut PyObject {
    guarded(ptr::null_mut(), || Python::attach(|py| raised(py, throw::busy(py).map(|step| Owned(step.into_ptr()))).0))
}

/// What a method written in Python terms returns: the object, or null with `StopIteration` or another exception set.
#[inline]
unsafe fn told(out: Out) -> *mut PyObject {
    // SAFETY: the result is owned.
    unsafe {
        match out {
            (PySendResult::PYGEN_NEXT, future) => future,
            (PySendResult::PYGEN_RETURN, result) => {
                stop::iteration(result);
                ptr::null_mut()
            }
            (PySendResult::PYGEN_ERROR, _) => ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn method_send(object: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe { told(guarded(ERROR, || state(object).send(object, value))) }
}

unsafe extern "C" fn method_throw(object: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream and a tuple.
    unsafe {
        told(guarded(ERROR, || {
            Python::attach(|py| match exception(py, arguments) {
                Ok(error) => state(object).throw(py, error),
                Err(error) => {
                    error.restore(py);
                    ERROR
                }
            })
        }))
    }
}

unsafe fn exception(py: Python<'_>, arguments: *mut PyObject) -> PyResult<PyErr> {
    // SAFETY: the interpreter passes the arguments of a method as a tuple.
    let arguments = unsafe { Bound::from_borrowed_ptr(py, arguments) };
    throw::exception_of(py, arguments.cast::<PyTuple>()?)
}

unsafe extern "C" fn method_close(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    guarded(ptr::null_mut(), || unsafe {
        Python::attach(|py| raised(py, state(object).close(py).map(|()| Owned(py.None().into_ptr()))).0)
    })
}

unsafe extern "C" fn method_aclose(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    guarded(ptr::null_mut(), || unsafe {
        Python::attach(|py| raised(py, state(object).aclose(py, object).map(|end| Owned(end.into_ptr()))).0)
    })
}

unsafe extern "C" fn method_asend(object: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream and a live value.
    guarded(ptr::null_mut(), || unsafe {
        Python::attach(|py| {
            let value = Bound::from_borrowed_ptr(py, value);
            let armed = state(object).arm_with(py, Some(value), None);
            raised(py, armed.map(|()| Owned(ffi::Py_NewRef(object)))).0
        })
    })
}

unsafe extern "C" fn method_athrow(object: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream and a tuple.
    guarded(ptr::null_mut(), || unsafe {
        Python::attach(|py| {
            let armed = exception(py, arguments).and_then(|error| state(object).arm_with(py, None, Some(error)));
            raised(py, armed.map(|()| Owned(ffi::Py_NewRef(object)))).0
        })
    })
}

/// An owned object or null.
struct Owned(*mut PyObject);

impl Default for Owned {
    fn default() -> Self {
        Self(ptr::null_mut())
    }
}

/// The tool's name, which asyncio shows for the task that runs the call.
unsafe extern "C" fn get_name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    guarded(ptr::null_mut(), || unsafe { Python::attach(|py| state(object).name(py).into_ptr()) })
}

fn method(name: &'static CStr, function: ffi::PyCFunction, flags: c_int, doc: &'static CStr) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }
}

const DOC: &CStr = c"The responses of one tool call, as they come.

Awaiting it gives the stream itself and runs nothing; iterating it runs the call. It has the interface of an async
generator.";

/// Makes the type.
pub(crate) fn init(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let nothing = ffi::PyMethodDef::zeroed();
    let methods = Box::leak(Box::new([
        method(c"send", method_send, ffi::METH_O, c"send($self, value, /)\n--\n\nGo on until the next response or the next wait."),
        method(c"throw", method_throw, ffi::METH_VARARGS, c"throw($self, typ, val=None, tb=None, /)\n--\n\nRaise an exception where the call waits."),
        method(c"close", method_close, ffi::METH_NOARGS, c"close($self, /)\n--\n\nGive the call up from synchronous code."),
        method(c"asend", method_asend, ffi::METH_O, c"asend($self, value, /)\n--\n\nSend a value into the tool's generator and get the next response."),
        method(c"athrow", method_athrow, ffi::METH_VARARGS, c"athrow($self, typ, val=None, tb=None, /)\n--\n\nRaise an exception in the tool's generator and get the next response."),
        method(c"aclose", method_aclose, ffi::METH_NOARGS, c"aclose($self, /)\n--\n\nEnd the call and finalise the tool's generator."),
        nothing,
    ]));
    let getter = |name: &'static CStr| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get_name),
        set: None,
        doc: c"The name of the tool that is called.".as_ptr(),
        closure: ptr::null_mut(),
    };
    let getters = Box::leak(Box::new([getter(c"__name__"), getter(c"__qualname__"), ffi::PyGetSetDef::default()]));
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let slots = Box::leak(Box::new([
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast::<c_void>()),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_finalize, finalize as *mut c_void),
        slot(ffi::Py_tp_iter, itself as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(ffi::Py_am_await, itself as *mut c_void),
        slot(ffi::Py_am_aiter, itself as *mut c_void),
        slot(ffi::Py_am_anext, anext as *mut c_void),
        slot(ffi::Py_am_send, send as *mut c_void),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getters.as_mut_ptr().cast()),
        slot(0, ptr::null_mut()),
    ]));
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the fields of a spec are narrow")]
    let spec = Box::leak(Box::new(ffi::PyType_Spec {
        name: c"toolcrib.ToolStream".as_ptr(),
        basicsize: size_of::<Object>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as _,
        slots: slots.as_mut_ptr(),
    }));
    // SAFETY: the spec and everything it points to are leaked on purpose: the type keeps pointing to them.
    unsafe {
        let class = ffi::PyType_FromSpec(spec);
        let class = Bound::from_owned_ptr_or_err(py, class)?.cast_into::<PyType>()?;
        // `asyncio.gather` and its like look for this to see whether an awaitable is a future. None says no, as having no
        // such attribute does, but without the exception that asyncio would have to clear away.
        class.setattr("_asyncio_future_blocking", py.None())?;
        FACTORY.class.set(class.clone().into_ptr().cast());
        Ok(class)
    }
}

impl State {
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        if self.tool.get().is_null() {
            return PyString::new(py, "tool call");
        }
        // SAFETY: the slot is filled.
        PyString::new(py, unsafe { &self.tool().name })
    }
}
