//! JSON out of the objects of other libraries: mappings, pydantic models, protocol messages, anything with the right
//! attributes.

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Number, Value};

use super::json::{DEEPEST, entries_of, integer_from_python};

/// The attributes by which an object is known to be a call, or to hold some.
const ATTRIBUTES: [&str; 19] = [
    "type",
    "id",
    "call_id",
    "name",
    "input",
    "arguments",
    "args",
    "params",
    "function",
    "custom",
    "function_call",
    "functionCall",
    "method",
    "tool_calls",
    "content",
    "output",
    "parts",
    "choices",
    "candidates",
];

/// The methods that give a dictionary of an object, with the least that they are known to take.
const DUMPS: [&str; 3] = ["model_dump", "to_dict", "dict"];

/// Whether an object may be, or hold, a call: a mapping, or something that a library made for it.
pub(crate) fn is_readable(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyDict>() || object.cast::<PyMapping>().is_ok() {
        return true;
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return false;
    }
    let has = |name: &str| object.getattr_opt(name).is_ok_and(|found| found.is_some());
    let is_any = |names: &[&str]| names.iter().any(|name| has(name));
    is_any(&DUMPS)
        || is_any(&["function", "tool_calls", "function_call", "functionCall", "choices", "candidates"])
        || is_any(&["name", "method"]) && is_any(&["input", "arguments", "args", "params"])
}

/// Reads a JSON value.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    read(object, 0)
}

fn read(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(PyRecursionError::new_err(format!("it is more than {DEEPEST} levels deep")));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_str().map_err(|_| PyValueError::new_err("text with a lone surrogate is not JSON"))?;
        return Ok(Value::from(text));
    }
    if let Ok(integer) = object.cast::<PyInt>() {
        return integer_from_python(integer).map(Value::Number);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        let number = Number::from_f64(float.value());
        return number
            .map(Value::Number)
            .ok_or_else(|| PyValueError::new_err(format!("{} is not JSON", float.value())));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return entries(dict, depth);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|item| read(&item?, depth + 1));
        return items.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    read_instance(object, depth)
}

fn entries(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Value> {
    let mut entries = Map::with_capacity(dict.len());
    for (key, item) in entries_of(dict) {
        let key = key.cast::<PyString>().map_err(|_| PyTypeError::new_err("a key is not text"))?;
        entries.insert(key.to_str()?.to_owned(), read(&item, depth + 1)?);
    }
    Ok(Value::Object(entries))
}

/// What is no builtin. Reading it may run its code.
fn read_instance(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = object.py();
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let dict = PyDict::new(py);
        dict.update(mapping)?;
        return entries(&dict, depth);
    }
    for name in DUMPS {
        if let Some(dump) = object.getattr_opt(name)?
            && let Ok(dict) = dump.call0()
            && let Ok(dict) = dict.cast::<PyDict>()
        {
            return entries(dict, depth);
        }
    }
    if object.get_type().getattr_opt("__members__")?.is_some() {
        return read(&object.getattr("value")?, depth + 1);
    }
    let mut found = Map::new();
    for name in ATTRIBUTES {
        if let Some(value) = object.getattr_opt(name)?
            && !value.is_callable()
        {
            found.insert(name.to_owned(), read(&value, depth + 1)?);
        }
    }
    if found.is_empty() {
        let class = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        return Err(PyTypeError::new_err(format!("an object of type {class} is not JSON")));
    }
    Ok(Value::Object(found))
}
