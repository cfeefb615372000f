//! The JSON form of defaults and presets that policy rules and approvers see: the value that a model would send for them, or a
//! marker.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple};
use serde_json::{Map, Value};

use super::json::{MAX_DEPTH, from_python};
use super::schema::value_to_json;

/// The maximum number of values of one default that are converted; further ones are marked.
const MAX_VALUES: usize = 10_000;

/// The JSON form of a default: an enumeration is its value, a path or a date its text, a set a list, a record an object.
///
/// It never fails, because a rule that does not see an argument cannot deny it. A value without a JSON form becomes `shown`, the
/// default in the schema, or a marker with the name of its class.
pub(crate) fn rule_value(default: &Bound<'_, PyAny>, shown: Option<&Value>) -> Value {
    if let Ok(plain) = from_python(default) {
        return plain.into();
    }
    let mut left = MAX_VALUES;
    converted(default, 0, &mut left).unwrap_or_else(|| shown.cloned().unwrap_or_else(|| marker(default)))
}

/// The marker of a value that cannot be converted. It names only the class: the value's text may contain a secret, or differ from
/// run to run.
fn marker(value: &Bound<'_, PyAny>) -> Value {
    let class = value.get_type();
    let module = class.module().map_or_else(|_| String::new(), |module| format!("{module}."));
    let name = class.qualname().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    Value::String(format!("<{} object>", [module.trim_start_matches("builtins."), &name].concat()))
}

/// The JSON form of a value, in which parts without one are marked; `None` if the value itself has none.
fn converted(value: &Bound<'_, PyAny>, depth: usize, left: &mut usize) -> Option<Value> {
    if depth > MAX_DEPTH || *left == 0 {
        return None;
    }
    *left -= 1;
    let py = value.py();
    let mut part = |part: &Bound<'_, PyAny>| converted(part, depth + 1, left).unwrap_or_else(|| marker(part));
    if let Ok(float) = value.cast::<PyFloat>()
        && !float.value().is_finite()
    {
        return Some(Value::String(float.value().to_string().to_lowercase()));
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Some(Value::String(text.to_string_lossy().into_owned()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(text_of(bytes.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Some(text_of(&bytes.to_vec()));
    }
    if is_enumeration(value) {
        return Some(part(&value.getattr(intern!(py, "value")).ok()?));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return Some(Value::Object(entries(dict, &mut part)));
    }
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        let mut items: Vec<Value> = value.try_iter().ok()?.flatten().map(|item| part(&item)).collect();
        items.sort_by_cached_key(ToString::to_string);
        return Some(Value::Array(items));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return Some(Value::Array(value.try_iter().ok()?.flatten().map(|item| part(&item)).collect()));
    }
    if let Some(fields) = field_names(value) {
        let entry = |(shown, name): (String, String)| {
            let value = value.getattr(name.as_str()).ok()?;
            Some((shown, part(&value)))
        };
        return Some(Value::Object(fields.into_iter().filter_map(entry).collect()));
    }
    if let Some(json) = value_to_json(value) {
        return Some(json.into());
    }
    let class = value.get_type();
    if class.hasattr(intern!(py, "__fspath__")).unwrap_or(false) {
        return Some(Value::String(value.str().ok()?.to_string_lossy().into_owned()));
    }
    from_python(value).ok().map(Value::from)
}

fn entries(dict: &Bound<'_, PyDict>, part: &mut impl FnMut(&Bound<'_, PyAny>) -> Value) -> Map<String, Value> {
    let mut entries = Map::new();
    for (key, value) in dict.iter() {
        let key = match part(&key) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        entries.insert(key, part(&value));
    }
    entries
}

/// Bytes as the text that a model sends for them, or else as a Python literal.
fn text_of(bytes: &[u8]) -> Value {
    Value::String(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("b\"{}\"", bytes.escape_ascii()),
    })
}

fn is_enumeration(value: &Bound<'_, PyAny>) -> bool {
    let (py, class) = (value.py(), value.get_type());
    let has = |name| class.hasattr(name).unwrap_or(false);
    has(intern!(py, "__members__")) && has(intern!(py, "_member_map_"))
}

/// The fields of a dataclass, a pydantic model, an attrs class or a msgspec struct: their names in JSON, and those of the attributes.
fn field_names(value: &Bound<'_, PyAny>) -> Option<Vec<(String, String)>> {
    let (py, class) = (value.py(), value.get_type());
    for fields in [intern!(py, "__dataclass_fields__"), intern!(py, "__pydantic_fields__")] {
        if let Ok(Some(fields)) = class.getattr_opt(fields)
            && let Ok(fields) = fields.cast_into::<PyDict>()
        {
            let name = |name: Bound<'_, PyAny>| Some((name.extract().ok()?, name.extract().ok()?));
            return Some(fields.keys().iter().filter_map(name).collect());
        }
    }
    if let (Ok(Some(shown)), Ok(Some(names))) = (
        class.getattr_opt(intern!(py, "__struct_encode_fields__")),
        class.getattr_opt(intern!(py, "__struct_fields__")),
    ) {
        return Some(
            shown.extract::<Vec<String>>().ok()?.into_iter().zip(names.extract::<Vec<String>>().ok()?).collect(),
        );
    }
    let attributes = class.getattr_opt(intern!(py, "__attrs_attrs__")).ok()??;
    let name = |attribute: PyResult<Bound<'_, PyAny>>| {
        let attribute = attribute.ok()?;
        Some((attribute.getattr("alias").ok()?.extract().ok()?, attribute.getattr("name").ok()?.extract().ok()?))
    };
    Some(attributes.try_iter().ok()?.filter_map(name).collect())
}
