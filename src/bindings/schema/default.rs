//! Default values as JSON, by what they are and not by what they were declared to be.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
    PyType,
};
use serde_json::Number;

use super::value::{is_pure_path, named, origin};
use crate::bindings::imported::import_module;
use crate::bindings::json::{DEEPEST, entries_of, from_python, integer_from_python};
use crate::schema::{Entries, Node};

/// The JSON of a default, or nothing where JSON has none.
///
/// A default that is not a number (or not finite) is left out too: there is no way to write it.
pub(super) fn default_to_json(default: &Bound<'_, PyAny>) -> Option<Node> {
    if let Ok(float) = default.cast::<PyFloat>()
        && !float.value().is_finite()
    {
        return None;
    }
    if (default.is_instance_of::<PySet>() || default.is_instance_of::<PyFrozenSet>())
        && let Ok(sorted) = in_order(default)
    {
        return to_json(&sorted, 0);
    }
    if default.is_none() {
        return Some(Node::Null);
    }
    if let Some(plain) = plain(default, 0, true) {
        return plain;
    }
    match origin(&default.get_type())?.as_str() {
        // Not told, because it would not come back as the same kind of mapping.
        "collections.defaultdict" => None,
        "re.Pattern" => match default.getattr("pattern").ok()?.cast::<PyBytes>() {
            Ok(pattern) => text(pattern.as_bytes()),
            Err(_) => to_json(default, 0),
        },
        name if is_pure_path(name) => shown(default),
        _ => to_json(default, 0),
    }
}

/// The JSON of a value inside an annotation: a literal, the value of an enumeration, an example.
pub(crate) fn value_to_json(value: &Bound<'_, PyAny>) -> Option<Node> {
    to_json(value, 0)
}

/// A set has no order, so equal defaults would give unequal schemas.
fn in_order<'py>(set: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(set.py());
    for item in set.try_iter()? {
        list.append(item?)?;
    }
    list.sort()?;
    Ok(list.into_any())
}

fn to_json(value: &Bound<'_, PyAny>, depth: usize) -> Option<Node> {
    if depth > DEEPEST {
        return None;
    }
    if value.is_none() {
        return Some(Node::Null);
    }
    let kind = value.get_type();
    if let Some(plain) = plain(value, depth, true) {
        return plain;
    }
    if kind.hasattr(intern!(value.py(), "__pydantic_serializer__")).unwrap_or(false) {
        return ask_pydantic(value);
    }
    if let Ok(fields) = kind.getattr(intern!(value.py(), "__dataclass_fields__")) {
        return dataclass(value, fields.cast::<PyDict>().ok()?, depth);
    }
    if is_enumeration(&kind) {
        return to_json(&value.getattr(intern!(value.py(), "value")).ok()?, depth + 1);
    }
    if let Some(plain) = plain(value, depth, false) {
        return plain;
    }
    named(value, &origin(&kind)?, depth)
}

/// Values of the builtin types: `exact` ones first, because a subclass may have its own way.
#[allow(clippy::option_option, reason = "outside: whether it is one of these; inside: whether JSON can hold it")]
fn plain(value: &Bound<'_, PyAny>, depth: usize, exact: bool) -> Option<Option<Node>> {
    fn is<'a, 'py, T: pyo3::PyTypeInfo>(value: &'a Bound<'py, PyAny>, exact: bool) -> Option<&'a Bound<'py, T>> {
        if exact { value.cast_exact::<T>().ok() } else { value.cast::<T>().ok() }
    }
    if let Some(flag) = is::<PyBool>(value, exact) {
        return Some(Some(Node::Bool(flag.is_true())));
    }
    if let Some(text) = is::<PyString>(value, exact) {
        return Some(text.to_str().ok().map(|text| Node::from(text.to_owned())));
    }
    if let Some(integer) = is::<PyInt>(value, exact) {
        return Some(integer_from_python(integer).ok().map(Node::Number));
    }
    if let Some(float) = is::<PyFloat>(value, exact) {
        return Some(Some(Number::from_f64(float.value()).map_or(Node::Null, Node::Number)));
    }
    if let Some(dict) = is::<PyDict>(value, exact) {
        return Some(mapping(dict, depth));
    }
    let is_array = is::<PyList>(value, exact).is_some()
        || is::<PyTuple>(value, exact).is_some()
        || is::<PySet>(value, exact).is_some()
        || is::<PyFrozenSet>(value, exact).is_some();
    if is_array {
        return Some(array(value, depth));
    }
    if let Some(bytes) = is::<PyBytes>(value, exact) {
        return Some(text(bytes.as_bytes()));
    }
    if let Some(bytes) = is::<PyByteArray>(value, exact) {
        return Some(text(&bytes.to_vec()));
    }
    if let Some(complex) = is::<PyComplex>(value, exact) {
        return Some(shown(complex).map(|shown| match shown {
            Node::String(text) => Node::from(text.trim_start_matches('(').trim_end_matches(')').to_owned()),
            other => other,
        }));
    }
    None
}

fn text(bytes: &[u8]) -> Option<Node> {
    std::str::from_utf8(bytes).ok().map(|text| Node::from(text.to_owned()))
}

pub(super) fn array(items: &Bound<'_, PyAny>, depth: usize) -> Option<Node> {
    let items = items.try_iter().ok()?;
    items.map(|item| to_json(&item.ok()?, depth + 1)).collect::<Option<Vec<_>>>().map(Node::Array)
}

pub(super) fn mapping(dict: &Bound<'_, PyDict>, depth: usize) -> Option<Node> {
    let mut entries = Entries::with_capacity(dict.len());
    let mut are_texts = true;
    for (key, value) in entries_of(dict) {
        are_texts &= key.is_exact_instance_of::<PyString>();
        let (key, value) = (key_to_text(&key, depth + 1)?, to_json(&value, depth + 1)?);
        if are_texts {
            entries.push(key, value);
        } else {
            // Keys that differ in Python, such as `1` and `"1"`, can be written alike.
            entries.insert(key, value);
        }
    }
    Some(Node::Object(entries))
}

fn key_to_text(key: &Bound<'_, PyAny>, depth: usize) -> Option<String> {
    if key.is_none() {
        return Some("None".to_owned());
    }
    if let Ok(float) = key.cast::<PyFloat>() {
        return if float.value().is_finite() { key.repr().ok()?.extract().ok() } else { Some("None".to_owned()) };
    }
    if key.get_type().is(key.py().get_type::<PyTuple>()) {
        let parts = key.try_iter().ok()?.map(|part| key_to_text(&part.ok()?, depth + 1));
        return Some(parts.collect::<Option<Vec<_>>>()?.join(","));
    }
    match to_json(key, depth)? {
        Node::String(text) => Some(text.into_owned()),
        Node::Bool(flag) => Some(flag.to_string()),
        Node::Number(number) => Some(number.to_string()),
        Node::Null => Some("None".to_owned()),
        Node::Array(_) | Node::Object(_) => None,
    }
}

fn dataclass(value: &Bound<'_, PyAny>, fields: &Bound<'_, PyDict>, depth: usize) -> Option<Node> {
    let mut entries = Entries::with_capacity(fields.len());
    for (name, field) in entries_of(fields) {
        // `_FIELD`, as opposed to class variables and arguments of the constructor.
        let kind = field.getattr("_field_type").ok()?.getattr("name").ok()?.extract::<String>().ok()?;
        if kind == "_FIELD" {
            let name = name.cast::<PyString>().ok()?;
            entries.push(name.to_str().ok()?.to_owned(), to_json(&value.getattr(name).ok()?, depth + 1)?);
        }
    }
    Some(Node::Object(entries))
}

fn is_enumeration(kind: &Bound<'_, PyType>) -> bool {
    kind.hasattr("__members__").unwrap_or(false) && kind.hasattr("_member_map_").unwrap_or(false)
}

pub(super) fn shown(value: &Bound<'_, PyAny>) -> Option<Node> {
    Some(Node::from(value.str().ok()?.to_str().ok()?.to_owned()))
}

/// A model writes itself.
fn ask_pydantic(value: &Bound<'_, PyAny>) -> Option<Node> {
    let module = import_module(value.py(), "pydantic_core").ok()?;
    from_python(&module.call_method1("to_jsonable_python", (value,)).ok()?).ok()
}
