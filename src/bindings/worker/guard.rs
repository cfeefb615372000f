//! Calls into Python from worker threads that survive the end of the interpreter.
//!
//! Before 3.14 Python ends a daemon thread with `pthread_exit` when the thread asks for the GIL of an interpreter that
//! is going away. With glibc that unwinds the stack, and a Rust frame that meets such an unwinding where none was
//! declared aborts the whole process. So everything a worker asks of Python that may run Python code goes through
//! this file: the call is declared as one that unwinds, and the guard beneath it stops the thread for good instead.
//! Other Rust code that may be on a worker's stack beneath Python code can use the raw functions to the same end.

use std::marker::PhantomData;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

type Object = *mut ffi::PyObject;

/// Parks the thread for ever when it is dropped.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Defines a function of Python's as one that may unwind, and parks the thread if it does.
///
/// The address is read as volatile, for pyo3 declares the same functions as ones that never unwind: seeing through
/// to that declaration, the optimiser would leave the guard out.
macro_rules! guarded {
    ($(fn $name:ident = $function:path: ($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// As for the C function of that name; the thread is attached.
        pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)? {
            static FUNCTION: unsafe extern "C" fn($($type),*) $(-> $result)? = $function;
            let guard = Park;
            // SAFETY: the two pointer types differ in what the compiler may assume of unwinding, not in how the
            // function is called; the arguments are the caller's promise.
            let result = unsafe {
                let function = ptr::read_volatile(&raw const FUNCTION);
                std::mem::transmute::<
                    unsafe extern "C" fn($($type),*) $(-> $result)?,
                    unsafe extern "C-unwind" fn($($type),*) $(-> $result)?,
                >(function)($($argument),*)
            };
            std::mem::forget(guard);
            result
        }
    )*};
}

guarded! {
    fn object_call = ffi::PyObject_Call: (callable: Object, args: Object, kwargs: Object) -> Object;
    fn vectorcall_method = ffi::PyObject_VectorcallMethod:
        (name: Object, args: *const Object, count: usize, names: Object) -> Object;
    fn iter_send = ffi::PyIter_Send: (iter: Object, value: Object, result: *mut Object) -> ffi::PySendResult;
    fn decref = ffi::Py_DecRef: (object: Object);
    fn normalize = ffi::PyErr_NormalizeException: (class: *mut Object, value: *mut Object, traceback: *mut Object);
    fn write_unraisable = ffi::PyErr_WriteUnraisable: (context: Object);
}

/// Calls `callable` with arguments in an array, as `PyObject_Vectorcall` does.
///
/// # Safety
/// As for the C function of that name; the thread is attached.
#[inline]
pub(crate) unsafe fn vectorcall(callable: Object, args: *const Object, count: usize, names: Object) -> Object {
    type Unwinding = unsafe extern "C-unwind" fn(Object, *const Object, usize, Object) -> Object;
    // SAFETY: as for the caller; the two pointer types differ in what the compiler may assume of unwinding only.
    unsafe {
        let Some(function) = ffi::PyVectorcall_Function(callable) else {
            // Only classes and objects with a `__call__` have none; what those run is Python's own business.
            return ffi::PyObject_Vectorcall(callable, args, count, names);
        };
        let guard = Park;
        let result = std::mem::transmute::<ffi::vectorcallfunc, Unwinding>(function)(callable, args, count, names);
        std::mem::forget(guard);
        result
    }
}

/// What a generator did when it was asked to go on.
pub(super) enum Sent {
    Yielded(Py<PyAny>),
    Returned,
    Raised(Py<PyAny>),
}

/// Calls `callable(*args, **kwargs)`; an exception comes back as the object it is.
pub(super) fn call(
    py: Python<'_>,
    callable: &Py<PyAny>,
    args: &Py<PyTuple>,
    kwargs: Option<&Py<PyDict>>,
) -> Result<Py<PyAny>, Py<PyAny>> {
    let kwargs = kwargs.map_or(ptr::null_mut(), Py::as_ptr);
    // SAFETY: three live objects (or no keywords) of the types that the function asks for.
    let result = unsafe { object_call(callable.as_ptr(), args.as_ptr(), kwargs) };
    outcome(py, result)
}

/// Calls `object.name(argument)`, or without the argument.
pub(super) fn call_method(
    py: Python<'_>,
    object: &Py<PyAny>,
    name: &Bound<'_, PyString>,
    argument: Option<&Py<PyAny>>,
) -> Result<Py<PyAny>, Py<PyAny>> {
    let args = [object.as_ptr(), argument.map_or(ptr::null_mut(), Py::as_ptr)];
    let count = 1 + usize::from(argument.is_some());
    // SAFETY: `args` holds `count` live objects, the first of them the method's owner, and there are no keywords.
    let result = unsafe { vectorcall_method(name.as_ptr(), args.as_ptr(), count, ptr::null_mut()) };
    outcome(py, result)
}

/// Lets a generator go on to its next chunk.
pub(super) fn send(py: Python<'_>, generator: &Py<PyAny>) -> Sent {
    let mut result = ptr::null_mut();
    // SAFETY: the generator is live, None is immortal enough, and `result` is written before the function returns.
    let how = unsafe { iter_send(generator.as_ptr(), ffi::Py_None(), &raw mut result) };
    match (how, outcome(py, result)) {
        (_, Err(exception)) => Sent::Raised(exception),
        (ffi::PySendResult::PYGEN_NEXT, Ok(chunk)) => Sent::Yielded(chunk),
        (_, Ok(value)) => {
            release(py, value);
            Sent::Returned
        }
    }
}

/// Gives a reference back, which may run the object's destructor.
pub(super) fn release<T>(_py: Python<'_>, object: Py<T>) {
    // SAFETY: the reference is owned and not used again.
    unsafe { decref(object.into_ptr()) }
}

/// Shows an exception that nobody can be given, as Python does with those of destructors.
pub(super) fn report(py: Python<'_>, exception: Py<PyAny>, context: &Py<PyAny>) {
    // SAFETY: the exception is an instance, and restoring takes over one reference each to class and value.
    unsafe {
        let value = exception.into_ptr();
        let class = ffi::Py_NewRef(ffi::Py_TYPE(value).cast());
        #[allow(deprecated, reason = "its replacement is not there before Python 3.12")]
        ffi::PyErr_Restore(class, value, ffi::PyException_GetTraceback(value));
        write_unraisable(context.as_ptr());
    }
    let _ = py;
}

/// An exception that was on its way when other code had to run; not looked at, so that nothing comes of it here.
pub(crate) struct Pending<'py> {
    class: Object,
    value: Object,
    traceback: Object,
    py: PhantomData<Python<'py>>,
}

#[allow(deprecated, reason = "the replacements are not there before Python 3.12")]
impl<'py> Pending<'py> {
    pub(crate) fn set_aside(_py: Python<'py>) -> Self {
        let (mut class, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: three places for owned references, or null.
        unsafe { ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut traceback) };
        Pending { class, value, traceback, py: PhantomData }
    }

    pub(crate) fn restore(self) {
        // SAFETY: the references that were taken over go back; the thread is attached for as long as `'py` lasts.
        unsafe { ffi::PyErr_Restore(self.class, self.value, self.traceback) };
    }
}

fn outcome(py: Python<'_>, result: Object) -> Result<Py<PyAny>, Py<PyAny>> {
    // SAFETY: the function that was called hands over a reference, or null.
    match unsafe { Bound::from_owned_ptr_or_opt(py, result) } {
        Some(value) => Ok(value.unbind()),
        None => Err(raised(py)),
    }
}

/// Takes the exception that is set, made whole.
#[allow(deprecated, reason = "the replacement is not there before Python 3.12")]
fn raised(py: Python<'_>) -> Py<PyAny> {
    let (mut class, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: three places for owned references; normalizing makes the value an instance of the class. What is
    // null stays untouched.
    unsafe {
        ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut traceback);
        normalize(&raw mut class, &raw mut value, &raw mut traceback);
        if !value.is_null() && !traceback.is_null() {
            ffi::PyException_SetTraceback(value, traceback);
        }
        decref(class);
        decref(traceback);
        Bound::from_owned_ptr_or_opt(py, value)
    }
    .map_or_else(|| py.None(), Bound::unbind)
}
