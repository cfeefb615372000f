//! Calling and resuming Python code: vectorcall, `PyIter_Send`, and the slots of awaitables and async iterators.
//!
//! An async generator can be resumed through its own `am_send` slot, as a coroutine is. What it yields then comes in a
//! private wrapper of the interpreter's. Taking the value out of the wrapper saves the `asend` object and one exception
//! for each chunk, which makes the stream quicker than a bare `async for`. The wrapper's type and layout are learnt
//! at import from a generator of two lines; if anything looks different, the public way is used instead.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject, PySendResult, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::interpreter;

/// The longest list of arguments that is passed in an array.
pub(crate) const MOST_ARGUMENTS: usize = 24;

/// The outcome of resuming an iterator.
pub(crate) enum Sent<'py> {
    /// It yielded this.
    Yielded(Bound<'py, PyAny>),
    /// It returned this.
    Returned(Bound<'py, PyAny>),
    /// It raised this. In a box, so that the common outcomes fit into two registers.
    Raised(Box<PyErr>),
}

/// Resumes a generator, a coroutine or the iterator of an awaitable.
#[inline(always)]
pub(crate) fn send<'py>(target: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> Sent<'py> {
    let py = target.py();
    let mut result = ptr::null_mut();
    // SAFETY: both objects are alive for the call, and a result is owned unless the outcome is an error.
    unsafe {
        match interpreter::iter_send(target.as_ptr(), value.as_ptr(), &raw mut result) {
            PySendResult::PYGEN_NEXT => Sent::Yielded(Bound::from_owned_ptr(py, result)),
            PySendResult::PYGEN_RETURN => Sent::Returned(Bound::from_owned_ptr(py, result)),
            PySendResult::PYGEN_ERROR => Sent::Raised(Box::new(PyErr::fetch(py))),
        }
    }
}

/// The slots of an object's class for asynchronous protocols.
fn async_slots<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a ffi::PyAsyncMethods> {
    // SAFETY: the class of a live object is alive; it has a table of function pointers, or none.
    unsafe { (*object.get_type_ptr()).tp_as_async.as_ref() }
}

/// True for objects that `await` takes.
pub(crate) fn is_awaitable(object: &Bound<'_, PyAny>) -> bool {
    async_slots(object).is_some_and(|slots| slots.am_await.is_some())
}

/// True for objects with `__anext__`.
pub(crate) fn is_async_iterator(object: &Bound<'_, PyAny>) -> bool {
    async_slots(object).is_some_and(|slots| slots.am_anext.is_some())
}

/// True for the generators of `def` functions.
pub(crate) fn is_generator(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == &raw mut ffi::PyGen_Type
}

/// True if an async generator can be resumed by [`send`], with its items unwrapped by [`unwrap`].
pub(crate) fn has_short_way(object: &Bound<'_, PyAny>) -> bool {
    !WRAPPER.0.get().is_null() && object.get_type_ptr() == &raw mut ffi::PyAsyncGen_Type
}

/// The iterator that drives an awaitable, as `await` would take it.
#[inline(always)]
pub(crate) fn await_iter(awaitable: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if awaitable.get_type_ptr() == &raw mut ffi::PyCoro_Type { Ok(awaitable) } else { other_await_iter(&awaitable) }
}

/// The same for an awaitable that is not a coroutine.
fn other_await_iter<'py>(awaitable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    call_slot(awaitable, |slots| slots.am_await).unwrap_or_else(|| {
        let kind = awaitable.get_type();
        Err(PyTypeError::new_err(format!("object {kind} cannot be awaited")))
    })
}

/// `object.__anext__()`.
pub(crate) fn anext<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    call_slot(object, |slots| slots.am_anext).unwrap_or_else(|| {
        let kind = object.get_type();
        Err(PyTypeError::new_err(format!("object {kind} is not an async iterator")))
    })
}

/// Calls the slot of the object's class that `choose` picks; none if the class does not have it.
#[inline]
fn call_slot<'py>(
    object: &Bound<'py, PyAny>,
    choose: impl FnOnce(&ffi::PyAsyncMethods) -> Option<ffi::unaryfunc>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let slot = async_slots(object).and_then(choose)?;
    // SAFETY: a slot of the object's own class is called with the object; it gives a new reference or an exception.
    Some(unsafe { Bound::from_owned_ptr_or_err(object.py(), slot(object.as_ptr())) })
}

/// A walk over the entries of a dict in their order, without a look-up: the address of each key, to be compared with that of a
/// name, and the value. If the dict changes meanwhile, entries may be left out or come twice.
pub(crate) struct DictWalk<'a, 'py> {
    dict: &'a Bound<'py, PyDict>,
    position: ffi::Py_ssize_t,
}

impl<'a, 'py> DictWalk<'a, 'py> {
    #[inline]
    pub(crate) fn new(dict: &'a Bound<'py, PyDict>) -> Self {
        Self { dict, position: 0 }
    }

    /// A walk that leaves out the first entries, or others if some were removed: a position is that of an entry in the memory of
    /// the dict, which the interpreter compares with its size.
    #[inline]
    pub(crate) fn starting_at(dict: &'a Bound<'py, PyDict>, position: usize) -> Self {
        Self { dict, position: position.cast_signed() }
    }
}

impl<'py> Iterator for DictWalk<'_, 'py> {
    type Item = (*mut PyObject, Bound<'py, PyAny>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (dict, mut key, mut value) = (self.dict.as_ptr(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live dict and places for references that it owns; the value gets one of its own before anything runs.
        unsafe {
            let is_entry = ffi::PyDict_Next(dict, &raw mut self.position, &raw mut key, &raw mut value) != 0;
            is_entry.then(|| (key, Bound::from_borrowed_ptr(self.dict.py(), value)))
        }
    }
}

/// The arguments of one call of a function, each with a reference of its own.
///
/// A key of the request may have an `__eq__` that changes the request, so that nothing is borrowed from it.
pub(crate) struct CallArguments<'py> {
    py: Python<'py>,
    /// The first place is the callee's to use, as `PY_VECTORCALL_ARGUMENTS_OFFSET` allows.
    values: [MaybeUninit<*mut PyObject>; MOST_ARGUMENTS + 1],
    count: usize,
}

impl<'py> CallArguments<'py> {
    /// An empty list.
    #[inline]
    pub(crate) fn new(py: Python<'py>) -> Self {
        // A constant for each place: one value that is copied would be written to all of them.
        Self { py, values: [const { MaybeUninit::uninit() }; MOST_ARGUMENTS + 1], count: 0 }
    }

    /// Adds an argument. A list that is full stays as it is; plans with more parameters do not use lists.
    #[inline]
    pub(crate) fn push(&mut self, value: Bound<'py, PyAny>) {
        if let Some(place) = self.values.get_mut(self.count + 1) {
            place.write(value.into_ptr());
            self.count += 1;
        }
    }

    /// The owned references.
    #[inline]
    fn filled(&mut self) -> &mut [*mut PyObject] {
        // SAFETY: the places after the first, up to `count`, were written by `push`.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_mut_ptr().add(1).cast(), self.count) }
    }

    /// Calls a function with the first `by_position` arguments by position and the rest by the names given.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        callable: &Bound<'py, PyAny>,
        by_position: usize,
        names: Option<&Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the array holds `count` live objects after its first place, which the callee may write to, as the offset
        // flag says; the pointer is derived from the whole array. The result is owned, or null with an exception.
        unsafe {
            let arguments = self.values.as_mut_ptr().add(1).cast::<*mut PyObject>();
            let result = interpreter::vectorcall(
                callable.as_ptr(),
                arguments,
                by_position | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
                names.map_or(ptr::null_mut(), Bound::as_ptr),
            );
            Bound::from_owned_ptr_or_err(self.py, result)
        }
    }

    /// The arguments as a tuple.
    pub(crate) fn take_tuple(&mut self) -> PyResult<Bound<'py, PyTuple>> {
        let py = self.py;
        // SAFETY: a new tuple of the right size is filled before anyone sees it; each reference moves from the list to
        // the tuple, and the list forgets it.
        unsafe {
            let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(self.count.cast_signed()))?;
            for (index, value) in (0..).zip(self.filled()) {
                ffi::PyTuple_SET_ITEM(tuple.as_ptr(), index, *value);
            }
            self.count = 0;
            Ok(tuple.cast_into_unchecked())
        }
    }

    /// The arguments as objects, in their order.
    pub(crate) fn take_vec(&mut self) -> Vec<Bound<'py, PyAny>> {
        let py = self.py;
        // SAFETY: each reference moves from the list to the vector, and the list forgets it.
        let values = self.filled().iter().map(|value| unsafe { Bound::from_owned_ptr(py, *value) }).collect();
        self.count = 0;
        values
    }
}

impl Drop for CallArguments<'_> {
    #[inline]
    fn drop(&mut self) {
        for value in self.filled() {
            // SAFETY: the list owns the reference, and its token says that the thread is attached.
            unsafe { ffi::Py_DECREF(*value) };
        }
    }
}

struct Wrapper(Cell<*mut PyTypeObject>);

// SAFETY: written once at import, read by attached threads only, which the GIL makes one at a time.
unsafe impl Sync for Wrapper {}

static WRAPPER: Wrapper = Wrapper(Cell::new(ptr::null_mut()));

/// Takes an item out of the wrapper that an async generator yields it in; an object that it awaits comes back as `Err`.
#[inline]
pub(crate) fn unwrap(object: Bound<'_, PyAny>) -> Result<Bound<'_, PyAny>, Bound<'_, PyAny>> {
    if object.get_type_ptr() != WRAPPER.0.get() {
        return Err(object);
    }
    // SAFETY: a wrapper keeps its value right behind the object's head, as was verified at import.
    Ok(unsafe { Bound::from_borrowed_ptr(object.py(), *object.as_ptr().add(1).cast::<*mut PyObject>()) })
}

/// Learns the wrapper's type and verifies its layout.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    let scope = PyDict::new(py);
    py.run(c"async def generator():\n    yield scope\n", Some(&scope), None)?;
    scope.set_item("scope", &scope)?;
    let generator = scope.as_any().get_item("generator")?.call0()?;
    let none = py.None().into_bound(py);
    let Sent::Yielded(yielded) = send(&generator, &none) else { return Ok(()) };
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
    drop(send(&generator, &none));
    Ok(())
}
