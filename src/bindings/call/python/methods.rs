//! The methods that begin a call, and the constructor of `ToolResponse`: made here rather than by pyo3, whose wrappers
//! cost a tenth of a call.
//!
//! `Toolkit.call_tool_function`, `Toolkit.call` and `Toolkit.value` are put into the classes `Toolkit` and `ToolkitView` by [`init`].

use std::ffi::{CStr, c_char};
use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::super::request::{NO_CALL, is_readable};
use super::super::state::{Origin, State};
use super::{attached, object};
use crate::bindings::dialect::DialectName;
use crate::bindings::parameters::call_mistake;
use crate::bindings::response::{FIELDS, PyToolResponse};
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::view::PyToolkitView;

const STREAM_DOC: &CStr = c"call_tool_function($self, tool_call, *, dialect=None)
--

Call a tool the way a model asks for it, and give its responses as they come.

Nothing runs before the first step, not even the search for the tool. A mistake of the model is answered with a
response that has a `code`.

Args:
    tool_call: `{\"type\": \"tool_use\", \"id\": ..., \"name\": ..., \"input\": {...}}`, of which `name` is needed; a
        `ToolCall`, or anything that `ToolCall.read` understands.
    dialect: The dialect of the schemas that the model was given, if not the toolkit's own.

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

const VALUE_DOC: &CStr = c"value($self, name, /, **arguments)
--

Call a tool and give the value that it returned, as it is.

Args:
    name: The tool's name.
    **arguments: What a model would send: presets cannot be overridden here either.

Returns:
    An awaitable of the value.

Raises:
    ToolCallError: If the call was refused or has failed.";

/// The toolkit or view that a method was called on.
///
/// # Safety
/// `object` is the first argument of a method that was made for one of those two classes.
#[inline]
unsafe fn origin<const IS_VIEW: bool>(py: Python<'_>, object: *mut PyObject) -> Origin<'_> {
    // SAFETY: a method descriptor checks the class of its first argument, which is the one that the method was made for.
    unsafe {
        let object = Bound::from_borrowed_ptr(py, object);
        if IS_VIEW {
            Origin::View(object.cast_into_unchecked())
        } else {
            Origin::Toolkit(object.cast_into_unchecked::<PyToolkit>())
        }
    }
}

unsafe extern "C" fn call_tool_function<const IS_VIEW: bool>(
    toolkit: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter in an attached thread, with `count` positional arguments and then one for each of
    // `names`.
    unsafe {
        let py = Python::assume_attached();
        if count == 1 && names.is_null() && ffi::PyDict_Check(*arguments) != 0 {
            let request = Bound::from_borrowed_ptr(py, *arguments);
            return object::given(py, object::new(py, || State::stream(origin::<IS_VIEW>(py, toolkit), request)));
        }
        let given = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let keyword = |index| Bound::<PyAny>::from_borrowed_ptr(py, ffi::PyTuple_GET_ITEM(names, index));
        let value = |index| Bound::<PyAny>::from_borrowed_ptr(py, *arguments.offset(index));
        let positional: Vec<_> = (0..count).map(value).collect();
        let keywords: Vec<_> = (0..given).map(|index| (keyword(index), value(count + index))).collect();
        attached(py, |py| {
            let state = call_as_written(origin::<IS_VIEW>(py, toolkit), positional, keywords);
            object::given(py, state.and_then(|state| object::new(py, || state)))
        })
    }
}

/// The call that the arguments of `call_tool_function` ask for, in whatever way they are passed.
#[cold]
fn call_as_written<'py>(
    origin: Origin<'py>,
    positional: Vec<Bound<'py, PyAny>>,
    keywords: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<State> {
    let usage = || PyTypeError::new_err("call_tool_function() takes one argument, tool_call, and the keyword dialect");
    let count = positional.len() + keywords.len();
    let mut request = positional.into_iter().next();
    let mut dialect = None;
    let mut read = usize::from(request.is_some());
    for (name, value) in keywords {
        let place = match name.extract::<&str>()? {
            "tool_call" => &mut request,
            "dialect" => &mut dialect,
            _ => return Err(usage()),
        };
        read += usize::from(place.replace(value).is_none());
    }
    let Some(request) = request.filter(|_| read == count) else { return Err(usage()) };
    if !is_readable(&request) {
        return Err(PyTypeError::new_err(NO_CALL));
    }
    let state = State::stream(origin, request);
    Ok(match dialect {
        Some(dialect) => state.in_dialect(dialect.extract::<DialectName>()?.0),
        None => state,
    })
}

/// A call that gives its last response, or its bare value.
unsafe extern "C" fn call<const IS_VIEW: bool, const IS_BARE: bool>(
    toolkit: *mut PyObject,
    arguments: *mut PyObject,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by the interpreter in an attached thread with a tuple, and a dict or null.
    unsafe {
        let py = Python::assume_attached();
        let arguments = Borrowed::from_ptr(py, arguments).cast_unchecked::<PyTuple>();
        // `f(**arguments)` makes a new dict, which only the call refers to; any other may still change.
        let is_shared = !keywords.is_null() && ffi::Py_REFCNT(keywords) > 1;
        let keywords = Bound::from_borrowed_ptr_or_opt(py, keywords).map(|it| it.cast_into_unchecked::<PyDict>());
        object::given(py, single(py, origin::<IS_VIEW>(py, toolkit), &arguments, keywords, is_shared, IS_BARE))
    }
}

/// The stream of the call that the arguments of `call` or `value` ask for.
#[inline]
fn single<'py>(
    py: Python<'py>,
    origin: Origin<'py>,
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<Bound<'py, PyDict>>,
    is_shared: bool,
    bare: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut given = arguments.iter_borrowed();
    let name = match (given.next(), given.next()) {
        (Some(name), None) => name.to_owned().cast_into::<PyString>().ok(),
        _ => None,
    };
    let Some(name) = name else { return Err(misused(arguments, if bare { "value" } else { "call" })) };
    let keywords = match keywords {
        Some(keywords) if is_shared => keywords.copy()?,
        Some(keywords) => keywords,
        None => PyDict::new(py),
    };
    object::new(py, || State::single(origin, name, keywords, bare))
}

/// The error for arguments of a method that are not a name and keywords.
#[cold]
fn misused(arguments: &Bound<'_, PyTuple>, method: &str) -> PyErr {
    let given: Vec<_> = arguments.iter().collect();
    let mistake = call_mistake(method, given.first(), given.get(1..).unwrap_or_default());
    mistake.unwrap_or_else(|| PyTypeError::new_err(format!("{method}(name, **arguments): invalid arguments")))
}

/// Puts the methods into a class: that of toolkits, or that of views.
fn add_methods<const IS_VIEW: bool>(class: &Bound<'_, PyType>) -> PyResult<()> {
    let methods = [
        ffi::PyMethodDef {
            ml_name: c"call_tool_function".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call_tool_function::<IS_VIEW> },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: STREAM_DOC.as_ptr().cast::<c_char>(),
        },
        // Not METH_FASTCALL: `call(name, **arguments)` is passed its dict as it is, which costs less than its pieces.
        ffi::PyMethodDef {
            ml_name: c"call".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionWithKeywords: call::<IS_VIEW, false> },
            ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
            ml_doc: SINGLE_DOC.as_ptr().cast::<c_char>(),
        },
        ffi::PyMethodDef {
            ml_name: c"value".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionWithKeywords: call::<IS_VIEW, true> },
            ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
            ml_doc: VALUE_DOC.as_ptr().cast::<c_char>(),
        },
    ];
    for definition in methods {
        // SAFETY: the definition is leaked on purpose: the method keeps pointing to it.
        let method = unsafe {
            let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), Box::leak(Box::new(definition)));
            Bound::from_owned_ptr_or_err(class.py(), method)?
        };
        class.setattr(method.getattr("__name__")?.cast::<PyString>()?, &method)?;
    }
    Ok(())
}

/// Puts the methods into `Toolkit` and `ToolkitView`, and gives `ToolResponse` its vectorcall. Subclasses do not inherit
/// that, so that their own `__new__` and `__init__` are called.
pub(crate) fn init(toolkit: &Bound<'_, PyType>) -> PyResult<()> {
    let py = toolkit.py();
    add_methods::<false>(toolkit)?;
    add_methods::<true>(&py.get_type::<PyToolkitView>())?;
    let class = py.get_type::<PyToolResponse>().as_type_ptr();
    // SAFETY: the class is complete and no code has used it yet.
    unsafe { (*class).tp_vectorcall = Some(construct) };
    Ok(())
}

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
    // SAFETY: `arguments` holds `positional` objects and then one for each of the `keywords` names in the tuple.
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
    // SAFETY: `arguments` holds `positional` objects and then one for each name; the tuple and the dict take references of
    // their own, and `tp_call` of a class makes its instances from them.
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
