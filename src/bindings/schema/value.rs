//! Python values as JSON, by what they are and not by their annotation: defaults, literals, members of enumerations.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
    PyType,
};
use serde_json::Number;

use crate::bindings::imported::import_module;
use crate::bindings::json::{MAX_DEPTH, entries_of, from_python, integer_from_python};
use crate::bindings::once::intern;
use crate::schema::{Entries, Node};

/// The JSON form of a default, or `None` if there is none, as for NaN and infinite numbers.
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
    match known_class_name(&default.get_type())?.as_str() {
        // Left out, because it would not come back as the same kind of mapping.
        "collections.defaultdict" => None,
        "re.Pattern" => match default.getattr("pattern").ok()?.cast::<PyBytes>() {
            Ok(pattern) => utf8_text(pattern.as_bytes()),
            Err(_) => to_json(default, 0),
        },
        name if is_pure_path(name) => str_of(default),
        _ => to_json(default, 0),
    }
}

/// The JSON form of a value inside an annotation: a literal, the value of an enumeration, an example.
pub(crate) fn value_to_json(value: &Bound<'_, PyAny>) -> Option<Node> {
    to_json(value, 0)
}

/// The items of a set in order, so that equal defaults give equal schemas.
fn in_order<'py>(set: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(set.py());
    for item in set.try_iter()? {
        list.append(item?)?;
    }
    list.sort()?;
    Ok(list.into_any())
}

fn to_json(value: &Bound<'_, PyAny>, depth: usize) -> Option<Node> {
    if depth > MAX_DEPTH {
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
        return pydantic_to_json(value);
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
    stdlib_to_json(value, &known_class_name(&kind)?, depth)
}

/// The JSON form of a value of a builtin type; `exact` excludes subclasses, which may have a form of their own.
#[allow(clippy::option_option, reason = "outside: it is one of these types; inside: it has a JSON form")]
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
        return Some(utf8_text(bytes.as_bytes()));
    }
    if let Some(bytes) = is::<PyByteArray>(value, exact) {
        return Some(utf8_text(&bytes.to_vec()));
    }
    if let Some(complex) = is::<PyComplex>(value, exact) {
        return Some(str_of(complex).map(|text| match text {
            Node::String(text) => Node::from(text.trim_start_matches('(').trim_end_matches(')').to_owned()),
            other => other,
        }));
    }
    None
}

fn utf8_text(bytes: &[u8]) -> Option<Node> {
    std::str::from_utf8(bytes).ok().map(|text| Node::from(text.to_owned()))
}

fn array(items: &Bound<'_, PyAny>, depth: usize) -> Option<Node> {
    let items = items.try_iter().ok()?;
    items.map(|item| to_json(&item.ok()?, depth + 1)).collect::<Option<Vec<_>>>().map(Node::Array)
}

fn mapping(dict: &Bound<'_, PyDict>, depth: usize) -> Option<Node> {
    let mut entries = Entries::with_capacity(dict.len());
    let mut are_texts = true;
    for (key, value) in entries_of(dict) {
        are_texts &= key.is_exact_instance_of::<PyString>();
        let (key, value) = (key_to_text(&key, depth + 1)?, to_json(&value, depth + 1)?);
        if are_texts {
            entries.push(key, value);
        } else {
            // Keys that differ in Python, such as `1` and `"1"`, can be the same in JSON.
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

fn str_of(value: &Bound<'_, PyAny>) -> Option<Node> {
    Some(Node::from(value.str().ok()?.to_str().ok()?.to_owned()))
}

/// The JSON form of a pydantic model, made by pydantic.
fn pydantic_to_json(value: &Bound<'_, PyAny>) -> Option<Node> {
    let module = import_module(value.py(), "pydantic_core").ok()?;
    from_python(&module.call_method1("to_jsonable_python", (value,)).ok()?).ok()
}

/// The first class in the ancestry that `stdlib_to_json` knows, or else the class itself, as `module.Name`.
fn known_class_name(kind: &Bound<'_, PyType>) -> Option<String> {
    let mut first = None;
    for class in kind.mro().iter() {
        let class = class.cast_into::<PyType>().ok()?;
        let module = class.module().ok()?;
        let name = format!("{}.{}", module.to_str().ok()?, class.name().ok()?.to_str().ok()?);
        if is_known(&name) {
            return Some(name);
        }
        first.get_or_insert(name);
    }
    first
}

fn is_known(name: &str) -> bool {
    is_pure_path(name)
        || matches!(
            name,
            "datetime.datetime"
                | "datetime.date"
                | "datetime.time"
                | "datetime.timedelta"
                | "decimal.Decimal"
                | "fractions.Fraction"
                | "uuid.UUID"
                | "re.Pattern"
                | "collections.deque"
                | "collections.defaultdict"
                | "pathlib.Path"
                | "pathlib._local.Path"
                | "zoneinfo.ZoneInfo"
                | "ipaddress.IPv4Address"
                | "ipaddress.IPv4Interface"
                | "ipaddress.IPv4Network"
                | "ipaddress.IPv6Address"
                | "ipaddress.IPv6Interface"
                | "ipaddress.IPv6Network"
        )
}

fn is_pure_path(name: &str) -> bool {
    let name = name.strip_prefix("pathlib.").map(|name| name.trim_start_matches("_local."));
    matches!(name, Some("PurePath" | "PurePosixPath" | "PureWindowsPath"))
}

/// The JSON form of a value of the standard library class `name`.
fn stdlib_to_json(value: &Bound<'_, PyAny>, name: &str, depth: usize) -> Option<Node> {
    match name {
        "datetime.datetime" | "datetime.time" => {
            let text: String = value.call_method0("isoformat").ok()?.extract().ok()?;
            Some(Node::from(text.strip_suffix("+00:00").map_or_else(|| text.clone(), |local| format!("{local}Z"))))
        }
        "datetime.date" => value.call_method0("isoformat").ok()?.extract::<String>().ok().map(Node::from),
        "datetime.timedelta" => duration(value),
        "collections.deque" => array(value, depth),
        "collections.defaultdict" => mapping(value.cast::<PyDict>().ok()?, depth),
        "re.Pattern" => str_of(&value.getattr("pattern").ok()?),
        _ if is_known(name) && !is_pure_path(name) => str_of(value),
        _ => None,
    }
}

/// A span of time in ISO 8601, with years of 365 days.
fn duration(value: &Bound<'_, PyAny>) -> Option<Node> {
    let part = |name: &str| value.getattr(name).ok()?.extract::<i128>().ok();
    let total = (part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?;
    let (sign, total) = if total < 0 { ("-", -total) } else { ("", total) };
    let (days, rest) = (total / 86_400_000_000, total % 86_400_000_000);
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let mut text = format!("{sign}P");
    for (amount, unit) in [(days / 365, 'Y'), (days % 365, 'D')] {
        if amount > 0 {
            text.push_str(&amount.to_string());
            text.push(unit);
        }
    }
    if rest > 0 || total == 0 {
        text.push('T');
        for (amount, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
            if amount > 0 {
                text.push_str(&amount.to_string());
                text.push(unit);
            }
        }
        if micros > 0 {
            let fraction = format!("{micros:06}");
            text.push_str(&[&(seconds % 60).to_string(), ".", fraction.trim_end_matches('0'), "S"].concat());
        } else if seconds % 60 > 0 || total == 0 {
            text.push_str(&[&(seconds % 60).to_string(), "S"].concat());
        }
    }
    Some(Node::from(text))
}
