//! The two methods of `Toolkit` that begin a call, made here rather than by pyo3: its wrapper costs a tenth of a call, and
//! keywords would be put into a dict first, which costs a third of one.

use std::ffi::{CStr, c_char};
use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::super::reading::{NO_CALL, is_readable};
use super::super::state::State;
use super::object;
use crate::bindings::dialect::Named;

const STREAM_DOC: &CStr = c"call_tool_function($self, tool_call, *, dialect=None)
--

Call a tool the way a model asks for it, and give its responses as they come.

Nothing runs before the first step, not even the search for the tool. A mistake of the model is answered with a
response that has a `code`.

Args:
    tool_call: `{\"type\": \"tool_use\", \"id\": ..., \"name\": ..., \"input\": {...}}`, of which `name` is needed; a
        `ToolCall`, or anything that `ToolCall.read` understands.
    dialect: The dialect of `schemas` that the model was told the tools in, if it was.

Returns:
    A stream that can be awaited, which gives the stream itself, and iterated.

Raises:
    TypeError: If `tool_call` can be no call at all.
    UnknownDialectError: If there is no such dialect.";

const SINGLE_DOC: &CStr = c"call($self, name, /, **arguments)
--

Call a tool and give its last response.

Args:
    name: The tool's name.
    **arguments: What a model would send: presets cannot be overridden here either.

Returns:
    An awaitable of the last response.";

unsafe extern "C" fn call_tool_function(
    toolkit: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter with `count` positional arguments and then one for each of `names`.
    unsafe {
        let given = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let is_named = |index| {
            ffi::PyUnicode_CompareWithASCIIString(ffi::PyTuple_GET_ITEM(names, index), c"tool_call".as_ptr()) == 0
        };
        if count + given != 1 || (given == 1 && !is_named(0)) {
            return call_in_dialect(toolkit, arguments, count, names);
        }
        let block = *arguments;
        if ffi::PyDict_Check(block) == 0 && !Python::attach(|py| is_readable(&Bound::from_borrowed_ptr(py, block))) {
            return refused(NO_CALL);
        }
        object::new(State::stream(ffi::Py_NewRef(toolkit), ffi::Py_NewRef(block)))
    }
}

/// The same with a keyword `dialect`, or with arguments that cannot be.
#[cold]
unsafe fn call_in_dialect(
    toolkit: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as for `call_tool_function`.
    unsafe {
        let is = |index, name: &CStr| {
            ffi::PyUnicode_CompareWithASCIIString(ffi::PyTuple_GET_ITEM(names, index), name.as_ptr()) == 0
        };
        let given = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let at = |name: &CStr| (0..given).find(|index| is(*index, name)).map(|index| *arguments.offset(count + index));
        let block = if count == 1 { Some(*arguments) } else { at(c"tool_call") };
        let (Some(block), Some(dialect), 2) = (block, at(c"dialect"), count + given) else {
            return refused("call_tool_function() takes one argument, tool_call, and the keyword dialect");
        };
        Python::attach(|py| {
            if !is_readable(&Bound::from_borrowed_ptr(py, block)) {
                return refused(NO_CALL);
            }
            match Bound::from_borrowed_ptr(py, dialect).extract::<Named>() {
                Ok(Named(dialect)) => {
                    object::new(State::stream(ffi::Py_NewRef(toolkit), ffi::Py_NewRef(block)).in_dialect(dialect))
                }
                Err(error) => {
                    error.restore(py);
                    ptr::null_mut()
                }
            }
        })
    }
}

#[cold]
fn refused(reason: &'static str) -> *mut PyObject {
    Python::attach(|py| PyTypeError::new_err(reason).restore(py));
    ptr::null_mut()
}

unsafe extern "C" fn call(
    toolkit: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter with `count` positional arguments and then one for each of `names`.
    unsafe {
        if count != 1 || ffi::PyUnicode_Check(*arguments) == 0 {
            return refused("call() takes the tool's name, a string, and its arguments by keyword");
        }
        let given = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let values = ffi::PyTuple_New(given);
        if values.is_null() {
            return ptr::null_mut();
        }
        for index in 0..given {
            let value = *arguments.offset(index + 1);
            ffi::PyTuple_SET_ITEM(values, index, ffi::Py_NewRef(value));
        }
        let names = if names.is_null() { names } else { ffi::Py_NewRef(names) };
        object::new(State::single(ffi::Py_NewRef(toolkit), ffi::Py_NewRef(*arguments), names, values))
    }
}

/// Puts the methods into the class.
pub(crate) fn init(toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let methods: [(&'static CStr, ffi::PyCFunctionFastWithKeywords, &'static CStr); 2] =
        [(c"call_tool_function", call_tool_function, STREAM_DOC), (c"call", call, SINGLE_DOC)];
    for (name, function, doc) in methods {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr().cast::<c_char>(),
        }));
        // SAFETY: the definition is leaked on purpose: the method keeps pointing to it.
        let method = unsafe {
            let method = ffi::PyDescr_NewMethod(toolkit.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(toolkit.py(), method)?
        };
        toolkit.setattr(method.getattr("__name__")?.cast::<PyString>()?, &method)?;
    }
    Ok(())
}
