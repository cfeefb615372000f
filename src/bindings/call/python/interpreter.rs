//! Interpreter calls that worker threads need, as safe functions.
//!
//! Three subjects: [`GilCell`] is state that the GIL guards, [`Context`] carries context variables to another thread, and
//! the rest calls Python from threads that may be ended by the interpreter.
//!
//! Before 3.14 Python ends a daemon thread with `pthread_exit` when the thread asks for the GIL of an interpreter that
//! is shutting down. With glibc that unwinds the stack, and a Rust frame that meets such an unwinding where none was
//! declared aborts the whole process. So every call of a worker that may run Python code goes through this file: the
//! function is declared as one that unwinds, and a guard beneath it parks the thread for good instead. Other Rust code
//! that may be on a worker's stack beneath Python code uses the raw functions to the same end.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr;

use pyo3::PyVisit;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use crate::bindings::once::intern;

type Object = *mut ffi::PyObject;

/// A value that attached threads share, guarded by the GIL: the module declares that it needs the GIL, so only one
/// attached thread runs at a time. A lock would cost each call more than all that is done under it.
#[derive(Default)]
pub(crate) struct GilCell<T>(RefCell<T>);

// SAFETY: a reference to the value lives only as long as a call of `with` or `visit`, each of which takes a proof that the
// thread is attached; the GIL orders what attached threads do, and free-threaded builds are refused at compile time.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        GilCell(RefCell::new(value))
    }

    /// Reads or changes the value. `change` must not run Python code nor release the GIL, not even by dropping an
    /// object: another thread that arrived meanwhile would panic.
    #[inline(always)]
    pub(crate) fn with<R>(&self, _py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }

    /// Reads the value for the garbage collector, which calls from an attached thread but cannot pass a token.
    pub(crate) fn visit<R>(&self, _visit: &PyVisit<'_>, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.try_borrow().ok().map(|value| read(&value))
    }
}

/// A `contextvars.Context`.
pub(crate) struct Context(Py<PyAny>);

/// Keeps a context current until it is dropped.
pub(crate) struct Entered<'a>(&'a Context, PhantomData<*const ()>);

impl Context {
    /// A copy of the caller's context.
    pub(crate) fn copy(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: the function returns a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_CopyCurrent()) }.map(|it| Context(it.unbind()))
    }

    /// A context in which no variable is set.
    pub(crate) fn empty(py: Python<'_>) -> PyResult<Self> {
        Ok(Context(py.import("contextvars")?.getattr("Context")?.call0()?.unbind()))
    }

    /// Makes the context the current one of this thread; fails if it is entered already, or not a context.
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Entered<'_>> {
        // SAFETY: a live object, whose type the function checks, and the thread is attached.
        match unsafe { ffi::PyContext_Enter(self.0.as_ptr()) } {
            0 => Ok(Entered(self, PhantomData)),
            _ => Err(PyErr::fetch(py)),
        }
    }

    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.0
    }

    pub(crate) fn into_object(self) -> Py<PyAny> {
        self.0
    }
}

impl From<Py<PyAny>> for Context {
    /// Takes any object; entering checks that it is a context.
    fn from(context: Py<PyAny>) -> Self {
        Context(context)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread that entered the context is still attached (this type does not cross threads), and leaving
        // what this thread entered cannot fail, so an exception that is set stays as it is.
        unsafe { ffi::PyContext_Exit(self.0.0.as_ptr()) };
    }
}

/// Parks the thread for ever when it is dropped.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Defines a C function of Python's as one that may unwind, and parks the thread if it does.
///
/// The address is read as volatile, because pyo3 declares the same functions as ones that never unwind: seeing through
/// to that declaration, the optimiser would leave the guard out.
macro_rules! guarded {
    ($(fn $name:ident = $function:path: ($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// The requirements of the C function of that name; the thread is attached.
        pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)? {
            #[allow(deprecated, reason = "the replacements are not there before Python 3.12")]
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
/// The requirements of the C function of that name; the thread is attached.
#[inline]
pub(crate) unsafe fn vectorcall(callable: Object, args: *const Object, count: usize, names: Object) -> Object {
    type Unwinding = unsafe extern "C-unwind" fn(Object, *const Object, usize, Object) -> Object;
    // SAFETY: the arguments are the caller's promise; the two pointer types differ in what the compiler may assume of
    // unwinding only.
    unsafe {
        let Some(function) = ffi::PyVectorcall_Function(callable) else {
            // Only classes and objects with a `__call__` have none; Python itself guards the frames of those.
            return ffi::PyObject_Vectorcall(callable, args, count, names);
        };
        let guard = Park;
        let result = std::mem::transmute::<ffi::vectorcallfunc, Unwinding>(function)(callable, args, count, names);
        std::mem::forget(guard);
        result
    }
}

/// The result of resuming a generator.
pub(crate) enum Sent {
    Yielded(Py<PyAny>),
    Returned,
    Raised(Py<PyAny>),
}

/// Calls `callable(*args, **kwargs)`; an exception comes back as an object.
pub(crate) fn call(
    py: Python<'_>,
    callable: &Py<PyAny>,
    args: &Py<PyTuple>,
    kwargs: Option<&Py<PyDict>>,
) -> Result<Py<PyAny>, Py<PyAny>> {
    let kwargs = kwargs.map_or(ptr::null_mut(), Py::as_ptr);
    // SAFETY: a callable, a tuple and a dict (or null for no keywords), all alive during the call.
    let result = unsafe { object_call(callable.as_ptr(), args.as_ptr(), kwargs) };
    outcome(py, result)
}

/// Calls `object.name(argument)`, or without the argument.
pub(crate) fn call_method(
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

/// Calls `callable(argument)`.
pub(crate) fn call_one(py: Python<'_>, callable: &Py<PyAny>, argument: &Py<PyAny>) -> Result<Py<PyAny>, Py<PyAny>> {
    let args = [argument.as_ptr()];
    // SAFETY: a callable and an array of one live object, without keywords.
    let result = unsafe { vectorcall(callable.as_ptr(), args.as_ptr(), 1, ptr::null_mut()) };
    outcome(py, result)
}

/// Resumes a generator until it yields, returns or raises.
pub(crate) fn send(py: Python<'_>, generator: &Py<PyAny>) -> Sent {
    let (none, mut result) = (py.None(), ptr::null_mut());
    // SAFETY: the iterator and the value are alive during the call, which writes `result` before it returns.
    let how = unsafe { iter_send(generator.as_ptr(), none.as_ptr(), &raw mut result) };
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
pub(crate) fn release<T>(_py: Python<'_>, object: Py<T>) {
    // SAFETY: the reference is owned and not used again.
    unsafe { decref(object.into_ptr()) }
}

/// Reports an exception that no caller can receive, as Python does with those of destructors.
pub(crate) fn report(_py: Python<'_>, exception: Py<PyAny>, context: &Py<PyAny>) {
    // SAFETY: the exception is an instance, and restoring takes over one reference each to class, value and traceback.
    unsafe {
        let value = exception.into_ptr();
        let class = ffi::Py_NewRef(ffi::Py_TYPE(value).cast());
        #[allow(deprecated, reason = "its replacement is not there before Python 3.12")]
        ffi::PyErr_Restore(class, value, ffi::PyException_GetTraceback(value));
        write_unraisable(context.as_ptr());
    }
}

/// The exception that is set while other code has to run, kept unnormalised so that nothing runs on its account.
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

/// Takes the exception that is set, normalised.
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

/// True if the thread is attached to the main interpreter of the process.
pub(crate) fn is_main(_py: Python<'_>) -> bool {
    // SAFETY: the token proves that the thread is attached; both only return a pointer, which is not followed.
    unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() }
}

/// Runs code that drops `Py<T>` or `PyErr` in a thread that is attached. The interpreter enters the stream's slots
/// directly, and pyo3 puts decrements off until it is told.
pub(crate) fn attached<'py, T>(py: Python<'py>, body: impl FnOnce(Python<'py>) -> T) -> T {
    // SAFETY: the thread is attached, as `py` proves. The plain form also asks for the state of the interpreter, and panics
    // in slots that run while it shuts down, where threads are still attached.
    unsafe { Python::attach_unchecked(|_| body(py)) }
}

/// A number that changes when another event loop runs in this thread, if [`has_running_loop_version`]: the version of
/// the dict of the thread's state, in which asyncio keeps the running loop up to 3.11.
#[inline]
pub(crate) fn running_loop_version(py: Python<'_>) -> Option<u64> {
    // Newer versions have no such number, and need none: asking asyncio is cheap there.
    if cfg!(Py_3_12) { None } else { thread_dict(py).and_then(|dict| dict_version(&dict)) }
}

/// True if asyncio keeps the running loop in the dict of the thread's state: the asyncio written in Python does not.
pub(crate) fn has_running_loop_version(py: Python<'_>) -> bool {
    let key = intern!(py, "__asyncio_running_event_loop__");
    thread_dict(py).is_some_and(|dict| dict.contains(key).unwrap_or(false))
}

/// The parts of a function that describe its signature.
pub(crate) struct FunctionParts<'py> {
    pub(crate) code: Bound<'py, PyAny>,
    pub(crate) defaults: Option<Bound<'py, PyAny>>,
    pub(crate) keyword_defaults: Option<Bound<'py, PyAny>>,
    /// A dict; or a tuple of names, each followed by its annotation, as the compiler makes it.
    pub(crate) annotations: Option<Bound<'py, PyAny>>,
    /// A dict of the attributes that were set.
    pub(crate) attributes: Option<Bound<'py, PyAny>>,
}

/// Reads a function as it is. Its attributes `__annotations__` and `__dict__` would make dicts that it keeps from then on.
pub(crate) fn function_parts<'py>(function: &Bound<'py, PyFunction>) -> PyResult<FunctionParts<'py>> {
    let py = function.py();
    // SAFETY: a live function, each of whose fields is a live object or null; the code is never null.
    let parts = unsafe {
        let fields = &*function.as_ptr().cast::<ffi::PyFunctionObject>();
        FunctionParts {
            code: Bound::from_borrowed_ptr(py, fields.func_code),
            defaults: Bound::from_borrowed_ptr_or_opt(py, fields.func_defaults),
            keyword_defaults: Bound::from_borrowed_ptr_or_opt(py, fields.func_kwdefaults),
            annotations: Bound::from_borrowed_ptr_or_opt(py, fields.func_annotations),
            attributes: Bound::from_borrowed_ptr_or_opt(py, fields.func_dict),
        }
    };
    // From 3.14 on the annotations are made when they are asked for.
    let annotations =
        if cfg!(Py_3_14) { Some(function.getattr(intern!(py, "__annotations__"))?) } else { parts.annotations };
    Ok(FunctionParts { annotations, ..parts })
}

/// `class.__new__(class)` with attributes that are set as `object.__setattr__` sets them: no `__init__` or `__setattr__` of the
/// class runs.
pub(crate) fn instance<'a, 'py: 'a>(
    class: &Bound<'py, PyType>,
    attributes: impl Iterator<Item = (&'a Bound<'py, PyString>, &'a Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let (arguments, class) = (PyTuple::empty(py), class.as_type_ptr());
    // SAFETY: the class is alive and ready, so its `tp_new` takes it with a tuple and no keywords; setting an attribute takes live objects.
    unsafe {
        let Some(new) = (*class).tp_new else { return Err(PyTypeError::new_err("the class cannot be instantiated")) };
        let made = Bound::from_owned_ptr_or_err(py, new(class, arguments.as_ptr(), ptr::null_mut()))?;
        for (name, value) in attributes {
            if ffi::PyObject_GenericSetAttr(made.as_ptr(), name.as_ptr(), value.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(made)
    }
}

/// True for an instance of a class that the interpreter itself defines, such as `ValueError`.
pub(crate) fn is_builtin_class(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the class of a live object is alive.
    unsafe { ffi::PyType_GetFlags(object.get_type_ptr()) & ffi::Py_TPFLAGS_HEAPTYPE == 0 }
}

/// The dict of the thread's state.
fn thread_dict(py: Python<'_>) -> Option<Bound<'_, PyDict>> {
    // SAFETY: the thread is attached, so it has a state; its dict is borrowed, or null if it cannot be made.
    let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
    dict?.cast_into::<PyDict>().ok()
}

/// The version of a dict's content, which CPython kept up to 3.11: changed whenever the dict is, and never used again.
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "newer versions of CPython keep no such number")]
pub(crate) fn dict_version(dict: &Bound<'_, PyDict>) -> Option<u64> {
    #[cfg(not(Py_3_12))]
    {
        // SAFETY: reads a field of a live dict.
        Some(unsafe { (*dict.as_ptr().cast::<ffi::PyDictObject>()).ma_version_tag })
    }
    #[cfg(Py_3_12)]
    {
        let _ = dict;
        None
    }
}
