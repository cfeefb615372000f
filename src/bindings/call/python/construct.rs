//! Making a `ToolResponse` from Python: every tool does it for every chunk, and the way through `__new__` costs twice as
//! much, because the arguments are packed into a tuple and a dict first.

use std::ptr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::bindings::response::{FIELDS, PyToolResponse};

/// The vectorcall of the class. Anything unusual, from a missing argument to one of another type, is left to `__new__`,
/// which knows how to complain.
unsafe extern "C" fn construct(
    class: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter with `count` positional arguments and then one for each of `names`.
    unsafe {
        let positional = ffi::PyVectorcall_NARGS(count);
        let keywords = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let mut given = [ptr::null_mut(); FIELDS.len()];
        let is_plain =
            positional <= FIELDS.len().cast_signed() && place(&mut given, arguments, positional, names, keywords);
        let flag = |object: *mut PyObject, default: bool| match object {
            object if object.is_null() => Some(default),
            object if object == ffi::Py_True() => Some(true),
            object if object == ffi::Py_False() => Some(false),
            _ => None,
        };
        let [content, metadata, stream, is_last, is_interrupted, id] = given;
        let flags = (flag(stream, false), flag(is_last, true), flag(is_interrupted, false));
        let (true, false, (Some(stream), Some(is_last), Some(is_interrupted))) = (is_plain, content.is_null(), flags)
        else {
            return construct_slowly(class, arguments, positional, names, keywords);
        };
        let py = Python::assume_attached();
        let some = |object: *mut PyObject| {
            Bound::from_borrowed_ptr_or_opt(py, object).filter(|object| !object.is_none()).map(Bound::unbind)
        };
        let content = Bound::from_borrowed_ptr(py, content).unbind();
        let response = PyToolResponse::with(content, some(metadata), stream, is_last, is_interrupted, some(id));
        Bound::new(py, response).map_or_else(
            |error| {
                error.restore(py);
                ptr::null_mut()
            },
            Bound::into_ptr,
        )
    }
}

/// Puts each argument where its field is; false if a name is unknown or given twice.
unsafe fn place(
    given: &mut [*mut PyObject; FIELDS.len()],
    arguments: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
    keywords: ffi::Py_ssize_t,
) -> bool {
    // SAFETY: as for `construct`.
    unsafe {
        for (index, place) in given.iter_mut().take(positional.unsigned_abs()).enumerate() {
            *place = *arguments.add(index);
        }
        for index in 0..keywords {
            let name = Borrowed::from_ptr(Python::assume_attached(), ffi::PyTuple_GET_ITEM(names, index));
            let name = name.cast_unchecked::<pyo3::types::PyString>();
            let field = name.to_str().ok().and_then(|name| FIELDS.iter().position(|field| *field == name));
            let Some(field) = field.filter(|field| given[*field].is_null()) else { return false };
            given[field] = *arguments.offset(positional + index);
        }
    }
    true
}

#[cold]
unsafe fn construct_slowly(
    class: *mut PyObject,
    arguments: *const *mut PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut PyObject,
    keywords: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: as for `construct`; `tp_call` of a class makes its instances.
    unsafe {
        let tuple = ffi::PyTuple_New(positional);
        let dict = ffi::PyDict_New();
        if tuple.is_null() || dict.is_null() {
            return ptr::null_mut();
        }
        for index in 0..positional {
            ffi::PyTuple_SET_ITEM(tuple, index, ffi::Py_NewRef(*arguments.offset(index)));
        }
        for index in 0..keywords {
            ffi::PyDict_SetItem(dict, ffi::PyTuple_GET_ITEM(names, index), *arguments.offset(positional + index));
        }
        let made = ffi::PyType_Type.tp_call.map_or(ptr::null_mut(), |call| call(class, tuple, dict));
        ffi::Py_DECREF(tuple);
        ffi::Py_DECREF(dict);
        made
    }
}

/// Gives the class its vectorcall. Subclasses do not inherit it, so that their own `__new__` and `__init__` are called.
pub(crate) fn init(py: Python<'_>) {
    let class = py.get_type::<PyToolResponse>().as_type_ptr();
    // SAFETY: the class is complete and nobody else has used it yet.
    unsafe { (*class).tp_vectorcall = Some(construct) };
}
