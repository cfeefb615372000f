//! `ToolStream`: the Python type around a [`State`], with its slots filled directly, and the exceptions that end its iteration.
//!
//! One object is awaitable (giving itself) and an async iterator whose steps it drives itself, so that a call makes one
//! object. pyo3 has no way to fill `am_send`, and its method wrappers cost as much as the call; hence a type of our own.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::ffi::{self, PyBaseExceptionObject, PyObject, PySendResult, PyStopIterationObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::super::close;
use super::super::state::{Resumed, State};
use super::attached;
use crate::bindings::errors;

#[repr(C)]
struct Object {
    head: PyObject,
    state: State,
}

/// A type, and the memory of its dead objects, which is used again.
struct Recycler<const KEPT: usize> {
    class: Cell<*mut PyTypeObject>,
    free: [Cell<*mut PyObject>; KEPT],
    count: Cell<usize>,
}

// SAFETY: touched by attached threads only; the module declares that it needs the GIL, so that is one at a time.
unsafe impl<const KEPT: usize> Sync for Recycler<KEPT> {}

static STREAMS: Recycler<256> = Recycler::new();
static STOP_ITERATION: Stops = Recycler::new();
static STOP_ASYNC_ITERATION: Stops = Recycler::new();

impl<const KEPT: usize> Recycler<KEPT> {
    const fn new() -> Self {
        Self {
            class: Cell::new(ptr::null_mut()),
            free: [const { Cell::new(ptr::null_mut()) }; KEPT],
            count: Cell::new(0),
        }
    }

    /// A dead object with its first reference, not tracked by the collector; none if there is none.
    ///
    /// # Safety
    /// The thread is attached.
    #[inline(always)]
    unsafe fn take(&self) -> Option<*mut PyObject> {
        let last = self.count.get().checked_sub(1)?;
        self.count.set(last);
        let object = self.free[last].get();
        // SAFETY: the first `count` places hold dead objects with their memory intact. The count of references is the first word
        // of an object in every build that has a GIL; free-threaded builds are not supported.
        unsafe { object.cast::<ffi::Py_ssize_t>().write(1) };
        Some(object)
    }

    /// Keeps a dead object; false if there is no room.
    ///
    /// # Safety
    /// The thread is attached. `object` is of the type, has no references and is not tracked.
    #[inline(always)]
    unsafe fn keep(&self, object: *mut PyObject) -> bool {
        let count = self.count.get();
        let Some(place) = self.free.get(count) else { return false };
        place.set(object);
        self.count.set(count + 1);
        true
    }
}

/// Makes a stream around a state. The state is made in the memory of the stream: to copy one right after its small fields were
/// written, by loads that span several of them, makes the processor wait for the writes.
#[inline(always)]
pub(crate) fn new(py: Python<'_>, state: impl FnOnce() -> State) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a recycled object is dead and untracked, with no state in it; a new one is of the same type. The state is written
    // before the collector can see the object.
    unsafe {
        let object = if let Some(recycled) = STREAMS.take() {
            recycled
        } else {
            let object = ffi::PyObject_GC_New::<PyObject>(STREAMS.class.get());
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            object
        };
        (&raw mut (*object.cast::<Object>()).state).write(state());
        ffi::PyObject_GC_Track(object.cast());
        Ok(Bound::from_owned_ptr(py, object))
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

/// True for streams.
pub(crate) fn is_stream(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == STREAMS.class.get()
}

/// The state behind an object, if that is a stream.
pub(crate) fn state_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a State> {
    // SAFETY: the type is checked, and the reference keeps the stream alive.
    is_stream(object).then(|| unsafe { state(object.as_ptr()) })
}

/// Runs the body of a slot in the attached thread that the interpreter calls it in. A panic must not unwind into the
/// interpreter: it becomes an ordinary exception.
#[inline(always)]
fn guarded<T>(failed: T, body: impl FnOnce(Python<'_>) -> T) -> T {
    // SAFETY: the interpreter calls slots with the thread attached, and the token does not outlive the slot.
    let py = unsafe { Python::assume_attached() };
    catch_unwind(AssertUnwindSafe(|| body(py))).unwrap_or_else(|panic| {
        raise_panic(py, &*panic);
        failed
    })
}

#[cold]
fn raise_panic(py: Python<'_>, panic: &(dyn Any + Send)) {
    attached(py, |py| errors::internal(panic).restore(py));
}

/// An owned object for the interpreter, or null with the exception set.
#[inline]
pub(super) fn given(py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> *mut PyObject {
    match result {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// A live object that the interpreter passes to a slot.
///
/// # Safety
/// `object` is alive while the slot runs.
#[inline]
unsafe fn bound(py: Python<'_>, object: *mut PyObject) -> Bound<'_, PyAny> {
    // SAFETY: the caller says that the object is alive, and the new reference keeps it so.
    unsafe { Bound::from_borrowed_ptr(py, object) }
}

/// The result of a stream's step in the terms of `am_send`.
#[inline(always)]
fn out<'py>(py: Python<'py>, resumed: Resumed<'py>) -> (PySendResult, *mut PyObject) {
    match resumed {
        Resumed::Yield(future) => (PySendResult::PYGEN_NEXT, future.into_ptr()),
        Resumed::Return(result) => (PySendResult::PYGEN_RETURN, result.into_ptr()),
        Resumed::Stop => {
            raise_stop_async_iteration(py);
            (PySendResult::PYGEN_ERROR, ptr::null_mut())
        }
        Resumed::Raise(error) => {
            error.restore(py);
            (PySendResult::PYGEN_ERROR, ptr::null_mut())
        }
    }
}

/// The same in the terms of a method: the object, or null with `StopIteration` or another exception set.
#[inline]
fn returned(py: Python<'_>, out: (PySendResult, *mut PyObject)) -> *mut PyObject {
    match out {
        (PySendResult::PYGEN_NEXT, future) => future,
        (PySendResult::PYGEN_RETURN, result) => {
            // SAFETY: `out` gives up its reference to the result.
            raise_stop_iteration(unsafe { Bound::from_owned_ptr(py, result) });
            ptr::null_mut()
        }
        (PySendResult::PYGEN_ERROR, _) => ptr::null_mut(),
    }
}

const ERROR: (PySendResult, *mut PyObject) = (PySendResult::PYGEN_ERROR, ptr::null_mut());

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a dead stream. The state is dropped before its memory is reused. An object
    // whose finaliser was called keeps a mark of that, so that its memory is not used again.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        guarded((), |py| {
            let place = &raw mut (*object.cast::<Object>()).state;
            if (*place).cold.get().is_some() || (*place).is_unawaited() {
                attached(py, |py| {
                    (*place).abandon(py);
                    (*place).warn_if_dropped(py);
                    ptr::drop_in_place(place);
                });
            } else {
                ptr::drop_in_place(place);
            }
        });
        if ffi::PyObject_GC_IsFinalized(object) != 0 || !STREAMS.keep(object) {
            ffi::PyObject_GC_Del(object.cast());
            ffi::Py_DECREF(STREAMS.class.get().cast());
        }
    }
}

unsafe extern "C" fn traverse(object: *mut PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: the collector visits live objects in an attached thread while nothing runs; `visit` takes any object that
    // they hold, and the token is used to look at them only.
    unsafe {
        let (py, state) = (Python::assume_attached(), state(object));
        let class: *mut PyObject = ffi::Py_TYPE(object).cast();
        for held in std::iter::once(class).chain(state.objects(py)) {
            let result = visit(held, arg);
            if result != 0 {
                return result;
            }
        }
        state.job().map_or(0, |job| job.visit(py, &mut |object| visit(object, arg)))
    }
}

/// Called by the collector before it takes a cycle apart, so that what a span needs is still whole.
unsafe extern "C" fn finalize(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a live stream.
    guarded((), |py| {
        let state = unsafe { state(object) };
        state.abandon(py);
        attached(py, |py| state.warn_if_dropped(py));
    });
}

unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    // SAFETY: called by the collector with a live stream.
    guarded((), |py| attached(py, |py| unsafe { state(object) }.clear(py)));
    0
}

/// The iterator of `async for`: the stream itself, unless it is a call with one response.
unsafe extern "C" fn aiter(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe { if state(object).single { iter_slot(object) } else { ffi::Py_NewRef(object) } }
}

unsafe extern "C" fn send(object: *mut PyObject, value: *mut PyObject, result: *mut *mut PyObject) -> PySendResult {
    // SAFETY: called by the interpreter in an attached thread, with a live stream, a live value and a place for the result.
    unsafe {
        let state = state(object);
        let (sent, given) = if state.awaited_first() {
            (PySendResult::PYGEN_RETURN, ffi::Py_NewRef(object))
        } else if state.stopped() {
            raise_stop_async_iteration(Python::assume_attached());
            ERROR
        } else {
            step(object, value)
        };
        *result = given;
        sent
    }
}

/// Resumes the call. Not part of [`send`], because two of the three sends of a plain call have nothing to run and should
/// not pay for the stack frame of the whole path.
///
/// # Safety
/// `object` is a live stream, `value` a live object, and the thread is attached.
#[inline(never)]
unsafe fn step(object: *mut PyObject, value: *mut PyObject) -> (PySendResult, *mut PyObject) {
    guarded(ERROR, |py| {
        // SAFETY: the caller says that both are alive, and keeps the value so while the slot runs. The stream has a reference of its
        // own: the code that it runs may take the caller's away, by a second `__init__` of the task.
        let (_me, value, state) = unsafe { (bound(py, object), Borrowed::from_ptr(py, value), state(object)) };
        out(py, state.send(py, &value))
    })
}

/// The iterator of `await`, which is the stream itself.
unsafe extern "C" fn await_itself(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream, which the new reference is to.
    unsafe {
        state(object).awaiting.set(true);
        ffi::Py_NewRef(object)
    }
}

unsafe extern "C" fn next(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream; `None` is a live value.
    unsafe { if state(object).awaiting.get() { method_send(object, ffi::Py_None()) } else { iter_slot(object) } }
}

unsafe extern "C" fn anext(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe {
        if state(object).request_step() {
            return ffi::Py_NewRef(object);
        }
    }
    guarded(ptr::null_mut(), |py| attached(py, |py| given(py, close::busy(py))))
}

unsafe extern "C" fn method_send(object: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    let mut result = ptr::null_mut();
    // SAFETY: called by the interpreter in an attached thread, with a live stream and a live value.
    unsafe {
        let sent = send(object, value, &raw mut result);
        returned(Python::assume_attached(), (sent, result))
    }
}

/// The body of a method that takes no part in the hot path.
///
/// # Safety
/// `object` is a live stream, `argument` a live object or null.
unsafe fn method_body(
    object: *mut PyObject,
    argument: *mut PyObject,
    body: impl for<'py> FnOnce(&State, &Bound<'py, PyAny>, Option<Bound<'py, PyAny>>) -> *mut PyObject,
) -> *mut PyObject {
    guarded(ptr::null_mut(), |py| {
        attached(py, |py| {
            // SAFETY: the caller says that `object` is a live stream, and `argument` a live object or null.
            let (me, state, argument) =
                unsafe { (bound(py, object), state(object), Bound::from_borrowed_ptr_or_opt(py, argument)) };
            body(state, &me, argument)
        })
    })
}

/// The exception that the arguments of `throw` or `athrow` mean.
fn exception(py: Python<'_>, arguments: Option<Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let arguments = arguments.unwrap_or_else(|| PyTuple::empty(py).into_any());
    close::exception_of(py, arguments.cast::<PyTuple>()?)
}

/// Defines a method or getter that takes no part in the hot path.
macro_rules! method_slot {
    ($name:ident, $argument:ty, $body:expr) => {
        unsafe extern "C" fn $name(object: *mut PyObject, argument: $argument) -> *mut PyObject {
            // SAFETY: called by the interpreter with a live stream, and with a live object or null.
            unsafe { method_body(object, argument.cast(), $body) }
        }
    };
}

method_slot!(method_throw, *mut PyObject, |state, me, arguments| {
    let py = me.py();
    let resumed = match exception(py, arguments) {
        Ok(error) => state.throw(py, error),
        Err(error) => Resumed::Raise(error.into()),
    };
    returned(py, out(py, resumed))
});

method_slot!(method_close, *mut PyObject, |state, me, _| {
    let py = me.py();
    given(py, state.close(py).map(|()| py.None().into_bound(py)))
});

method_slot!(method_aclose, *mut PyObject, |state, me, _| given(me.py(), state.aclose(me.py(), me)));

method_slot!(method_asend, *mut PyObject, |state, me, value| {
    given(me.py(), state.request_step_with(me.py(), value, None).map(|()| me.clone()))
});

method_slot!(method_athrow, *mut PyObject, |state, me, arguments| {
    let py = me.py();
    let error = exception(py, arguments);
    given(py, error.and_then(|error| state.request_step_with(py, None, Some(error))).map(|()| me.clone()))
});

// The tool's name, which asyncio shows for the task that runs the call.
method_slot!(get_name, *mut c_void, |state, me, _| state.name(me.py()).into_ptr());

// The error for an attribute that is missing: those of a response are asked for by code that forgot to wait for one.
method_slot!(missing_attribute, *mut PyObject, |state, me, name| {
    let py = me.py();
    match (PyErr::take(py), name) {
        (Some(error), Some(name)) => state.missing_attribute(&name, error).restore(py),
        (Some(error), None) => error.restore(py),
        (None, _) => {}
    }
    ptr::null_mut()
});

// The iterator of a `for` loop. There is none, except for code that awaits the stream step by step.
method_slot!(iter, *mut c_void, |state, me, _| {
    given(me.py(), if state.awaiting.get() { Ok(me.clone()) } else { Err(state.not_iterable()) })
});

unsafe extern "C" fn iter_slot(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream.
    unsafe { iter(object, ptr::null_mut()) }
}

unsafe extern "C" fn get_attribute(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by the interpreter with a live stream and a string; a missing attribute leaves its exception set.
    unsafe {
        let found = ffi::PyObject_GenericGetAttr(object, name);
        if !found.is_null() || ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
            return found;
        }
        missing_attribute(object, name)
    }
}

// The end of an iteration
//
// From CPython 3.12 on, `StopIteration` is instantiated eagerly whenever an awaitable that is not a coroutine returns, which costs
// more than the rest of a step. So the stream raises instances of subclasses whose deallocator recycles them. Nothing is shared
// between two raises, and a recycled instance keeps no value, traceback or context alive: a single cached instance would do
// both.

/// The recycler of a subclass of a stop exception.
type Stops = Recycler<16>;

/// Keeps a dead instance whose fields are cleared, or frees it.
///
/// # Safety
/// `object` is an untracked instance of the class without references.
unsafe fn recycle(stops: &Stops, object: *mut PyObject) {
    // SAFETY: the caller gives up an untracked object; one that does not fit is freed as its own type would do it.
    unsafe {
        if !stops.keep(object) {
            ffi::Py_XDECREF((*object.cast::<PyBaseExceptionObject>()).args);
            ffi::PyObject_GC_Del(object.cast());
            ffi::Py_DECREF(stops.class.get().cast());
        }
    }
}

/// Raises an instance, new or recycled, after `fill` has set its value.
///
/// # Safety
/// The thread is attached.
#[inline]
unsafe fn raise(stops: &Stops, fill: impl FnOnce(*mut PyObject)) {
    // SAFETY: a recycled instance is untracked, and shown to the collector again. A new one is owned, or null with an exception
    // set. Raising steals the references that it is given.
    unsafe {
        let exception = match stops.take() {
            Some(recycled) => {
                ffi::PyObject_GC_Track(recycled.cast());
                recycled
            }
            None => ffi::PyObject_CallNoArgs(stops.class.get().cast()),
        };
        if exception.is_null() {
            return;
        }
        fill(exception);
        #[cfg(Py_3_12)]
        ffi::PyErr_SetRaisedException(exception);
        #[cfg(not(Py_3_12))]
        ffi::PyErr_Restore(ffi::Py_NewRef(stops.class.get().cast()), exception, ptr::null_mut());
    }
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
        recycle(&STOP_ITERATION, object);
    }
}

unsafe extern "C" fn dealloc_stop_async_iteration(object: *mut PyObject) {
    // SAFETY: called by the interpreter with a dead instance of our subclass of `StopAsyncIteration`.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        forget_history(object);
        recycle(&STOP_ASYNC_ITERATION, object);
    }
}

/// Raises `StopIteration(value)`.
#[inline]
pub(crate) fn raise_stop_iteration(value: Bound<'_, PyAny>) {
    // SAFETY: the value proves that the thread is attached. The instance is fresh, so that nothing else looks at its value
    // while it is exchanged; the exception owns the new one.
    unsafe {
        raise(&STOP_ITERATION, |exception| {
            let place = &raw mut (*exception.cast::<PyStopIterationObject>()).value;
            ffi::Py_XDECREF(ptr::replace(place, value.into_ptr()));
        });
    }
}

/// Raises `StopAsyncIteration`.
#[inline]
pub(crate) fn raise_stop_async_iteration(_py: Python<'_>) {
    // SAFETY: the token proves that the thread is attached.
    unsafe { raise(&STOP_ASYNC_ITERATION, |_| ()) };
}

/// Makes the classes of the two stop exceptions.
fn init_stops(py: Python<'_>) -> PyResult<()> {
    type Dealloc = unsafe extern "C" fn(*mut PyObject);
    // SAFETY: the interpreter's exception classes live as long as it does; the specs are leaked on purpose, because a
    // type keeps pointing to its name.
    unsafe {
        let kinds: [(&Stops, *mut PyObject, _, Dealloc); 2] = [
            (&STOP_ITERATION, ffi::PyExc_StopIteration, c"toolcrib.StopIteration", dealloc_stop_iteration),
            (
                &STOP_ASYNC_ITERATION,
                ffi::PyExc_StopAsyncIteration,
                c"toolcrib.StopAsyncIteration",
                dealloc_stop_async_iteration,
            ),
        ];
        for (stops, base, name, dealloc) in kinds {
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
            stops.class.set(class.cast());
        }
    }
    Ok(())
}

// The type

fn method(name: &'static CStr, function: ffi::PyCFunction, flags: c_int, doc: &'static CStr) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }
}

const DOC: &CStr = c"The responses of one tool call, as they come.

Awaiting it gives the stream itself and runs nothing; iterating it with `async for` runs the call. It has the interface
of an async generator.";

/// Makes the type, and those of the exceptions that it raises.
pub(crate) fn init(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    init_stops(py)?;
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
        slot(ffi::Py_tp_iter, iter_slot as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(ffi::Py_tp_getattro, get_attribute as *mut c_void),
        slot(ffi::Py_am_await, await_itself as *mut c_void),
        slot(ffi::Py_am_aiter, aiter as *mut c_void),
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
        STREAMS.class.set(class.clone().into_ptr().cast());
        Ok(class)
    }
}
