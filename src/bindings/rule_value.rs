//! The JSON form of defaults, and of objects in place of JSON values, that policy rules and approvers see: the value that a model
//! would send for them, or a marker.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple};
use serde_json::{Map, Value};

use super::json::{MAX_DEPTH, entries_of, from_python};
use super::schema::value_to_json;
use super::typed::is_json_scalar;
use crate::bindings::once::intern;

/// The maximum number of values of one default that are converted; further ones are marked.
const MAX_DEFAULT_VALUES: usize = 10_000;

/// The same for arguments, of which more have no place in the text of a call.
const MAX_ARGUMENT_VALUES: usize = 1 << 20;

/// The JSON form of a default: an enumeration is its value, a path or a date its text, a set a list, a record an object.
///
/// It never fails, because a rule that does not see an argument cannot deny it. A value without a JSON form becomes `shown`, the
/// default in the schema, or a marker with the name of its class.
pub(crate) fn default_value(default: &Bound<'_, PyAny>, shown: Option<&Value>) -> Value {
    if let Ok(plain) = from_python(default) {
        return plain.into();
    }
    let mut left = MAX_DEFAULT_VALUES;
    converted(default, 0, &mut left).unwrap_or_else(|| shown.cloned().unwrap_or_else(|| marker(default)))
}

/// The JSON form of an argument that is an object, by the same rules.
pub(crate) fn argument_value(argument: &Bound<'_, PyAny>) -> Value {
    let mut left = MAX_ARGUMENT_VALUES;
    converted(argument, 0, &mut left).unwrap_or_else(|| marker(argument))
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
    if is_json_scalar(value)
        && let Ok(json) = from_python(value)
    {
        return Some(json.into());
    }
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
        let items: Vec<_> = value.try_iter().ok()?.flatten().collect();
        let mut items: Vec<Value> = items.iter().map(part).collect();
        items.sort_by_cached_key(ToString::to_string);
        return Some(Value::Array(items));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || is_deque(value) {
        let items: Vec<_> = value.try_iter().ok()?.flatten().collect();
        return Some(Value::Array(items.iter().map(part).collect()));
    }
    if let Some(record) = record(value, &mut part) {
        return Some(record);
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
    for (key, value) in entries_of(dict) {
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

fn is_deque(value: &Bound<'_, PyAny>) -> bool {
    value.get_type().qualname().is_ok_and(|name| name == "deque")
}

/// A field of a record: its name in JSON, and that of the attribute.
type FieldNames = (String, String);

/// A dataclass, a pydantic model, an attrs class or a msgspec struct in the form from which its class is built; `None` for any
/// other object.
fn record(value: &Bound<'_, PyAny>, part: &mut impl FnMut(&Bound<'_, PyAny>) -> Value) -> Option<Value> {
    let (py, class) = (value.py(), value.get_type());
    let of_class = |name| class.getattr_opt(name).ok().flatten();
    if of_class(intern!(py, "__pydantic_root_model__")).is_some_and(|is_root| is_root.is_truthy().unwrap_or(false)) {
        return Some(part(&value.getattr(intern!(py, "root")).ok()?));
    }
    let fields = if let Some(fields) = of_class(intern!(py, "__pydantic_fields__")) {
        pydantic_fields(fields.cast::<PyDict>().ok()?)
    } else if let Some(fields) = of_class(intern!(py, "__dataclass_fields__")) {
        dataclass_fields(fields.cast::<PyDict>().ok()?)
    } else if let Some(names) = of_class(intern!(py, "__struct_fields__")) {
        let shown = of_class(intern!(py, "__struct_encode_fields__"))?.extract::<Vec<String>>().ok()?;
        shown.into_iter().zip(names.extract::<Vec<String>>().ok()?).collect()
    } else {
        attrs_fields(&of_class(intern!(py, "__attrs_attrs__"))?)?
    };
    let entry = |(shown, name): FieldNames| Some((shown, part(&value.getattr(name.as_str()).ok()?)));
    let mut entries: Map<String, Value> = fields.into_iter().filter_map(entry).collect();
    if let Ok(Some(extra)) = value.getattr_opt(intern!(py, "__pydantic_extra__"))
        && let Ok(extra) = extra.cast::<PyDict>()
    {
        entries.extend(self::entries(extra, part));
    }
    match of_class(intern!(py, "__struct_config__")) {
        Some(config) => struct_form(&config, entries, part),
        None => Some(Value::Object(entries)),
    }
}

/// A msgspec struct with its tag, as an array if the class is `array_like`.
fn struct_form(
    config: &Bound<'_, PyAny>,
    mut entries: Map<String, Value>,
    part: &mut impl FnMut(&Bound<'_, PyAny>) -> Value,
) -> Option<Value> {
    let py = config.py();
    let tag = config.getattr(intern!(py, "tag")).ok().filter(|tag| !tag.is_none()).map(|tag| part(&tag));
    if config.getattr(intern!(py, "array_like")).ok()?.is_truthy().ok()? {
        return Some(Value::Array(tag.into_iter().chain(entries.into_iter().map(|(_, value)| value)).collect()));
    }
    if let Some(tag) = tag {
        entries.insert(config.getattr(intern!(py, "tag_field")).ok()?.extract().ok()?, tag);
    }
    Some(Value::Object(entries))
}

/// The fields of a pydantic class. Their names in JSON are the ones by which they are validated, as the schema has them.
fn pydantic_fields(fields: &Bound<'_, PyDict>) -> Vec<FieldNames> {
    /// The first name of an alias: a text, a path or a list of choices.
    fn first_name(alias: &Bound<'_, PyAny>) -> Option<String> {
        let inner = ["choices", "path"].into_iter().find_map(|inner| alias.getattr_opt(inner).ok()?);
        inner.map_or_else(|| alias.extract().ok(), |inner| first_name(&inner.get_item(0).ok()?))
    }
    let names = |(name, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract().ok()?;
        let is_argument = !field.getattr("init").is_ok_and(|init| init.is(PyBool::new(init.py(), false)));
        let alias = field.getattr("validation_alias").ok().and_then(|alias| first_name(&alias));
        is_argument.then(|| (alias.unwrap_or_else(|| name.clone()), name))
    };
    entries_of(fields).into_iter().filter_map(names).collect()
}

/// The fields of a dataclass that its constructor takes.
fn dataclass_fields(fields: &Bound<'_, PyDict>) -> Vec<FieldNames> {
    let names = |(name, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract().ok()?;
        let kind: String = field.getattr("_field_type").ok()?.getattr("name").ok()?.extract().ok()?;
        let is_argument = kind != "_FIELD_CLASSVAR" && field.getattr("init").ok()?.is_truthy().ok()?;
        is_argument.then(|| (name.clone(), name))
    };
    entries_of(fields).into_iter().filter_map(names).collect()
}

/// The fields of an attrs class that its constructor takes.
fn attrs_fields(attributes: &Bound<'_, PyAny>) -> Option<Vec<FieldNames>> {
    let names = |attribute: PyResult<Bound<'_, PyAny>>| {
        let attribute = attribute.ok()?;
        let is_argument = attribute.getattr("init").ok()?.is_truthy().ok()?;
        let name = |name: &str| attribute.getattr(name).ok()?.extract().ok();
        is_argument.then_some((name("alias")?, name("name")?))
    };
    Some(attributes.try_iter().ok()?.filter_map(names).collect())
}
