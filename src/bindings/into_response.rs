//! Conversion of the result of a tool to a response, or to one of a stream: text stays text, other values become JSON text and
//! are kept in the metadata.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};
use serde_json::Value;

use super::foreign_response::adopt;
use super::json::entries_of;
use super::response::{PyToolResponse, copied, make, text_block};
use crate::bindings::once::intern;
use crate::call::ChunkMode;

/// The maximum depth of JSON text; deeper values are written as by `str`.
const MAX_TEXT_DEPTH: usize = 64;
/// The maximum depth of a value that `str` and `repr` are asked for. They use the stack for each level, which only the recursion limit
/// ends, and that may be set too high for the stack.
const MAX_SHOWN_DEPTH: usize = 256;

/// A value as it goes into a response.
pub(crate) enum Content<'py> {
    /// It is a response, or was converted to one by its own class.
    Response(Bound<'py, PyToolResponse>),
    /// It is this text.
    Text(Bound<'py, PyString>),
    /// It is not text; with its JSON text.
    Value(Bound<'py, PyString>, Bound<'py, PyAny>),
}

impl<'py> Content<'py> {
    /// Reads any value.
    pub(crate) fn of(value: Bound<'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let value = match value.cast_into::<PyToolResponse>() {
            Ok(response) => return Ok(Self::Response(response)),
            Err(other) => other.into_inner(),
        };
        if let Ok(text) = value.cast::<PyString>() {
            // A plain `str` without lone surrogates, so that a provider can encode it.
            let is_plain = text.is_exact_instance_of::<PyString>() && text.to_str().is_ok();
            return Ok(Self::Text(if is_plain { text.clone() } else { PyString::new(py, &unicode(text)) }));
        }
        if is_plain(&value) {
            return Ok(Self::Value(PyString::new(py, &response_text(&value)), value));
        }
        if let Some(method) = value.get_type().getattr_opt(intern!(py, "__tool_response__"))? {
            return method.call1((&value,))?.cast_into::<PyToolResponse>().map(Self::Response).map_err(|other| {
                let classes = (type_name(&value), type_name(&other.into_inner()));
                let message = format!("{}.__tool_response__ must return a ToolResponse, not {}", classes.0, classes.1);
                PyTypeError::new_err(message)
            });
        }
        if let Some(adopted) = adopt(&value)? {
            return Ok(Self::Response(adopted));
        }
        Ok(Self::Value(PyString::new(py, &response_text(&value)), value))
    }

    /// Makes a response of it.
    pub(crate) fn into_response(self, py: Python<'py>) -> PyResult<Bound<'py, PyToolResponse>> {
        match self {
            Self::Response(response) => Ok(response),
            Self::Text(text) => of_text(py, text, None),
            Self::Value(text, value) => of_text(py, text, Some(value)),
        }
    }
}

/// Converts any value to a response.
pub(crate) fn into_response(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = value.py();
    Content::of(value)?.into_response(py).map(Bound::into_any)
}

/// Convert the result of a tool to a response, as a stream does; without an argument the response is empty.
#[pyfunction]
#[pyo3(signature = (*value))]
pub(crate) fn _as_response<'py>(py: Python<'py>, value: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_empty() { empty(py) } else { into_response(value.get_item(0)?) }
}

/// A response with one text block, and the value in the metadata.
pub(crate) fn of_text<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    value: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyToolResponse>> {
    let (content, metadata) = text_and_value(py, text, value)?;
    make(py, content, metadata, None)
}

/// The same as a chunk of a stream.
pub(crate) fn chunk_of_text<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    value: Option<Bound<'py, PyAny>>,
    mode: ChunkMode,
) -> PyResult<Bound<'py, PyToolResponse>> {
    let (content, metadata) = text_and_value(py, text, value)?;
    let mut response = PyToolResponse::with(content.unbind(), metadata, true, false, false, None);
    response.mode = mode;
    Bound::new(py, response)
}

/// The content and the metadata for a text, and the value that it stands for.
fn text_and_value<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    value: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Option<Py<PyAny>>)> {
    let metadata = match value {
        None => None,
        Some(value) => {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "value"), value)?;
            Some(metadata.into_any().unbind())
        }
    };
    Ok((PyList::new(py, [text_block(py, text)?])?.into_any(), metadata))
}

/// The response for a result that was collected.
pub(crate) fn collected<'py>(
    content: Bound<'py, PyAny>,
    metadata: Option<Bound<'py, PyAny>>,
    code: Option<Py<PyString>>,
) -> PyResult<Bound<'py, PyToolResponse>> {
    make(content.py(), content, metadata.map(Bound::unbind), code)
}

/// A response without content, for a generator that yielded nothing.
pub(crate) fn empty(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    make(py, PyList::empty(py).into_any(), None, None).map(Bound::into_any)
}

/// The response as a part of a stream. If it lacks a mark, it is marked in place if only the caller refers to it, and
/// otherwise copied: it may be the tool's to use again.
pub(crate) fn streamed<'py>(
    response: &Bound<'py, PyToolResponse>,
    is_last: bool,
    mode: ChunkMode,
) -> PyResult<Bound<'py, PyToolResponse>> {
    let py = response.py();
    let is_marked = {
        let fields = response.borrow();
        fields.stream && fields.is_last == is_last && fields.mode == mode
    };
    #[allow(deprecated, reason = "its replacement belongs to the raw interface, which one folder uses")]
    let is_shared = response.get_refcnt() > 1;
    let streamed = if is_marked || !is_shared {
        response.clone()
    } else {
        let copy = copied(response)?;
        // The tool may write on in the blocks of its own.
        let content = copy.borrow().content.clone_ref(py).into_bound(py);
        if let Ok(blocks) = content.cast_exact::<PyList>() {
            let blocks = blocks.iter().map(|block| match block.cast_exact::<PyDict>() {
                Ok(entries) => entries.copy().map(Bound::into_any),
                Err(_) => Ok(block),
            });
            let blocks = PyList::new(py, blocks.collect::<PyResult<Vec<_>>>()?)?;
            copy.borrow_mut().content = blocks.into_any().unbind();
        }
        copy
    };
    if !is_marked {
        let mut fields = streamed.borrow_mut();
        (fields.stream, fields.is_last, fields.mode) = (true, is_last, mode);
    }
    Ok(streamed)
}

/// The message of an exception, or the name of its type if that cannot be read.
pub(crate) fn error_text(py: Python<'_>, error: &PyErr) -> String {
    error.value(py).str().map_or_else(|_| type_name(error.value(py).as_any()), |text| unicode(&text).into_owned())
}

/// The name of an exception's class.
pub(crate) fn error_class<'py>(py: Python<'py>, error: &PyErr) -> Bound<'py, PyString> {
    class_of(error.value(py).as_any())
}

/// The same of the exception itself.
pub(crate) fn class_of<'py>(exception: &Bound<'py, PyAny>) -> Bound<'py, PyString> {
    exception.get_type().name().unwrap_or_else(|_| intern!(exception.py(), "Exception").clone())
}

/// The text as valid Unicode, which a `str` need not be: surrogate pairs are joined, and lone surrogates are replaced.
pub(crate) fn unicode<'a>(text: &'a Bound<'_, PyString>) -> Cow<'a, str> {
    if let Ok(text) = text.to_str() {
        return Cow::Borrowed(text);
    }
    // In native byte order and with a byte order mark: this codec is built in, so that nothing is imported.
    let encoded = text
        .call_method1(intern!(text.py(), "encode"), ("utf-16", "surrogatepass"))
        .and_then(|bytes| Ok(bytes.cast_into::<PyBytes>()?));
    let Ok(encoded) = encoded else { return text.to_string_lossy() };
    let units = encoded.as_bytes().chunks_exact(2).skip(1).map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
    Cow::Owned(char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// Any value as JSON: text stays text, and values without a JSON form are written as by `str`.
pub(crate) fn as_json(value: &Bound<'_, PyAny>) -> Value {
    if let Ok(text) = value.cast::<PyString>() {
        return Value::String(unicode(text).into_owned());
    }
    let text = json_text(value);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// True for the builtin types that have a JSON form.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyDict>()
        || value.is_exact_instance_of::<PyList>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyTuple>()
}

/// A value as JSON text, or as by `str` if it cannot be written.
fn json_text(value: &Bound<'_, PyAny>) -> String {
    let mut text = String::new();
    match write(&mut text, value, MAX_TEXT_DEPTH) {
        Ok(()) => text,
        Err(_) => display_text(value),
    }
}

/// A value as the text of a response: JSON, except for bytes, which are text, and for objects that only `str` can write, in several
/// lines, such as tables.
fn response_text(value: &Bound<'_, PyAny>) -> String {
    if let Some(bytes) = bytes_text(value) {
        return bytes;
    }
    let mut text = String::new();
    match write_known(&mut text, value, MAX_TEXT_DEPTH) {
        Ok(true) => return text,
        Ok(false) => {}
        Err(_) => return display_text(value),
    }
    let shown = display_text(value);
    if shown.contains('\n') {
        return shown;
    }
    write_string(&mut text, &shown);
    text
}

/// Bytes as UTF-8 text, in which other bytes are replaced.
pub(crate) fn bytes_text(value: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(String::from_utf8_lossy(bytes.as_bytes()).into_owned());
    }
    let bytes = value.cast::<PyByteArray>().ok()?;
    Some(String::from_utf8_lossy(&bytes.to_vec()).into_owned())
}

/// The text of a value as by `str`, or the name of its type.
pub(crate) fn display_text(value: &Bound<'_, PyAny>) -> String {
    if is_deep(value) {
        return type_name(value);
    }
    value.str().map_or_else(|_| type_name(value), |text| unicode(&text).into_owned())
}

/// The text of a value as by `repr`; of one that is nested too deeply, the name of its type.
pub(crate) fn short_repr(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if is_deep(value) {
        return Ok(format!("<deeply nested {}>", type_name(value)));
    }
    Ok(unicode(&value.repr()?).into_owned())
}

/// True if collections and instances with fields are nested too deeply for `str`, which writes one that contains itself once.
fn is_deep(value: &Bound<'_, PyAny>) -> bool {
    // The values that are still to be visited at each level, below the one that they are parts of.
    let mut path = vec![(value.clone(), parts(value))];
    while let Some((_, rest)) = path.last_mut() {
        let Some(part) = rest.pop() else {
            path.pop();
            continue;
        };
        let below = parts(&part);
        if below.is_empty() || path.iter().any(|(above, _)| above.is(&part)) {
            continue;
        }
        if path.len() == MAX_SHOWN_DEPTH {
            return true;
        }
        path.push((part, below));
    }
    false
}

/// The values in a collection or in the fields of an instance.
fn parts<'py>(value: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return entries_of(dict).into_iter().flat_map(|(key, value)| [key, value]).collect();
    }
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().collect();
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().collect();
    }
    if let Ok(set) = value.cast::<PySet>() {
        return set.iter().collect();
    }
    if let Ok(set) = value.cast::<PyFrozenSet>() {
        return set.iter().collect();
    }
    let fields = field_names(&value.get_type()).ok().flatten().unwrap_or_default();
    fields.into_iter().filter_map(|name| value.getattr(name).ok()).collect()
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

fn write(text: &mut String, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth == 0 || !write_known(text, value, depth)? {
        write_string(text, &display_text(value));
    }
    Ok(())
}

/// Writes a value that has a form in JSON; false for any other.
fn write_known(text: &mut String, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    if value.is_none() {
        text.push_str("null");
    } else if let Ok(flag) = value.cast::<PyBool>() {
        text.push_str(if flag.is_true() { "true" } else { "false" });
    } else if value.is_exact_instance_of::<PyInt>() {
        text.push_str(&value.str()?.to_string_lossy());
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        if number.value().is_finite() {
            text.push_str(&value.repr()?.to_string_lossy());
        } else {
            text.push_str("null");
        }
    } else if let Ok(string) = value.cast::<PyString>() {
        write_string(text, &unicode(string));
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_object(text, entries_of(dict).into_iter(), depth)?;
    } else if value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
    {
        text.push('[');
        for (index, item) in value.try_iter()?.enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            write(text, &item?, depth - 1)?;
        }
        text.push(']');
    } else {
        return write_instance(text, value, depth);
    }
    Ok(true)
}

/// Writes an instance: a class with fields as an object, an enum as its value, a date in ISO form, bytes as text, numbers and
/// arrays of numpy and its kin as theirs; false for any other.
fn write_instance(text: &mut String, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    let (py, class) = (value.py(), value.get_type());
    if let Some(dump) = value.getattr_opt(intern!(py, "model_dump"))? {
        write(text, &dump.call0()?, depth - 1)?;
    } else if let Some(names) = field_names(&class)? {
        let fields = names.into_iter().filter_map(|name| {
            let field = value.getattr(&name).ok()?;
            Some((name.into_any(), field))
        });
        write_object(text, fields, depth)?;
    } else if let Some(iso) = value.getattr_opt(intern!(py, "isoformat"))? {
        write(text, &iso.call0()?, depth - 1)?;
    } else if class.getattr_opt(intern!(py, "__members__"))?.is_some() {
        write(text, &value.getattr(intern!(py, "value"))?, depth - 1)?;
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        text.push_str(&unicode(&value.str()?));
    } else if let Some(bytes) = bytes_text(value) {
        write_string(text, &bytes);
    } else if class.getattr_opt(intern!(py, "tolist"))?.is_some() {
        write(text, &value.call_method0(intern!(py, "tolist"))?, depth - 1)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// The names of the fields of a dataclass, an attrs class or a msgspec struct; `None` for any other class.
pub(crate) fn field_names<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Vec<Bound<'py, PyString>>>> {
    let py = class.py();
    let mut names = Vec::new();
    if let Some(fields) = class.getattr_opt(intern!(py, "__dataclass_fields__"))? {
        for (name, field) in entries_of(fields.cast::<PyDict>()?) {
            // As opposed to class variables and arguments of the constructor alone.
            if field.getattr(intern!(py, "_field_type"))?.getattr(intern!(py, "name"))?.eq("_FIELD")? {
                names.push(name.cast_into::<PyString>()?);
            }
        }
    } else if let Some(fields) = class.getattr_opt(intern!(py, "__attrs_attrs__"))? {
        for field in fields.try_iter()? {
            names.push(field?.getattr(intern!(py, "name"))?.cast_into::<PyString>()?);
        }
    } else if let Some(fields) = class.getattr_opt(intern!(py, "__struct_fields__"))? {
        for name in fields.try_iter()? {
            names.push(name?.cast_into::<PyString>()?);
        }
    } else {
        return Ok(None);
    }
    Ok(Some(names))
}

fn write_object<'py>(
    text: &mut String,
    entries: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    depth: usize,
) -> PyResult<()> {
    text.push('{');
    for (index, (key, value)) in entries.enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        match key.cast::<PyString>() {
            Ok(key) => write_string(text, &unicode(key)),
            Err(_) => write_string(text, &display_text(&key)),
        }
        text.push_str(": ");
        write(text, &value, depth - 1)?;
    }
    text.push('}');
    Ok(())
}

fn write_string(text: &mut String, string: &str) {
    // Serialising a string cannot fail: it is valid Unicode and goes to memory.
    text.push_str(&serde_json::to_string(string).unwrap_or_default());
}
